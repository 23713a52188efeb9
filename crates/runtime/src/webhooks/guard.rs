//! Where a webhook may point. Checked when it is registered and again, against the resolved addresses, every time a
//! connection is made: a name that was harmless yesterday may point inwards today.
//!
//! At delivery the check and the connection use one and the same answer of the name service: the client can only
//! connect to addresses that [`Guard`] hands it, so there is no second lookup that could say something else.

use std::net::{IpAddr, SocketAddr};

use baton_model::code;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Webhooks;
use super::ranges::is_public;
use crate::{Error, Kind};

/// Names that lead inwards whatever the name service says; subdomains included.
const INSIDE_NAMES: &[&str] = &["localhost", "localdomain", "local", "internal", "home.arpa", "metadata.goog"];

/// Why an address may not be called. Says nothing about what was found there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("only https:// addresses can be called")]
    Scheme,
    #[error("the address must not contain a user name or password")]
    Credentials,
    #[error("the host is not on the public internet")]
    Inside,
}

/// Judges addresses and resolves names for the delivering client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    /// Private addresses and plain HTTP are allowed: for tests on one machine.
    pub(crate) allow_private: bool,
}

impl Webhooks {
    pub(crate) fn check_url(&self, url: &str) -> Result<(), Error> {
        let unreadable = || Error::invalid("`url` must be an absolute https:// address with a host.");
        let parsed = Url::parse(url).map_err(|cause| unreadable().because(cause))?;
        if parsed.host_str().is_none_or(str::is_empty) {
            return Err(unreadable());
        }
        self.guard.check(&parsed).map_err(|refused| {
            let message = format!("This webhook address is not allowed: {refused}. Use a public https:// endpoint.");
            Error::new(Kind::Invalid, code::WEBHOOK_URL_REJECTED, message)
        })
    }
}

impl Guard {
    /// Everything that can be judged without asking the name service.
    pub(crate) fn check(self, url: &Url) -> Result<(), Refused> {
        match url.scheme() {
            "https" => {}
            "http" if self.allow_private => {}
            _ => return Err(Refused::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        // The parser has already turned other spellings of an IPv4 address (octal, one number) into the usual one.
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let public = match literal.parse::<IpAddr>() {
            Ok(address) => is_public(address),
            Err(_) => is_public_name(host),
        };
        if public || self.allow_private { Ok(()) } else { Err(Refused::Inside) }
    }

    /// The addresses behind a name, if all of them may be called: one bad one spoils the answer, because which one
    /// gets used is not ours to choose.
    async fn resolve_safely(self, host: &str) -> std::io::Result<Vec<SocketAddr>> {
        // Port 0 stands for the port of the URL.
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
        if !self.allow_private && addresses.iter().any(|address| !is_public(address.ip())) {
            return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, Refused::Inside));
        }
        Ok(addresses)
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        Box::pin(async move { Ok(Box::new(guard.resolve_safely(name.as_str()).await?.into_iter()) as Addrs) })
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

    fn verdict(url: &str, allow_private: bool) -> Result<(), &'static str> {
        Webhooks::new(allow_private).check_url(url).map_err(|error| error.code)
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
            assert_eq!(verdict(url, false), Ok(()), "{url}");
        }
    }

    #[test]
    fn what_leads_inwards_is_rejected() {
        for url in [
            "http://hooks.example.com",
            "ftp://hooks.example.com",
            "https://user@hooks.example.com",
            "https://user:word@hooks.example.com",
            "https://:word@hooks.example.com",
            "https://localhost/x",
            "https://LOCALHOST.:8443/x",
            "https://a.localhost",
            "https://metadata/",
            "https://metadata.google.internal/computeMetadata/v1/",
            "https://printer.local",
            "https://db",
            "https://10.0.0.1",
            "https://127.1",
            "https://2130706433",
            "https://0x7f.0.0.1",
            "https://0177.0.0.1",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]",
            "https://[::ffff:127.0.0.1]",
            "https://[fe80::1]",
            "https://[fd00::1]",
            "https://１２７.0.0.1",
        ] {
            assert_eq!(verdict(url, false), Err(code::WEBHOOK_URL_REJECTED), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_a_validation_error() {
        for url in ["", "hooks.example.com", "/path", "https://", "https://?x", "https://exa mple.com", "mailto:a@b.c"]
        {
            assert_eq!(verdict(url, false), Err(code::VALIDATION_ERROR), "{url:?}");
        }
    }

    #[test]
    fn the_test_switch_opens_scheme_and_addresses_but_not_the_rest() {
        for url in ["http://127.0.0.1:9/x", "http://localhost:9", "https://10.0.0.1", "http://[::1]:9"] {
            assert_eq!(verdict(url, true), Ok(()), "{url}");
        }
        assert_eq!(verdict("ftp://127.0.0.1", true), Err(code::WEBHOOK_URL_REJECTED));
        assert_eq!(verdict("http://user@127.0.0.1", true), Err(code::WEBHOOK_URL_REJECTED));
        assert_eq!(verdict("127.0.0.1:9", true), Err(code::VALIDATION_ERROR));
    }

    #[tokio::test]
    async fn a_name_that_resolves_inwards_is_refused_at_connection_time() {
        // `localhost` stands for any name whose answer is a loopback address; registration is not involved here.
        let refused = Guard { allow_private: false }.resolve_safely("localhost").await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
        let allowed = Guard { allow_private: true }.resolve_safely("localhost").await.unwrap();
        assert!(!allowed.is_empty() && allowed.iter().all(|address| address.ip().is_loopback()), "{allowed:?}");
    }
}
