//! Reading the secrets that must never be stored. Nothing here repeats a value: errors name the place it is read from.

use std::path::Path;

use baton_model::{MIN_SECRET_BYTES, Secret};

use crate::config::{Place, Reference};
use crate::failure::Failure;

/// The values behind the references. One that cannot be read would silently not be kept out, so it stops the start.
pub(crate) fn resolve(references: &[Reference]) -> Result<Vec<Secret>, Failure> {
    references.iter().map(secret).collect()
}

/// What a reference leads to, and where it was found.
pub(super) struct Found {
    pub(super) text: String,
    place: String,
}

/// Reads what a reference of `setting` leads to.
pub(super) fn value(reference: &Reference, setting: &str) -> Result<Found, Failure> {
    let id = &reference.id;
    let hint = |what: &str| format!("{what}, or take it out of {setting}");
    match &reference.place {
        Place::Variable(name) => {
            let unset = |why: &str| {
                Failure::usage(format!("the secret `{id}` is read from the variable {name}, which {why}"))
                    .hint(hint(&format!("set {name}")))
            };
            let text = std::env::var(name).map_err(|error| match error {
                std::env::VarError::NotPresent => unset("is not set"),
                std::env::VarError::NotUnicode(_) => unset("is not text"),
            })?;
            Ok(Found { text, place: format!("the variable {name}") })
        }
        Place::File(path) => {
            let place = path.display().to_string();
            let text = from_file(path).map_err(|error| {
                Failure::usage(format!("the secret `{id}` is read from {place}, which cannot be read: {error}"))
                    .hint(hint("write the file"))
            })?;
            Ok(Found { text, place })
        }
    }
}

fn secret(reference: &Reference) -> Result<Secret, Failure> {
    let id = &reference.id;
    let Found { text: value, place } = value(reference, "`secrets`")?;
    if value.len() < MIN_SECRET_BYTES {
        let message = format!(
            "the secret `{id}` from {place} has fewer than {MIN_SECRET_BYTES} bytes; taking out anything that short would \
             shred ordinary text"
        );
        return Err(Failure::usage(message).hint("use a longer secret, or take it out of `secrets`"));
    }
    Ok(Secret::new(id, value))
}

/// The file without the line break editors leave at its end.
fn from_file(path: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn from(text: &str) -> Result<Vec<Secret>, Failure> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        std::fs::write(&path, text).unwrap();
        resolve(&[Reference { id: "db".to_owned(), place: Place::File(path) }])
    }

    #[test]
    fn a_file_gives_its_text_without_the_last_line_break() {
        assert_eq!(from("long enough\r\n").unwrap(), [Secret::new("db", "long enough")]);
        assert_eq!(from("two lines\nof it\n").unwrap(), [Secret::new("db", "two lines\nof it")]);
    }

    #[test]
    fn what_cannot_be_used_stops_the_start_and_is_not_repeated() {
        let short = from("hunter2\n").unwrap_err();
        assert_eq!(short.exit, Exit::Usage);
        assert!(!short.message().unwrap().contains("hunter2"));
        let place = Place::Variable("BATON_TEST_NOWHERE_SET".to_owned());
        let unset = resolve(&[Reference { id: "db".to_owned(), place }]).unwrap_err();
        assert!(unset.message().unwrap().contains("BATON_TEST_NOWHERE_SET, which is not set"));
    }
}
