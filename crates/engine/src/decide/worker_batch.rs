//! Acting on a decision: workers are handed their part, one after the other or side by side, and what they made is
//! harvested. Every transition of every worker is on the log and caused by the one before it.

use baton_model::event::{
    CapBreached, CapKind, ChainPhase, ChildPlan, Ending, FanOut, Join, JoinOutcome, NodePlace, NodeStarted,
    NodeStartedFacts, RemoteRun, RunCompleted,
};
use baton_model::{Decision, Draft, Event, Fault, RunStatus, Timestamp, code};
use serde_json::{Map, json};

use super::child_records::{attestation, chain, child_run};
use super::worker_report::report;
use super::{child_records, ending, finish, merge_gate, suspend};
use crate::command::ChildOutcome;
use crate::nodes::{Ask, Done};
use crate::orchestration::{Stage, Verdict, WorkerBatch};
use crate::plan::{Dispatch, FanOutPolicy, Kind, OnWorkerFailure};
use crate::state::{Child, RunState};

/// Starts the dispatch node on the newest decision.
pub(super) fn begin(state: &RunState, node: usize, dispatch: &Dispatch, attempt: u32, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    if let Some(limit) = dispatch.iteration_cap.filter(|limit| state.dispatches + 1 > *limit) {
        return over_cap(state, node, limit);
    }
    let visit = if attempt == 0 { state.nodes[node].visit + 1 } else { state.nodes[node].visit };
    let started = NodeStarted {
        node_id: plan.id.clone(),
        type_id: plan.type_id.clone(),
        attempt,
        private: NodeStartedFacts { visit, ..NodeStartedFacts::default() },
    };
    let mut drafts: Vec<Draft> = vec![Event::from(started).into()];
    let Some(decided) = &state.decision else {
        let fault = Fault::new(code::NO_PENDING_DECISION, "No supervisor has decided anything yet.");
        drafts.extend(finish::failed(state, node, attempt, fault, at));
        return drafts;
    };
    match &decided.decision {
        Decision::Terminate { reason, .. } => {
            let outputs = [("terminated".to_owned(), json!(true)), ("reason".to_owned(), json!(reason))];
            drafts.extend(finish::finish(state, node, attempt, Done::with(outputs.into_iter().collect()), at));
            let completed = RunCompleted { outputs: ending::outputs(state), reason: reason.clone() };
            drafts.extend(ending::end(state, Ending::Completed(completed), "terminated", Some(node)));
        }
        Decision::AskUser { prompt } => {
            let data = json!({"questions": [{"id": "answer", "question": prompt}], "contextType": "ask-user"});
            let ask = Ask::new("clarification", data);
            drafts.extend(suspend::suspend(state, node, &suspend::key(&plan.id, visit, attempt), ask, at));
        }
        Decision::NextWorker { next_worker_ids, next_worker_inputs, .. } => {
            let refused = if next_worker_ids.len() > 1 && dispatch.policy == FanOutPolicy::Reject {
                Some(Fault::new(code::FAN_OUT_UNSUPPORTED, "This dispatch takes one worker at a time."))
            } else if next_worker_inputs.as_ref().is_some_and(|inputs| inputs.len() != next_worker_ids.len()) {
                Some(Fault::new(code::VALIDATION_ERROR, "`nextWorkerInputs` has one entry per worker."))
            } else if dispatch.join.quorum as usize > next_worker_ids.len() {
                Some(Fault::new(code::VALIDATION_ERROR, "The quorum is larger than the number of workers."))
            } else {
                None
            };
            if let Some(fault) = refused {
                drafts.extend(finish::failed(state, node, attempt, fault, at));
            }
        }
    }
    drafts
}

fn over_cap(state: &RunState, node: usize, limit: u64) -> Vec<Draft> {
    let node_id = Some(state.plan.nodes[node].id.clone());
    let observed = state.dispatches + 1;
    let breach =
        CapBreached { kind: CapKind::DispatchIterations, limit: limit.into(), observed: observed.into(), node_id };
    let fault = Fault::new(code::LOOP_LIMIT_EXCEEDED, format!("The run wanted more than {limit} dispatches."))
        .with("limit", limit)
        .with("observed", observed);
    let mut drafts = vec![Event::from(breach).into()];
    drafts.extend(ending::fail(state, fault, Some(node), None));
    drafts
}

/// The next step of the workers under way, if there is one to take now.
pub(super) fn advance(state: &RunState, at: Timestamp) -> Option<Vec<Draft>> {
    let batch = state.batch.as_ref()?;
    let Kind::Dispatch(dispatch) = &state.plan.nodes[batch.node].kind else { return None };
    if state.interrupts.contains_key(&batch.node) {
        return None;
    }
    if batch.is_parallel(dispatch) {
        parallel(state, batch, dispatch, at)
    } else {
        sequential(state, batch, dispatch, at)
    }
}

