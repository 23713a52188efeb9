//! One visit of one node: begin, go on, complete, fail or try again.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::event::{
    CapBreached, CapKind, ChannelWritten, ChannelWrittenFacts, LoopbackLimit, NodeCompleted, NodeCompletedFacts,
    NodeFailed, NodeRetried, NodeRetriedFacts, NodeStarted, NodeStartedFacts, REDACTED, VariableChanged,
    VariableChangedFacts,
};
use baton_model::tool::Transport;
use baton_model::{Draft, Event, Fault, Timestamp, code, json};
use serde_json::{Map, Value};

pub(super) use super::suspend::{key, suspend};
use super::{advance, budget, ending, invocation, mock_agent, node_request, tool, turn, worker_batch};
use crate::depth;
use crate::eval_context::EvalContext;
use crate::expr;
use crate::invocation::call_id;
use crate::nodes::{Done, Kind, Outcome, Writing};
use crate::plan::Port;
use crate::size::Copies;
use crate::state::RunState;

/// Back-off doubles up to this.
const MOST_RETRY_DELAY_MS: u64 = 60_000;

/// Failures that trying again cannot mend.
const FINAL: &[&str] = &[
    code::APPROVAL_REJECTED,
    code::CAPABILITY_NOT_PROVIDED,
    code::CAP_BREACHED,
    code::CHANNEL_ACCESS_DENIED,
    code::ENVELOPE_REFUSAL,
    code::EXPRESSION_ERROR,
    code::EXPRESSION_TOO_COSTLY,
    code::HANDOFF_TASK_SCHEMA_VIOLATION,
    code::EFFECT_OUTCOME_UNKNOWN,
    code::FAN_OUT_UNSUPPORTED,
    code::INPUT_MISSING,
    code::INTERRUPT_TIMEOUT,
    code::LOOP_LIMIT_EXCEEDED,
    code::MEMORY_FULL,
    code::NESTING_LIMIT_EXCEEDED,
    code::NO_PENDING_DECISION,
    code::REMOTE_REFUSED,
    code::REMOTE_UNREACHABLE,
    code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE,
    code::UNKNOWN_CHILD_WORKFLOW,
    code::VALIDATION_ERROR,
    code::WORKSPACE_CONFLICT,
    code::WORKSPACE_TOO_LARGE,
];

/// Of those, what came later: earlier runs knew no such codes, and tried again whoever made them up.
const FINAL_SINCE_3: &[&str] = &[code::CONTENT_TOO_LONG, code::MODEL_NOT_SUPPORTED];

fn is_final(state: &RunState, fault: &Fault) -> bool {
    let code = fault.code.as_str();
    FINAL.contains(&code) || (state.rule() >= 3 && FINAL_SINCE_3.contains(&code)) || budget::is_spent(fault)
}

