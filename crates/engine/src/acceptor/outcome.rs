//! What becomes of an envelope.

use baton_model::Trust;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::Limit;
use super::violation::Violation;

/// What the acceptor says about one envelope. Kept per correlation id, so that the same envelope gets the same answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Outcome {
    Accepted {
        envelope_id: String,
        /// Filled in by whoever records what follows from it.
        #[serde(default)]
        recorded_event_ids: Vec<String>,
        normalized_meta: Box<Meta>,
        /// The payload with secrets as markers.
        #[serde(default)]
        redacted_payload: Value,
        #[serde(default)]
        redaction_count: usize,
        /// It was written for an older schema than the one it was held against.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        schema_version_drift: bool,
    },
    /// Not a kind that this host, or this node, takes.
    Gated {
        reason: String,
        #[serde(default)]
        refused_type: String,
        allowed_kinds: Vec<String>,
    },
    Invalid {
        reason: String,
        #[serde(default)]
        details: Vec<Violation>,
    },
    /// A bound was reached.
    Breached {
        reason: String,
        cap_kind: String,
        #[serde(default)]
        limit: u64,
        #[serde(default)]
        observed: u64,
    },
}

/// What an accepted envelope says about itself, with its trust settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts: Option<String>,
    pub content_trust: Trust,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendering: Option<Value>,
}

impl Outcome {
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Gated { .. } => "gated",
            Self::Invalid { .. } => "invalid",
            Self::Breached { .. } => "breached",
        }
    }

    /// How far what it accepted is to be trusted.
    pub fn trust(&self) -> Option<Trust> {
        match self {
            Self::Accepted { normalized_meta, .. } => Some(normalized_meta.content_trust),
            _ => None,
        }
    }
}

/// An outcome, and what it means for the books.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub outcome: Outcome,
    /// It was judged now; otherwise it is the answer that was given before, and nothing follows from it.
    pub fresh: bool,
    /// What it counts against.
    pub counts: Vec<Limit>,
}

impl Judgement {
    pub(crate) fn fresh(outcome: Outcome, counts: &[Limit]) -> Self {
        Self { outcome, fresh: true, counts: counts.to_vec() }
    }
}
