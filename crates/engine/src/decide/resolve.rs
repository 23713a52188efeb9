//! Answers. An answer counts once, is judged before anything is recorded, and a bad one leaves the run waiting.

use baton_model::event::{ClarificationResolved, Ending, InterruptResolved, InterruptResolvedFacts, Outcome, Words};
use baton_model::{Draft, Event, Fault, NodeId, RunStatus, Timestamp, code, json};
use serde_json::{Map, Value};

use super::human_answer::{Answer, answers};
use super::start::unfit;
use super::{
    answer as judged, approval, budget, budget_question, envelope_calls, finish, merge_gate, ratify, unknown_outcome,
    votes,
};
use crate::command::{Actor, Refusal, RefusalKind};
use crate::depth;
use crate::nodes::Done;
use crate::plan::{GenericInterrupt, Kind};
use crate::size;
use crate::state::{Interrupt, Phase, RunState};

pub(super) fn resolve(
    state: &RunState,
    node_id: &NodeId,
    named: Option<&str>,
    value: &Value,
    actor: &Actor,
    at: Timestamp,
) -> Result<Vec<Draft>, Refusal> {
    let index = state.plan.index.get(node_id).copied();
    let Some((node, interrupt)) = index.and_then(|node| Some((node, state.interrupts.get(&node)?))) else {
        return Err(not_open(state, index));
    };
    if interrupt.bearer_only && actor.subject.is_none() {
        return Err(Refusal::new(
            RefusalKind::Forbidden,
            code::FORBIDDEN,
            "This gate does not accept signed links; answer with an API key that has approvals:respond.",
        ));
    }
    is_meant(state, node, interrupt, named)?;
    depth::check("resumeValue", value).map_err(|fault| Refusal { kind: RefusalKind::Invalid, fault })?;
    // What is too large is for its sender to mend; the question stays open.
    let (size, bounds) = (json::size(value), state.bounds());
    size::one("resumeValue", size, bounds)
        .and_then(|()| size::together(state.bytes.saturating_add(size), bounds))
        .map_err(|fault| unfit(fault).with("path", "/resumeValue"))?;
    let answer = Answer { state, node, interrupt, value, actor, at };
    let mut drafts = match (&state.plan.nodes[node].kind, interrupt.kind.as_str()) {
        (_, unknown_outcome::UNKNOWN_EFFECT) => unknown_outcome::answered(answer),
        (_, "approval") if budget_question::is_ours(interrupt) => budget::answered(answer),
        (_, "clarification") if state.asked_in_envelope(node, interrupt).is_some() => envelope_calls::answered(answer),
        (Kind::Supervisor(supervisor), _) => ratify::ratify(answer, supervisor),
        (Kind::Agent(_) | Kind::Test(_), "low-confidence") => judged::ratified(answer),
        (Kind::SubWorkflow(call), _) => merge_gate::answer_sub_workflow(answer, call),
        (Kind::Dispatch(dispatch), "approval") => merge_gate::answer(answer, dispatch),
        (_, "approval") => approval::vote(answer),
        (_, "clarification") => clarification(answer),
        (_, "external-event") => external_event(answer),
        _ => custom(answer),
    }?;
    if state.rule() >= 4 {
        mark(&mut drafts);
    }
    Ok(drafts)
}

/// The records that repeat an answer say that nobody vouches for it.
fn mark(drafts: &mut [Draft]) {
    for draft in drafts {
        let untrusted = match &mut draft.event {
            Event::NodeResumed(event) => &mut event.private.untrusted,
            Event::InterruptResolved(event) => &mut event.private.untrusted,
            Event::ClarificationResolved(event) => &mut event.private.untrusted,
            Event::ApprovalReceived(event) => &mut event.private.untrusted,
            Event::ApprovalAsked(event) => &mut event.private.untrusted,
            _ => continue,
        };
        *untrusted = true;
    }
}

/// Whether an answer is for the question that is open. A node may ask one thing after the other, and whoever answers
/// twice, or late, must not answer the next. Without a name only a node's first question can be meant.
fn is_meant(state: &RunState, node: usize, interrupt: &Interrupt, named: Option<&str>) -> Result<(), Refusal> {
    let open = interrupt.interrupt_id.as_str();
    let message = match named {
        Some(named) if named == open => return Ok(()),
        Some(_) => format!("This question is no longer open. The node asks another one now: `{open}`."),
        // Runs of earlier rules are answered by clients that knew of no names.
        None if state.rule() < 4 || !state.settled.contains(&node) => return Ok(()),
        None => format!(
            "An earlier question of this node has been answered. The node asks another one now: look at it, and say \
             that you mean it with \"interruptId\": \"{open}\"."
        ),
    };
    let refusal = Refusal::new(RefusalKind::Conflict, code::INTERRUPT_ALREADY_RESOLVED, message);
    Err(refusal.with("openInterruptId", open))
}

