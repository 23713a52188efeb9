//! Whether the model that a node asks can do what the node needs. Judged from what was pinned when the run started, before
//! anything else is done for the visit, and the same way again by every replay.

use baton_model::event::{ModelCapabilityInsufficient, ModelCapabilitySubstituted};
use baton_model::{Draft, Event, Fault, GateRoute, ModelChoice, code};

use crate::state::RunState;

impl RunState {
    /// The model that a node wants to ask: what it says itself, else the run, else what the host has for the class.
    pub(crate) fn preferred_model(&self, node: usize) -> Option<ModelChoice> {
        let kind = &self.plan.nodes[node].kind;
        let facts = &self.start.as_ref()?.event.private;
        let pinned = match kind.live_agent() {
            Some(agent) => agent.pin(&facts.agents).and_then(|pin| pin.model.as_ref()),
            None => facts.models.classes.get(&kind.model_preference()?.class),
        };
        kind.model_preference()?.choice(&facts.configurable, pinned)
    }

    /// The model that it asks in the end.
    pub(crate) fn model(&self, node: usize) -> Option<ModelChoice> {
        let wanted = self.preferred_model(node)?;
        Some(match self.model_route(node, &wanted) {
            GateRoute::Substitute { fallback, .. } => fallback,
            GateRoute::Dispatch | GateRoute::Refuse { .. } => wanted,
        })
    }

    fn model_route(&self, node: usize, wanted: &ModelChoice) -> GateRoute {
        let pins = self.start.as_ref().map(|start| &start.event.private.models);
        match self.plan.nodes[node].kind.model_preference() {
            Some(preference) => preference.needs.route(wanted, |model| pins?.offered(model)),
            None => GateRoute::Dispatch,
        }
    }

    /// Says that another model is asked, where one is.
    pub(crate) fn substitution(&self, node: usize) -> Option<Draft> {
        let wanted = self.preferred_model(node)?;
        let GateRoute::Substitute { fallback, missing } = self.model_route(node, &wanted) else { return None };
        let event = ModelCapabilitySubstituted {
            node_id: self.plan.nodes[node].id.clone(),
            original_provider: wanted.provider,
            original_model: wanted.model,
            fallback_provider: fallback.provider,
            fallback_model: fallback.model,
            missing_capabilities: missing,
        };
        Some(Event::from(event).into())
    }

    /// Says that no model is asked, and why, where none can do what the node needs.
    pub(crate) fn incapable(&self, node: usize) -> Option<(Draft, Fault)> {
        let preference = self.plan.nodes[node].kind.model_preference()?;
        let wanted = self.preferred_model(node)?;
        let GateRoute::Refuse { missing, fallback_attempted } = self.model_route(node, &wanted) else { return None };
        let fallback = match &preference.needs.fallback {
            Some(other) if fallback_attempted => format!(", and `{}` will not do either", other.name()),
            _ => String::new(),
        };
        let name = wanted.name();
        let message = format!(
            "The node needs {} of its model, which `{name}` is not known to have{fallback}. Name another model, or say \
             what this one can do with `capabilities` in `[providers.{}]`.",
            missing.join(", "),
            wanted.provider
        );
        let fault = Fault::new(code::CAPABILITY_NOT_PROVIDED, message)
            .with("provider", wanted.provider.as_str())
            .with("model", wanted.model.as_str())
            .with("missingCapabilities", missing.clone());
        let event = ModelCapabilityInsufficient {
            node_id: self.plan.nodes[node].id.clone(),
            provider: wanted.provider,
            model: wanted.model,
            missing_capabilities: missing,
            fallback_attempted,
        };
        Some((Event::from(event).into(), fault))
    }
}
