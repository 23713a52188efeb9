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
    packed.map_or_else(|| InventoryEntry::plain(card), |agent| agent.entry.clone())
}
