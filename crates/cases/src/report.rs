//! What came of the cases, for whoever shows it.

use std::path::PathBuf;

use baton_model::Position;
use serde::Serialize;

/// Something that is not as the case says, or keeps the case from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// What it is about: `status`, `outputs`, `events`, `model`, `tools`, `answers`, …
    pub about: String,
    pub message: String,
    /// Lines that begin with `-` (expected), `+` (found) or a space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where in the file, if not where the case begins.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "place")]
    pub position: Option<Position>,
}

impl Problem {
    pub(crate) fn new(about: &str, message: impl Into<String>) -> Self {
        Self { about: about.to_owned(), message: message.into(), diff: None, hint: None, position: None }
    }

    #[must_use]
    pub(crate) fn diff(mut self, diff: String) -> Self {
        self.diff = Some(diff);
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn at(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }
}

/// One case, or a file that cannot be read.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseReport {
    pub file: PathBuf,
    /// None: the problem is the file's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub line: usize,
    pub column: usize,
    pub passed: bool,
    pub millis: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// Everything, in the order of the files.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteReport {
    pub passed: usize,
    pub failed: usize,
    /// Left out by a filter.
    pub skipped: usize,
    pub millis: u64,
    pub cases: Vec<CaseReport>,
}

impl SuiteReport {
    pub fn is_good(&self) -> bool {
        self.failed == 0
    }
}

#[expect(clippy::ref_option, reason = "what serde calls")]
fn place<S: serde::Serializer>(position: &Option<Position>, serializer: S) -> Result<S::Ok, S::Error> {
    match position {
        Some(Position { line, column }) => serializer.collect_str(&format_args!("{line}:{column}")),
        None => serializer.serialize_none(),
    }
}
