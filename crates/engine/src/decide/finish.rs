//! How a visit of a node ends: it completes, fails and is tried again, or fails for good.

use baton_model::event::{LoopbackLimit, NodeCompleted, NodeCompletedFacts, NodeFailed, NodeRetried, NodeRetriedFacts};
use baton_model::{Draft, Event, Fault, Timestamp, code};
use serde_json::Map;

use super::bracket::stop;
use super::ending;
use super::node_records::started;
use super::output_size::{check_room, overlay};
use super::writes::{channel_written, mask_outputs, variable_changed};
use crate::depth;
use crate::eval_context::EvalContext;
use crate::expr;
use crate::nodes::Done;
use crate::plan::Kind;
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

/// Whether trying again cannot mend this, whatever the run.
pub(crate) fn is_hopeless(fault: &Fault) -> bool {
    let code = fault.code.as_str();
    FINAL.contains(&code) || FINAL_SINCE_3.contains(&code) || is_spent(fault)
}

fn is_final(state: &RunState, fault: &Fault) -> bool {
    let code = fault.code.as_str();
    FINAL.contains(&code) || (state.rule() >= 3 && FINAL_SINCE_3.contains(&code)) || is_spent(fault)
}

/// Whether a failed node's kind has nothing to do with it: the tree's budget ended it, and will end it again.
pub(crate) fn is_spent(fault: &Fault) -> bool {
    const SPENT: [&str; 2] = [code::BUDGET_EXHAUSTED, code::BUDGET_MODEL_DENIED];
    let below = ["childError", "itemError"].iter().any(|inner| {
        let code = fault.details.as_ref().and_then(|details| details.get(*inner)?.get("code")?.as_str());
        code.is_some_and(|code| SPENT.contains(&code))
    });
    below || SPENT.contains(&fault.code.as_str())
}

/// Completes an active visit.
pub(crate) fn complete(state: &RunState, node: usize, done: Done, at: Timestamp) -> Vec<Draft> {
    finish(state, node, state.nodes[node].attempt, done, at)
}

/// Fails an active visit: what it has under way stops, and there is another attempt if the node has one left.
pub(crate) fn fail(state: &RunState, node: usize, fault: Fault, at: Timestamp) -> Vec<Draft> {
    let mut drafts = stop(state, node);
    drafts.extend(failed(state, node, state.nodes[node].attempt, fault, at));
    drafts
}

pub(crate) fn finish(state: &RunState, node: usize, attempt: u32, done: Done, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    let made = done.outputs.iter().chain(done.variables.iter().map(|(name, value)| (name, value)));
    let written = done.write.iter().map(|write| (&write.channel, &write.value));
    if let Err(fault) = made.chain(written).try_for_each(|(name, value)| depth::check(name, value)) {
        return failed(state, node, attempt, fault, at);
    }
    if let Err(fault) = check_room(state, node, &done, at) {
        return failed(state, node, attempt, fault, at);
    }
    let mut context = EvalContext::new(state, node, state.nodes[node].visit, attempt, Map::new(), false, at);
    context.written = overlay(state, &done, at);
    context.outputs = Some(done.outputs.clone());
    let closed_edges = match closed_edges(&context, done.port) {
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

/// Outgoing edges that stay closed: those of a port not taken, and those whose condition does not hold.
fn closed_edges(context: &EvalContext<'_>, port: Option<&'static str>) -> Result<Vec<u32>, Fault> {
    let plan = &context.state.plan;
    let node = &plan.nodes[context.node];
    let mut closed = Vec::new();
    let routed = port.is_some_and(|port| node.outgoing.iter().any(|&index| plan.edges[index].output == port));
    for &index in &node.outgoing {
        let edge = &plan.edges[index];
        let open = node.kind.port_open(&edge.output, port, routed)
            && match &edge.condition {
                None => true,
                Some(condition) => condition.holds(context).map_err(|error| {
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

/// How long after a failed attempt the next one begins.
pub(crate) fn retry_delay_ms(first_ms: u64, attempt: u32) -> u64 {
    first_ms.saturating_mul(1 << attempt.min(20)).min(MOST_RETRY_DELAY_MS)
}

/// Another attempt if the node has one left, else the end of it. Nothing of it is under way any more.
pub(crate) fn failed(state: &RunState, node: usize, attempt: u32, fault: Fault, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    if attempt < plan.max_retries && plan.kind.retries() && !is_final(state, &fault) {
        let delay_ms = retry_delay_ms(plan.retry_delay_ms, attempt);
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

pub(crate) fn failed_for_good(state: &RunState, node: usize, attempt: u32, fault: Fault) -> Vec<Draft> {
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

/// A visit that could not even begin. It fails for good: nobody asks again on behalf of an attempt that sleeps.
pub(crate) fn started_and_failed(state: &RunState, node: usize, visit: u32, attempt: u32, fault: Fault) -> Vec<Draft> {
    let mut drafts = vec![started(state, node, visit, attempt)];
    drafts.extend(failed_for_good(state, node, attempt, fault));
    drafts
}
