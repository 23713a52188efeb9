//! Looking back at a run, and taking away what makes that possible.

use std::collections::BTreeMap;

use baton_model::{ChildRun, FileMeta, InterruptView, MemoryEntry, NodeId, NodeStateView, RunStatus, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::routes::append;
use crate::{Client, Error};

/// A run with its memory and workspace as of one of its records.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateAt {
    pub run_id: String,
    pub seq: u64,
    pub at: Timestamp,
    pub status: RunStatus,
    pub variables: Map<String, Value>,
    pub channels: Map<String, Value>,
    pub node_states: BTreeMap<NodeId, NodeStateView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<InterruptView>,
    #[serde(default)]
    pub child_runs: Vec<ChildRun>,
    pub memory_scope: String,
    pub memory_version: u64,
    pub workspace_version: u64,
    /// Newest first. Absent if the key may not read memory; `omitted` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Vec<MemoryEntry>>,
    /// By path. Absent if the key may not read the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Vec<FileMeta>>,
    /// What was left out because the key lacks the scope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
}

/// What pruning took.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunedRun {
    pub run_id: String,
    /// Runs of the tree that lost something they had.
    pub pruned_runs: usize,
    /// Whether the logs went as well.
    pub log: bool,
}

impl Client {
    /// The run as of the record with sequence `at` (`None` = the latest).
    pub async fn state_at(&self, run: &str, at: Option<u64>) -> Result<StateAt, Error> {
        let mut url = self.url(&["v1", "host", "baton", "runs", run, "state"]);
        append(&mut url, [("at", at.map(|seq| seq.to_string()))]);
        self.get(url).await
    }

    /// Prunes an ended top-level run and everything below it; with `log`, the events too.
    pub async fn prune(&self, run: &str, log: bool) -> Result<PrunedRun, Error> {
        self.post(self.url(&["v1", "runs", &format!("{run}:prune")]), &json!({ "log": log }), None).await
    }
}
