//! What is wrong with a definition, and where.

use baton_model::code;
use serde_json::{Map, Value};

/// One reason a definition cannot be registered.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// JSON pointer into the definition.
    pub pointer: String,
    pub message: String,
    pub code: &'static str,
    pub details: Map<String, Value>,
}

impl Problem {
    pub(crate) fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into(), code: code::VALIDATION_ERROR, details: Map::new() }
    }
}

/// A key as a step of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
