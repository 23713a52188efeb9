//! What a parent learns about its children. Saying the same thing twice changes nothing.

use baton_model::event::{Ending, NodeCancelled, NodeResumed, NodeSuspended, NodeSuspendedFacts, RemoteRun, Words};
use baton_model::{Draft, Event, Fault, NodeStatus, RunId, RunStatus, Timestamp, code};
use serde_json::{Map, Value, json};

use super::child_records::{dispatched, seen};
use super::{child_records, finish, map_children, merge_gate, worker_batch};
use crate::command::ChildOutcome;
use crate::nodes::Done;
use crate::plan::{Kind, MapStep, OnFailure};
use crate::state::{Child, Phase, RunState};

fn live<'a>(state: &'a RunState, run: &RunId) -> Option<&'a Child> {
    state.live_child(run)
}

fn ending(state: &RunState) -> bool {
    matches!(state.phase, Phase::Ending(Ending::Failed { .. } | Ending::Cancelled(_) | Ending::Completed(_)))
}

/// `run` is the name the child was planned under; `remote` says what it is called on another host.
pub(super) fn started(state: &RunState, run: &RunId, remote: Option<&RemoteRun>) -> Vec<Draft> {
    match live(state, run).filter(|child| !child.dispatched) {
        Some(child) if child.worker.is_some() => worker_batch::started(state, child, remote),
        Some(child) => vec![Event::from(dispatched(state, child, remote)).into()],
        None => Vec::new(),
    }
}

pub(super) fn refused(state: &RunState, run: &RunId, fault: &Fault, at: Timestamp) -> Vec<Draft> {
    if let Some(child) = live(state, run)
        && let Some(step) = item_of(state, child)
    {
        let mut drafts = Vec::new();
        if ending(state) {
            drafts.extend(map_children::abandoned(state, step, child));
            drafts.extend(last_of_node(state, child));
        } else if !child.dispatched {
            drafts.extend(map_children::failed(state, step, child, fault.clone(), at));
        }
        return drafts;
    }
    match live(state, run) {
        Some(child) if ending(state) && child.worker.is_none() => vec![cancelled(state, child.node, why(Some(fault)))],
        // It exists: a late refusal of its creation is not true.
        Some(child) if child.dispatched => Vec::new(),
        Some(child) if child.worker.is_some() => {
            let mut drafts = worker_batch::refused(state, child, fault);
            drafts.extend(last_of_node(state, child));
            drafts
        }
        Some(child) => finish::fail(state, child.node, fault.clone(), at),
        None => Vec::new(),
    }
}

pub(super) fn status(state: &RunState, run: &RunId, status: RunStatus) -> Vec<Draft> {
    let Some(child) = live(state, run).filter(|child| child.dispatched) else { return Vec::new() };
    if ending(state) || child.status == status || matches!(state.phase, Phase::Paused { .. }) {
        return Vec::new();
    }
    let node_id = state.plan.nodes[child.node].id.clone();
    match (status.is_waiting(), child.status.is_waiting()) {
        (true, _) => {
            let event = NodeSuspended {
                interrupt_id: format!("int:{node_id}:{}:child", state.nodes[child.node].visit),
                node_id,
                kind: None,
                key: None,
                reason: Some("child-waiting".to_owned()),
                child_status: Some(status),
                child_run_id: Some(run.clone()),
                agent_id: None,
                threshold: None,
                observed: None,
                private: NodeSuspendedFacts::default(),
            };
            vec![Event::from(event).into()]
        }
        (false, true) if !status.is_terminal() => vec![resumed(state, child)],
        (false, _) => Vec::new(),
    }
}

