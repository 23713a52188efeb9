//! Who a caller may call. The host's roster says who there is; the packs behind it add what only they know.

use baton_agent::InventoryEntry;
use baton_model::{AgentCard, TenantId};
use baton_runtime::Roster;

use crate::app::App;

impl App {
    /// The agents of a tenant, by id.
    pub(crate) fn inventory(&self, tenant: &TenantId) -> Vec<InventoryEntry> {
        let roster = self.host.roster();
        roster.visible(tenant).iter().map(|card| entry(&roster, tenant, card)).collect()
    }

    pub(crate) fn inventory_entry(&self, tenant: &TenantId, id: &str) -> Option<InventoryEntry> {
        let roster = self.host.roster();
        roster.get(tenant, id).map(|card| entry(&roster, tenant, card))
    }
}

fn entry(roster: &Roster, tenant: &TenantId, card: &AgentCard) -> InventoryEntry {
    let packed = roster.registry().agent(tenant, &card.agent_id).filter(|agent| *agent.card == *card);
    packed.map_or_else(|| plain(card), |agent| agent.entry.clone())
}

/// What a card alone tells: an agent that did not come with a pack lacks nothing.
fn plain(card: &AgentCard) -> InventoryEntry {
    InventoryEntry {
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