/// One after the other: the next begins once the previous is settled and harvested.
fn sequential(state: &RunState, batch: &WorkerBatch, dispatch: &Dispatch, at: Timestamp) -> Option<Vec<Draft>> {
    if batch.in_flight() > 0 {
        return None;
    }
    if let Some(worker) = batch.workers.iter().position(|worker| needs_merge(worker.stage, dispatch, &worker.id)) {
        return Some(merge_gate::merge(state, batch, dispatch, worker, at));
    }
    match batch.next_pending() {
        Some(worker) => Some(began(state, batch, dispatch, worker)),
        // A single worker needs no fan-out on the log, but what its join demands holds for it too.
        None if dispatch.policy == FanOutPolicy::Parallel && batch.verdict(dispatch) == Verdict::Failed => {
            Some(join_failed(state, batch, dispatch, at))
        }
        None => Some(finish::complete(state, batch.node, Done::with(report(state, batch, None)), at)),
    }
}

fn join_failed(state: &RunState, batch: &WorkerBatch, dispatch: &Dispatch, at: Timestamp) -> Vec<Draft> {
    let why = match dispatch.join.on_failure {
        OnWorkerFailure::FailFast => "a worker failed",
        OnWorkerFailure::Collect | OnWorkerFailure::Absorb => "too few workers completed",
    };
    let fault = Fault::new(code::DISPATCH_JOIN_FAILED, format!("The join failed: {why}."))
        .with("children", report(state, batch, None).remove("children").unwrap_or_default());
    finish::fail(state, batch.node, fault, at)
}

/// Side by side, up to the bound; then the join, then the merge in the order the ends were observed.
fn parallel(state: &RunState, batch: &WorkerBatch, dispatch: &Dispatch, at: Timestamp) -> Option<Vec<Draft>> {
    let decided = state.decision.as_ref()?;
    let place = || NodePlace::at(state.plan.nodes[batch.node].id.clone());
    if !batch.announced {
        let event = FanOut {
            fan_out_policy: "parallel".to_owned(),
            child_count: u32::try_from(batch.workers.len()).unwrap_or(u32::MAX),
            max_concurrency: Some(concurrency(state, dispatch)),
            join_mode: Some(dispatch.join.mode),
            private: place(),
        };
        return Some(vec![Draft { event: event.into(), causation: Some(decided.seq) }]);
    }
    let verdict = batch.verdict(dispatch);
    if verdict == Verdict::Open {
        let room = batch.in_flight() < concurrency(state, dispatch) as usize;
        return batch.next_pending().filter(|_| room).map(|worker| began(state, batch, dispatch, worker));
    }
    if batch.in_flight() > 0 {
        // Losers are being cancelled; their ends come first.
        return None;
    }
    let outcome = match verdict {
        Verdict::Failed => JoinOutcome::Failed,
        _ if batch.own_losses(dispatch) > 0 => JoinOutcome::Partial,
        _ => JoinOutcome::Satisfied,
    };
    if !batch.joined {
        let count = |wanted: fn(Stage) -> bool| u32::try_from(batch.count(wanted)).unwrap_or(u32::MAX);
        let event = Join {
            join_outcome: outcome,
            completed_count: count(|s| matches!(s, Stage::Completed | Stage::Harvested | Stage::Withheld)),
            failed_count: count(|s| matches!(s, Stage::Failed | Stage::Refused)),
            cancelled_count: Some(count(|s| s == Stage::Cancelled)),
            merge_order: batch.ended.iter().filter_map(|&worker| child_run(state, batch, worker)).collect(),
            private: place(),
        };
        return Some(vec![Draft { event: event.into(), causation: Some(decided.seq) }]);
    }
    if outcome == JoinOutcome::Failed {
        return Some(join_failed(state, batch, dispatch, at));
    }
    let next = batch.ended.iter().find(|&&w| needs_merge(batch.workers[w].stage, dispatch, &batch.workers[w].id));
    match next {
        Some(&worker) => Some(merge_gate::merge(state, batch, dispatch, worker, at)),
        None => Some(finish::complete(state, batch.node, Done::with(report(state, batch, Some(outcome))), at)),
    }
}

fn needs_merge(stage: Stage, dispatch: &Dispatch, worker: &baton_model::WorkflowId) -> bool {
    stage == Stage::Completed && dispatch.harvests(worker)
}

fn concurrency(state: &RunState, dispatch: &Dispatch) -> u32 {
    let host = state.start.as_ref().map_or(1, |start| start.event.private.max_fan_out.max(1));
    dispatch.max_concurrency.unwrap_or(u32::MAX).min(host)
}

/// Whether the join has no more use for the workers still running.
pub(crate) fn losers_must_end(state: &RunState) -> bool {
    state.batch.as_ref().is_some_and(|batch| match &state.plan.nodes[batch.node].kind {
        Kind::Dispatch(dispatch) => batch.is_parallel(dispatch) && batch.verdict(dispatch) != Verdict::Open,
        _ => false,
    })
}

