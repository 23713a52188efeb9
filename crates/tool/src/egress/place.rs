//! One `host:port` that the operator lets calls go to although it is inside, or does not speak TLS.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

/// A host and a port, as `db.internal:8080` or `[::1]:8080`. Both must match; there are no wildcards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// In the spelling of [`Url`]: lower case, IPv6 in brackets, other spellings of an IPv4 address undone.
    host: String,
    port: u16,
}

/// Why a text does not name a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a place: write host:port, for example db.internal:8080")]
pub struct NotAPlace(String);

impl Place {
    pub(super) fn is_of(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| host.trim_end_matches('.') == self.host)
            && url.port_or_known_default() == Some(self.port)
    }
}

impl FromStr for Place {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let not_a_place = || NotAPlace(text.to_owned());
        // The URL parser brings a host into the spelling that requests will have. It leaves out a port that is the
        // scheme's own, so the port is read here.
        let (host, port) = text.rsplit_once(':').ok_or_else(not_a_place)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(not_a_place)?;
        let url = Url::parse(&format!("http://{host}/")).map_err(|_| not_a_place())?;
        let plain = url.path() == "/" && url.username().is_empty() && url.password().is_none() && url.port().is_none();
        let host = url
            .host_str()
            .map(|host| host.trim_end_matches('.'))
            .filter(|host| plain && !host.is_empty() && !host.contains('*'));
        Ok(Self { host: host.ok_or_else(not_a_place)?.to_owned(), port })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_host_and_a_port_and_nothing_else() {
        for (text, shown) in [
            ("db.internal:8080", "db.internal:8080"),
            ("DB.Internal.:443", "db.internal:443"),
            ("127.1:80", "127.0.0.1:80"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), shown);
        }
        for text in ["", "db", ":80", "db:", "db:0", "db:70000", "*:80", "a b:80", "user@db:80", "db/x:80", "::1:80"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }

    #[test]
    fn both_parts_must_match() {
        let place: Place = "db.internal:443".parse().unwrap();
        let is_of = |url: &str| place.is_of(&Url::parse(url).unwrap());
        assert!(
            is_of("https://db.internal/x") && is_of("https://DB.internal.:443/") && is_of("http://db.internal:443")
        );
        for url in ["http://db.internal/", "https://db.internal:444/", "https://a.db.internal/", "https://b.internal/"]
        {
            assert!(!is_of(url), "{url}");
        }
    }
}
