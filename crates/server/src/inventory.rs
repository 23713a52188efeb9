//! Who a caller may call. The host's roster says who there is; the packs behind it add what only they know, and the
//! connections of the host what is away at the moment.

use baton_agent::InventoryEntry;
use baton_api::Agent;
use baton_model::{AgentCard, ConnectionKind, ConnectionState, TenantId};
use baton_runtime::AgentRegistry;

use crate::app::App;

impl App {
    /// The agents of a tenant, by id.
    pub(crate) fn inventory(&self, tenant: &TenantId) -> Vec<Agent> {
        let agent_registry = self.host.agent_registry();
        let away = self.servers_away();
        agent_registry.visible(tenant).iter().map(|card| self.entry(&agent_registry, tenant, card, &away)).collect()
    }

    pub(crate) fn inventory_entry(&self, tenant: &TenantId, id: &str) -> Option<Agent> {
        let agent_registry = self.host.agent_registry();
        agent_registry.get(tenant, id).map(|card| self.entry(&agent_registry, tenant, card, &self.servers_away()))
    }

    /// MCP servers that are configured and not connected, as allowlists name them.
    fn servers_away(&self) -> Vec<String> {
        let all = self.host.options().tools.connections();
        let away =
            all.into_iter().filter(|one| one.kind == ConnectionKind::Mcp && one.state != ConnectionState::Connected);
        away.map(|one| format!("mcp:{}", one.name)).collect()
    }

    fn entry(&self, agent_registry: &AgentRegistry, tenant: &TenantId, card: &AgentCard, away: &[String]) -> Agent {
        let packed = agent_registry.registry().agent(tenant, &card.agent_id).filter(|agent| *agent.card == *card);
        let mut entry = packed.map_or_else(|| InventoryEntry::plain(card), |agent| agent.entry.clone());
        let of = |tool: &str, server: &str| {
            tool.strip_prefix(server).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let wanted = away.iter().filter(|server| card.tools.iter().any(|tool| of(tool, server)));
        entry.degraded.extend(wanted.cloned());
        // What a server that is away would have is told with the server.
        let missing = self.host.missing_tools(tenant, card, &[]).into_iter();
        let missing = missing.filter(|tool| !away.iter().any(|server| of(tool, server)));
        for tool in missing {
            if !entry.degraded.contains(&tool) {
                entry.degraded.push(tool);
            }
        }
        shown(entry)
    }
}

fn shown(entry: InventoryEntry) -> Agent {
    Agent {
        agent_id: entry.agent_id,
        persona: entry.persona,
        label: entry.label,
        description: entry.description,
        model_class: entry.model_class,
        pack_name: entry.pack_name,
        pack_version: entry.pack_version,
        tool_allowlist: entry.tool_allowlist,
        has_handoff_schemas: entry.has_handoff_schemas,
        memory_shape: entry.memory_shape,
        confidence_threshold: entry.confidence_threshold,
        degraded: entry.degraded,
        memory_degraded: entry.memory_degraded,
        degraded_memory_dimensions: entry.degraded_memory_dimensions,
    }
}
