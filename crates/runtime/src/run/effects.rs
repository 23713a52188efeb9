//! What a run's state still wants of the world, compared with what is under way: each step asks anew, and each wish is
//! passed on once.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_engine::{Effect, Phase, outstanding_besides_requests};
use baton_model::Timestamp;

use super::caller::invocation;
use crate::run::live::LiveRun;
use crate::run::message::Message;
use crate::run::requests::same;
use crate::run::stepper::RunStepper;
use crate::services::models::Wanted;
use crate::services::observer::Caller;
use crate::services::timers::HORIZON_MS;

impl RunStepper {
    pub(super) fn see_to_effects(&self, head: &mut LiveRun, messages: &mut VecDeque<Message>, at: Timestamp) {
        // Every way into the world begins here, and a replay has none: what the world said is on record.
        if crate::run::tree::is_replay(&head.row) {
            return;
        }
        if head.chain.is_broken() {
            // Whoever loads the run again sees to what it wants by then.
            return;
        }
        let run = head.row.id.clone();
        let (mut wakes, mut calls, mut remote_actions) = (false, Vec::new(), Vec::new());
        for effect in outstanding_besides_requests(&head.state) {
            match effect {
                Effect::StartChild { plan, link, depth, max_duration_ms } => {
                    if head.starting.insert(plan.run.clone()) {
                        let look_first = head.asks_children;
                        messages.push_back(Message::StartChild { plan, link, depth, max_duration_ms, look_first });
                    }
                }
                Effect::AwaitChild { child } => {
                    if head.asks_children && head.awaiting.insert(child.clone()) {
                        head.checking += 1;
                        messages.push_back(Message::CheckChild { parent: run.clone(), child, roll_call: true });
                    }
                }
                Effect::CancelChild { child } => {
                    if head.cancelling.insert(child.clone()) {
                        messages.push_back(Message::CancelChild { parent: run.clone(), child });
                    }
                }
                Effect::Remote(task) => remote_actions.push(*task),
                // Not in this list: what a node asks is at hand.
                Effect::NodeRequest(_) => {}
                Effect::CallModel { node, visit, attempt, call, mut request, reasoning_chars, again, not_before } => {
                    request.trace = self.observers.trace_from(head, Caller::Node { node: &node, visit });
                    calls.push(Wanted::Model {
                        node,
                        visit,
                        attempt,
                        call,
                        request,
                        reasoning_chars,
                        again,
                        not_before,
                    });
                }
                Effect::CallTool(call) => {
                    let trace = self.observers.trace_from(head, Caller::Run);
                    calls.push(Wanted::Tool(invocation(head, call, trace)));
                }
                Effect::WakeAt { at: due } => {
                    wakes = true;
                    if due <= at.plus_millis(HORIZON_MS) {
                        self.timers.set(&run, due);
                    } else {
                        self.timers.clear(&run);
                    }
                }
            }
        }
        if let Some(node_request) = head.node_request()
            && !head.requesting.as_ref().is_some_and(|known| same(known, &node_request))
        {
            head.requesting = Some(Arc::clone(&node_request));
            messages.push_back(Message::NodeRequest { run: run.clone(), node_request });
        }
        // From here on this process hears of every child: of those there are, it has asked.
        head.asks_children = false;
        if !wakes {
            self.timers.clear(&run);
        }
        self.effect_sink.see_to_calls(&head.chain, &run, head.state.next_seq(), calls);
        let paused = matches!(head.state.phase(), Phase::Paused { .. });
        self.effect_sink.see_to_remote_children(&head.chain, &run, head.state.next_seq(), paused, remote_actions);
    }
}
