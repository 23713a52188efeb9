//! The judge of addresses.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::lookup::{Lookup, SystemLookup};
use super::place::Place;
use super::ranges::is_public;

/// Names that lead inwards whatever the name service says; subdomains included.
const INSIDE_NAMES: &[&str] = &["localhost", "localdomain", "local", "internal", "home.arpa", "metadata.goog"];

/// Why an address may not be called. Says nothing about what was found there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("only https:// addresses can be called")]
    Scheme,
    #[error("the address must not contain a user name or password")]
    Credentials,
    #[error("the host is not on the public internet")]
    Inside,
}

/// Judges addresses and resolves names for the calling client.
#[derive(Clone)]
pub struct Guard {
    allow_private: bool,
    places: Arc<[Place]>,
    lookup: Arc<dyn Lookup>,
}

impl Guard {
    /// `allow_private` opens private addresses and plain HTTP everywhere: for tests on one machine, and for hosts that
    /// trust everybody who may choose an address.
    pub fn new(allow_private: bool) -> Self {
        Self { allow_private, places: Arc::new([]), lookup: Arc::new(SystemLookup) }
    }

    /// Opens single places, whatever they resolve to, with or without TLS.
    #[must_use]
    pub fn with_places(self, places: impl IntoIterator<Item = Place>) -> Self {
        Self { places: places.into_iter().collect(), ..self }
    }

    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, ..self }
    }

    /// Everything that can be judged without asking the name service.
    pub fn check(&self, url: &Url) -> Result<(), Refused> {
        // First: no setting opens that, so nobody is told of one.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let open = self.is_open(url);
        match url.scheme() {
            "https" => {}
            "http" if open => {}
            _ => return Err(Refused::Scheme),
        }
        // The parser has already turned other spellings of an IPv4 address (octal, one number) into the usual one.
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let public = match literal.parse::<IpAddr>() {
            Ok(address) => is_public(address),
            Err(_) => is_public_name(host),
        };
        if public || open { Ok(()) } else { Err(Refused::Inside) }
    }

    /// Whether a URL may lead inwards: the operator opened everything, or this very host and port.
    pub(super) fn is_open(&self, url: &Url) -> bool {
        self.allow_private || self.places.iter().any(|place| place.is_of(url))
    }

    /// For a client that is only given URLs which are all open, or all not.
    pub(super) fn resolver(&self, open: bool) -> Resolver {
        Resolver { lookup: Arc::clone(&self.lookup), open }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("allow_private", &self.allow_private).field("places", &self.places).finish()
    }
}

/// Hands a client the addresses it may connect to.
pub(super) struct Resolver {
    lookup: Arc<dyn Lookup>,
    open: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, open) = (Arc::clone(&self.lookup), self.open);
        Box::pin(async move {
            let addresses = lookup.addresses(name.as_str()).await?;
            // One bad address spoils the answer, because which one gets used is not ours to choose.
            if !open && addresses.iter().any(|address| !is_public(*address)) {
                return Err(Refused::Inside.into());
            }
            // Port 0 stands for the port of the URL.
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// A name without a dot means something only inside a network (`metadata`, `db`).
fn is_public_name(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name.contains('.')
        && !INSIDE_NAMES
            .iter()
            .any(|inside| name.strip_suffix(inside).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn verdict(guard: &Guard, url: &str) -> Result<(), Refused> {
        guard.check(&Url::parse(url).unwrap())
    }

    #[test]
    fn public_https_is_allowed() {
        for url in [
            "https://hooks.example.com/in?x=1",
            "https://8.8.8.8:8443/",
            "https://[2606:4700::1111]/",
            "https://notlocalhost.com",
            "https://localhost.example.com",
        ] {
            assert_eq!(verdict(&Guard::new(false), url), Ok(()), "{url}");
        }
    }

    #[test]
    fn what_leads_inwards_is_refused() {
        for (url, why) in [
            ("http://hooks.example.com", Refused::Scheme),
            ("ftp://hooks.example.com", Refused::Scheme),
            ("file:///etc/passwd", Refused::Scheme),
            ("https://user@hooks.example.com", Refused::Credentials),
            ("https://user:word@hooks.example.com", Refused::Credentials),
            ("https://:word@hooks.example.com", Refused::Credentials),
            ("https://localhost/x", Refused::Inside),
            ("https://LOCALHOST.:8443/x", Refused::Inside),
            ("https://a.localhost", Refused::Inside),
            ("https://metadata/", Refused::Inside),
            ("https://metadata.google.internal/computeMetadata/v1/", Refused::Inside),
            ("https://printer.local", Refused::Inside),
            ("https://db", Refused::Inside),
            ("https://10.0.0.1", Refused::Inside),
            ("https://127.1", Refused::Inside),
            ("https://2130706433", Refused::Inside),
            ("https://0x7f.0.0.1", Refused::Inside),
            ("https://0177.0.0.1", Refused::Inside),
            ("https://169.254.169.254/latest/meta-data", Refused::Inside),
            ("https://[::1]", Refused::Inside),
            ("https://[::ffff:127.0.0.1]", Refused::Inside),
            ("https://[fe80::1]", Refused::Inside),
            ("https://[fd00::1]", Refused::Inside),
            ("https://１２７.0.0.1", Refused::Inside),
        ] {
            assert_eq!(verdict(&Guard::new(false), url), Err(why), "{url}");
        }
    }

    #[test]
    fn the_whole_switch_opens_scheme_and_addresses_but_not_the_rest() {
        let open = Guard::new(true);
        for url in ["http://127.0.0.1:9/x", "http://localhost:9", "https://10.0.0.1", "http://[::1]:9"] {
            assert_eq!(verdict(&open, url), Ok(()), "{url}");
        }
        assert_eq!(verdict(&open, "ftp://127.0.0.1"), Err(Refused::Scheme));
        assert_eq!(verdict(&open, "http://user@127.0.0.1"), Err(Refused::Credentials));
    }

    #[test]
    fn a_place_opens_itself_and_no_neighbour() {
        let guard =
            Guard::new(false).with_places(["db.internal:8080".parse().unwrap(), "127.0.0.1:80".parse().unwrap()]);
        for url in ["http://db.internal:8080/x", "https://db.internal:8080", "http://127.0.0.1/", "http://127.1:80/"] {
            assert_eq!(verdict(&guard, url), Ok(()), "{url}");
        }
        assert_eq!(verdict(&guard, "https://db.internal:8081"), Err(Refused::Inside));
        assert_eq!(verdict(&guard, "https://b.db.internal:8080"), Err(Refused::Inside));
        assert_eq!(verdict(&guard, "http://127.0.0.1:81/"), Err(Refused::Scheme));
        assert_eq!(verdict(&guard, "http://user@db.internal:8080"), Err(Refused::Credentials));
    }
}
