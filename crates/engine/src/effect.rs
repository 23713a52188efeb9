//! What must still be done in the world, derived from state alone: after any append and after any crash the shell
//! asks again and makes reality match.

use baton_model::event::{ChildPlan, Ending, ParentLink};
use baton_model::{Frozen, ModelRequest, NodeId, NodeStatus, RunId, Timestamp};

use crate::consult::Consult;
use crate::nodes::{Kind, Supervisor};
use crate::state::{Phase, RunState};

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Create this child, or find that it exists.
    StartChild { plan: ChildPlan, link: ParentLink, depth: u32, max_duration_ms: Option<u64> },
    /// Make sure this child's end reaches us.
    AwaitChild { child: RunId },
    /// End this child; its end must reach us before ours is recorded.
    CancelChild { child: RunId },
    /// Ask the live supervisor for this turn's decision.
    AskAgent { node: NodeId, agent_id: String, iteration: u64, frozen: Option<Frozen> },
    /// Ask a model on behalf of this attempt of a node.
    CallModel { node: NodeId, visit: u32, attempt: u32, request: Box<ModelRequest> },
    /// Answer a node that asks before it starts.
    Consult(Box<Consult>),
    /// Come back at this instant.
    WakeAt { at: Timestamp },
}

/// Same state, same list, same order.
pub fn outstanding(state: &RunState) -> Vec<Effect> {
    let mut effects = Vec::new();
    let ending = match &state.phase {
        Phase::New | Phase::Ended { .. } => return effects,
        Phase::Ending(Ending::Failed { .. } | Ending::Cancelled(_) | Ending::Completed(_)) => true,
        Phase::Active | Phase::Paused { .. } | Phase::Ending(Ending::Paused(_)) => false,
    };
    let losers = crate::decide::losers_must_end(state);
    for child in state.live_children() {
        if ending || (losers && child.worker.is_some()) {
            effects.push(Effect::CancelChild { child: child.plan.run.clone() });
        } else if child.dispatched {
            effects.push(Effect::AwaitChild { child: child.plan.run.clone() });
        } else if let Some(start) = &state.start {
            let facts = &start.event.private;
            effects.push(Effect::StartChild {
                plan: child.plan.clone(),
                link: ParentLink {
                    run: state.run.clone(),
                    node: state.plan.nodes[child.node].id.clone(),
                    root: facts.parent.as_ref().map_or_else(|| state.run.clone(), |parent| parent.root.clone()),
                    cause: child.plan.cause.clone(),
                },
                depth: facts.depth + 1,
                max_duration_ms: state.plan.nodes[child.node].timeout_ms,
            });
        }
    }
    if let Some((node, supervisor)) = state.asking_agent().filter(|_| !ending) {
        effects.push(Effect::AskAgent {
            node: state.plan.nodes[node].id.clone(),
            agent_id: supervisor.agent_id.clone(),
            iteration: state.turns + 1,
            frozen: state.nodes[node].frozen,
        });
    }
    effects.extend(state.active.iter().filter_map(|&node| state.model_call(node)));
    effects.extend(crate::decide::wanted(state).map(|consult| Effect::Consult(Box::new(consult))));
    if let Some(at) = state.wake_at() {
        effects.push(Effect::WakeAt { at });
    }
    effects
}

impl RunState {
    /// The supervisor whose live agent owes this turn's decision.
    pub(crate) fn asking_agent(&self) -> Option<(usize, &Supervisor)> {
        self.active.iter().find_map(|&node| match &self.plan.nodes[node].kind {
            Kind::Supervisor(supervisor) if supervisor.is_agent() => {
                let run = &self.nodes[node];
                (run.status() == NodeStatus::Running && run.refine.is_none()).then_some((node, supervisor))
            }
            _ => None,
        })
    }

    /// The call a node waits for. Its key names the attempt, so that the same call has the same key after a crash.
    fn model_call(&self, node: usize) -> Option<Effect> {
        let (plan, run) = (&self.plan.nodes[node], &self.nodes[node]);
        let semantic = run.call.clone().filter(|_| self.asks_model(node))?;
        let key = format!("{}/{}/{}/{}", self.run, plan.id, run.visit, run.attempt);
        let request = ModelRequest { key, node: plan.id.clone(), semantic, timeout_ms: plan.timeout_ms };
        Some(Effect::CallModel {
            node: plan.id.clone(),
            visit: run.visit,
            attempt: run.attempt,
            request: Box::new(request),
        })
    }

    /// This child is still to be created.
    pub fn wants_child(&self, run: &RunId) -> bool {
        let wanted = |effect: &Effect| matches!(effect, Effect::StartChild { plan, .. } if plan.run == *run);
        outstanding(self).iter().any(wanted)
    }

    /// A child is being created or cancelled right now.
    pub fn is_moving_children(&self) -> bool {
        let moving = |effect: &Effect| matches!(effect, Effect::StartChild { .. } | Effect::CancelChild { .. });
        outstanding(self).iter().any(moving)
    }

    /// The next instant at which this run has something to do by itself.
    pub fn wake_at(&self) -> Option<Timestamp> {
        if matches!(
            self.phase,
            Phase::New
                | Phase::Ended { .. }
                | Phase::Ending(Ending::Failed { .. } | Ending::Cancelled(_) | Ending::Completed(_))
        ) {
            return None;
        }
        let paused = matches!(self.phase, Phase::Paused { .. });
        let draining = matches!(self.phase, Phase::Ending(Ending::Paused(_)));
        let timers = self.active.iter().filter(|_| !paused).flat_map(|&node| {
            let run = &self.nodes[node];
            let expiry = self.interrupts.get(&node).and_then(|interrupt| interrupt.expires_at);
            // A draining run starts nothing, so the next attempt of a node is no reason to wake it.
            let wake_at = run.wake_at.filter(|_| !(draining && run.status() == NodeStatus::Retrying));
            [wake_at, run.deadline, expiry].into_iter().flatten()
        });
        timers.chain(self.run_deadline()).min()
    }

    /// The first instant that is strictly later than the run may last.
    pub(crate) fn run_deadline(&self) -> Option<Timestamp> {
        let start = self.start.as_ref()?;
        Some(start.at.plus_millis(start.event.private.max_duration_ms.saturating_add(1)))
    }
}
