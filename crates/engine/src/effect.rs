//! What must still be done in the world, derived from state alone: after any append and after any crash the shell
//! asks again and makes reality match.

use baton_model::event::{ChildPlan, Ending, ParentLink, Verbosity};
use baton_model::{EventId, ModelRequest, NodeId, NodeStatus, RunId, Timestamp, ToolSpec};
use serde_json::Value;

use crate::invocation::Open;
use crate::node_request::NodeRequest;
use crate::remote::RemoteChildTask;
use crate::state::{Phase, RunState};

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Create this child, or find that it exists.
    StartChild { plan: ChildPlan, link: Box<ParentLink>, depth: u32, max_duration_ms: Option<u64> },
    /// Make sure this child's end reaches us.
    AwaitChild { child: RunId },
    /// End this child; its end must reach us before ours is recorded.
    CancelChild { child: RunId },
    /// See to a child on another host.
    Remote(Box<RemoteChildTask>),
    /// Ask a model on behalf of this attempt of a node. `hears` says how many characters of what it thinks may be told
    /// to the run while it thinks. The same call may be made `again`, and then not before an instant.
    CallModel {
        node: NodeId,
        visit: u32,
        attempt: u32,
        call: u32,
        request: Box<ModelRequest>,
        hears: usize,
        again: u32,
        not_before: Option<Timestamp>,
    },
    /// Call a tool. The intent is on the log.
    CallTool(Box<ToolCall>),
    /// Answer a node that asks before it starts.
    NodeRequest(Box<NodeRequest>),
    /// Come back at this instant.
    WakeAt { at: Timestamp },
}

/// A call of a tool that is to be made, or looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub node: NodeId,
    pub call_id: String,
    /// Names the call for ever.
    pub key: String,
    /// How often it was taken up again; with the key, this names one try.
    pub again: u32,
    pub tool: ToolSpec,
    pub arguments: Value,
    /// Only find out whether it took place.
    pub verify: bool,
    pub timeout_ms: Option<u64>,
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
        let cancel = ending || (losers && child.worker.is_some());
        if let Some(mandate) = state.mandate(child, cancel) {
            effects.push(Effect::Remote(Box::new(mandate)));
        } else if cancel {
            effects.push(Effect::CancelChild { child: child.plan.run.clone() });
        } else if child.dispatched {
            effects.push(Effect::AwaitChild { child: child.plan.run.clone() });
        } else if let Some(start) = &state.start {
            let facts = &start.event.private;
            effects.push(Effect::StartChild {
                plan: child.plan.clone(),
                link: Box::new(ParentLink {
                    run: state.run.clone(),
                    node: state.plan.nodes[child.node].id.clone(),
                    root: facts.parent.as_ref().map_or_else(|| state.run.clone(), |parent| parent.root.clone()),
                    cause: child.plan.cause.clone(),
                    workflow: Some(Box::new(start.event.workflow_id.clone())),
                    event: Some(Box::new(EventId::at(&state.run, child.planned.seq))),
                }),
                depth: facts.depth + 1,
                max_duration_ms: state.plan.nodes[child.node].timeout_ms,
            });
        }
    }
    effects.extend(state.active.iter().filter_map(|&node| state.model_call(node)));
    if !ending {
        effects.extend(state.active.iter().flat_map(|&node| state.tool_calls(node)));
    }
    effects.extend(crate::decide::wanted(state).map(|consult| Effect::NodeRequest(Box::new(consult))));
    if let Some(at) = state.wake_at() {
        effects.push(Effect::WakeAt { at });
    }
    effects
}

impl RunState {
    /// The call a node waits for. Its key names the place, so that the same call has the same key after a crash.
    fn model_call(&self, node: usize) -> Option<Effect> {
        // What came to be wanted while the run was paused is asked when it goes on.
        if !self.asks_model(node) || self.nodes[node].waits {
            return None;
        }
        let (plan, run) = (&self.plan.nodes[node], &self.nodes[node]);
        let request = ModelRequest {
            key: format!("{}/{}/{}/{}/{}", self.run, plan.id, run.visit, self.since(node), run.calls),
            node: plan.id.clone(),
            semantic: self.question(node)?,
            timeout_ms: plan.timeout_ms,
            trace: self.start.as_ref().and_then(|start| start.event.private.trace.as_deref().cloned()),
            reasoning: run.invocation.is_some() && self.verbosity() != Verbosity::Off,
            cap: None,
        };
        Some(Effect::CallModel {
            node: plan.id.clone(),
            visit: run.visit,
            attempt: run.attempt,
            call: run.calls,
            request: Box::new(request),
            hears: self.hears(node),
            again: run.broken,
            not_before: run.not_before,
        })
    }

    /// The attempt that keys name: the one in which what is under way was begun.
    pub(crate) fn since(&self, node: usize) -> u32 {
        let run = &self.nodes[node];
        if self.rule() < 4 { run.attempt } else { run.since }
    }

    /// The calls of tools outside this process that a node waits for.
    fn tool_calls(&self, node: usize) -> Vec<Effect> {
        let (plan, run) = (&self.plan.nodes[node], &self.nodes[node]);
        // A node that waits for a human's word about one call may have others on their way.
        if !matches!(run.status(), NodeStatus::Running | NodeStatus::Suspended) {
            return Vec::new();
        }
        let wanted = |open: &Open<'_>| open.is_abroad() && open.call.is_wanted() && !open.call.waits;
        let effect = |Open { call, tool }: Open<'_>| {
            Effect::CallTool(Box::new(ToolCall {
                node: plan.id.clone(),
                call_id: call.id.clone(),
                key: format!("{}/{}", self.run, call.id),
                again: call.again,
                tool: tool.clone(),
                arguments: call.asked.arguments.clone(),
                verify: call.verify,
                timeout_ms: plan.timeout_ms,
            }))
        };
        self.open_calls(node).into_iter().filter(wanted).map(effect).collect()
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
