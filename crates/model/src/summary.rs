use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::Dimension;
use crate::{Amount, MapProgress, NodeId, RunId, Timestamp};

/// What a list of runs says about one of them beyond its row. What is absent does not apply, or was not kept yet when the
/// run was written.
// A projection of its log, written with the records it follows from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunSummary {
    /// The newest turn of the run's supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub iteration: Option<Iteration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub waiting_on: Option<WaitingOn>,
    /// How far the run's map has come, while one is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub progress: Option<MapProgress>,
    /// What the models of this run have used, without the runs below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub usage: Option<UsageSummary>,
    /// What the models of runs below it have used: those that have ended, each with everything below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub usage_below: Option<UsageSummary>,
    /// What the whole tree had spent when this run last moved, by what is bounded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budget: BTreeMap<Dimension, BudgetLine>,
    /// Nothing is left of one of them, or too little for what the run wanted last.
    #[serde(default, skip_serializing_if = "is_false")]
    pub over_budget: bool,
    /// Why somebody paused it, while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub pause_reason: Option<String>,
    /// A replay that did not go as its source went.
    #[serde(default, skip_serializing_if = "is_false")]
    pub diverged: bool,
    /// It came with a file. What its log says of whose it is, nobody here vouches for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub imported: bool,
    /// Runs that this one started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: u64,
    /// All runs below a top-level run, where they were counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub descendants: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Iteration {
    pub turn: u64,
    pub bound: u64,
}

/// The oldest open question, or the child that has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingOn {
    /// The kind of the question, or `child`.
    pub kind: String,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub node_id: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub question: Option<String>,
    /// How many questions are open in this run.
    pub open: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub requested_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    /// The run below that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: Option<RunId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Usage))]
pub struct UsageSummary {
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub cost_usd: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BudgetLine {
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    pub spent: Amount,
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    pub limit: Amount,
}

impl UsageSummary {
    /// Both together. A price counts where there was one.
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_usd: match (self.cost_usd, other.cost_usd) {
                (Some(one), Some(another)) => Some(one + another),
                (one, another) => one.or(another),
            },
        }
    }
}

impl RunSummary {
    /// What the run and everything that has ended below it have used, where anybody has used anything.
    pub fn usage_of_tree(&self) -> Option<UsageSummary> {
        match (self.usage, self.usage_below) {
            (Some(own), Some(below)) => Some(own.plus(below)),
            (own, below) => own.or(below),
        }
    }

    /// There is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