/// Starts a visit (`attempt` 0) or another attempt of it.
pub(super) fn begin(state: &RunState, node: usize, attempt: u32, broken: bool, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    if plan.disabled {
        return vec![advance::skipped(state, node, "disabled")];
    }
    if let Kind::Missing { .. } = plan.kind {
        // Refused before dispatch: the node never starts.
        let scene = scene(state, node, 1, 0, Map::new(), broken, at);
        let Outcome::Failed(fault) = plan.kind.run(&scene) else { return Vec::new() };
        return ending::fail(state, fault, Some(node), None);
    }
    if let Some(drafts) = too_many(state, node, 0) {
        return drafts;
    }
    if let Some((event, fault)) = state.incapable(node) {
        let visit = node_request::visit_of(state, node, attempt);
        let mut drafts = vec![node_request::started(state, node, visit, attempt), event];
        drafts.extend(failed_for_good(state, node, attempt, fault));
        return drafts;
    }
    match &plan.kind {
        Kind::Supervisor(supervisor) => return turn::enter(state, node, supervisor, attempt, at),
        Kind::Dispatch(dispatch) => return worker_batch::begin(state, node, dispatch, attempt, at),
        Kind::MockAgent(mock) => return mock_agent::begin(state, node, mock, attempt, at),
        // Another attempt works from what the first one was briefed with.
        Kind::Agent(_) if attempt > 0 => {
            let brief = state.nodes[node].invocation.as_ref().map(|invocation| Arc::clone(&invocation.brief));
            return brief.map_or_else(Vec::new, |brief| invocation::begin(state, node, attempt, &brief, at));
        }
        _ => {}
    }
    let visit = node_request::visit_of(state, node, attempt);
    if plan.kind.consults() {
        // It starts when the answer comes; one that cannot even ask starts and fails.
        return match node_request::request(state, node, visit, attempt, at) {
            Ok(_) => Vec::new(),
            Err(fault) => node_request::started_and_failed(state, node, visit, attempt, fault),
        };
    }
    let mut facts = NodeStartedFacts { visit, ..NodeStartedFacts::default() };
    let outcome = match inputs(state, node, at) {
        Ok(inputs) => plan.kind.run(&scene(state, node, visit, attempt, inputs, broken, at)),
        Err(fault) => Outcome::Failed(fault),
    };
    let waits = matches!(
        outcome,
        Outcome::Sleep { .. } | Outcome::Stream(_) | Outcome::Ask(_) | Outcome::Call(_) | Outcome::Effect(_)
    );
    facts.deadline = plan.timeout_ms.filter(|_| waits).map(|ms| at.plus_millis(ms));
    match &outcome {
        Outcome::Sleep { ms } if *ms > 0 => facts.wake_at = Some(at.plus_millis(*ms)),
        Outcome::Stream(chunks) if chunks.delay_ms > 0 => facts.wake_at = Some(at.plus_millis(chunks.delay_ms)),
        Outcome::Child(child) => facts.child = Some(child.clone()),
        Outcome::Call(request) => facts.call = Some(request.clone()),
        _ => {}
    }
    let started = NodeStarted { node_id: plan.id.clone(), type_id: plan.type_id.clone(), attempt, private: facts };
    let mut drafts: Vec<Draft> = vec![Event::from(started).into()];
    if let Outcome::Call(_) = &outcome {
        drafts.extend(state.substitution(node));
    }
    match outcome {
        Outcome::Done(done) => drafts.extend(finish(state, node, attempt, done, at)),
        Outcome::Sleep { ms: 0 } => drafts.extend(finish(state, node, attempt, Done::default(), at)),
        Outcome::Sleep { .. } | Outcome::Child(_) | Outcome::Call(_) => {}
        Outcome::Stream(chunks) if chunks.delay_ms == 0 => {
            drafts.extend(advance::emit(state, node, attempt, &chunks, 0..chunks.tokens.len(), at));
        }
        Outcome::Stream(_) => {}
        Outcome::Ask(ask) => drafts.extend(suspend(state, node, &key(&plan.id, visit, attempt), ask, at)),
        Outcome::Failed(fault) => drafts.extend(failed(state, node, attempt, fault, at)),
        Outcome::Effect(asked) => {
            let transport = state.effect_tool(node).map_or(Transport::Http, |tool| tool.transport);
            let id = call_id(&plan.id, visit, attempt, 0, 0);
            drafts.push(tool::called(state, node, tool::SYSTEM, &id, &asked, transport));
        }
    }
    drafts
}

/// Completes an active visit.
pub(super) fn complete(state: &RunState, node: usize, done: Done, at: Timestamp) -> Vec<Draft> {
    finish(state, node, state.nodes[node].attempt, done, at)
}

/// Fails an active visit: what it has under way stops, and there is another attempt if the node has one left.
pub(super) fn fail(state: &RunState, node: usize, fault: Fault, at: Timestamp) -> Vec<Draft> {
    let mut drafts = invocation::stop(state, node);
    drafts.extend(failed(state, node, state.nodes[node].attempt, fault, at));
    drafts
}

