//! What a tree of runs may spend, and what it has spent. Numbers only: nothing here says what anything costs.

use serde::{Deserialize, Serialize};

use super::NodePlace;
use crate::budget::{BudgetScope, Ceilings, Dimension};
use crate::{Amount, Fault, NodeId, ToolUse};

/// The ceilings that hold from here on, for this run and every run below it: at the start of a tree, and again when a
/// human has extended them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetReserved {
    pub effective_budget: Ceilings,
    pub scope: BudgetScope,
}

/// How much the whole tree had used when this run used some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetConsumed {
    pub dimension: Dimension,
    pub consumed: Amount,
    pub limit: Amount,
    /// Nothing is left of what is overdrawn.
    pub remaining: Amount,
    #[serde(skip)]
    pub private: NodePlace,
}

/// Most of it is gone. Said once for each dimension, by whichever run of the tree was there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetThresholdCrossed {
    pub dimension: Dimension,
    pub consumed: Amount,
    pub limit: Amount,
    pub percent: Amount,
    #[serde(skip)]
    pub private: NodePlace,
}

/// Nothing is left for what this node was going to do, so it did not do it. The run fails, or a human is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetExhausted {
    pub dimension: Dimension,
    pub consumed: Amount,
    pub limit: Amount,
    #[serde(skip)]
    pub private: BudgetHeld,
}

/// What a node would have done, to be done after all if the budget is extended. A call of a model needs no mention: it
/// follows from what is on the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetHeld {
    pub node_id: NodeId,
    /// Another attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<HeldRetry>>,
    /// The one call that a node makes by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<ToolUse>>,
}

impl Default for BudgetHeld {
    fn default() -> Self {
        Self { node_id: NodeId::new(""), retry: None, call: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldRetry {
    pub attempt: u32,
    pub delay_ms: u64,
    pub last_error: Fault,
}
