//! One visit of one node begins. How it ends is in `finish`.

use std::sync::Arc;

use baton_model::event::{NodeStarted, NodeStartedFacts};
use baton_model::tool::Transport;
use baton_model::{Draft, Event, Timestamp};

use super::caps::too_many_starts;
use super::finish::{failed, failed_for_good, finish, started_and_failed};
use super::inputs::inputs;
use super::suspend::{key, suspend};
use super::{ending, invocation, node_records, request, tool_records, turn, worker_batch};
use crate::eval_context::EvalContext;
use crate::invocation::call_id;
use crate::nodes::conformance;
use crate::nodes::{Done, Outcome};
use crate::plan::Kind;
use crate::state::RunState;

/// Starts a visit (`attempt` 0) or another attempt of it.
pub(super) fn begin(state: &RunState, node: usize, attempt: u32, broken: bool, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    if plan.disabled {
        return vec![node_records::skipped(state, node, "disabled")];
    }
    // Refused before dispatch: the node never starts.
    if let Kind::Test(test) = &plan.kind
        && let Some(fault) = test.missing()
    {
        return ending::fail(state, fault, Some(node), None);
    }
    if let Some(drafts) = too_many_starts(state, node, 0) {
        return drafts;
    }
    if let Some((event, fault)) = state.incapable(node) {
        let visit = node_records::visit_of(state, node, attempt);
        let mut drafts = vec![node_records::started(state, node, visit, attempt), event];
        drafts.extend(failed_for_good(state, node, attempt, fault));
        return drafts;
    }
    match &plan.kind {
        Kind::Supervisor(supervisor) => return turn::enter(state, node, supervisor, attempt, at),
        Kind::Dispatch(dispatch) => return worker_batch::begin(state, node, dispatch, attempt, at),
        Kind::Test(test) => {
            if let Some(drafts) = conformance::begin(state, node, test, attempt, at) {
                return drafts;
            }
        }
        // Another attempt works from what the first one was briefed with.
        Kind::Agent(_) if attempt > 0 => {
            let brief = state.nodes[node].invocation.as_ref().map(|invocation| Arc::clone(&invocation.brief));
            return brief.map_or_else(Vec::new, |brief| invocation::begin(state, node, attempt, &brief, at));
        }
        _ => {}
    }
    let visit = node_records::visit_of(state, node, attempt);
    if plan.kind.asks_first() {
        // It starts when the answer comes; one that cannot even ask starts and fails.
        return match request::request(state, node, visit, attempt, at) {
            Ok(_) => Vec::new(),
            Err(fault) => started_and_failed(state, node, visit, attempt, fault),
        };
    }
    let mut facts = NodeStartedFacts { visit, ..NodeStartedFacts::default() };
    let outcome = match inputs(state, node, at) {
        Ok(inputs) => plan.kind.run(&EvalContext::new(state, node, visit, attempt, inputs, broken, at)),
        Err(fault) => Outcome::Failed(fault),
    };
    let waits = matches!(
        outcome,
        Outcome::Sleep { .. }
            | Outcome::Stream(_)
            | Outcome::Ask(_)
            | Outcome::Call(_)
            | Outcome::Effect(_)
            | Outcome::Seek
            | Outcome::Items
    );
    facts.deadline = plan.timeout_ms.filter(|_| waits).map(|ms| at.plus_millis(ms));
    match &outcome {
        Outcome::Sleep { ms } if *ms > 0 => facts.wake_at = Some(at.plus_millis(*ms)),
        Outcome::Stream(chunks) if chunks.delay_ms() > 0 => facts.wake_at = Some(at.plus_millis(chunks.delay_ms())),
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
        // What takes time is derived from state: a child, an answer, a tool that is looked up, a list.
        Outcome::Sleep { .. } | Outcome::Child(_) | Outcome::Call(_) | Outcome::Seek | Outcome::Items => {}
        Outcome::Stream(chunks) if chunks.delay_ms() == 0 => {
            drafts.extend(conformance::all_chunks(state, node, attempt, &chunks, at));
        }
        Outcome::Stream(_) => {}
        Outcome::Ask(ask) => drafts.extend(suspend(state, node, &key(&plan.id, visit, attempt), ask, at)),
        Outcome::Failed(fault) => drafts.extend(failed(state, node, attempt, fault, at)),
        Outcome::Effect(asked) => {
            let transport = state.effect_tool(node).map_or(Transport::Http, |tool| tool.transport);
            let id = call_id(&plan.id, visit, attempt, 0, 0);
            drafts.push(tool_records::called(state, node, tool_records::SYSTEM, &id, &asked, transport));
        }
    }
    drafts
}
