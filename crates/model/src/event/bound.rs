use serde::{Deserialize, Serialize};

use crate::{Amount, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapKind {
    NodeExecutions,
    RunDuration,
    LoopIterations,
    DispatchIterations,
    /// Attempts at an answer that fits its schema.
    Schema,
    /// Envelopes in one answer of a model.
    Envelopes,
    /// An agent's questions to people.
    Clarification,
    BudgetTokens,
    BudgetCost,
    BudgetToolCalls,
    BudgetRetries,
    /// Rounds of tool calls in one invocation of an agent.
    ToolRounds,
}

/// A bound was reached. `observed` is always strictly greater than `limit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapBreached {
    pub kind: CapKind,
    pub limit: Amount,
    pub observed: Amount,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopbackLimit {
    pub node_id: NodeId,
    pub iterations: u64,
    pub limit: u64,
}
