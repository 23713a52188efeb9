//! What must still be done in the world, derived from state alone: after any append and after any crash the shell
//! asks again and makes reality match.

use baton_model::event::{ChildPlan, Ending, ParentLink, Verbosity};
use baton_model::tool::RunnerRequirement;
use baton_model::{EventId, ModelRequest, NodeId, NodeStatus, RunId, Timestamp, ToolSpec};
use serde_json::Value;

use crate::conversation::model_request;
use crate::invocation::OpenCall;
use crate::node_request::NodeRequest;
use crate::remote::RemoteChildTask;
use crate::remote::remote_task;
use crate::state::{Child, Phase, RunState};

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
    /// Ask a model on behalf of this attempt of a node. `reasoning_chars` says how many characters of what it thinks may be told
    /// to the run while it thinks. The same call may be made `again`, and then not before an instant.
    CallModel {
        node: NodeId,
        visit: u32,
        attempt: u32,
        call: u32,
        request: Box<ModelRequest>,
        reasoning_chars: usize,
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
    /// When the time of whatever waits for it is up.
    pub deadline: Option<Timestamp>,
    pub runner: RunnerRequirement,
}

/// What is to be done about a child that has not ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChildStep {
    Start,
    Await,
    Cancel,
}

/// Same state, same list, same order. Each request is written out in full: whoever only wants to know whether there is
/// anything asks [`RunState::awaits_the_world`] or [`RunState::wanted_tool_calls`].
pub fn outstanding(state: &RunState) -> Vec<Effect> {
    let mut effects = outstanding_besides_requests(state);
    if state.is_ending().is_some() {
        effects.extend(crate::decide::wanted(state).map(|node_request| Effect::NodeRequest(Box::new(node_request))));
    }
    effects
}

/// The same for whoever has what a node asks already: writing it out copies whatever an agent may see.
pub fn outstanding_besides_requests(state: &RunState) -> Vec<Effect> {
    let mut effects = Vec::new();
    if state.is_ending().is_none() {
        return effects;
    }
    for (child, step) in state.child_steps() {
        if let Some(task) = remote_task(state, child, step == ChildStep::Cancel) {
            effects.push(Effect::Remote(Box::new(task)));
            continue;
        }
        match step {
            ChildStep::Cancel => effects.push(Effect::CancelChild { child: child.plan.run.clone() }),
            ChildStep::Await => effects.push(Effect::AwaitChild { child: child.plan.run.clone() }),
            ChildStep::Start => effects.extend(state.start_child(child)),
        }
    }
    effects.extend(state.active.iter().filter_map(|&node| state.model_call(node)));
    effects.extend(state.wanted_tool_calls().into_iter().map(|call| Effect::CallTool(Box::new(call))));
    if let Some(at) = state.wake_at() {
        effects.push(Effect::WakeAt { at });
    }
    effects
}

impl RunState {
    /// Whether the run only sees to its end; none if it has not begun or has ended.
    fn is_ending(&self) -> Option<bool> {
        match &self.phase {
            Phase::New | Phase::Ended { .. } => None,
            Phase::Ending(Ending::Failed { .. } | Ending::Cancelled(_) | Ending::Completed(_)) => Some(true),
            Phase::Active | Phase::Paused { .. } | Phase::Ending(Ending::Paused(_)) => Some(false),
        }
    }

    /// Whether anything is outstanding but an instant to wake at.
    pub fn awaits_the_world(&self) -> bool {
        self.is_ending().is_some()
            && (self.live_children().next().is_some()
                || self.active.iter().any(|&node| self.wants_model(node))
                || !self.wanted_tool_calls().is_empty()
                || crate::decide::wanted(self).is_some())
    }

    /// The calls of tools outside this process that the run waits for.
    pub fn wanted_tool_calls(&self) -> Vec<ToolCall> {
        match self.is_ending() {
            Some(false) => self.active.iter().flat_map(|&node| self.tool_calls(node)).collect(),
            Some(true) | None => Vec::new(),
        }
    }

    /// What came to be wanted while the run was paused is asked when it goes on.
    fn wants_model(&self, node: usize) -> bool {
        self.asks_model(node) && !self.nodes[node].waits
    }

