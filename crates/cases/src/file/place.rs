//! Where the parts of a case stand: in the case itself, or beside `cases`, where a file says what all of them share.

use baton_model::Position;

use super::document::Document;
use super::problem::FileProblem;

/// Where a case stands in its file.
pub(crate) struct Place<'a> {
    pub(crate) document: &'a Document,
    /// Of the case.
    pub(crate) pointer: String,
}

impl Place<'_> {
    /// The place of a part of the case: its own, or what the file says for all.
    pub(crate) fn of(&self, pointer: &str) -> Position {
        let own = format!("{}{pointer}", self.pointer);
        let first: String = pointer.split('/').take(2).collect::<Vec<_>>().join("/");
        let is_own = self.document.value.pointer(&format!("{}{first}", self.pointer)).is_some();
        let is_shared = !pointer.is_empty() && self.document.value.pointer(&first).is_some();
        if !is_own && is_shared { self.document.place(pointer) } else { self.document.place(&own) }
    }

    pub(crate) fn problem(&self, pointer: &str, message: impl Into<String>) -> FileProblem {
        FileProblem::at(self.of(pointer), message)
    }
}