pub(super) fn finish(state: &RunState, node: usize, attempt: u32, done: Done, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    let made = done.outputs.iter().chain(done.variables.iter().map(|(name, value)| (name, value)));
    let written = done.write.iter().map(|write| (&write.channel, &write.value));
    if let Err(fault) = made.chain(written).try_for_each(|(name, value)| depth::check(name, value)) {
        return failed(state, node, attempt, fault, at);
    }
    if let Err(fault) = state.check_room(node, &done, at) {
        return failed(state, node, attempt, fault, at);
    }
    let mut scene = scene(state, node, state.nodes[node].visit, attempt, Map::new(), false, at);
    scene.written = state.overlay(&done, at);
    scene.outputs = Some(done.outputs.clone());
    let closed_edges = match closed_edges(&scene, done.port) {
        // The halves of a supervisor loop follow each other, whatever their edges say.
        _ if plan.partner.is_some() => Vec::new(),
        Ok(closed) => closed,
        // An edge that cannot be judged is the node's failure: nobody may guess which way the run goes.
        Err(fault) => return failed(state, node, attempt, fault, at),
    };
    let mut drafts = Vec::new();
    for (name, value) in &done.variables {
        drafts.extend(variable_changed(state, Some(node), name, value));
    }
    if let Some(write) = done.write {
        drafts.push(channel_written(state, node, write, at));
    }
    let completed = NodeCompleted {
        node_id: plan.id.clone(),
        outputs: mask_outputs(state, node, done.outputs),
        private: NodeCompletedFacts { closed_edges, again: done.again, child_memory: done.child_memory },
    };
    drafts.push(Event::from(completed).into());
    drafts
}

/// Values of sensitive variables never show up in a public payload, not even as an output of the node that set them.
fn mask_outputs(state: &RunState, node: usize, outputs: Map<String, Value>) -> Map<String, Value> {
    let sensitive = state.plan.definition.nodes[node].output_sensitivity.as_ref();
    outputs
        .into_iter()
        .map(|(name, value)| {
            let hide = state.plan.is_sensitive(&name)
                || state.plan.nodes[node].hidden.contains(&name)
                || sensitive.is_some_and(|map| map.get(&name) == Some(&true));
            (name, if hide { REDACTED.into() } else { value })
        })
        .collect()
}

/// Another attempt if the node has one left, else the end of it. Nothing of it is under way any more.
pub(super) fn failed(state: &RunState, node: usize, attempt: u32, fault: Fault, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    if attempt < plan.max_retries && plan.kind.retries() && !is_final(state, &fault) {
        let delay_ms = plan.retry_delay_ms.saturating_mul(1 << attempt.min(20)).min(MOST_RETRY_DELAY_MS);
        let retried = NodeRetried {
            node_id: plan.id.clone(),
            attempt: attempt + 1,
            delay_ms,
            last_error: fault,
            private: NodeRetriedFacts { wake_at: at.plus_millis(delay_ms) },
        };
        return vec![Event::from(retried).into()];
    }
    failed_for_good(state, node, attempt, fault)
}

pub(super) fn failed_for_good(state: &RunState, node: usize, attempt: u32, fault: Fault) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    let mut drafts: Vec<Draft> = Vec::new();
    if let (Kind::Loop(head), code::LOOP_LIMIT_EXCEEDED) = (&plan.kind, fault.code.as_str()) {
        let limit = head.limit();
        drafts.push(Event::from(LoopbackLimit { node_id: plan.id.clone(), iterations: limit + 1, limit }).into());
    }
    let event = NodeFailed { node_id: plan.id.clone(), error: fault.clone(), attempts: attempt + 1 };
    drafts.push(Event::from(event).into());
    if !state.plan.failure_is_handled(node) {
        drafts.extend(ending::fail(state, fault, Some(node), Some(node)));
    }
    drafts
}

/// The bound on node starts, when this would be one too many after `earlier` ones in the same step.
pub(super) fn too_many(state: &RunState, node: usize, earlier: u64) -> Option<Vec<Draft>> {
    let limit = state.start.as_ref()?.event.private.max_node_executions;
    let observed = state.executions + earlier + 1;
    if observed <= limit {
        return None;
    }
    let node_id = state.plan.nodes[node].id.clone();
    let (kind, node_id) = (CapKind::NodeExecutions, Some(node_id));
    let breach = CapBreached { kind, limit: limit.into(), observed: observed.into(), node_id };
    let fault = Fault::new(code::RECURSION_LIMIT_EXCEEDED, format!("The run wanted more than {limit} node starts."))
        .with("limit", limit)
        .with("observed", observed);
    let mut drafts = vec![Event::from(breach).into()];
    drafts.extend(ending::fail(state, fault, Some(node), None));
    Some(drafts)
}

