//! `/v1/runs/{runId}:verb`. Routers see one segment there, so the verb is split off by hand. Run ids never contain a
//! colon, which makes the last one unambiguous.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use baton_model::RunId;

use crate::app::App;
use crate::error::ApiError;
use crate::path::Ids;

/// The run that a path with a verb behind it names.
pub(crate) struct RunBeforeVerb(pub(crate) RunId);

impl FromRequestParts<App> for RunBeforeVerb {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Ids(segment) = Ids::<String>::from_request_parts(parts, app).await?;
        Ok(Self(RunId::from(split(&segment).0)))
    }
}

/// A run's id and, behind the last colon, what to do with it.
pub(crate) fn split(segment: &str) -> (&str, Option<&str>) {
    match segment.rsplit_once(':') {
        Some((run, verb)) => (run, Some(verb)),
        None => (segment, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_colon_separates_the_verb() {
        let cases = [
            ("run_1", "run_1", None),
            ("run_1:pause", "run_1", Some("pause")),
            ("run_1:Pause", "run_1", Some("Pause")),
            ("run_1:", "run_1", Some("")),
            (":pause", "", Some("pause")),
            ("a:b:pause", "a:b", Some("pause")),
            ("", "", None),
        ];
        for (segment, run, verb) in cases {
            assert_eq!(split(segment), (run, verb), "{segment:?}");
        }
    }
}
