//! What is wrong in a file.

use baton_model::Position;

/// What is wrong in a file, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    pub position: Position,
    pub message: String,
    pub hint: Option<String>,
}

impl FileProblem {
    pub(crate) fn at(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
