//! Where the database is and how to talk to it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use baton_store::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::unavailable;
use crate::tls::Mode;

#[derive(Clone)]
pub struct Settings {
    /// `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=/path/ca.pem`. Holds a password.
    pub url: String,
    /// What this host calls itself, for people who look at who is there.
    pub host: String,
    /// How long this host may be silent before others take over what it drives.
    pub lease: Duration,
    /// Connections for reading. There are four more: they look up, write, renew the lease and carry news.
    pub pool_size: usize,
    /// Be told of what other hosts do (LISTEN/NOTIFY); otherwise look every now and then.
    pub listen: bool,
}

impl Settings {
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), host: "baton".to_owned(), lease: Duration::from_secs(10), pool_size: 8, listen: true }
    }

    /// The address without what is secret in it, if it can be read.
    pub fn place(&self) -> String {
        Address::parse(&self.url).map_or_else(|_| "the database".to_owned(), |address| address.place())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("url", &self.place())
            .field("host", &self.host)
            .field("lease", &self.lease)
            .field("pool_size", &self.pool_size)
            .field("listen", &self.listen)
            .finish()
    }
}

/// A URL, read.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: Mode,
    pub(crate) roots: Option<PathBuf>,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let hint = "write it as postgres://user:password@host:5432/database";
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(unavailable(format!("the database URL is not one of PostgreSQL; {hint}")));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut tls, mut roots) = (Mode::default(), None);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            // The driver knows three modes and no file; these two are ours.
            match pair.split_once('=') {
                Some(("sslmode", mode)) => {
                    tls = Mode::parse(mode).ok_or_else(|| {
                        let known = "disable, prefer, require, verify-ca, verify-full";
                        unavailable(format!("sslmode={mode} in the database URL is not known; there are {known}"))
                    })?;
                }
                Some(("sslrootcert", path)) => roots = Some(PathBuf::from(decoded(path))),
                _ => rest.push(pair),
            }
        }
        let plain = if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
        // Not the error's own words: they may quote what is secret.
        let mut config: Config =
            plain.parse().map_err(|_| unavailable(format!("the database URL cannot be read; {hint}")))?;
        // What follows the first @ is taken for a host, and hosts are shown.
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.contains('@'))) {
            let escaped = "write an @ in the user or the password as %40";
            return Err(unavailable(format!("the database URL has more than one @; {escaped}")));
        }
        if config.get_hosts().is_empty() {
            return Err(unavailable(format!("the database URL names no host; {hint}")));
        }
        config.ssl_mode(match tls {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(10));
        }
        if config.get_application_name().is_none() {
            config.application_name("baton");
        }
        Ok(Self { config, tls, roots })
    }

    /// The database without user and password.
    pub(crate) fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => String::new(),
        };
        let port = self.config.get_ports().first().map_or(String::new(), |port| format!(":{port}"));
        format!("postgres://{host}{port}/{}", self.config.get_dbname().unwrap_or_default())
    }
}

/// `%2F` and the like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => {
                std::str::from_utf8(&[*high, *low]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_read_from_the_url_and_the_rest_is_the_drivers() {
        let url = "postgres://u:p@db.example:6432/x?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&connect_timeout=3";
        let address = Address::parse(url).unwrap();
        assert_eq!((address.tls, address.roots.as_deref()), (Mode::VerifyFull, Some("/etc/ca.pem".as_ref())));
        assert_eq!(address.config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(address.place(), "postgres://db.example:6432/x");
        assert_eq!(Address::parse("postgres://h/x").unwrap().tls, Mode::Prefer);
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_repeating_it() {
        for url in [
            "mysql://root:hunter2@h/x",
            "postgres://u:hunter2@h:port/x",
            "postgres://u:hunter2@h/x?sslmode=maybe",
            "postgres://u:hun@ter2@h/x",
            "postgres://u:hunter@2@h:5432/x",
        ] {
            let error = Address::parse(url).err().unwrap().to_string();
            assert!(!error.contains("hunter2") && !error.contains("ter2"), "{error}");
        }
        assert!(!format!("{:?}", Settings::new("postgres://u:hunter2@h/x")).contains("hunter2"));
    }
}
