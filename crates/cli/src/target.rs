//! Which host a command talks to. Flag before environment before the dev server of this folder before the default
//! port: so that after `baton dev` nothing has to be typed.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use baton_client::Client;

use crate::dev_file::DevFile;
use crate::failure::Failure;

pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7717";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) key: Option<String>,
}

impl Target {
    /// `url` and `key` come from flags or the environment. A dev key is only ever sent to its own dev server.
    pub(crate) fn resolve(url: Option<String>, key: Option<String>, dev: Option<DevFile>) -> Self {
        match (url, dev) {
            (None, Some(dev)) => Self { url: dev.url, key: key.or(Some(dev.key)) },
            (Some(url), Some(dev)) if same_place(&url, &dev.url) => Self { url, key: key.or(Some(dev.key)) },
            (Some(url), _) => Self { url, key },
            (None, None) => Self { url: DEFAULT_URL.to_owned(), key },
        }
    }

    /// The host of this machine that listens there. No key: it is not known whose host that is.
    pub(crate) fn listening(mut address: SocketAddr) -> Self {
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        Self { url: format!("http://{address}"), key: None }
    }

    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(&self.url, self.key.as_deref())?)
    }
}

fn same_place(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn dev() -> Option<DevFile> {
        Some(DevFile { url: "http://127.0.0.1:9".to_owned(), key: "dev".to_owned() })
    }

    fn resolve(url: Option<&str>, key: Option<&str>, dev: Option<DevFile>) -> (String, Option<String>) {
        let target = Target::resolve(url.map(str::to_owned), key.map(str::to_owned), dev);
        (target.url, target.key)
    }

    #[test]
    fn the_nearest_source_wins() {
        assert_eq!(resolve(None, None, None), (DEFAULT_URL.to_owned(), None));
        assert_eq!(resolve(None, None, dev()), ("http://127.0.0.1:9".to_owned(), Some("dev".to_owned())));
        assert_eq!(resolve(None, Some("k"), dev()), ("http://127.0.0.1:9".to_owned(), Some("k".to_owned())));
    }

    #[test]
    fn an_address_for_everybody_is_reached_from_here() {
        let url = |address: &str| Target::listening(address.parse().unwrap()).url;
        assert_eq!(url("0.0.0.0:8080"), "http://127.0.0.1:8080");
        assert_eq!(url("[::]:8080"), "http://[::1]:8080");
        assert_eq!(url("10.0.0.7:8080"), "http://10.0.0.7:8080");
    }

    #[test]
    fn a_dev_key_never_goes_to_another_host() {
        assert_eq!(resolve(Some("https://x"), None, dev()), ("https://x".to_owned(), None));
        assert_eq!(
            resolve(Some("http://127.0.0.1:9/"), None, dev()),
            ("http://127.0.0.1:9/".to_owned(), Some("dev".to_owned()))
        );
    }
}
