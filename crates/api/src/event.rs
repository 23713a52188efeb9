//! A run's log as it is read. A host sends the events as they lie in its store.

use baton_model::{RunStatus, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use crate::NewerFields;

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunEvent {
    pub event_id: String,
    pub run_id: String,
    pub sequence: u64,
    #[serde(rename = "type")]
    pub kind: String,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub timestamp: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub causation_id: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub payload: Value,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(ignore))]
    pub rest: NewerFields,
}

impl RunEvent {
    /// Whether this is one of the three events that end a log.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind.as_str(), "run.completed" | "run.failed" | "run.cancelled")
    }
}

/// What a poll gives.
// Both published shapes in one. The events come last, so that a host can put them in as they lie in its store.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = PollResult))]
pub struct EventPage {
    /// The run has ended and this page reaches its last event.
    pub is_complete: bool,
    /// The same as `isComplete`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub is_terminal: bool,
    /// The newest event of this page, or the one that was asked after.
    #[serde(default, deserialize_with = "sequence", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub last_event_seq: Option<u64>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub run_id: String,
    pub run_status: RunStatus,
    pub events: Vec<RunEvent>,
}

/// Some hosts say -1 where there is none.
fn sequence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.and_then(|number| number.as_u64()))
}
