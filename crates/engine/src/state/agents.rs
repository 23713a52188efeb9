//! Who is at work in a node: its agent, its model, and the calls that have not come back.

use baton_model::event::Ending;
use baton_model::{NodeId, ToolOutcome, ToolSpec};
use serde_json::Value;

use super::parts::{Interrupt, Phase};
use super::run_state::RunState;
use crate::invocation::{Call, Invocation, OpenCall, told};
use crate::node_request::NodeRequest;
use crate::plan::{AgentOptions, CalledTool, Kind};
use crate::step_work::StepWork;

impl RunState {
    /// The agent at work in this node, not yet done.
    pub(crate) fn invocation(&self, node: usize) -> Option<&Invocation> {
        self.nodes[node].invocation.as_deref().filter(|invocation| !invocation.over)
    }

    /// How this node's agent is asked.
    pub(crate) fn agent_options(&self, node: usize) -> Option<&AgentOptions> {
        self.plan.nodes[node].kind.agent_options()
    }

    /// Whether the node waits for a model.
    pub(crate) fn asks_model(&self, node: usize) -> bool {
        let over = match &self.phase {
            Phase::New | Phase::Ended { .. } => true,
            Phase::Ending(ending) => !matches!(ending, Ending::Paused(_)),
            Phase::Active | Phase::Paused { .. } => false,
        };
        let run = &self.nodes[node];
        let asks = run.call.is_some() || self.invocation(node).is_some_and(|invocation| invocation.asks_model());
        !over && self.active.contains(&node) && asks && run.reply.is_none() && run.is_running()
    }

    /// How many tokens an answer to the node's model may have, if anybody said so. Outer none: the node asks no model.
    pub(crate) fn answer_room(&self, node: usize) -> Option<Option<u64>> {
        let run = &self.nodes[node];
        match &run.invocation {
            Some(_) => Some(self.agent_options(node)?.max_tokens.or_else(|| self.run_max_tokens())),
            None => Some(run.call.as_ref()?.max_output_tokens),
        }
    }

    /// How many characters of what this node's model thinks may be shown as they come. Nothing of what must not be read,
    /// and nothing of a call that is made again: pieces of two answers make no thought.
    pub(crate) fn reasoning_chars(&self, node: usize) -> usize {
        match self.invocation(node) {
            Some(invocation) if !invocation.thinking.is_open() && !self.plan.nodes[node].sensitive => {
                told(self.verbosity())
            }
            _ => 0,
        }
    }

