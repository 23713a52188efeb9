//! Going another way from a point of a log.

use std::sync::Arc;

use baton_model::event::REDACTED;
use baton_model::{NodeStatus, Origin, Overlay, RunId, RunStatus, Timestamp};

use crate::node_request::ReadVersion;
use crate::orchestration::Stage;
use crate::state::{Phase, RunState, Started, Writer};

impl RunState {
    /// Makes this state, folded up to the fork point, the beginning of a run of its own: another name, no parent, and
    /// what the branch has otherwise. Nothing here is recorded; it is done again, the same way, whenever the branch is
    /// folded.
    #[must_use]
    pub fn branch(mut self, run: RunId, origin: &Origin) -> Self {
        self.rebase(origin.at);
        self.run = run;
        if let Some(start) = &self.start {
            let mut start = Started::clone(start);
            start.event.private.parent = None;
            start.event.private.cause = None;
            start.event.private.depth = 0;
            start.event.private.scope_id = None;
            start.event.private.memory_scope = None;
            if origin.workers.is_some() {
                start.event.private.workers.clone_from(&origin.workers);
            }
            if origin.overlay.budget.is_some() {
                self.reserved = false;
            }
            lay_over(&mut start, &origin.overlay, |name| self.plan.is_sensitive(name));
            self.start = Some(Arc::new(start));
        }
        let Overlay { inputs, variables, .. } = &origin.overlay;
        for (name, value) in inputs.iter().chain(variables) {
            self.variables.insert(name.clone(), value.clone());
            // Whoever wrote it before has no part in what it says now.
            self.writers.insert(name.clone(), Writer::Hand);
        }
        self.count_bytes();
        // Whatever was remembered and written by then, by anybody, is where the branch begins.
        self.read_version = ReadVersion { version: origin.versions.memory, own: 0 };
        self.workspace = origin.versions.workspace;
        self.restart_children();
        self
    }

    /// Time goes on from the fork: what had an hour left has an hour left.
    fn rebase(&mut self, at: Timestamp) {
        let passed = at.as_micros().saturating_sub(self.last_at.as_micros()).max(0);
        let later = |instant: Timestamp| Timestamp::from_micros(instant.as_micros().saturating_add(passed));
        for node in &mut self.nodes {
            node.started_at = later(node.started_at);
            node.wake_at = node.wake_at.map(later);
            node.deadline = node.deadline.map(later);
            node.not_before = node.not_before.map(later);
            if let Some(map) = node.map.as_deref_mut() {
                map.shift(later);
            }
        }
        for child in self.children.iter_mut() {
            child.planned.at = later(child.planned.at);
        }
        for interrupt in self.interrupts.values_mut() {
            interrupt.requested_at = later(interrupt.requested_at);
            interrupt.expires_at = interrupt.expires_at.map(later);
        }
        if let Phase::Paused { at, .. } | Phase::Ended { at, .. } = &mut self.phase {
            *at = later(*at);
        }
        if let Some(start) = &self.start {
            let moved = Started { at: later(start.at), ..Started::clone(start) };
            self.start = Some(Arc::new(moved));
        }
        self.last_at = later(self.last_at);
    }

    /// Children that were under way belong to the source. The branch has its own, from the beginning. New branches begin
    /// where there are none; this is for those that were made before.
    fn restart_children(&mut self) {
        for &position in &self.live {
            let child = &mut self.children[position];
            let visit = self.nodes[child.node].visit;
            let ordinal = u32::MAX - u32::try_from(position).unwrap_or(0);
            child.plan.run = self.run.child(&self.plan.nodes[child.node].id, visit, ordinal);
            child.dispatched = false;
            self.dispatched.retain(|dispatched| *dispatched != position);
            child.remote = None;
            child.status = RunStatus::Pending;
            if let (Some(batch), Some(worker)) = (&mut self.batch, child.worker)
                && let Some(handoff) = batch.workers.get_mut(worker as usize)
            {
                // What comes of it now follows from its beginning, not from what came of it in the source.
                handoff.stage = Stage::Dispatching;
                handoff.last_seq = child.planned.seq;
            }
            let (node, asks) = (child.node, self.interrupts.contains_key(&child.node));
            if self.nodes[node].status() == NodeStatus::Suspended && !asks {
                self.nodes[node].status = Some(NodeStatus::Running);
            }
        }
    }
}

fn lay_over(start: &mut Started, overlay: &Overlay, sensitive: impl Fn(&str) -> bool) {
    let event = &mut start.event;
    for (name, value) in &overlay.inputs {
        if sensitive(name) {
            event.inputs.insert(name.clone(), REDACTED.into());
            event.private.hidden_inputs.insert(name.clone(), value.clone());
        } else {
            event.inputs.insert(name.clone(), value.clone());
        }
    }
    event.owner = overlay.owner.clone().unwrap_or_else(|| event.owner.clone());
    let facts = &mut event.private;
    facts.configurable.extend(overlay.configurable.clone());
    facts.budget = overlay.budget.clone().or(facts.budget.take());
    *facts.models = std::mem::take(&mut *facts.models).overlaid(&overlay.models);
    facts.tool_grant = overlay.tool_grant.clone().or(facts.tool_grant.take());
    facts.tool_scopes = overlay.tool_scopes.clone().or(facts.tool_scopes.take());
    facts.escalation.agent_threshold = overlay.agent_threshold.unwrap_or(facts.escalation.agent_threshold);
    facts.escalation.floor = overlay.decision_floor.unwrap_or(facts.escalation.floor);
    facts.max_fan_out = overlay.max_fan_out.unwrap_or(facts.max_fan_out);
    facts.max_duration_ms = overlay.max_duration_ms.unwrap_or(facts.max_duration_ms);
    facts.max_loop_iterations = overlay.max_loop_iterations.unwrap_or(facts.max_loop_iterations);
    facts.max_node_executions = overlay.max_node_executions.unwrap_or(facts.max_node_executions);
}