    /// The call a node waits for. Its key names the place, so that the same call has the same key after a crash.
    fn model_call(&self, node: usize) -> Option<Effect> {
        if !self.wants_model(node) {
            return None;
        }
        let (plan, run) = (&self.plan.nodes[node], &self.nodes[node]);
        let request = ModelRequest {
            key: format!("{}/{}/{}/{}/{}", self.run, plan.id, run.visit, self.since(node), run.calls),
            node: plan.id.clone(),
            semantic: model_request(self, node)?,
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
            reasoning_chars: self.reasoning_chars(node),
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
    fn tool_calls(&self, node: usize) -> Vec<ToolCall> {
        let (plan, run) = (&self.plan.nodes[node], &self.nodes[node]);
        // A node that waits for a human's word about one call may have others on their way.
        if !matches!(run.status(), NodeStatus::Running | NodeStatus::Suspended) {
            return Vec::new();
        }
        let wanted = |open: &OpenCall<'_>| open.is_external() && open.call.is_wanted() && !open.call.waits;
        let made = |OpenCall { call, tool }: OpenCall<'_>| ToolCall {
            node: plan.id.clone(),
            call_id: call.id.clone(),
            key: format!("{}/{}", self.run, call.id),
            again: call.again,
            tool: tool.clone(),
            arguments: call.asked.arguments.clone(),
            verify: call.verify,
            timeout_ms: plan.kind.call_timeout_ms(plan.timeout_ms),
            deadline: self.call_deadline(node, &call.id),
            runner: plan.kind.called_tool().map(|tool| tool.runner.clone()).unwrap_or_default(),
        };
        self.open_calls(node).into_iter().filter(wanted).map(made).collect()
    }

    /// When the time of a call is up: that of its item, or of its node.
    fn call_deadline(&self, node: usize, call: &str) -> Option<Timestamp> {
        let run = &self.nodes[node];
        let of_item = run.map.as_ref().and_then(|map| map.deadline_of(call));
        of_item.into_iter().chain(run.deadline).chain(self.run_deadline()).min()
    }

    /// This child is still to be created on this host.
    pub fn wants_child(&self, run: &RunId) -> bool {
        self.child_steps().any(|(child, step)| step == ChildStep::Start && is_local(child) && child.plan.run == *run)
    }

    /// A child on this host is being created or cancelled right now.
    pub fn is_moving_children(&self) -> bool {
        self.child_steps().any(|(child, step)| step != ChildStep::Await && is_local(child))
    }

    fn child_steps(&self) -> impl Iterator<Item = (&Child, ChildStep)> {
        let ending = self.is_ending();
        let losers = ending.is_some() && crate::decide::losers_must_end(self);
        let children = ending.is_some().then(|| self.live_children()).into_iter().flatten();
        children.map(move |child| {
            let cancel = ending == Some(true) || (losers && child.worker.is_some()) || self.stops_items(child.node);
            let step = match (cancel, child.dispatched) {
                (true, _) => ChildStep::Cancel,
                (false, true) => ChildStep::Await,
                (false, false) => ChildStep::Start,
            };
            (child, step)
        })
    }

    /// A map that begins no further item ends those under way.
    fn stops_items(&self, node: usize) -> bool {
        self.nodes[node].map.as_deref().is_some_and(|map| map.stopping.is_some())
    }

    fn start_child(&self, child: &Child) -> Option<Effect> {
        let start = self.start.as_ref()?;
        let facts = &start.event.private;
        Some(Effect::StartChild {
            plan: child.plan.clone(),
            link: Box::new(ParentLink {
                run: self.run.clone(),
                node: self.plan.nodes[child.node].id.clone(),
                root: facts.parent.as_ref().map_or_else(|| self.run.clone(), |parent| parent.root.clone()),
                cause: child.plan.cause.clone(),
                workflow: Some(Box::new(start.event.workflow_id.clone())),
                event: Some(Box::new(EventId::at(&self.run, child.planned.seq))),
            }),
            depth: facts.depth + 1,
            max_duration_ms: {
                let plan = &self.plan.nodes[child.node];
                plan.kind.call_timeout_ms(plan.timeout_ms)
            },
        })
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
            let items = run.map.iter().flat_map(|map| map.instants(draining));
            [wake_at, run.deadline, expiry].into_iter().flatten().chain(items).collect::<Vec<_>>()
        });
        timers.chain(self.run_deadline()).min()
    }

    /// The first instant that is strictly later than the run may last.
    pub(crate) fn run_deadline(&self) -> Option<Timestamp> {
        let start = self.start.as_ref()?;
        Some(start.at.plus_millis(start.event.private.max_duration_ms.saturating_add(1)))
    }
}

fn is_local(child: &Child) -> bool {
    !child.plan.workflow.is_remote()
}
