use serde::Serialize;

/// Something about a pack, a manifest or a template that keeps it from being used: where it is, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable code; each has a page under `docs/errors/`.
    pub code: &'static str,
    /// The file, and the place in it: `acme/pack.json#/agents/0/persona`.
    pub place: String,
    pub message: String,
}

impl Problem {
    pub fn new(code: &'static str, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, place: place.into(), message: message.into() }
    }

    /// The same problem, seen from a folder further out.
    #[must_use]
    pub(crate) fn within(mut self, folder: &str) -> Self {
        self.place = format!("{folder}/{}", self.place);
        self
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.message, self.code)
    }
}
