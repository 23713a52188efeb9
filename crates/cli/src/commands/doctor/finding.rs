//! What a check finds, and how bad it is.

use std::path::PathBuf;

use baton_store_postgres::Settings;
use baton_store_sqlite::DataAccess;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Ok,
    /// Works, but not well.
    Warning,
    Wrong,
}

/// What one check found.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(super) name: &'static str,
    pub(super) state: State,
    pub(super) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), fix: None }
    }

    pub(super) fn bad(name: &'static str, state: State, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, state, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Where the data is.
pub(super) enum DataLocation {
    Folder(PathBuf, DataAccess),
    Database(Settings),
}
