//! The host's name among others: what causes on other hosts and exported journals refer to, so it stays the same for as
//! long as the data lives. Given, else the public address without its scheme and path, else made once and kept
//! with the data.

use std::fs;
use std::io;
use std::path::Path;

use baton_model::json::hex;

use crate::config::{Config, Origin, is_host_id};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::private_file;

/// The file in the data folder, and the name in a shared database.
pub(crate) const NAME: &str = "host-id";
const RANDOM_BYTES: usize = 8;

/// The host's id, made now if there is none yet.
pub(crate) fn load(config: &Config) -> Result<String, Failure> {
    let Config { host_id, public_url, data, .. } = config;
    if let Some((known, _)) = find(host_id.as_deref(), public_url.as_deref(), data)? {
        return Ok(known);
    }
    let made = fresh()?;
    private_file::replace(&data.join(NAME), format!("{made}\n").as_bytes())?;
    Ok(made)
}

pub(crate) fn fresh() -> Result<String, Failure> {
    Ok(format!("baton-{}", hex(&private_file::random(RANDOM_BYTES)?)))
}

/// The id that the configuration says, if it does.
pub(crate) fn given(config: &Config) -> Option<String> {
    config.host_id.clone().or_else(|| config.public_url.as_deref().and_then(host_of))
}

/// The id as far as it is known before the first start, and where it comes from when it was not given.
pub(crate) fn find(
    given: Option<&str>,
    public_url: Option<&str>,
    data: &Path,
) -> Result<Option<(String, Option<Origin>)>, Failure> {
    if let Some(given) = given {
        return Ok(Some((given.to_owned(), None)));
    }
    if let Some(host) = public_url.and_then(host_of) {
        return Ok(Some((host, Some(Origin::Setting("public_url")))));
    }
    let path = data.join(NAME);
    match fs::read_to_string(&path) {
        Ok(text) if is_host_id(text.trim()) => Ok(Some((text.trim().to_owned(), Some(Origin::File(path))))),
        Ok(_) => Err(Failure::new(Exit::Failed, format!("{} does not contain a host id", path.display()))
            .hint("remove the file to create a new id, or set one with --host-id")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Exit::Failed, format!("{}: {error}", path.display()))),
    }
}

/// `https://user@Baton.example.com:8443/x` → `baton.example.com:8443`. The port belongs to the name, since several hosts
/// may share a machine; one that goes without saying does not.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (_, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(address, port)| (format!("[{address}]"), port.strip_prefix(':')))?,
        None => match place.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (place.to_owned(), None),
        },
    };
    let usual = if scheme.eq_ignore_ascii_case("https") { "443" } else { "80" };
    let port = port.filter(|port| !port.is_empty() && *port != usual).map(|port| format!(":{port}"));
    let name = format!("{}{}", host.to_ascii_lowercase(), port.unwrap_or_default());
    Some(name).filter(|name| !host.is_empty() && is_host_id(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::config::Layered;

    fn config(data: &Path) -> Config {
        Config { data: data.to_owned(), ..Layered::defaults().config().unwrap() }
    }

    #[test]
    fn is_made_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let made = load(&config(dir.path())).unwrap();
        let digits = made.strip_prefix("baton-").unwrap();
        assert!(digits.len() == 16 && digits.chars().all(|c| c.is_ascii_hexdigit()), "{made}");
        assert_eq!(load(&config(dir.path())).unwrap(), made);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(load(&config(other.path())).unwrap(), made);
    }

    #[test]
    fn what_is_given_wins_over_the_public_address_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let public_url = Some("https://baton.example.com/x".to_owned());
        let derived = Config { public_url, ..config(dir.path()) };
        assert_eq!(load(&derived).unwrap(), "baton.example.com");
        let given = Config { host_id: Some("north".to_owned()), ..derived };
        assert_eq!(load(&given).unwrap(), "north");
        assert!(!dir.path().join(NAME).exists());
    }

    #[test]
    fn the_host_of_an_address() {
        for (url, host) in [
            ("https://Baton.example.com", Some("baton.example.com")),
            ("http://user:secret@10.0.0.1:80/a?b#c", Some("10.0.0.1")),
            ("https://[2001:db8::1]:8443/", Some("[2001:db8::1]:8443")),
            ("https://[2001:db8::1]:443/", Some("[2001:db8::1]")),
            ("http://[2001:db8::1]", Some("[2001:db8::1]")),
            ("http://127.0.0.1:8500", Some("127.0.0.1:8500")),
            ("http://127.0.0.1:8503/", Some("127.0.0.1:8503")),
            ("https://north.example:443", Some("north.example")),
            ("https://north.example:80", Some("north.example:80")),
            ("HTTPS://north.example:/x", Some("north.example")),
            ("https:///x", None),
            ("https://:8443/x", None),
            ("baton.example.com", None),
            ("https://a b/", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }

    #[test]
    fn a_file_that_holds_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "two words\n"] {
            fs::write(dir.path().join(NAME), text).unwrap();
            assert!(load(&config(dir.path())).is_err());
        }
    }
}
