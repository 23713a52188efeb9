use serde::{Deserialize, Serialize};

use crate::{EventId, NodeId, RunId};

/// A replay did not go as its source went. It goes on all the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayDiverged {
    pub source_run_id: RunId,
    /// Where the source stood.
    pub at_sequence: u64,
    pub divergence_kind: DivergenceKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_event_id: Option<EventId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_event_id: Option<EventId>,
    /// The type of the event that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence_point: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DivergenceKind {
    /// The same event with another payload.
    Output,
    /// The source has an event that the replay does not come to.
    Missing,
    /// The replay has an event that the source does not have.
    Extra,
    TypeMismatch,
}

impl DivergenceKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::TypeMismatch => "type-mismatch",
        }
    }
}

/// A model refused where it had answered in the source, or the other way round. The replay fails here: nobody puts one
/// in the place of the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayDivergedAtRefusal {
    pub source_run_id: RunId,
    /// The call in the source.
    pub at_sequence: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_event_id: Option<EventId>,
    pub node_id: NodeId,
    pub original_envelope_kind: EnvelopeKind,
    pub replay_envelope_kind: EnvelopeKind,
}

/// What became of a model call, as far as replays compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnvelopeKind {
    Valid,
    Refusal,
}

impl EnvelopeKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Refusal => "refusal",
        }
    }
}
