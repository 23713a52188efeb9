//! The supervisor's turn. Entry checks the bound before anything runs; one execution makes exactly one decision; a
//! decision that is not sure enough is held, off the log, until a human ratifies it.
//!
//! ```text
//!  TURN(i) ──decide──► sure enough? ──yes──► decided(i) ──► dispatch
//!     ▲                     │ no                 ▲
//!     │ refine              ▼                    │ accept, edit-accept
//!     └───────────── held, interrupt ────────────┘        reject, timeout ──► failed
//! ```

use baton_model::event::{
    ApprovalAction, CapBreached, CapKind, ConfidenceEscalated, Escalation, EscalationInterrupt, EscalationKind,
    NodePlace, NodeStarted, NodeStartedFacts, OrchestratorDecided, Outcome,
};
use baton_model::{Decision, Draft, Event, Fault, Frozen, NodeId, Timestamp, code};
use serde_json::{Map, Value, json};

use super::resolve::Answer;
use super::{approval, consult, ending, visit};
use crate::command::Refusal;
use crate::consult::Frame;
use crate::nodes::{Ask, Done, Doubt, Kind, Supervisor};
use crate::scene::Scene;
use crate::state::{Interrupt, RunState};

/// Comes to turn `i`, or to the same turn again. What it sees is asked for first, unless that is known already.
pub(super) fn enter(state: &RunState, node: usize, supervisor: &Supervisor, attempt: u32, at: Timestamp) -> Vec<Draft> {
    if let Some(drafts) = too_many(state, node) {
        return drafts;
    }
    match known_view(state, node, supervisor, attempt) {
        Some(frame) => begin(state, node, supervisor, attempt, &frame, at),
        None => Vec::new(),
    }
}

/// What a turn sees when nobody has to be asked: it is taken again and looks at neither memory nor workspace.
pub(super) fn known_view(state: &RunState, node: usize, supervisor: &Supervisor, attempt: u32) -> Option<Frame> {
    let frozen = state.nodes[node].frozen.filter(|_| attempt > 0)?;
    let blind = !supervisor.reads_memory && !supervisor.reads_workspace;
    blind.then(|| Frame { versions: frozen.versions, ..Frame::default() })
}

/// Takes turn `i` with what it sees, which is frozen from here on: a turn taken again sees the same.
pub(super) fn begin(
    state: &RunState,
    node: usize,
    supervisor: &Supervisor,
    attempt: u32,
    frame: &Frame,
    at: Timestamp,
) -> Vec<Draft> {
    let turn = state.turns + 1;
    let plan = &state.plan.nodes[node];
    let visit = consult::visit_of(state, node, attempt);
    let first_sight = Frozen { versions: frame.versions, at };
    let frozen = state.nodes[node].frozen.filter(|_| attempt > 0).unwrap_or(first_sight);
    let mut frame = frame.clone();
    frame.memory.retain(|entry| !entry.is_expired(frozen.at));
    let started = NodeStarted {
        node_id: plan.id.clone(),
        type_id: plan.type_id.clone(),
        attempt,
        private: NodeStartedFacts { visit, frozen: Some(frozen), ..NodeStartedFacts::default() },
    };
    let mut drafts: Vec<Draft> = vec![Event::from(started).into()];
    let mut scene = visit::scene(state, node, visit, attempt, Map::new(), false, at);
    scene.turn = Some(turn);
    scene.feedback = state.nodes[node].refine.clone();
    scene.frame = Some(&frame);
    match supervisor.decide(turn, &scene) {
        Ok(Some(decision)) => {
            // The escalation is caused by the turn's own start, which is the first record of this step.
            let cause = state.next_seq;
            drafts.extend(judge(state, node, supervisor, &scene, decision, cause, at));
        }
        Ok(None) => {}
        Err(fault) => drafts.extend(visit::failed(state, node, attempt, fault, at)),
    }
    drafts
}

/// A live supervisor's answer. One that is not asked for any more changes nothing.
pub(super) fn agent_decided(
    state: &RunState,
    node_id: &NodeId,
    iteration: u64,
    decision: &Result<Decision, Fault>,
    at: Timestamp,
) -> Vec<Draft> {
    let Some((node, supervisor)) = state.asking_agent().filter(|(node, _)| state.plan.nodes[*node].id == *node_id)
    else {
        return Vec::new();
    };
    if iteration != state.turns + 1 {
        return Vec::new();
    }
    match decision {
        Ok(decision) => {
            let run = &state.nodes[node];
            let scene = visit::scene(state, node, run.visit, run.attempt, Map::new(), false, at);
            judge(state, node, supervisor, &scene, decision.clone(), run.started_seq, at)
        }
        Err(fault) => visit::fail(state, node, fault.clone(), at),
    }
}

