//! Query strings, read without losing repeated names, with errors that name the parameter.

use std::convert::Infallible;
use std::ops::RangeInclusive;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use baton_model::Timestamp;

use crate::app::App;
use crate::error::ApiError;

#[derive(Clone, Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl FromRequestParts<App> for Params {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl Params {
    pub fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// A filter that is misspelt must not silently filter nothing.
    pub fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(bad(name, &format!("is not known here; known: {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    /// All values of a name; each may itself be a comma-separated list.
    pub(crate) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).flat_map(|(_, value)| value.split(',')).map(str::trim)
    }

    /// The value of a name that may appear once.
    pub fn one(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.0.iter().filter(|(n, _)| n == name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(bad(name, "is given more than once")),
            (first, None) => Ok(first.map(|(_, value)| value.as_str())),
        }
    }

    pub fn int(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<u64>() {
            Ok(number) if plain && range.contains(&number) => Ok(Some(number)),
            _ if *range.end() == u64::MAX => {
                Err(bad(name, &format!("must be an integer of at least {}", range.start())))
            }
            _ => Err(bad(name, &format!("must be an integer from {} to {}", range.start(), range.end()))),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.one(name)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(bad(name, "must be true or false")),
        }
    }

    pub(crate) fn instant(&self, name: &str) -> Result<Option<Timestamp>, ApiError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let instant = Timestamp::parse(text);
        instant.map(Some).ok_or_else(|| bad(name, "must be an RFC 3339 instant such as 2026-01-31T12:00:00Z"))
    }
}

pub fn bad(name: &str, problem: &str) -> ApiError {
    ApiError::invalid(format!("Query parameter `{name}` {problem}.")).with("parameter", name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain_and_bounded() {
        let params = Params::parse("a=5&b=-1&c=%2B5&d=99999999999999999999&e=&f=1.0&g=5&g=6&z=0");
        assert_eq!(params.int("a", 1..=9).unwrap(), Some(5));
        assert_eq!(params.int("missing", 1..=9).unwrap(), None);
        for name in ["b", "c", "d", "e", "f", "g", "z"] {
            let error = params.int(name, 1..=9).unwrap_err();
            assert_eq!((error.status.as_u16(), error.details["parameter"].as_str()), (400, Some(name)));
        }
    }

    #[test]
    fn lists_repeat_and_take_commas() {
        let params = Params::parse("status=running,failed&status=paused&other=x");
        assert_eq!(params.list("status").collect::<Vec<_>>(), ["running", "failed", "paused"]);
        assert!(params.only(&["status", "other"]).is_ok());
        assert!(params.only(&["status"]).unwrap_err().message.contains("`other`"));
    }

    #[test]
    fn instants_are_rfc_3339() {
        let params = Params::parse("at=2026-01-31T12:00:00Z&bad=yesterday");
        assert!(params.instant("at").unwrap().is_some());
        assert!(params.instant("bad").is_err());
    }
}
