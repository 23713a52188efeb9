//! Which version of each agent a run works with, and with which model: settled when the run starts.

use std::collections::BTreeMap;

use baton_engine::Plan;
use baton_model::{AgentPin, Fault, TenantId, code};
use serde_json::{Map, Value};

use crate::inner::Inner;

impl Inner {
    /// Finds every agent that a workflow names, or says which one is missing.
    pub(crate) fn pins(
        &self,
        tenant: &TenantId,
        plan: &Plan,
        configurable: &Map<String, Value>,
    ) -> Result<BTreeMap<String, AgentPin>, Fault> {
        let roster = self.roster.load();
        let mut pins = BTreeMap::new();
        for (node, agent_id) in plan.agents() {
            let Some(card) = roster.get(tenant, agent_id) else {
                let message = format!(
                    "No agent `{agent_id}` is installed. `baton agent list` shows those that are; packs are installed with `baton pack install`."
                );
                return Err(Fault::new(code::VALIDATION_ERROR, message).with("agentId", agent_id).with("nodeId", node));
            };
            let pin = AgentPin { card: card.digest(), model: self.options.model_table.get(card.model_class).cloned() };
            let Some(choice) = plan.model_choice(node, configurable, pin.model.as_ref()) else {
                let class = card.model_class.as_str();
                let message = format!(
                    "The agent `{agent_id}` wants a model of class `{class}`, and none is configured. Set `[models] {class} = \"provider/model\"`, or `configurable.ai.provider` and `ai.model`."
                );
                return Err(Fault::new(code::VALIDATION_ERROR, message).with("agentId", agent_id));
            };
            if self.models.get(&choice.provider).is_none() {
                let known: Vec<&str> = self.models.names().collect();
                let message = format!("There is no model provider `{}` on this host.", choice.provider);
                return Err(Fault::new(code::VALIDATION_ERROR, message)
                    .with("provider", choice.provider.as_str())
                    .with("supported", known));
            }
            pins.insert(agent_id.to_owned(), pin);
        }
        Ok(pins)
    }
}

/// What a child takes over of its parent's configuration: how models are asked, for the whole tree.
pub(crate) fn inherited(configurable: &Map<String, Value>) -> Map<String, Value> {
    let tree_wide = |key: &str| {
        key == "ai" || key.starts_with("ai.") || matches!(key, "model" | "reasoningVerbosity" | "promptOverrides")
    };
    configurable.iter().filter(|(key, _)| tree_wide(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The tools that a run's agents may have at most, as its creator says.
pub(crate) fn tool_grant(configurable: &Map<String, Value>) -> Result<Option<Vec<String>>, crate::Error> {
    match configurable.get("toolGrant") {
        None => Ok(None),
        Some(list) => serde_json::from_value(list.clone()).map(Some).map_err(|_| {
            crate::Error::invalid("`configurable.toolGrant` lists tool ids such as \"openwop:http.fetch\".")
                .with("key", "toolGrant")
        }),
    }
}
