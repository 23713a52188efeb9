//! Where a secret is found. The configuration holds only this, so it can be shown.

use std::path::PathBuf;

const LONGEST_ID: usize = 64;

/// A secret's id, and the place its value is read from when the host starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) id: String,
    pub(crate) place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Variable(String),
    File(PathBuf),
}

impl Reference {
    /// Reads `ID=env:VARIABLE` or `ID=file:PATH`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, place) = text.split_once('=')?;
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(letter) {
            return None;
        }
        Some(Self { id: id.to_owned(), place: Place::parse(place)? })
    }
}

impl Place {
    /// Reads `env:VARIABLE` or `file:PATH`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            (_, "") => None,
            ("env", name) if !name.contains(['=', '\0']) => Some(Self::Variable(name.to_owned())),
            ("file", path) => Some(Self::File(PathBuf::from(path))),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_a_secret_and_its_place() {
        let read = |text: &str| Reference::parse(text).unwrap();
        assert_eq!(read("db=env:DB_PASSWORD").place, Place::Variable("DB_PASSWORD".to_owned()));
        let file = read("tls.key-1=file:/run/secrets/a=b:c");
        assert_eq!((file.id.as_str(), file.place), ("tls.key-1", Place::File("/run/secrets/a=b:c".into())));
    }

    #[test]
    fn a_value_is_not_a_reference() {
        for bad in ["", "db", "db=", "db=hunter2-hunter2", "=env:X", "db=env:", "db=file:", "d b=env:X", "db=vault:x"] {
            assert_eq!(Reference::parse(bad), None, "{bad}");
        }
    }
}