/// The bound on turns, when a supervisor's next one would be too many.
pub(super) fn too_many(state: &RunState, node: usize) -> Option<Vec<Draft>> {
    let turn = state.turns + 1;
    let limit = state.start.as_ref()?.event.private.max_loop_iterations;
    if turn <= limit || !matches!(state.plan.nodes[node].kind, Kind::Supervisor(_)) {
        return None;
    }
    let node_id = Some(state.plan.nodes[node].id.clone());
    let breach = CapBreached { kind: CapKind::LoopIterations, limit, observed: turn, node_id };
    let fault = Fault::new(code::LOOP_LIMIT_EXCEEDED, format!("The supervisor wanted more than {limit} turns."))
        .with("iteration", turn)
        .with("limit", limit);
    let mut drafts = vec![Event::from(breach).into()];
    drafts.extend(ending::fail(state, fault, Some(node), None));
    Some(drafts)
}

/// Lets a decision through, or holds it.
fn judge(
    state: &RunState,
    node: usize,
    supervisor: &Supervisor,
    scene: &Scene<'_>,
    decision: Decision,
    cause: u64,
    at: Timestamp,
) -> Vec<Draft> {
    let rule = escalation(state);
    let unsure = decision.confidence().filter(|confidence| *confidence < rule.floor);
    let doubtful = supervisor.agent_confidence(state.turns + 1).filter(|confidence| *confidence < rule.agent_threshold);
    let mut drafts = Vec::new();
    let ask = match (unsure, doubtful) {
        (None, None) => return decided(state, node, supervisor, decision, at),
        (Some(confidence), _) => {
            drafts.push(escalated(state, node, &decision, confidence, &rule, cause));
            let doubt = Doubt { agent_id: supervisor.agent_id.clone(), threshold: rule.floor, observed: confidence };
            held(supervisor, &decision, rule.interrupt, state.turns + 1, doubt)
        }
        (None, Some(observed)) => {
            let threshold = rule.agent_threshold;
            let data = json!({
                "agentId": supervisor.agent_id, "threshold": threshold, "observed": observed, "decision": decision
            });
            let doubt = Doubt { agent_id: supervisor.agent_id.clone(), threshold, observed };
            ask(supervisor, "low-confidence", data, doubt)
        }
    };
    drafts.extend(visit::suspend(state, node, &visit::key(scene.node_id(), scene.visit, scene.attempt), ask, at));
    drafts
}

fn escalation(state: &RunState) -> Escalation {
    state.start.as_ref().map(|start| start.event.private.escalation.clone()).unwrap_or_default()
}

fn escalated(
    state: &RunState,
    node: usize,
    decision: &Decision,
    confidence: f64,
    rule: &Escalation,
    cause: u64,
) -> Draft {
    let event = ConfidenceEscalated {
        confidence,
        floor: rule.floor,
        escalation_kind: match rule.interrupt {
            EscalationInterrupt::Clarification => EscalationKind::Clarify,
            EscalationInterrupt::Approval | EscalationInterrupt::Vendor => EscalationKind::Escalate,
        },
        worker_id: decision.first_worker().cloned(),
        parent_run_id: state.run.clone(),
        original_decision: decision.clone(),
        private: NodePlace { node_id: state.plan.nodes[node].id.clone() },
    };
    Draft { event: event.into(), causation: Some(cause) }
}

fn ask(supervisor: &Supervisor, kind: &'static str, data: Value, doubt: Doubt) -> Ask {
    Ask {
        kind,
        data,
        resume_schema: None,
        timeout_ms: supervisor.hold_timeout_ms,
        bearer_only: false,
        doubt: Some(doubt),
    }
}

/// The question a held decision asks.
fn held(supervisor: &Supervisor, decision: &Decision, interrupt: EscalationInterrupt, turn: u64, doubt: Doubt) -> Ask {
    let title = format!(
        "Turn {turn}: the supervisor's confidence is {:.2}, and at least {:.2} is needed",
        doubt.observed, doubt.threshold
    );
    let data = match interrupt {
        EscalationInterrupt::Approval | EscalationInterrupt::Vendor => json!({
            "artifactId": format!("decision-{turn}"),
            "artifactType": "orchestrator-decision",
            "title": title,
            "artifactData": decision,
            "actions": ["accept", "reject", "refine", "edit-accept"],
        }),
        EscalationInterrupt::Clarification => json!({
            "questions": [{"id": "decision", "question": title}],
            "contextType": "orchestrator-decision",
        }),
    };
    ask(supervisor, interrupt.as_str(), data, doubt)
}