fn not_open(state: &RunState, node: Option<usize>) -> Refusal {
    let cancelled = |code: &str, kind| Refusal::new(kind, code, "The run was cancelled while this question was open.");
    match &state.phase {
        Phase::Ended { status: RunStatus::Cancelled, .. } | Phase::Ending(Ending::Cancelled(_))
            if node.is_some_and(|node| state.nodes[node].visit > 0 && !state.nodes[node].answered) =>
        {
            let cascaded = match &state.phase {
                Phase::Ending(Ending::Cancelled(ending)) => ending.parent_run_id.is_some(),
                _ => state.cancelled_by_parent,
            };
            if cascaded {
                cancelled(code::INTERRUPT_GONE, RefusalKind::Gone)
            } else {
                cancelled(code::INTERRUPT_CANCELLED, RefusalKind::Unprocessable)
            }
        }
        _ if node.is_some_and(|node| state.settled.contains(&node)) => Refusal::new(
            RefusalKind::Conflict,
            code::INTERRUPT_ALREADY_RESOLVED,
            "This question has already been answered.",
        ),
        _ => Refusal::new(
            RefusalKind::NotFound,
            code::INTERRUPT_NOT_FOUND,
            "No question is open at this node. GET /v1/interrupts lists the open ones.",
        ),
    }
}

fn clarification(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, actor, at, .. } = answer;
    let answers = answers(&answer)?;
    let by = actor.subject.clone();
    let mut drafts = answer.closes(by.as_deref(), Outcome::Answered);
    let node_id = state.plan.nodes[node].id.clone();
    drafts.push(
        Event::from(ClarificationResolved {
            node_id,
            answers: answers.clone(),
            answered_by: by,
            private: Words::default(),
        })
        .into(),
    );
    // What a supervisor asked for becomes a variable, so that it can be handed to a worker.
    let asked = matches!(state.plan.nodes[node].kind, Kind::Dispatch(_));
    let variables = if asked { answers.clone().into_iter().collect() } else { Vec::new() };
    let outputs = [("answers".to_owned(), Value::Object(answers))].into_iter().collect();
    drafts.extend(finish::complete(state, node, Done { outputs, variables, ..Done::default() }, at));
    Ok(drafts)
}

fn external_event(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, at } = answer;
    let body = value.get("eventPayload").filter(|payload| payload.is_object()).unwrap_or(value);
    let wanted = interrupt.data.get("correlation").and_then(Value::as_object).cloned().unwrap_or_default();
    let wrong: Vec<&String> =
        wanted.iter().filter(|(key, value)| body.get(*key) != Some(*value)).map(|(key, _)| key).collect();
    if !body.is_object() || !wrong.is_empty() {
        return Err(Refusal::new(
            RefusalKind::Unprocessable,
            code::VALIDATION_ERROR,
            "The event does not match the correlation this run waits for.",
        )
        .with("mismatched", serde_json::json!(wrong)));
    }
    let mut drafts = answer.closes(actor.subject.as_deref(), Outcome::Answered);
    let outputs = [("event".to_owned(), body.clone())].into_iter().collect();
    drafts.extend(finish::complete(state, node, Done::with(outputs), at));
    Ok(drafts)
}

fn custom(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, value, actor, at, .. } = answer;
    if let Kind::Interrupt(generic @ GenericInterrupt::Custom(_)) = &state.plan.nodes[node].kind
        && let Err((path, error)) = generic.check_custom(value)
    {
        return Err(Refusal::invalid(format!("The answer does not fit: {error}.")).with("path", path));
    }
    let mut drafts = answer.closes(actor.subject.as_deref(), Outcome::Answered);
    let outputs: Map<String, Value> = [("value".to_owned(), value.clone())].into_iter().collect();
    drafts.extend(finish::complete(state, node, Done::with(outputs), at));
    Ok(drafts)
}

/// Nobody answered in time. Silence never grants anything.
pub(super) fn expire(state: &RunState, node: usize, interrupt: &Interrupt, at: Timestamp) -> Vec<Draft> {
    let node_id = state.plan.nodes[node].id.clone();
    let mut drafts: Vec<Draft> = vec![
        Event::from(InterruptResolved {
            node_id: node_id.clone(),
            interrupt_id: interrupt.interrupt_id.clone(),
            kind: interrupt.kind.clone(),
            resume_value: None,
            resolved_by: None,
            outcome: Outcome::Rejected,
            reason: Some("timeout".to_owned()),
            private: InterruptResolvedFacts::default(),
        })
        .into(),
    ];
    let limit = interrupt.timeout_ms.unwrap_or(0);
    let rejected = || {
        let message = format!("Nobody decided within {limit} ms, which counts as a rejection.");
        Fault::new(code::APPROVAL_REJECTED, message).with("reason", "timeout")
    };
    let fault = match (&state.plan.nodes[node].kind, interrupt.kind.as_str()) {
        // A held decision that nobody ratifies is rejected, whatever kind of question it asked.
        (Kind::Supervisor(_), _) | (_, "approval") => {
            drafts.push(votes::timed_out(node_id));
            if let Some(done) = approval::routed_timeout(state, node) {
                drafts.extend(finish::complete(state, node, done, at));
                return drafts;
            }
            rejected()
        }
        (Kind::Agent(_) | Kind::Test(_), _) => rejected(),
        _ => Fault::new(code::INTERRUPT_TIMEOUT, format!("Nobody answered within {limit} ms.")),
    };
    drafts.extend(finish::fail(state, node, fault, at));
    drafts
}
