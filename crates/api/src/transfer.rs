//! Runs on their way to another host.

use baton_model::RunId;
use serde::{Deserialize, Serialize};

/// What an import did.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ImportedRun {
    /// The run the file was made for.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// The host had all of it, so nothing changed.
    pub already_here: bool,
    /// Runs of the file that this host did not have.
    pub new_runs: u64,
    /// What the file holds.
    pub runs: u64,
    pub records: u64,
    pub definitions: u64,
    /// Memory scopes and workspaces.
    pub ledgers: u64,
    pub changes: u64,
    /// What was said about the runs.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub annotations: u64,
}

/// The last line of a run's file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportFooter {
    pub runs: u64,
    pub records: u64,
    pub definitions: u64,
    pub ledgers: u64,
    pub changes: u64,
    #[serde(default)]
    pub annotations: u64,
    /// SHA-256 of everything before it.
    pub digest: String,
}