/// The turn's one decision goes on the log, and the supervisor is done for this turn.
fn decided(state: &RunState, node: usize, supervisor: &Supervisor, decision: Decision, at: Timestamp) -> Vec<Draft> {
    let iteration = state.turns + 1;
    let outputs = [("decision".to_owned(), json!(decision)), ("iteration".to_owned(), json!(iteration))];
    let event = OrchestratorDecided {
        agent_id: supervisor.agent_id.clone(),
        decision,
        iteration,
        private: NodePlace { node_id: state.plan.nodes[node].id.clone() },
    };
    let mut drafts: Vec<Draft> = vec![Event::from(event).into()];
    drafts.extend(visit::complete(state, node, Done::with(outputs.into_iter().collect()), at));
    drafts
}

/// What a human says about a held decision.
enum Ratified {
    Go(Decision, ApprovalAction),
    Again(Value),
    Never,
}

/// Answers a held decision.
pub(super) fn ratify(answer: Answer<'_>, supervisor: &Supervisor) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, at } = answer;
    let held = held_decision(state, node, interrupt)?;
    let by = approval::voter(value, actor);
    let ratified = read_answer(&held, interrupt, value)?;
    let (outcome, action) = match &ratified {
        Ratified::Go(_, action) => (Outcome::Accepted, *action),
        Ratified::Again(_) => (Outcome::Answered, ApprovalAction::Refine),
        Ratified::Never => (Outcome::Rejected, ApprovalAction::Reject),
    };
    let mut drafts = answer.closes(Some(&by), outcome);
    if interrupt.kind != "clarification" {
        drafts.push(approval::decision_received(state.plan.nodes[node].id.clone(), action, &by, value));
    }
    match ratified {
        // A ratified decision is not judged again: a human has.
        Ratified::Go(decision, _) => drafts.extend(decided(state, node, supervisor, decision, at)),
        // The turn is taken again as soon as the run goes on; see `enter`.
        Ratified::Again(feedback) => {
            let closing = drafts.iter_mut().find_map(|draft| match &mut draft.event {
                Event::InterruptResolved(closed) => Some(closed),
                _ => None,
            });
            if let Some(closed) = closing {
                closed.private.refine = Some(feedback);
            }
        }
        Ratified::Never => {
            let fault = Fault::new(code::APPROVAL_REJECTED, "The held decision was rejected.").with("decidedBy", by);
            drafts.extend(visit::fail(state, node, fault, at));
        }
    }
    Ok(drafts)
}

/// The decision under judgement: part of the question, except where the question has no room for it.
fn held_decision(state: &RunState, node: usize, interrupt: &Interrupt) -> Result<Decision, Refusal> {
    let shown = interrupt.data.get("artifactData").or_else(|| interrupt.data.get("decision"));
    shown
        .and_then(|value| Decision::read(value).ok())
        .or_else(|| state.nodes[node].held.clone())
        .ok_or_else(|| Refusal::invalid("No decision is held here."))
}

fn read_answer(held: &Decision, interrupt: &Interrupt, value: &Value) -> Result<Ratified, Refusal> {
    let value = match interrupt.kind.as_str() {
        "clarification" => crate::nodes::read_answers(value)
            .and_then(|mut answers| answers.remove("decision"))
            .ok_or_else(|| Refusal::invalid("Answer with {\"answers\": {\"decision\": \"accept\" or a decision}}."))?,
        _ => value.clone(),
    };
    // A bare word, an action, or a whole decision.
    let word = value.as_str().or_else(|| value.get("action").and_then(Value::as_str));
    match word {
        Some("accept") => Ok(Ratified::Go(held.clone(), ApprovalAction::Accept)),
        Some("reject") => Ok(Ratified::Never),
        Some("refine") => match value.get("refineFeedback").filter(|feedback| approval::is_refinement(feedback)) {
            Some(feedback) => Ok(Ratified::Again(feedback.clone())),
            None => Err(Refusal::invalid("`refine` needs `refineFeedback`, an object with `scope`.")),
        },
        Some("edit-accept") => {
            let edited = value.get("editedArtifactData");
            let edited = edited.ok_or_else(|| Refusal::invalid("`edit-accept` needs `editedArtifactData`."))?;
            read_decision(edited).map(|decision| Ratified::Go(decision, ApprovalAction::EditAccept))
        }
        Some(_) => Err(Refusal::invalid("`action` must be one of accept, reject, refine, edit-accept.")),
        None => {
            let decision = read_decision(&value)?;
            let action = if decision == *held { ApprovalAction::Accept } else { ApprovalAction::EditAccept };
            Ok(Ratified::Go(decision, action))
        }
    }
}

fn read_decision(value: &Value) -> Result<Decision, Refusal> {
    Decision::read(value).map_err(|error| {
        Refusal::invalid(format!("That is not a decision: {error}.")).with("path", "/editedArtifactData")
    })
}
