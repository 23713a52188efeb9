//! One record at a time: what may follow, and what each kind of record changes.

use baton_model::event::{Ending, Outcome};
use baton_model::{AgentRef, Event, NodeStatus, Record, RunStatus, code, json};

use super::children::{self, chain, see, set_child_status, withhold};
use super::lookup::{active_node, known_node};
use super::node::{self, end_child, settle};
use super::routing::{set_edges, unqueue};
use super::run::{end, start};
use super::{budget, channel, invocation, map, model_call, step_work};
use crate::orchestration::Decided;
use crate::state::{EdgeState, Interrupt, Phase, RunState};

/// A record that cannot follow the ones before it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("record {seq} ({kind}) cannot follow: {why}")]
pub struct IllegalRecord {
    pub seq: u64,
    pub kind: String,
    pub why: String,
}

/// Folds one record into the state.
pub fn evolve(mut state: RunState, record: &Record) -> Result<RunState, IllegalRecord> {
    evolve_in_place(&mut state, record)?;
    Ok(state)
}

pub(crate) fn evolve_in_place(state: &mut RunState, record: &Record) -> Result<(), IllegalRecord> {
    let illegal = |why: String| IllegalRecord { seq: record.seq, kind: record.event.type_name().to_owned(), why };
    if record.seq != state.next_seq {
        return Err(illegal(format!("expected sequence {}", state.next_seq)));
    }
    match &state.phase {
        Phase::Ended { .. } => return Err(illegal("the run has ended".to_owned())),
        Phase::New if !matches!(record.event, Event::RunStarted(_)) => {
            return Err(illegal("a log begins with run.started".to_owned()));
        }
        _ => {}
    }
    fold(state, record).map_err(illegal)?;
    state.next_seq += 1;
    state.last_at = record.at;
    Ok(())
}

