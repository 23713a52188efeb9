//! Nodes that ask the shell before they start; see [`crate::node_request`].

use baton_model::event::{
    Ending, LedgerFacts, MemoryDeleted, MemoryWritten, NodeStarted, NodeStartedFacts, WorkspaceUpdated,
};
use baton_model::{Draft, Event, Fault, NodeId, Timestamp, ToolOutcome, code};

use super::{advance, invocation, tool, turn, visit};
use crate::invocation::Open;
use crate::native;
use crate::node_request::{Answer, Found, NodeRequest, Request, Written};
use crate::nodes::{Kind, Supervisor, wrong_answer};
use crate::state::{Phase, RunState, Verdict};

/// The question the run waits on, if the next thing it does needs an answer.
pub fn wanted(state: &RunState) -> Option<NodeRequest> {
    // Asked between steps and within one: either way the question costs what it cost when it came up.
    state.meter.restart();
    match &state.phase {
        Phase::Active => {}
        // What is under way may finish; nothing else begins.
        Phase::Ending(Ending::Paused(_)) => return native_call(state),
        Phase::New | Phase::Paused { .. } | Phase::Ending(_) | Phase::Ended { .. } => return None,
    }
    if let Some(consult) = native_call(state) {
        return Some(consult);
    }
    let (node, attempt) = state.refining().map(|node| (node, state.nodes[node].attempt + 1)).or_else(|| {
        let ready = state.next_ready().filter(|ready| ready.verdict == Verdict::Run)?;
        Some((ready.node, 0))
    })?;
    let plan = &state.plan.nodes[node];
    let over_bound = || visit::too_many(state, node, 0).is_some() || turn::too_many(state, node).is_some();
    if plan.disabled || !plan.kind.consults() || over_bound() || state.incapable(node).is_some() {
        return None;
    }
    if let Kind::Supervisor(supervisor) = &plan.kind
        && turn::known_view(state, node, supervisor, attempt).is_some()
    {
        return None;
    }
    let visit = visit_of(state, node, attempt);
    let request = request(state, node, visit, attempt, state.last_at).ok()?;
    Some(NodeRequest { node: plan.id.clone(), visit, attempt, call: None, request })
}

/// A call of a tool that lives in the process.
fn native_call(state: &RunState) -> Option<NodeRequest> {
    state.active.iter().copied().filter(|&node| state.nodes[node].is_running()).find_map(|node| {
        let open = state.open_calls(node).into_iter().find(|open| !open.is_abroad() && !open.call.is_envelope())?;
        let request = native::request(state, node, open.call).ok()?;
        let (run, node) = (&state.nodes[node], state.plan.nodes[node].id.clone());
        Some(NodeRequest { node, visit: run.visit, attempt: run.attempt, call: Some(open.call.id.clone()), request })
    })
}

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
            let frozen = state.nodes[node].frozen.filter(|_| attempt > 0);
            let Supervisor { reads_memory, reads_workspace, .. } = supervisor;
            let agent = match supervisor.is_agent() {
                true => Some(Box::new(invocation::request(state, node, invocation::task(state, node, at)?))),
                false => None,
            };
            Ok(Request::Turn { frozen, memory: *reads_memory, workspace: *reads_workspace, agent })
        }
        Kind::Agent(_) => {
            let task = invocation::task(state, node, at)?;
            Ok(Request::Invoke(Box::new(invocation::request(state, node, task))))
        }
        kind => {
            let inputs = visit::inputs(state, node, at)?;
            kind.request(&visit::scene(state, node, visit, attempt, inputs, false, at))
        }
    }
}

