//! The prompt functions by themselves: where a prompt is looked for, what one reads like, and how text that nobody
//! vouches for is shown to a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_agent::prompts::{
    self, Agent, AgentPrompts, Bindings, Layers, PromptKind, PromptRef, PromptSlot, PromptTemplate, VariableSource,
};
use baton_model::event::{AgentPromptResolved, PromptComposed};
use baton_model::{NodeId, Secret, Trust, code, wrap};
use baton_server::endpoint::{AnyKey, ApiError, App, Reply, prompt_refused};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::mock_ai::wrong;
use super::stage::Body;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolve {
    kind: PromptKind,
    node: Node,
    agent_manifest: Option<Manifest>,
    workflow_defaults: Option<Defaults>,
    host_defaults: Option<Map<String, Value>>,
    agent_bindings_supported: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    node_id: String,
    #[serde(default)]
    config: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    agent_id: String,
    system_prompt: Option<String>,
    system_prompt_ref: Option<String>,
    #[serde(default)]
    prompt_overrides: BTreeMap<String, Value>,
    prompt_library_ref: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Defaults {
    prompt_refs: Option<Map<String, Value>>,
}

pub(super) async fn resolve(
    State(app): State<App>,
    who: AnyKey,
    Body(asked): Body<Resolve>,
) -> Result<Response, ApiError> {
    let named = asked.node.config.get("agentId").and_then(Value::as_str);
    let known = asked.agent_manifest.as_ref().filter(|manifest| named == Some(&manifest.agent_id));
    let reference = known.map(|manifest| format!("prompt:{}@0.0.0", manifest.agent_id.to_lowercase()));
    let agent = match (known, named) {
        _ if asked.agent_bindings_supported == Some(false) => Agent::Off,
        (None, None) => Agent::Absent,
        (None, Some(_)) => Agent::Unknown,
        (Some(manifest), _) => {
            let text = manifest.system_prompt.as_deref().or(manifest.system_prompt_ref.as_deref());
            Agent::Known(AgentPrompts {
                intrinsic: text.zip(reference.as_deref()),
                overrides: &manifest.prompt_overrides,
                library: manifest.prompt_library_ref.as_deref(),
            })
        }
    };
    let library = app.host.agent_registry().library(&who.tenant);
    let layers = Layers {
        run: None,
        node: Some(&asked.node.config),
        agent,
        workflow: asked.workflow_defaults.as_ref().and_then(|defaults| defaults.prompt_refs.as_ref()),
        host: asked.host_defaults.as_ref(),
        library: &library,
    };
    let found = prompts::resolve(PromptSlot::of(asked.kind), &layers).map_err(prompt_refused)?;
    let resolved_at = found.chain.iter().find(|layer| layer.applied).map(|layer| layer.layer.clone());
    let event = AgentPromptResolved {
        node_id: NodeId::new(asked.node.node_id),
        kind: asked.kind.as_str().to_owned(),
        chain: found.chain,
        resolved: found.resolved,
        agent_id: known.map(|manifest| manifest.agent_id.clone()),
    };
    let mut body = serde_json::to_value(&event).unwrap_or_default();
    body["resolvedAt"] = resolved_at.into();
    Ok(Reply::ok(&body).into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compose {
    template_id: String,
    #[serde(default)]
    bindings: Map<String, Value>,
    #[serde(default)]
    binding_trust: BTreeMap<String, Trust>,
    observability: Option<String>,
}

pub(super) async fn compose(
    State(app): State<App>,
    who: AnyKey,
    Body(asked): Body<Compose>,
) -> Result<Response, ApiError> {
    let reference = PromptRef::parse(&format!("prompt:{}", asked.template_id)).map_err(prompt_refused)?;
    let library = app.host.agent_registry().library(&who.tenant);
    let template: &Arc<PromptTemplate> = library.find(&reference).map_err(prompt_refused)?;
    let values = asked.values(template, &app.host.options().secrets);
    let composed = prompts::compose(template, &Map::new(), &values).map_err(prompt_refused)?;
    let full = match asked.observability.as_deref() {
        None | Some("hashed") => false,
        Some("full") => true,
        Some(_) => return Err(wrong("observability", "`observability` is full or hashed.")),
    };
    let shown = |wanted: PromptKind| (full && template.kind == wanted).then(|| composed.text.clone());
    let event = PromptComposed {
        node_id: NodeId::new("seam"),
        refs: vec![template.reference()],
        kind: template.kind.composed().to_owned(),
        hash: composed.hash.clone(),
        variable_hashes: composed.variable_hashes.clone(),
        content_trust: Some(composed.trust().as_str().to_owned()),
        composed: full.then(|| composed.text.clone()),
        system_prompt: shown(PromptKind::System),
        user_prompt: shown(PromptKind::User),
        variable_bindings: full.then(|| composed.bindings.clone().into()),
    };
    Ok(Reply::ok(&event).into_response())
}

impl Compose {
    /// A secret is bound by its id; its value is never asked for.
    fn values(&self, template: &PromptTemplate, known: &[Secret]) -> Bindings {
        let id = self.bindings.get("secretRef").and_then(Value::as_str);
        let secret = template.variables.iter().filter(|variable| variable.source == VariableSource::Secret);
        let secrets = secret.filter_map(|variable| Some((variable.name.clone(), id?.to_owned()))).collect();
        let doubtful = self.binding_trust.iter().filter(|(_, trust)| **trust == Trust::Untrusted);
        Bindings {
            inputs: self.bindings.clone(),
            variables: self.bindings.clone(),
            secrets,
            known: known.to_vec(),
            untrusted: doubtful.map(|(name, _)| name.clone()).collect(),
            ..Bindings::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wrap {
    #[serde(default)]
    content_trust: Trust,
    event_type: Option<String>,
    #[serde(default)]
    payload: Value,
    source: Option<String>,
}

pub(super) async fn wrapped(_: AnyKey, Body(asked): Body<Wrap>) -> Result<Response, ApiError> {
    let Some(kind) = asked.event_type.as_deref().filter(|kind| !kind.is_empty()) else {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, code::INVALID_ARGUMENT, "`eventType` is required."));
    };
    let source = asked.source.as_deref().unwrap_or("run-event");
    Ok(Reply::ok(&json!({"prompt": wrap(asked.content_trust, source, kind, &asked.payload)})).into_response())
}
