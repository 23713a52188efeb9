//! A run's log as it is read. A host sends events as they lie in its store, so it has no use for these types.

use baton_model::{RunStatus, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Rest;

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    pub event_id: String,
    pub run_id: String,
    pub sequence: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    #[serde(default)]
    pub payload: Value,
    #[serde(flatten)]
    pub rest: Rest,
}

impl RunEvent {
    /// Whether this is one of the three events that end a log.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind.as_str(), "run.completed" | "run.failed" | "run.cancelled")
    }
}

/// What a poll gives.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    pub events: Vec<RunEvent>,
    /// The run has ended and this page reaches its last event.
    pub is_complete: bool,
    pub run_status: RunStatus,
    #[serde(default)]
    pub last_event_seq: Option<i64>,
}
