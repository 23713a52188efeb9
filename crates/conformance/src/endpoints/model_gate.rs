//! Whether a model can do what a node needs, judged by the function that runs go by.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::event::{ModelCapabilityInsufficient, ModelCapabilitySubstituted};
use baton_model::{Event, GateRoute, ModelChoice, ModelNeeds, NodeId};
use baton_server::endpoint::scope::RunsRead;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Value, json};

use super::stage::Body;
use crate::unchecked::known_offers;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Gate {
    module: Module,
    active_provider: String,
    active_model: String,
    #[serde(default)]
    substitution_supported: bool,
    #[serde(default)]
    supported_providers: Vec<String>,
    #[serde(default = "some_node")]
    node_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Module {
    #[serde(default)]
    required_model_capabilities: Vec<String>,
    fallback_model: Option<ModelChoice>,
}

fn some_node() -> String {
    "node".to_owned()
}

pub(super) async fn post(
    State(app): State<App>,
    _: Allowed<RunsRead>,
    Body(gate): Body<Gate>,
) -> Result<Response, ApiError> {
    let active = ModelChoice { provider: gate.active_provider, model: gate.active_model };
    let fallback = gate.module.fallback_model.filter(|_| gate.substitution_supported);
    // The test says which providers there are; what their models can do, the host says.
    let here = |model: &&ModelChoice| gate.supported_providers.contains(&model.provider);
    let known: BTreeMap<String, BTreeSet<String>> = std::iter::once(&active)
        .chain(&fallback)
        .filter(here)
        .map(|model| (model.name(), known_offers(&app.host, model)))
        .collect();
    let needs = ModelNeeds { required: gate.module.required_model_capabilities, fallback };
    let route = needs.route(&active, |model| known.get(&model.name()));
    let (outcome, event) = told(NodeId::new(gate.node_id), active, route);
    let event = event.map(|event| json!({"type": event.type_name(), "payload": event.payload()}));
    Ok(Reply::ok(&json!({"outcome": outcome, "event": event})).into_response())
}

fn told(node_id: NodeId, active: ModelChoice, route: GateRoute) -> (Value, Option<Event>) {
    match route {
        GateRoute::Dispatch => (json!({"route": "dispatch"}), None),
        GateRoute::Substitute { fallback, missing } => {
            let outcome = json!({
                "route": "substitute",
                "originalProvider": active.provider,
                "originalModel": active.model,
                "fallbackProvider": fallback.provider,
                "fallbackModel": fallback.model,
                "missingCapabilities": missing,
            });
            let event = ModelCapabilitySubstituted {
                node_id,
                original_provider: active.provider,
                original_model: active.model,
                fallback_provider: fallback.provider,
                fallback_model: fallback.model,
                missing_capabilities: missing,
            };
            (outcome, Some(event.into()))
        }
        GateRoute::Refuse { missing, fallback_attempted } => {
            let outcome =
                json!({"route": "refuse", "missingCapabilities": missing, "fallbackAttempted": fallback_attempted});
            let event = ModelCapabilityInsufficient {
                node_id,
                provider: active.provider,
                model: active.model,
                missing_capabilities: missing,
                fallback_attempted,
            };
            (outcome, Some(event.into()))
        }
    }
}
