//! A run that another host drives. Inside the host this is an answer like any other; callers never see it, because
//! what they want goes there by message.

use baton_model::code;

use crate::{Error, ErrorKind};

#[derive(Debug, thiserror::Error)]
#[error("another host drives this run")]
struct Elsewhere;

impl Error {
    pub(crate) fn elsewhere() -> Self {
        let message = "Another host is at work on this run. Try again.";
        Self::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).because(Elsewhere)
    }

    pub(crate) fn is_elsewhere(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is::<Elsewhere>())
    }
}
