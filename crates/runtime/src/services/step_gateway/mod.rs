//! Durability inside a program of a user's own: while it has a step in hand, it may ask models and keep values, and both are
//! on the run's log before it is told. When the step is given out again, what was asked and kept is there.
//!
//! ```text
//!  token ──► leased? ──► on the log already? ──yes──► read there
//!                                 │ no
//!                                 └─► budget ──► turn ──► provider ──► recorded ──► answered
//! ```

mod ask;
pub(crate) mod dispatches;
mod memo;
mod reserve;
pub(crate) mod service;

use baton_model::{ModelReply, SemanticRequest, Timestamp};
use serde_json::Value;

/// How many models one step asks at the same time. A program that fans out further waits for itself.
pub(crate) const MOST_OPEN: usize = 16;
/// How long one call of a model may take: what the clients of the vendors wait for.
pub(crate) const LONGEST_CALL_MS: u64 = 10 * 60 * 1000;

/// What a step asks a model.
#[derive(Clone, Debug, PartialEq)]
pub struct StepQuestion {
    pub semantic: SemanticRequest,
    /// Its client has asked this before and heard nothing.
    pub retried: bool,
}

/// What a model said to a step. It is on the run's log.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReply {
    pub reply: ModelReply,
    /// The same whenever this answer is given.
    pub id: String,
    pub at: Timestamp,
    /// It was on the log already, and nobody was asked.
    pub recorded: bool,
}

/// A value that a step keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptValue {
    pub value: Value,
    /// It was not there before.
    pub created: bool,
}
