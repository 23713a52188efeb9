//! Other hosts that runs may have workers on: `[remotes.NAME]` in the file, one line of text elsewhere. Like all
//! settings they can be shown, because they say where a credential is found and not what it is.

use baton_remote::origin;

use super::references::Reference;
use super::suggest::nearest;

const FIELDS: [&str; 3] = ["url", "credential", "tenants"];

/// Another host, and where the key to it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// `https://host[:port]`.
    pub(crate) origin: String,
    /// Under the remote's name.
    pub(crate) credential: Reference,
    /// Whose runs may have workers there; everybody's if absent.
    pub(crate) tenants: Option<Vec<String>>,
}

/// What is wrong with a table.
pub(super) enum Wrong {
    /// A field nobody knows, and what may have been meant.
    Unknown(String, Option<String>),
    Value,
}

impl Remote {
    /// Reads `NAME[:tenant+tenant]=URL@env:VARIABLE` or `…@file:PATH`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (names, rest) = text.split_once('=')?;
        let (name, tenants) = match names.split_once(':') {
            Some((name, tenants)) => (name, Some(tenants.split('+').map(str::to_owned).collect::<Vec<_>>())),
            None => (names, None),
        };
        if tenants.as_ref().is_some_and(|tenants| tenants.iter().any(|tenant| !is_tenant(tenant))) {
            return None;
        }
        let at = [rest.find("@env:"), rest.find("@file:")].into_iter().flatten().min()?;
        let (url, place) = (&rest[..at], &rest[at + 1..]);
        let credential = Reference::parse(&format!("{name}={place}"))?;
        Some(Self { origin: origin(url).ok()?, credential, tenants })
    }

    /// Whether the credential travels over a network for everybody to read.
    pub(crate) fn is_exposed(&self) -> bool {
        let Some(rest) = self.origin.strip_prefix("http://") else { return false };
        let host = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => rest.split(':').next().unwrap_or_default(),
        };
        host != "localhost" && !host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Several, each under a name of its own. What cannot be read may hold a secret, so nobody repeats it.
    pub(super) fn parse_all(items: &[String]) -> Option<Vec<Self>> {
        let all: Vec<Self> = items.iter().map(|item| Self::parse(item)).collect::<Option<_>>()?;
        let mut names: Vec<&str> = all.iter().map(|remote| remote.credential.id.as_str()).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1]).then_some(all)
    }

    /// The line of text that says the same as `[remotes.NAME]`.
    pub(super) fn from_table(name: &str, table: &toml::Value) -> Result<String, Wrong> {
        let toml::Value::Table(table) = table else { return Err(Wrong::Value) };
        if let Some(field) = table.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            let suggestion = nearest(field, FIELDS.into_iter()).map(|known| format!("remotes.{name}.{known}"));
            return Err(Wrong::Unknown(format!("remotes.{name}.{field}"), suggestion));
        }
        let text = |field: &str| table.get(field).and_then(toml::Value::as_str).ok_or(Wrong::Value);
        let tenants = match table.get("tenants") {
            None => String::new(),
            Some(toml::Value::Array(tenants)) if !tenants.is_empty() => {
                let tenants: Option<Vec<&str>> = tenants.iter().map(toml::Value::as_str).collect();
                format!(":{}", tenants.ok_or(Wrong::Value)?.join("+"))
            }
            Some(_) => return Err(Wrong::Value),
        };
        let line = format!("{name}{tenants}={}@{}", text("url")?, text("credential")?);
        Self::parse(&line).map(|_| line).ok_or(Wrong::Value)
    }
}

fn is_tenant(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, ':' | ',' | '=' | '@'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::config::Place;

    #[test]
    fn a_line_names_a_host_and_where_its_key_is() {
        let remote = Remote::parse("north=https://North.Example/@env:NORTH_KEY").unwrap();
        assert_eq!((remote.origin.as_str(), remote.tenants), ("https://north.example", None));
        assert_eq!(remote.credential.id, "north");
        assert_eq!(remote.credential.place, Place::Variable("NORTH_KEY".to_owned()));
        let remote = Remote::parse("n:acme+beta=http://127.0.0.1:7717@file:/run/a@env:b").unwrap();
        assert_eq!(remote.tenants.unwrap(), ["acme", "beta"]);
        assert_eq!(remote.credential.place, Place::File("/run/a@env:b".into()));
    }

    #[test]
    fn anything_else_is_none() {
        for bad in [
            "",
            "north",
            "north=https://north.example",
            "north=https://north.example@s3cr3t",
            "north=https://north.example@env:",
            "north=https://me@north.example@env:X",
            "north=https://north.example/path@env:X",
            "north=north.example@env:X",
            "north:=https://north.example@env:X",
            "north:a+=https://north.example@env:X",
            "no rth=https://north.example@env:X",
            "=https://north.example@env:X",
        ] {
            assert_eq!(Remote::parse(bad), None, "{bad}");
        }
        let twice = ["n=https://a.example@env:X".to_owned(), "n=https://b.example@env:X".to_owned()];
        assert_eq!(Remote::parse_all(&twice), None);
    }

    #[test]
    fn a_table_says_the_same() {
        let read = |text: &str| Remote::from_table("north", &toml::Value::Table(toml::from_str(text).unwrap()));
        let line =
            read("url = \"https://north.example\"\ncredential = \"env:K\"\ntenants = [\"a\", \"b\"]").ok().unwrap();
        assert_eq!(line, "north:a+b=https://north.example@env:K");
        let Err(Wrong::Unknown(field, suggestion)) = read("url = \"https://x\"\ncredental = \"env:K\"") else {
            panic!("a field nobody knows")
        };
        assert_eq!(
            (field.as_str(), suggestion.as_deref()),
            ("remotes.north.credental", Some("remotes.north.credential"))
        );
        for bad in
            ["", "url = \"https://x\"", "url = 1\ncredential = \"env:K\"", "url = \"https://x\"\ncredential = \"K\""]
        {
            assert!(matches!(read(bad), Err(Wrong::Value)), "{bad}");
        }
    }
}