/// A write that changes nothing is not news.
pub(super) fn variable_changed(state: &RunState, node: Option<usize>, name: &str, value: &Value) -> Option<Draft> {
    let previous = state.variables.get(name);
    if previous == Some(value) {
        return None;
    }
    let sensitive = state.plan.is_sensitive(name);
    let shown = |value: &Value| if sensitive { REDACTED.into() } else { value.clone() };
    let event = VariableChanged {
        name: name.to_owned(),
        previous: previous.map(shown),
        next: shown(value),
        node_id: node.map(|node| state.plan.nodes[node].id.clone()),
        private: VariableChangedFacts { hidden: sensitive.then(|| value.clone()) },
    };
    Some(Event::from(event).into())
}

fn channel_written(state: &RunState, node: usize, write: Writing, at: Timestamp) -> Draft {
    let sensitive = state.plan.is_sensitive(&write.channel);
    let event = ChannelWritten {
        channel: write.channel,
        value: if sensitive { REDACTED.into() } else { write.value.clone() },
        reducer: write.reducer,
        written_at: at,
        node_id: Some(state.plan.nodes[node].id.clone()),
        schema_version: write.schema_version,
        private: ChannelWrittenFacts {
            ttl_ms: write.ttl_ms,
            max_size: write.max_size,
            hidden: sensitive.then_some(write.value),
        },
    };
    Event::from(event).into()
}

/// Outgoing edges that stay closed: those of a port not taken, and those whose condition does not hold.
fn closed_edges(scene: &EvalContext<'_>, port: Option<&'static str>) -> Result<Vec<u32>, Fault> {
    let plan = &scene.state.plan;
    let node = &plan.nodes[scene.node];
    let mut closed = Vec::new();
    let routed = port.is_some_and(|port| node.outgoing.iter().any(|&index| plan.edges[index].output == port));
    for &index in &node.outgoing {
        let edge = &plan.edges[index];
        let open = node.kind.port_open(&edge.output, port, routed)
            && match &edge.condition {
                None => true,
                Some(condition) => condition.holds(scene).map_err(|error| {
                    let edge = plan.definition.edges[index].id.as_str();
                    let place = format!("edge `{edge}`, condition");
                    expr::fault(&condition.source(), &place, &error).with("edgeId", edge)
                })?,
            };
        if !open {
            closed.push(index as u32);
        }
    }
    Ok(closed)
}

pub(super) fn scene(
    state: &RunState,
    node: usize,
    visit: u32,
    attempt: u32,
    inputs: Map<String, Value>,
    broken: bool,
    at: Timestamp,
) -> EvalContext<'_> {
    EvalContext {
        state,
        node,
        visit,
        attempt,
        at,
        inputs,
        broken,
        written: BTreeMap::new(),
        outputs: None,
        turn: None,
        feedback: None,
        frame: None,
        transcript: None,
    }
}

/// Reads a node's input ports.
pub(super) fn inputs(state: &RunState, node: usize, at: Timestamp) -> Result<Map<String, Value>, Fault> {
    let mut inputs = Map::new();
    let mut copies = Copies::new("The node's inputs", state.bounds());
    for (name, port) in &state.plan.nodes[node].inputs {
        let missing = |what: String| {
            Fault::new(code::INPUT_MISSING, format!("The input `{name}` has no value: {what}."))
                .with("input", name.as_str())
        };
        let value = match port {
            Port::Static(value) => {
                copies.add(name, json::size(value))?;
                Some(value.clone())
            }
            Port::Expression(expression) => {
                let scene = scene(state, node, 1, 0, Map::new(), false, at);
                let value = expression.evaluate(&scene).map_err(|error| expression.fault(&error))?;
                copies.add(name, json::size(&value))?;
                Some(value)
            }
            Port::Connection { node: source, output, optional } => match state.nodes[*source].outputs.get(output) {
                Some(value) => {
                    copies.add(name, json::size(value))?;
                    Some(value.clone())
                }
                None if *optional => None,
                None => {
                    let source = &state.plan.nodes[*source].id;
                    return Err(missing(format!("node `{source}` has no output `{output}`")));
                }
            },
            Port::Variable { name: variable, optional } => {
                copies.add(name, state.size_of(variable))?;
                match state.value_for(node, variable)? {
                    Some(value) => Some(value),
                    None if *optional => None,
                    None => return Err(missing(format!("the variable `{variable}` is not set"))),
                }
            }
        };
        if let Some(value) = value {
            inputs.insert(name.clone(), value);
        }
    }
    Ok(inputs)
}