/// A worker's handoff begins; one that would be given too much fails at once, like one that its host refused.
fn began(state: &RunState, batch: &WorkerBatch, dispatch: &Dispatch, worker: usize) -> Vec<Draft> {
    let mut event = chain(state, batch, worker, ChainPhase::DispatchBegan);
    let id = &batch.workers[worker].id;
    let (mut inputs, fault) = match dispatch.project(state, id) {
        Ok(inputs) => (inputs, None),
        Err(fault) => (Map::new(), Some(fault)),
    };
    if let Some(decided) = &state.decision
        && let Decision::NextWorker { next_worker_inputs: Some(items), .. } = &decided.decision
        && let Some(item) = items.get(worker)
    {
        inputs.extend(item.clone());
    }
    let run = &state.nodes[batch.node];
    let ordinal = run.attempt * 1_000_000 + u32::try_from(worker).unwrap_or(u32::MAX);
    event.private.child = Some(ChildPlan {
        run: state.run.child(&state.plan.nodes[batch.node].id, run.visit, ordinal),
        workflow: id.clone(),
        cause: "core.dispatch".to_owned(),
        inputs,
        variables: Map::new(),
        isolated: dispatch.isolated_memory,
    });
    let mut drafts = vec![Draft { event: event.into(), causation: state.decision.as_ref().map(|decided| decided.seq) }];
    if let Some(fault) = fault {
        let mut event = chain(state, batch, worker, ChainPhase::DispatchFailed);
        event.error = Some(fault);
        drafts.push(Draft { event: event.into(), causation: Some(state.next_seq) });
    }
    drafts
}

/// The worker a live child of the current batch belongs to.
fn worker_of(child: &Child) -> Option<usize> {
    child.worker.map(|worker| worker as usize)
}

pub(super) fn started(state: &RunState, child: &Child, remote: Option<&RemoteRun>) -> Vec<Draft> {
    let (Some(batch), Some(worker)) = (&state.batch, worker_of(child)) else { return Vec::new() };
    let dispatched = child_records::dispatched(state, child, remote);
    let mut succeeded = chain(state, batch, worker, ChainPhase::DispatchSucceeded);
    succeeded.child_run_id = Some(dispatched.child_run_id.clone());
    let decision = state.decision.as_ref().map(|decided| decided.seq);
    vec![
        Draft { event: dispatched.into(), causation: decision },
        Draft { event: succeeded.into(), causation: Some(batch.workers[worker].last_seq) },
    ]
}

pub(super) fn refused(state: &RunState, child: &Child, fault: &Fault) -> Vec<Draft> {
    let (Some(batch), Some(worker)) = (&state.batch, worker_of(child)) else { return Vec::new() };
    let mut event = chain(state, batch, worker, ChainPhase::DispatchFailed);
    event.error = Some(fault.clone());
    vec![Draft { event: event.into(), causation: Some(batch.workers[worker].last_seq) }]
}

/// A worker's child has ended: its chain goes on, whatever the run itself is doing.
pub(super) fn ended(state: &RunState, child: &Child, outcome: &ChildOutcome) -> Vec<Draft> {
    let (Some(batch), Some(worker)) = (&state.batch, worker_of(child)) else { return Vec::new() };
    let Kind::Dispatch(dispatch) = &state.plan.nodes[batch.node].kind else { return Vec::new() };
    // What is too large to be taken over is as good as not made.
    let kept = match outcome.status {
        RunStatus::Completed => dispatch.kept(&batch.workers[worker].id, &outcome.variables, state.bounds()),
        _ => Ok(Map::new()),
    };
    let phase = match outcome.status {
        RunStatus::Completed if kept.is_err() => ChainPhase::ChildFailed,
        RunStatus::Completed => ChainPhase::ChildCompleted,
        RunStatus::Cancelled => ChainPhase::ChildCancelled,
        _ => ChainPhase::ChildFailed,
    };
    // What has ended has existed, even if nobody said so before.
    let mut drafts = if child.dispatched { Vec::new() } else { started(state, child, None) };
    let cause = if child.dispatched { batch.workers[worker].last_seq } else { state.next_seq + 1 };
    let mut event = chain(state, batch, worker, phase);
    event.child_run_id = Some(child.plan.run.clone());
    match (phase, kept) {
        (_, Err(fault)) => event.error = Some(fault),
        (ChainPhase::ChildCompleted, Ok(kept)) => {
            event.private.outputs = Some(kept);
            event.private.attestation = dispatch.attest.checksum.then(|| attestation(&outcome.variables));
        }
        (ChainPhase::ChildCancelled, _) => {
            event.error = Some(Fault::new(code::CHILD_CANCELLED, "The child run was cancelled."));
        }
        _ => {
            let unknown = || Fault::new(code::CHILD_FAILED, "The child run failed.");
            let fault = outcome.error.clone().unwrap_or_else(unknown);
            event.error = Some(Fault { details: None, ..fault });
        }
    }
    drafts.push(Draft { event: event.into(), causation: Some(cause) });
    drafts
}
