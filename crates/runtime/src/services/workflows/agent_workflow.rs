//! Workflows that are one agent and nothing else: made here, and nobody's to register.

use baton_model::AgentCard;
use serde_json::{Value, json};

use crate::Error;

/// The node of a run that is one agent.
pub(crate) const AGENT_NODE: &str = "agent";

/// What the workflow of such a run begins with; the agent's id follows.
pub(crate) const PREFIX: &str = "agent:";

/// Whether a workflow stands for one agent: made here, and nobody's to register.
pub(crate) fn stands_for_an_agent(workflow: &str) -> bool {
    workflow.starts_with(PREFIX)
}

/// The agent that a workflow stands for, if it stands for one.
pub(crate) fn agent_of(workflow: &str) -> Option<&str> {
    workflow.strip_prefix(PREFIX)
}

pub(crate) fn no_such_agent(id: &str) -> Error {
    let message = "There is no such agent here. GET /v1/agents lists those that are.";
    Error::invalid(message).with("agentId", id)
}

/// A workflow of one node, without ports: the agent is given what the run is given.
pub(crate) fn definition(card: &AgentCard) -> Value {
    let id = card.agent_id.as_str();
    let node = json!({
        "id": AGENT_NODE, "typeId": "vendor.baton.agent", "name": card.label, "position": {"x": 0, "y": 0},
        "config": {"agentId": id}, "inputs": {}, "agent": {"agentId": id}, "outputRole": "primary",
    });
    json!({
        "id": format!("{PREFIX}{id}"), "name": card.label, "version": "1", "nodes": [node], "edges": [],
        "triggers": [], "variables": [], "metadata": {}, "settings": {},
    })
}
