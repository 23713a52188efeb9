//! JSON typed on the command line or read from a file.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::failure::Failure;

/// The text of a file; `-` is stdin.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

/// What a file that cannot be read means to a script, whatever it was to be read for.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let exit = if error.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Failed };
    Failure::new(exit, format!("{}: {error}", path.display()))
}

pub(crate) fn parse(text: &str, what: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::usage(format!("{what} is not valid JSON: {error}")))
}

pub(crate) fn object(text: &str, what: &str) -> Result<Map<String, Value>, Failure> {
    match parse(text, what)? {
        Value::Object(map) => Ok(map),
        _ => Err(Failure::usage(format!("{what} must be a JSON object")).hint("for example '{\"topic\": \"tides\"}'")),
    }
}

/// A JSON object, or `@FILE` for one that is in a file (`@-` = stdin).
pub(crate) fn object_or_file(text: &str, what: &str) -> Result<Map<String, Value>, Failure> {
    match text.strip_prefix('@') {
        Some(path) => object(&read(Path::new(path))?, path),
        None => object(text, what),
    }
}

/// A value as a person types it: JSON where it is JSON, else the text itself.
pub(crate) fn loose(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn loose_values_are_json_where_they_can_be() {
        assert_eq!(loose("3"), Value::from(3));
        assert_eq!(loose("true"), Value::Bool(true));
        assert_eq!(loose("next week"), Value::from("next week"));
    }

    #[test]
    fn an_input_that_is_no_object_is_a_usage_error() {
        assert_eq!(object("[1]", "-i").unwrap_err().exit, Exit::Usage);
        assert_eq!(object("{", "-i").unwrap_err().exit, Exit::Usage);
        assert_eq!(object("{\"a\":1}", "-i").unwrap()["a"], 1);
    }
}
