//! What a memory scope may be called.

use crate::Error;

/// The longest name, in bytes.
const LONGEST_SCOPE: usize = 240;

/// A run whose scope has a name that nobody may write would remember what nobody can look up.
pub(crate) fn check_scope(scope: &str, path: &str) -> Result<(), Error> {
    let fits = (1..=LONGEST_SCOPE).contains(&scope.len()) && !scope.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    let message = format!("A memory scope has a name of 1 to {LONGEST_SCOPE} bytes, without control characters.");
    Err(Error::invalid(message).with("path", path))
}