fn fold(state: &mut RunState, record: &Record) -> Result<(), String> {
    match &record.event {
        Event::RunStarted(event) => start(state, record, event),
        Event::NodeStarted(event) => node::started(state, record, event),
        Event::NodeCompleted(event) => node::completed(state, record, event),
        Event::NodeFailed(event) => {
            let node = invocation::settled(state, &event.node_id)?;
            state.nodes[node].error = Some(event.error.clone());
            let reported = event.error.details.as_ref().and_then(|details| details.get("childStatus"));
            let status = reported.and_then(|status| RunStatus::parse(status.as_str()?));
            settle(state, node, NodeStatus::Failed, status.unwrap_or(RunStatus::Failed));
            state.nodes[node].looping = false;
            set_edges(state, node, EdgeState::Failed);
            Ok(())
        }
        Event::NodeSkipped(event) => {
            let node = known_node(state, &event.node_id)?;
            unqueue(state, node);
            state.nodes[node].status = Some(NodeStatus::Skipped);
            set_edges(state, node, EdgeState::Closed);
            Ok(())
        }
        Event::NodeCancelled(event) => {
            let node = invocation::settled(state, &event.node_id)?;
            settle(state, node, NodeStatus::Cancelled, RunStatus::Cancelled);
            Ok(())
        }
        Event::NodeRetried(event) => {
            let node = invocation::settled(state, &event.node_id)?;
            let run = &mut state.nodes[node];
            run.status = Some(NodeStatus::Retrying);
            run.wake_at = Some(event.private.wake_at);
            run.deadline = None;
            run.reply = None;
            run.effect = None;
            run.map = None;
            run.error = Some(event.last_error.clone());
            end_child(state, node, RunStatus::Failed);
            Ok(())
        }
        Event::NodeSuspended(event) => {
            let node = active_node(state, &event.node_id)?;
            state.nodes[node].status = Some(NodeStatus::Suspended);
            see(state, event.private.child_memory);
            if let (Some(status), Some(run)) = (event.child_status, &event.child_run_id) {
                set_child_status(state, run, status);
            }
            Ok(())
        }
        Event::NodeResumed(event) => {
            let node = active_node(state, &event.node_id)?;
            if let Some(run) = &event.child_run_id {
                set_child_status(state, run, RunStatus::Running);
            }
            // A node with several children goes on when the last of them does.
            let waits = state.live_children().any(|child| child.node == node && child.status.is_waiting());
            state.nodes[node].status = Some(if waits { NodeStatus::Suspended } else { NodeStatus::Running });
            Ok(())
        }
        Event::NodeDispatched(event) => children::dispatched(state, event),
        Event::InterruptRequested(event) => {
            let node = active_node(state, &event.private.node_id)?;
            let interrupt = Interrupt {
                node: event.private.node_id.clone(),
                kind: event.kind.clone(),
                key: event.key.clone(),
                interrupt_id: event.private.interrupt_id.clone(),
                data: event.data.clone(),
                resume_schema: event.resume_schema.clone(),
                timeout_ms: event.timeout_ms,
                requested_at: record.at,
                expires_at: event.private.expires_at,
                bearer_only: event.private.bearer_only,
                hidden: event.private.hidden.clone(),
                votes: Default::default(),
            };
            if state.asked_in_envelope(node, &interrupt).is_some() {
                // Whoever is asked gets the time it takes.
                state.nodes[node].deadline = None;
            }
            match state.interrupts.insert(node, interrupt) {
                None => Ok(()),
                Some(_) => Err("the node already asks something".to_owned()),
            }
        }
        Event::InterruptResolved(event) => {
            let node = known_node(state, &event.node_id)?;
            state.nodes[node].answered = true;
            budget::decided(state, node, record);
            state.nodes[node].refine = event.private.refine.clone();
            if event.outcome == Outcome::Rejected {
                withhold(state, node);
            }
            state.settled.insert(node);
            state.interrupts.remove(&node).map(|_| ()).ok_or_else(|| "no such interrupt is open".to_owned())
        }
        Event::ApprovalReceived(event) => {
            let node = known_node(state, &event.node_id)?;
            if let (Some(interrupt), Some(by)) = (state.interrupts.get_mut(&node), &event.decided_by) {
                interrupt.votes.insert(by.clone(), event.action);
            }
            Ok(())
        }
        Event::ChannelWritten(event) => {
            channel::written(state, event, event.written_at);
            Ok(())
        }
        Event::VariableChanged(event) => {
            let value = event.private.hidden.as_ref().unwrap_or(&event.next);
            let before = state.variable_size(&event.name);
            state.note_size(before, json::named_size(&event.name, value));
            state.variables.insert(event.name.clone(), value.clone());
            state.writers.insert(event.name.clone(), state.writer(event.node_id.as_ref()));
            Ok(())
        }
        Event::OutputChunk(event) => {
            let node = active_node(state, &event.node_id)?;
            let run = &mut state.nodes[node];
            run.chunks += 1;
            // A paced stream: chunks come at equal distances from the start of the attempt.
            if let Some(due) = run.wake_at {
                let pace = due.millis_since(run.started_at) / run.chunks as u64;
                run.wake_at = Some(due.plus_millis(pace));
            }
            Ok(())
        }
        Event::OrchestratorDecided(event) => {
            state.turns = event.iteration;
            state.decisions.push(event.decision.clone());
            state.agent = Some(event.agent_id.clone());
            let (decision, iteration) = (event.decision.clone(), event.iteration);
            state.decision = Some(Decided { decision, iteration, seq: record.seq });
            Ok(())
        }
        Event::ChainEvent(event) => chain(state, record, event),
        Event::ConfidenceEscalated(event) => {
            let node = active_node(state, &event.private.node_id)?;
            state.nodes[node].held = Some(event.original_decision.clone());
            Ok(())
        }
        Event::FanOut(_) => {
            state.batch.as_mut().ok_or("no workers are under way")?.announced = true;
            Ok(())
        }
        Event::Join(_) => {
            state.batch.as_mut().ok_or("no workers are under way")?.joined = true;
            Ok(())
        }
        Event::MemoryWritten(event) => {
            state.read_version.own = event.private.version;
            Ok(())
        }
        Event::MemoryDeleted(event) => {
            state.read_version.own = event.private.version;
            Ok(())
        }
        // Seen from the next turn on, or by the next run.
        Event::WorkspaceUpdated(_) => Ok(()),
        Event::ProviderUsage(event) => model_call::replied(state, record, event),
        Event::ModelRetried(event) => model_call::retried(state, event),
        Event::AgentInvocationStarted(event) => invocation::started(state, event),
        Event::AgentInvocationCompleted(event) => invocation::completed(state, event),
        Event::AgentReasoningDelta(event) => invocation::thinking(state, event),
        Event::AgentReasoned(event) => {
            invocation::reasoned(state, event);
            Ok(())
        }
        Event::AgentToolCalled(event) => invocation::called(state, record, event),
        Event::AgentToolReturned(event) => invocation::returned(state, record, event),
        Event::AgentHandoff(event) => {
            // Whoever has begun is known better than by name.
            if state.worker.as_ref().is_none_or(|worker| worker.agent_id != event.to_agent_id) {
                state.worker = Some(AgentRef::new(event.to_agent_id.as_str()));
            }
            if let Some(&node) = state.plan.index.get(&event.private.node_id) {
                state.nodes[node].handed_to.insert(event.to_agent_id.clone());
            }
            Ok(())
        }
        Event::MapStarted(event) => map::started(state, event),
        Event::MapItemStarted(event) => map::item_started(state, record, event),
        Event::MapItemCompleted(event) => map::item_completed(state, event),
        Event::MapItemFailed(event) => map::item_failed(state, event),
        Event::MapItemRetried(event) => map::item_retried(state, event),
        Event::MapStopping(event) => map::stopping(state, event),
        Event::EffectUnknown(event) => invocation::unknown(state, event),
        Event::EffectRetried(event) => invocation::retried(state, record, event),
        Event::RunnerWaiting(event) => invocation::waiting(state, event),
        Event::StepMemo(event) => step_work::kept(state, record, event),
        Event::EnvelopeRetryAttempted(event) => invocation::asked_again(state, event),
        Event::EnvelopeNlToFormat(event) => invocation::coerced(state, event),
        Event::BudgetReserved(_) => {
            state.reserved = true;
            Ok(())
        }
        Event::BudgetExhausted(event) => budget::exhausted(state, event),
        Event::RunEnding(event) => {
            state.phase = Phase::Ending(event.ending.clone());
            Ok(())
        }
        Event::RunPaused(event) => {
            state.phase = Phase::Paused { at: record.at, request: event.clone() };
            Ok(())
        }
        Event::RunResumed(_) => {
            // A pause that is called off while the run drains has stopped nothing yet.
            let stopped_at = match &state.phase {
                Phase::Paused { at, .. } => *at,
                Phase::Ending(Ending::Paused(_)) => record.at,
                _ => return Err("the run is not paused".to_owned()),
            };
            state.phase = Phase::Active;
            invocation::resumed(state, stopped_at, record.at);
            Ok(())
        }
        Event::RunCompleted(event) => {
            if !state.active.is_empty() {
                return Err("nodes are still active".to_owned());
            }
            state.outputs = event.outputs.clone();
            end(state, record, RunStatus::Completed)
        }
        Event::RunFailed(event) => {
            state.error = Some(event.error.clone());
            if event.error.code == code::REPLAY_SOURCE_MISSING {
                // A replay that cannot go on ends all the same; its children are its source's and never were under way.
                state.live.clear();
            }
            end(state, record, RunStatus::Failed)
        }
        Event::RunCancelled(event) => {
            state.cancelled_by_parent = event.parent_run_id.is_some();
            end(state, record, RunStatus::Cancelled)
        }
        Event::ApprovalRequested(_)
        | Event::ClarificationRequested(_)
        | Event::ClarificationResolved(_)
        | Event::CapBreached(_)
        | Event::LoopbackLimit(_)
        | Event::ApprovalAsked(_)
        | Event::ReplayDiverged(_)
        | Event::EnvelopeRefusal(_)
        | Event::ReplayDivergedAtRefusal(_)
        | Event::AgentPromptResolved(_)
        | Event::PromptComposed(_)
        | Event::ModelCapabilitySubstituted(_)
        | Event::ModelCapabilityInsufficient(_)
        | Event::AgentDecided(_)
        | Event::EnvelopeRetryExhausted(_)
        | Event::EnvelopeTruncated(_)
        | Event::LogAppended(_)
        | Event::ToolsMissing(_)
        | Event::ToolProgress(_)
        | Event::EnvelopeRecoveryApplied(_)
        | Event::BudgetConsumed(_)
        | Event::BudgetThresholdCrossed(_)
        | Event::ForkApproved(_)
        | Event::Other { .. } => Ok(()),
    }
}