    /// The calls of this node that have not come back: those of its agent, or the one it makes by itself.
    pub(crate) fn open_calls(&self, node: usize) -> Vec<OpenCall<'_>> {
        if let Some(map) = &self.nodes[node].map {
            let open = map.under_way.values().filter_map(|item| item.call().filter(|call| call.outcome.is_none()));
            let tool = map.tool.as_deref();
            return open.filter_map(|call| Some(OpenCall { call, tool: &tool?.spec })).collect();
        }
        let own = self.nodes[node].effect.as_deref().filter(|call| call.outcome.is_none());
        match (own, self.invocation(node)) {
            (Some(call), _) => self.effect_tool(node).map(|tool| OpenCall { call, tool }).into_iter().collect(),
            (None, Some(invocation)) => {
                let open = |call| Some(OpenCall { call, tool: invocation.tool(&call.asked.name)? });
                invocation.pending().filter_map(open).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    pub(crate) fn open_call(&self, node: usize, id: &str) -> Option<OpenCall<'_>> {
        self.open_calls(node).into_iter().find(|open| open.call.id == id)
    }

    /// What the program that has this call in hand asked and kept, as long as the run waits for it.
    pub fn step_work(&self, node: &NodeId, call_id: &str) -> Option<&StepWork> {
        let over = matches!(self.phase, Phase::New | Phase::Ended { .. });
        let node = self.plan.index.get(node).copied().filter(|node| !over && self.active.contains(node))?;
        self.open_call(node, call_id).map(|open| &open.call.work)
    }

    /// The tool that a question of the shell's is a call of, where it is one.
    pub fn tool_of(&self, node_request: &NodeRequest) -> Option<&ToolSpec> {
        let node = *self.plan.index.get(&node_request.node)?;
        Some(self.open_call(node, node_request.call.as_deref()?)?.tool)
    }

    /// A call of unknown outcome that somebody must see to.
    pub(crate) fn unknown_call(&self) -> Option<(usize, &Call)> {
        let running = self.active.iter().copied().filter(|&node| self.nodes[node].is_running());
        running.into_iter().find_map(|node| {
            let uncertain = self.open_calls(node).into_iter().find(|open| open.call.is_unknown())?;
            Some((node, uncertain.call))
        })
    }

    /// An envelope that was announced and not judged yet. Questions of the node come one after the other.
    pub(crate) fn open_envelope(&self) -> Option<(usize, &Call)> {
        let free = |node: &usize| self.nodes[*node].is_running() && !self.interrupts.contains_key(node);
        self.active.iter().copied().filter(free).find_map(|node| {
            let calls = &self.invocation(node)?.rounds.last()?.calls;
            Some((node, calls.iter().find(|call| call.outcome.is_none() && call.is_envelope())?))
        })
    }

    /// The envelope in which this node's agent asked the question; none if somebody else asked it.
    pub(crate) fn asked_in_envelope(&self, node: usize, interrupt: &Interrupt) -> Option<&Call> {
        let id = interrupt.data.get("callId").and_then(Value::as_str).filter(|_| interrupt.kind == "clarification")?;
        let calls = &self.invocation(node)?.rounds.last()?.calls;
        calls.iter().find(|call| call.id == id && call.outcome.is_none() && call.is_envelope())
    }

    /// The node whose one call has come back, and which has not said yet what becomes of it.
    pub(crate) fn returned(&self) -> Option<(usize, &ToolOutcome)> {
        self.active.iter().copied().filter(|&node| self.nodes[node].is_running()).find_map(|node| {
            let outcome = self.nodes[node].effect.as_deref()?.outcome.as_ref()?;
            Some((node, outcome))
        })
    }

    /// The tool that a node calls by itself.
    pub(crate) fn effect_tool(&self, node: usize) -> Option<&ToolSpec> {
        match &self.plan.nodes[node].kind {
            Kind::Http(http) => Some(&http.tool),
            Kind::Tool(_) => self.nodes[node].tool.as_deref().map(|found| &found.spec),
            _ => None,
        }
    }

    /// The tool that a node wants to know before it can go on.
    pub(crate) fn sought_tool(&self, node: usize) -> Option<&CalledTool> {
        let run = &self.nodes[node];
        if !run.is_running() {
            return None;
        }
        match &self.plan.nodes[node].kind {
            Kind::Tool(step) if run.effect.is_none() => Some(&step.tool),
            Kind::Map(map) if run.map.is_none() => map.tool(),
            _ => None,
        }
    }

    /// How many items of this node are worked on at once, at most.
    pub(crate) fn map_concurrency(&self, node: usize) -> u32 {
        let Kind::Map(map) = &self.plan.nodes[node].kind else { return 0 };
        let host = self.start.as_ref().map_or(1, |start| start.event.private.max_fan_out.max(1));
        map.max_concurrency.min(host)
    }

    /// A map that goes on by itself, as far as anybody can tell without a clock.
    pub(crate) fn maps_can_go_on(&self) -> bool {
        self.active.iter().any(|&node| {
            let asks = self.interrupts.contains_key(&node);
            let map = self.nodes[node].map.as_deref();
            let Kind::Map(step) = &self.plan.nodes[node].kind else { return false };
            !asks && map.map_or(step.tool().is_none(), |map| map.can_go_on(self.map_concurrency(node)))
        })
    }
}
