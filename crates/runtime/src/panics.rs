//! What a panic said, and what its caller is told.

use std::any::Any;

use baton_model::code;

use crate::{Error, ErrorKind};

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

/// The error of whoever waited for a task that did not end in good order.
pub(crate) fn cut_short(error: &tokio::task::JoinError) -> Error {
    if error.is_cancelled() {
        return Error::stopping();
    }
    tracing::error!(%error, "work on a run ended in a panic");
    Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The host could not finish this. Its log says why.")
}