pub(super) fn ended(state: &RunState, run: &RunId, outcome: &ChildOutcome, at: Timestamp) -> Vec<Draft> {
    let Some(child) = live(state, run).filter(|_| outcome.status.is_terminal()) else { return Vec::new() };
    let node = child.node;
    if child.worker.is_some() && (ending(state) || !matches!(state.phase, Phase::Paused { .. })) {
        let mut drafts = Vec::new();
        if child.status.is_waiting() && !state.interrupts.contains_key(&node) {
            drafts.push(resumed(state, child));
        }
        let chain = worker_batch::ended(state, child, outcome);
        let shift = drafts.len() as u64;
        let own = state.next_seq;
        drafts.extend(chain.into_iter().map(|draft| Draft {
            // Causes inside this very step move with it.
            causation: draft.causation.map(|seq| if seq >= own { seq + shift } else { seq }),
            ..draft
        }));
        drafts.extend(last_of_node(state, child));
        return drafts;
    }
    if ending(state) {
        if let Some(step) = item_of(state, child) {
            let mut drafts = map_children::abandoned(state, step, child);
            drafts.extend(last_of_node(state, child));
            return drafts;
        }
        return vec![cancelled(state, node, why(outcome.error.as_ref()))];
    }
    if matches!(state.phase, Phase::Paused { .. }) {
        // Heard again on resume: the shell asks `outstanding` then.
        return Vec::new();
    }
    // What has ended has existed, even if nobody said so before.
    let mut drafts = started(state, run, None);
    if let Some(step) = item_of(state, child) {
        // The node may wait for somebody else: another item's child, or a word about a call.
        if child.status.is_waiting() && !state.interrupts.contains_key(&node) {
            drafts.push(resumed(state, child));
        }
        drafts.extend(match outcome.status {
            RunStatus::Completed => map_children::completed(state, step, child, outcome, at),
            _ => map_children::failed(state, step, child, child_fault(run, outcome), at),
        });
        return drafts;
    }
    if state.nodes[node].status() == NodeStatus::Suspended {
        drafts.push(resumed(state, child));
    }
    let Kind::SubWorkflow(call) = &state.plan.nodes[node].kind else { return drafts };
    let mut outputs: Map<String, Value> =
        [("childRunId".to_owned(), json!(run)), ("childStatus".to_owned(), json!(outcome.status))]
            .into_iter()
            .collect();
    if outcome.status == RunStatus::Completed && call.attest.approval {
        drafts.extend(match call.kept(&outcome.variables, state.bounds()) {
            Ok(kept) => merge_gate::ask(state, child, &kept, outcome, at),
            Err(fault) => finish::fail(state, node, fault, at),
        });
    } else if outcome.status == RunStatus::Completed {
        if call.attest.checksum {
            let attestation = child_records::attestation(&outcome.variables);
            outputs.insert("attestation".to_owned(), json!(attestation));
        }
        drafts.extend(match call.harvest(&outcome.variables, state.bounds()) {
            Ok(variables) => {
                let done = Done { outputs, variables, child_memory: seen(child, outcome), ..Done::default() };
                finish::complete(state, node, done, at)
            }
            Err(fault) => finish::fail(state, node, fault, at),
        });
    } else if call.on_failure == OnFailure::Absorb {
        drafts.extend(finish::complete(state, node, Done::with(outputs), at));
    } else {
        drafts.extend(finish::fail(state, node, child_fault(run, outcome), at));
    }
    drafts
}

/// The map whose item this child works on.
fn item_of<'a>(state: &'a RunState, child: &Child) -> Option<&'a MapStep> {
    match &state.plan.nodes[child.node].kind {
        Kind::Map(step) => Some(step),
        _ => None,
    }
}

fn child_fault(run: &RunId, outcome: &ChildOutcome) -> Fault {
    let (code, what) = match outcome.status {
        RunStatus::Cancelled => (code::CHILD_CANCELLED, "was cancelled".to_owned()),
        _ => {
            let why = outcome.error.as_ref().map_or_else(String::new, |e| format!(": {} ({})", e.message, e.code));
            (code::CHILD_FAILED, format!("failed{why}"))
        }
    };
    let fault = Fault::new(code, format!("The child run {run} {what}"))
        .with("childRunId", run.as_str())
        .with("childStatus", outcome.status.as_str());
    match &outcome.error {
        Some(error) => fault.with("childError", json!(error)),
        None => fault,
    }
}

fn resumed(state: &RunState, child: &Child) -> Draft {
    let node_id = state.plan.nodes[child.node].id.clone();
    let child_run_id = Some(child.plan.run.clone());
    Event::from(NodeResumed {
        node_id,
        interrupt_id: None,
        resume_value: None,
        child_run_id,
        private: Words::default(),
    })
    .into()
}

/// While the run ends, a dispatch is cancelled with the last of its children.
fn last_of_node(state: &RunState, child: &Child) -> Option<Draft> {
    let others = state.live_children().filter(|other| other.node == child.node).count();
    (ending(state) && others == 1).then(|| cancelled(state, child.node, "run-ended"))
}

fn cancelled(state: &RunState, node: usize, reason: &str) -> Draft {
    let node_id = state.plan.nodes[node].id.clone();
    Event::from(NodeCancelled { node_id, reason: Some(reason.to_owned()) }).into()
}

/// A run that ends without having heard of its child's end says so.
fn why(fault: Option<&Fault>) -> &'static str {
    match fault {
        Some(fault) if fault.code == code::REMOTE_UNREACHABLE => "remote-unreachable",
        _ => "run-ended",
    }
}
