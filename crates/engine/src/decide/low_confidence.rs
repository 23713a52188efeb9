//! An agent that is not sure enough of what it decides: people are asked.

use serde_json::{Value, json};

use crate::nodes::{Ask, LowConfidence};

/// How sure an agent is, and how sure it had to be.
pub(crate) struct Unsure {
    pub(crate) observed: f64,
    pub(crate) threshold: f64,
}

/// The question that an unsure agent's decision asks.
pub(crate) fn low_confidence(agent_id: &str, decision: &Value, unsure: Unsure, timeout_ms: Option<u64>) -> Ask {
    let Unsure { observed, threshold } = unsure;
    let data = json!({"agentId": agent_id, "threshold": threshold, "observed": observed, "decision": decision});
    let low = LowConfidence { agent_id: agent_id.to_owned(), threshold, observed };
    Ask { timeout_ms, low_confidence: Some(low), ..Ask::new("low-confidence", data) }
}
