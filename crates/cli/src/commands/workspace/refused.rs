//! What a host says about one file, with what to do next.

use crate::exit::Exit;
use crate::failure::Failure;

/// A refusal about one file, with what to do next.
pub(super) fn refused(error: baton_client::Error, path: &str) -> Failure {
    let failure = Failure::from(error);
    match failure.exit {
        Exit::NotFound => {
            failure.hint(format!("`baton workspace ls` shows the files, `baton workspace log {path}` the versions"))
        }
        Exit::Conflict => failure.hint(format!("`baton workspace ls {path}` shows what is there now")),
        _ => failure,
    }
}
