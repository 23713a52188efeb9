//! Where an agent's prompts come from: the run, the node, the agent, the workflow.

use baton_agent::prompts::{Agent, AgentPrompts, Bindings, Layers, prompts};
use baton_engine::InvokeRequest;
use baton_model::{AgentCard, Fault, Prompted, RunId, TenantId};
use serde_json::{Map, Value, json};

use crate::services::agents::service::Agents;

pub(super) fn resolve(
    room: &Agents,
    tenant: &TenantId,
    run: &RunId,
    card: &AgentCard,
    request: &InvokeRequest,
) -> Result<Vec<Prompted>, Fault> {
    let library = room.agent_registry.load().library(tenant);
    let reference = card.prompt_ref();
    let layers = Layers {
        run: request.run_prompts.as_ref().and_then(Value::as_object),
        node: Some(&request.node_prompts),
        agent: Agent::Known(AgentPrompts::of(card, &reference)),
        workflow: request.workflow_prompts.as_ref().and_then(Value::as_object),
        host: None,
        library: &library,
    };
    // Somebody of another tenant, whom only a file speaks of, is nobody here.
    let owner = request.owner.as_ref().filter(|owner| owner.tenant == *tenant);
    let (workflow, name) = &request.workflow;
    let context = [
        ("runId", json!(run)),
        ("tenantId", json!(tenant)),
        ("nodeId", json!(request.node)),
        ("workflowId", json!(workflow)),
        ("workflowName", json!(name)),
        ("currentUserId", json!(owner.and_then(|owner| owner.principal.as_deref()))),
        // What is composed with it is recorded with the brief, so a replay has the same moment.
        ("now", json!(room.clock.now())),
    ];
    let bindings = Bindings {
        inputs: request.task.as_object().cloned().unwrap_or_default(),
        variables: request.variables.clone(),
        context: context.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>(),
        known: room.secrets.to_vec(),
        origins: request.origins.as_deref().cloned().unwrap_or_default(),
        ..Bindings::default()
    };
    let found = prompts(&layers, &bindings).map_err(|error| Fault::new(error.code(), error.to_string()))?;
    for warning in found.iter().flat_map(|found| &found.warnings) {
        tracing::warn!(%run, agent = %card.agent_id, code = warning.code(), "a prompt was looked for in vain");
    }
    Ok(found.into_iter().map(|found| found.prompted).collect())
}