/// The answer has come. One that nobody waits for any more changes nothing, and neither does one that comes when the
/// run's time is up: going on ends it.
pub(super) fn answered(state: &RunState, consult: &NodeRequest, answer: &Answer, at: Timestamp) -> Vec<Draft> {
    if wanted(state).as_ref() != Some(consult) || advance::out_of_time(state, at).is_some() {
        return Vec::new();
    }
    let Some(&node) = state.plan.index.get(&consult.node) else { return Vec::new() };
    let plan = &state.plan.nodes[node];
    if let Some(call) = &consult.call {
        return called(state, node, call, answer);
    }
    if let Kind::Supervisor(supervisor) = &plan.kind {
        let fault = match &answer.found {
            Ok(Found::Turn(frame)) => return turn::begin(state, node, supervisor, consult.attempt, frame, at),
            Ok(_) => wrong_answer(),
            Err(fault) => fault.clone(),
        };
        return started_and_failed(state, node, consult.visit, consult.attempt, fault);
    }
    if let Kind::Agent(_) = &plan.kind {
        return match &answer.found {
            Ok(Found::InvocationContext(brief)) => invocation::begin(state, node, consult.attempt, brief, at),
            Ok(_) => started_and_failed(state, node, consult.visit, consult.attempt, wrong_answer()),
            Err(fault) => started_and_failed(state, node, consult.visit, consult.attempt, fault.clone()),
        };
    }
    let mut drafts = vec![started(state, node, consult.visit, consult.attempt)];
    drafts.extend(answer.written.iter().map(|written| recorded(&consult.node, None, written)));
    let scene = visit::scene(state, node, consult.visit, consult.attempt, serde_json::Map::new(), false, at);
    let done = answer.found.clone().and_then(|found| plan.kind.finish(found, &scene));
    match done {
        Ok(done) => drafts.extend(visit::finish(state, node, consult.attempt, done, at)),
        // Trying again does not give anybody a scope.
        Err(fault) if fault.code == code::FORBIDDEN => {
            drafts.extend(visit::failed_for_good(state, node, consult.attempt, fault));
        }
        Err(fault) => drafts.extend(visit::failed(state, node, consult.attempt, fault, at)),
    }
    drafts
}

/// A tool that lives in the process has been called and has returned, all in one.
fn called(state: &RunState, node: usize, call_id: &str, answer: &Answer) -> Vec<Draft> {
    let Some(Open { call, .. }) = state.open_call(node, call_id) else { return Vec::new() };
    let outcome = match &answer.found {
        Ok(found) => native::outcome(found),
        Err(fault) => ToolOutcome::failed(&fault.code, fault.message.clone()),
    };
    tool::settled(state, node, call, outcome, &answer.written)
}

/// A visit that could not even begin. It fails for good: nobody asks again on behalf of an attempt that sleeps.
pub(super) fn started_and_failed(state: &RunState, node: usize, visit: u32, attempt: u32, fault: Fault) -> Vec<Draft> {
    let mut drafts = vec![started(state, node, visit, attempt)];
    drafts.extend(visit::failed_for_good(state, node, attempt, fault));
    drafts
}

pub(super) fn visit_of(state: &RunState, node: usize, attempt: u32) -> u32 {
    if attempt == 0 { state.nodes[node].visit + 1 } else { state.nodes[node].visit }
}

pub(super) fn started(state: &RunState, node: usize, visit: u32, attempt: u32) -> Draft {
    let plan = &state.plan.nodes[node];
    let private = NodeStartedFacts { visit, ..NodeStartedFacts::default() };
    Event::from(NodeStarted { node_id: plan.id.clone(), type_id: plan.type_id.clone(), attempt, private }).into()
}

pub(super) fn recorded(node: &NodeId, agent: Option<&str>, written: &Written) -> Draft {
    let node_id = Some(node.clone());
    let event: Event = match written {
        Written::Entry { memory_ref, id, tags, version } => MemoryWritten {
            memory_ref: memory_ref.clone(),
            memory_id: id.clone(),
            node_id,
            agent_id: agent.map(str::to_owned),
            tags: tags.clone(),
            private: LedgerFacts { version: *version, node_id: None },
        }
        .into(),
        Written::Forgotten { memory_ref, id, version } => MemoryDeleted {
            memory_ref: memory_ref.clone(),
            memory_id: id.clone(),
            node_id,
            private: LedgerFacts { version: *version, node_id: None },
        }
        .into(),
        Written::File { path, file_version, version } => WorkspaceUpdated {
            path: path.clone(),
            version: *file_version,
            private: LedgerFacts { version: *version, node_id },
        }
        .into(),
    };
    event.into()
}
