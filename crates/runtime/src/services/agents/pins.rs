//! Which version of each agent a run works with, and with which model: settled when the run starts.

use std::collections::{BTreeMap, BTreeSet};

use baton_engine::Plan;
use baton_model::{AgentCard, AgentPin, Fault, ModelChoice, ModelPins, TenantId, code};
use serde_json::{Map, Value};

use crate::services::agents::service::Agents;

impl Agents {
    /// Finds every agent that a workflow names, or says which one is missing.
    pub(crate) fn pins(
        &self,
        tenant: &TenantId,
        plan: &Plan,
        configurable: &Map<String, Value>,
    ) -> Result<BTreeMap<String, AgentPin>, Fault> {
        let agent_registry = self.agent_registry.load();
        let mut pins = BTreeMap::new();
        for (node, agent) in plan.agents() {
            let agent_id = agent.id;
            let found = match agent.version {
                None => agent_registry.get(tenant, agent_id),
                Some(version) => agent_registry.get_version(tenant, agent_id, version),
            };
            let Some(card) = found else {
                let fault = match agent.version.zip(agent_registry.get(tenant, agent_id)) {
                    Some((version, other)) => not_in_version(other, version),
                    None => not_installed(agent_id),
                };
                return Err(fault.with("agentId", agent_id).with("nodeId", node));
            };
            let pin = AgentPin { card: card.digest(), model: self.options.model_table.get(card.model_class).cloned() };
            let Some(choice) = plan.model_choice(node, configurable, pin.model.as_ref()) else {
                let class = card.model_class.as_str();
                let message = format!(
                    "The agent `{agent_id}` wants a model of class `{class}`, and none is configured. Set `[models] {class} = \"provider/model\"`, or `configurable.ai.provider` and `ai.model`."
                );
                return Err(Fault::new(code::VALIDATION_ERROR, message).with("agentId", agent_id));
            };
            self.check_provider(&choice)?;
            pins.insert(agent.key(), pin);
        }
        Ok(pins)
    }

    /// Finds a model for every node that asks one by itself, and what the models can do that are asked for something in
    /// particular.
    pub(crate) fn model_pins(
        &self,
        plan: &Plan,
        configurable: &Map<String, Value>,
        agents: &BTreeMap<String, AgentPin>,
    ) -> Result<ModelPins, Fault> {
        // Whoever names a provider means one that is here, whether or not anything in this workflow asks it.
        let nested = || configurable.get("ai").and_then(|ai| ai.get("provider"));
        if let Some(provider) = configurable.get("ai.provider").or_else(nested).and_then(Value::as_str) {
            let provider = provider.to_ascii_lowercase();
            self.check_provider(&ModelChoice { provider, model: String::new() })?;
        }
        let mut pins = ModelPins::default();
        for (node, class) in plan.model_nodes() {
            let of_class = self.options.model_table.get(class);
            let Some(choice) = plan.model_choice(node, configurable, of_class) else {
                let class = class.as_str();
                let message = format!(
                    "The node `{node}` asks a model and names none, and none is configured. Set `[models] {class} = \"provider/model\"`, `configurable.ai.provider` and `ai.model`, or `provider` and `model` of the node."
                );
                return Err(Fault::new(code::VALIDATION_ERROR, message).with("nodeId", node));
            };
            self.check_provider(&choice)?;
            // Only where it counts: what a node says for itself needs nothing of the host.
            if plan.model_choice(node, configurable, None).as_ref() != Some(&choice) {
                pins.classes.extend(of_class.map(|choice| (class, choice.clone())));
            }
            self.note_offers(plan, node, choice, &mut pins);
        }
        for (node, agent) in plan.agents() {
            let pinned = agent.pin(agents).and_then(|pin| pin.model.as_ref());
            if let Some(choice) = plan.model_choice(node, configurable, pinned) {
                self.note_offers(plan, node, choice, &mut pins);
            }
        }
        Ok(pins)
    }

    fn note_offers(&self, plan: &Plan, node: &str, choice: ModelChoice, pins: &mut ModelPins) {
        let Some(needs) = plan.model_needs(node) else { return };
        for model in std::iter::once(choice).chain(needs.fallback.clone()) {
            pins.offers.extend(self.offers(&model).map(|offers| (model.name(), offers)));
        }
    }

    /// What a model can do, if its provider is here.
    pub(crate) fn offers(&self, model: &ModelChoice) -> Option<BTreeSet<String>> {
        self.models.get(&model.provider).map(|provider| provider.capabilities(&model.model))
    }

    fn check_provider(&self, choice: &ModelChoice) -> Result<(), Fault> {
        if self.models.get(&choice.provider).is_some() {
            return Ok(());
        }
        let known: Vec<&str> = self.models.names().collect();
        let message = format!("There is no model provider `{}` on this host.", choice.provider);
        Err(Fault::new(code::VALIDATION_ERROR, message)
            .with("provider", choice.provider.as_str())
            .with("supported", known))
    }
}

fn not_installed(agent_id: &str) -> Fault {
    let message = format!(
        "No agent `{agent_id}` is installed. `baton agent list` shows those that are; packs are installed with `baton pack install`."
    );
    Fault::new(code::VALIDATION_ERROR, message)
}

/// It is here, and not as the node wants it.
fn not_in_version(here: &AgentCard, version: &str) -> Fault {
    let (id, newest) = (&here.agent_id, &here.pack_version);
    let message = format!(
        "The agent `{id}` is not installed in version `{version}`; the newest here is {newest}. Install its pack in that version, or pin the node to another `version`, or to none."
    );
    Fault::new(code::VALIDATION_ERROR, message).with("version", version).with("installed", newest.as_str())
}

/// Whether this changes which models a run asks.
pub(crate) fn changes_models(configurable: &Map<String, Value>) -> bool {
    configurable.keys().any(|key| key == "ai" || key.starts_with("ai.") || key == "model")
}

/// What a child takes over of its parent's configuration: how models are asked, for the whole tree.
pub(crate) fn inherited(configurable: &Map<String, Value>) -> Map<String, Value> {
    let tree_wide = |key: &str| {
        key == "ai"
            || key.starts_with("ai.")
            || matches!(key, "model" | "temperature" | "maxTokens" | "reasoningVerbosity" | "promptOverrides")
    };
    configurable.iter().filter(|(key, _)| tree_wide(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The tools that a run's agents may have at most, as its creator says.
pub(crate) fn check_require_tools(configurable: &Map<String, Value>) -> Result<(), crate::Error> {
    match configurable.get("requireTools") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(_) => {
            Err(crate::Error::invalid("`configurable.requireTools` is true or false.").with("key", "requireTools"))
        }
    }
}

pub(crate) fn tool_grant(configurable: &Map<String, Value>) -> Result<Option<Vec<String>>, crate::Error> {
    match configurable.get("toolGrant") {
        None => Ok(None),
        Some(list) => serde_json::from_value(list.clone()).map(Some).map_err(|_| {
            crate::Error::invalid("`configurable.toolGrant` lists tool ids such as \"openwop:http.fetch\".")
                .with("key", "toolGrant")
        }),
    }
}
