//! How often a model may do what.

use serde::{Deserialize, Serialize};

/// A bound on envelopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    EnvelopesPerTurn,
    SchemaRounds,
    ClarificationRounds,
}

impl Limit {
    /// As the host advertises it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EnvelopesPerTurn => "envelopesPerTurn",
            Self::SchemaRounds => "schemaRounds",
            Self::ClarificationRounds => "clarificationRounds",
        }
    }

    /// As `cap.breached` names it.
    pub const fn cap_kind(self) -> &'static str {
        match self {
            Self::EnvelopesPerTurn => "envelopes",
            Self::SchemaRounds => "schema",
            Self::ClarificationRounds => "clarification",
        }
    }

    /// What an envelope of a kind counts against: its own bound first, then that of the turn.
    pub(crate) fn of(kind: &str) -> &'static [Self] {
        match kind {
            "clarification.request" => &[Self::ClarificationRounds, Self::EnvelopesPerTurn],
            "schema.request" => &[Self::SchemaRounds, Self::EnvelopesPerTurn],
            _ => &[Self::EnvelopesPerTurn],
        }
    }
}

/// How often so far, and how often at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    pub current: u64,
    pub cap: u64,
}

/// Counters of a node's turn; one that is absent does not bind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Counters {
    pub envelopes_per_turn: Option<Counter>,
    pub schema_rounds: Option<Counter>,
    pub clarification_rounds: Option<Counter>,
}

impl Counters {
    pub(crate) fn spent(&self, limit: Limit) -> Option<Counter> {
        let counter = match limit {
            Limit::EnvelopesPerTurn => self.envelopes_per_turn,
            Limit::SchemaRounds => self.schema_rounds,
            Limit::ClarificationRounds => self.clarification_rounds,
        };
        counter.filter(|counter| counter.current >= counter.cap)
    }
}
