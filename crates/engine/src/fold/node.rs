//! A visit of a node, folded: it begins, it settles, and where it leads.

use std::sync::Arc;

use baton_model::event::{NodeCompleted, NodeStarted};
use baton_model::{Decision, NodeStatus, Record, RunStatus};

use super::children::{add_child, bury, see};
use super::invocation;
use super::lookup::known_node;
use super::routing::{reset_body, unqueue, wake_targets};
use crate::orchestration::WorkerBatch;
use crate::plan::Kind;
use crate::state::{Child, EdgeState, NodeRun, Planned, Ready, RunState, Verdict};

pub(super) fn started(state: &mut RunState, record: &Record, event: &NodeStarted) -> Result<(), String> {
    let node = known_node(state, &event.node_id)?;
    let queued = unqueue(state, node);
    if !queued && !state.active.contains(&node) {
        return Err("the node is not due".to_owned());
    }
    invocation::at_rest(state, node)?;
    state.executions += 1;
    // A supervisor decides and does not work; who does shows once somebody is at it.
    if !matches!(state.plan.nodes[node].kind, Kind::Supervisor(_))
        && let Some(pinned) = invocation::pin(state, node)
    {
        state.worker = Some(pinned);
    }
    if let Some(frozen) = &event.private.frozen {
        state.read_version.version = state.read_version.version.max(frozen.versions.memory);
        state.workspace = state.workspace.max(frozen.versions.workspace);
    }
    if let Some(change) = &event.private.transcript {
        state.transcript.take(change);
    }
    state.active.insert(node);
    let child = event.private.child.as_ref().map(|plan| {
        add_child(
            state,
            Child {
                plan: plan.clone(),
                node,
                status: RunStatus::Pending,
                dispatched: false,
                live: true,
                planned: Planned { seq: record.seq, at: record.at },
                remote: None,
                iteration: 0,
                worker: None,
                error: None,
            },
        )
    });
    if let Kind::Dispatch(_) = state.plan.nodes[node].kind {
        state.dispatches += 1;
        state.batch = state.decision.as_ref().and_then(|decided| match &decided.decision {
            Decision::NextWorker { next_worker_ids, .. } => {
                Some(WorkerBatch::new(node, decided.iteration, next_worker_ids))
            }
            Decision::AskUser { .. } | Decision::Terminate { .. } => None,
        });
    }
    let rule = state.rule();
    let before = std::mem::take(&mut state.nodes[node]);
    // Another attempt goes on where the last one stopped. A turn that is taken again for a human begins anew.
    let goes_on = rule >= 4 && event.attempt > 0 && before.status() == NodeStatus::Retrying;
    state.nodes[node] = NodeRun {
        status: Some(NodeStatus::Running),
        visit: event.private.visit,
        attempt: event.attempt,
        outputs: before.outputs,
        error: None,
        started_at: record.at,
        started_seq: record.seq,
        wake_at: event.private.wake_at,
        deadline: event.private.deadline,
        child,
        held: None,
        snapshot: event.private.frozen,
        call: event.private.call.clone().map(Arc::from),
        reply: None,
        replied: None,
        asked: Default::default(),
        calls: if goes_on { before.calls } else { 0 },
        broken: 0,
        not_before: None,
        since: if goes_on { before.since } else { event.attempt },
        left: before.invocation.filter(|_| goes_on),
        invocation: None,
        handed_to: Default::default(),
        effect: None,
        tool: None,
        map: None,
        waits: false,
        over_budget: None,
        refine: None,
        looping: before.looping,
        earlier_visits: before.earlier_visits,
        chunks: 0,
        answered: false,
    };
    Ok(())
}

pub(super) fn completed(state: &mut RunState, record: &Record, event: &NodeCompleted) -> Result<(), String> {
    let node = invocation::settled(state, &event.node_id)?;
    see(state, event.private.child_memory);
    let child_status = event.outputs.get("childStatus").and_then(|status| RunStatus::parse(status.as_str()?));
    state.set_outputs(node, event.outputs.clone());
    settle(state, node, NodeStatus::Completed, child_status.unwrap_or(RunStatus::Completed));
    let plan = Arc::clone(&state.plan);
    if let Kind::Dispatch(_) = plan.nodes[node].kind {
        state.reported = Some(record.seq);
    }
    if let Some(partner) = plan.nodes[node].partner {
        // The two halves of the loop take turns; nothing comes after them but the end of the run.
        state.ready.push_back(Ready { node: partner, verdict: Verdict::Run });
        return Ok(());
    }
    if event.private.again {
        reset_body(state, &plan, node);
    }
    let first_pass = state.nodes[node].visit <= state.nodes[node].earlier_visits + 1;
    state.nodes[node].looping = event.private.again;
    for &edge in &plan.nodes[node].outgoing {
        let open = !event.private.closed_edges.contains(&(edge as u32));
        let loop_head = plan.nodes[node].loop_.is_some();
        match (loop_head, event.private.again, open) {
            // While a loop goes round, what comes after it keeps waiting; once it is done, its body has had its say.
            (true, true, false) => continue,
            (true, false, false) if !first_pass => continue,
            _ => {}
        }
        state.edges[edge] = if open { EdgeState::Open } else { EdgeState::Closed };
    }
    wake_targets(state, &plan, node);
    Ok(())
}

pub(super) fn settle(state: &mut RunState, node: usize, status: NodeStatus, child: RunStatus) {
    end_child(state, node, child);
    state.active.remove(&node);
    if state.interrupts.remove(&node).is_some() {
        state.settled.insert(node);
    }
    let run = &mut state.nodes[node];
    run.status = Some(status);
    run.wake_at = None;
    run.deadline = None;
    run.call = None;
    run.reply = None;
    run.invocation = None;
    run.left = None;
    run.effect = None;
    run.map = None;
}

pub(super) fn end_child(state: &mut RunState, node: usize, status: RunStatus) {
    if let Some(child) = state.nodes[node].child.take() {
        state.children[child].status = status;
        bury(state, child);
    }
    if state.batch.as_ref().is_some_and(|batch| batch.node == node) {
        state.batch = None;
    }
}
