//! What a node asks the shell before it starts; see [`crate::node_request`].

use baton_model::{Fault, Timestamp};
use serde_json::Value;

use super::inputs::inputs;
use crate::eval_context::EvalContext;
use crate::node_request::{InvokeRequest, Request};
use crate::plan::{Kind, Supervisor};
use crate::state::RunState;

/// What the node asks. An error is the node's own: its visit starts and fails.
pub(super) fn request(
    state: &RunState,
    node: usize,
    visit: u32,
    attempt: u32,
    at: Timestamp,
) -> Result<Request, Fault> {
    match &state.plan.nodes[node].kind {
        Kind::Supervisor(supervisor) => {
            // A turn taken again sees what it saw the first time.
            let frozen = state.nodes[node].snapshot.filter(|_| attempt > 0);
            let Supervisor { reads_memory, reads_workspace, .. } = supervisor;
            let agent = match supervisor.is_agent() {
                true => Some(Box::new(agent_request(state, node, task(state, node, at)?))),
                false => None,
            };
            Ok(Request::Turn { frozen, memory: *reads_memory, workspace: *reads_workspace, agent })
        }
        Kind::Agent(_) => {
            let task = task(state, node, at)?;
            Ok(Request::Invoke(Box::new(agent_request(state, node, task))))
        }
        kind => {
            let inputs = inputs(state, node, at)?;
            kind.request(&EvalContext::new(state, node, visit, attempt, inputs, false, at))
        }
    }
}

/// What is asked about the agent of a node before it begins.
fn agent_request(state: &RunState, node: usize, task: Value) -> InvokeRequest {
    let kind = &state.plan.nodes[node].kind;
    let facts = state.start.as_ref().map(|start| &start.event.private);
    let agent = kind.live_agent();
    let agent_id = agent.map(|agent| agent.id.to_owned()).unwrap_or_default();
    let pin = agent.zip(facts).and_then(|(agent, facts)| agent.pin(&facts.agents)).cloned();
    let options = kind.agent_options();
    let configurable = state.configurable();
    let grant = facts.and_then(|facts| facts.tool_grant.clone());
    let narrowed = options.and_then(|options| options.tools.clone());
    InvokeRequest {
        model: state.model(node),
        card: pin.map(|pin| pin.card),
        agent_id,
        node: state.plan.nodes[node].id.clone(),
        origins: state.origins(node, &task),
        conversation: facts.and_then(|facts| facts.conversation.as_deref().cloned()),
        source: facts.and_then(|facts| facts.source),
        task,
        grants: grant.into_iter().chain(narrowed).collect(),
        tell_missing: state.rule() >= 4,
        node_prompts: options.map(|options| options.prompts.clone()).unwrap_or_default(),
        run_prompts: configurable.get("promptOverrides").cloned(),
        workflow_prompts: state.plan.definition.prompt_defaults(),
        variables: state
            .variables
            .iter()
            .filter(|(name, _)| !state.plan.is_sensitive(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        workflow: (state.plan.id().clone(), state.plan.definition.name.clone()),
        owner: state.start.as_ref().map(|start| start.event.owner.clone()),
        read_version: state.read_version,
        scopes: facts.and_then(|facts| facts.tool_scopes.clone()),
    }
}

/// What the node works on: its ports, else what the run was given. What is sensitive reaches an agent through a port
/// that names it, and no other way; a supervisor, whose decisions are public, is not told at all.
fn task(state: &RunState, node: usize, at: Timestamp) -> Result<Value, Fault> {
    let plan = &state.plan.nodes[node];
    let mut task = match (&plan.kind, plan.inputs.is_empty()) {
        (Kind::Agent(_), true) => state.started().map(|started| started.full_inputs()).unwrap_or_default(),
        _ => inputs(state, node, at)?,
    };
    match &plan.kind {
        Kind::Supervisor(_) => task.retain(|port, _| !plan.hidden.contains(port)),
        _ if plan.inputs.is_empty() => task.retain(|name, _| !state.plan.is_sensitive(name)),
        _ => {}
    }
    Ok(Value::Object(task))
}
