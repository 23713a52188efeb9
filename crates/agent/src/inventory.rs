//! The agents of a host as its clients see them: who they are and what they may do, never what they are told.

use std::collections::BTreeSet;

use baton_model::{AgentCard, MemoryShape};
use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::card::PackAgent;

/// What `GET /v1/agents` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// By agent id.
    pub agents: Vec<InventoryEntry>,
    pub total: usize,
}

impl Inventory {
    pub(crate) fn of(mut agents: Vec<InventoryEntry>) -> Self {
        agents.sort_by(|a, b| a.agent_id.cmp(&b.agent_id));
        Self { total: agents.len(), agents }
    }
}

/// One agent. A closed set of fields: prompts, schemas and what the manifest requires are not among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InventoryEntry {
    pub agent_id: String,
    pub persona: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub model_class: String,
    pub pack_name: String,
    pub pack_version: String,
    pub tool_allowlist: Vec<String>,
    pub has_handoff_schemas: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_shape: Option<MemoryShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_threshold: Option<f64>,
    /// Capabilities it wants and does not have here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_degraded: bool,
    /// What its memory lacks here; there if and only if `memory_degraded` is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded_memory_dimensions: Vec<String>,
}

impl InventoryEntry {
    /// `unmet` are optional wishes of the pack that the host does not meet.
    pub(crate) fn of(agent: &PackAgent, unmet: &[String], host: &Capabilities) -> Self {
        let (manifest, card) = (&agent.manifest, &agent.card);
        let missing = manifest.requires.iter().filter(|key| !host.has(key)).cloned();
        let degraded: BTreeSet<String> = unmet.iter().cloned().chain(missing).collect();
        let dimensions = lacking(card.memory, host);
        Self {
            memory_shape: manifest.memory,
            degraded: degraded.into_iter().collect(),
            memory_degraded: !dimensions.is_empty(),
            degraded_memory_dimensions: dimensions,
            ..Self::plain(card)
        }
    }

    /// What a card alone tells: an agent that did not come with a pack lacks nothing.
    pub fn plain(card: &AgentCard) -> Self {
        Self {
            agent_id: card.agent_id.clone(),
            persona: card.persona.clone(),
            label: card.label.clone(),
            description: card.description.clone(),
            model_class: card.model_class.as_str().to_owned(),
            pack_name: card.pack_name.clone(),
            pack_version: card.pack_version.clone(),
            tool_allowlist: card.tools.clone(),
            has_handoff_schemas: card.task_schema.is_some() || card.return_schema.is_some(),
            memory_shape: card.memory.any().then_some(card.memory),
            confidence_threshold: card.threshold,
            degraded: Vec::new(),
            memory_degraded: false,
            degraded_memory_dimensions: Vec::new(),
        }
    }
}

/// What an agent's memory wants and the host has not.
fn lacking(memory: MemoryShape, host: &Capabilities) -> Vec<String> {
    let mut dimensions = Vec::new();
    if (memory.scratchpad || memory.conversation) && !host.has_memory() {
        dimensions.extend(["read", "write"]);
    }
    if memory.long_term && !host.remembers() {
        dimensions.push("long-term-durability");
    }
    dimensions.into_iter().map(str::to_owned).collect()
}
