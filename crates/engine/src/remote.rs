//! Children on other hosts: what is to be done about each of them, derived from state like every other effect.

use baton_model::event::ChildPlan;
use baton_model::{EventId, NodeId, RunId, Timestamp, WorkflowId};

use crate::state::{Child, RunState};

/// Something to be done about a child on another host.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteChildTask {
    /// The name it was planned under, until it exists; then its name over there.
    pub child: RunId,
    /// `https://host/workflows/id`.
    pub worker: WorkflowId,
    pub action: RemoteChildAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RemoteChildAction {
    /// Have it made, or find that it exists.
    Create(Box<RemoteChildSpec>),
    /// Nobody wants it any more, and it may or may not exist: see to it that it never sets out, or learn its name.
    Withdraw(Box<RemoteChildSpec>),
    /// Make sure its end reaches us.
    Follow {
        /// When it was asked for, and how long its node allows.
        since: Timestamp,
        timeout_ms: Option<u64>,
    },
    /// End it; its end must reach us before ours is recorded.
    Cancel,
}

/// A child to be made elsewhere. Its plan's name is the key under which it is made once.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteChildSpec {
    pub plan: ChildPlan,
    /// The event that asks for it.
    pub event: EventId,
    /// The node that does, on which of its visits, and in which workflow.
    pub node: NodeId,
    pub visit: u32,
    pub workflow: WorkflowId,
    /// The top of the tree it belongs to.
    pub root: RunId,
    pub depth: u32,
    pub max_duration_ms: Option<u64>,
}

/// What is to be done about this child, if it is on another host.
pub(crate) fn remote_task(state: &RunState, child: &Child, cancel: bool) -> Option<RemoteChildTask> {
    let worker = Some(&child.plan.workflow).filter(|workflow| workflow.is_remote())?;
    let action = match (cancel, child.dispatched) {
        (true, true) => RemoteChildAction::Cancel,
        (false, true) => {
            RemoteChildAction::Follow { since: child.planned.at, timeout_ms: state.plan.nodes[child.node].timeout_ms }
        }
        (true, false) => RemoteChildAction::Withdraw(Box::new(spec(state, child)?)),
        (false, false) => RemoteChildAction::Create(Box::new(spec(state, child)?)),
    };
    Some(RemoteChildTask { child: child.plan.run.clone(), worker: worker.clone(), action })
}

fn spec(state: &RunState, child: &Child) -> Option<RemoteChildSpec> {
    let started = &state.start.as_ref()?.event;
    let facts = &started.private;
    Some(RemoteChildSpec {
        plan: child.plan.clone(),
        event: EventId::at(&state.run, child.planned.seq),
        node: state.plan.nodes[child.node].id.clone(),
        visit: state.nodes[child.node].visit,
        workflow: started.workflow_id.clone(),
        root: facts.parent.as_ref().map_or_else(|| state.run.clone(), |parent| parent.root.clone()),
        depth: facts.depth + 1,
        max_duration_ms: state.plan.nodes[child.node].timeout_ms,
    })
}
