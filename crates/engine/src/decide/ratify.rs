//! What a human says about a held decision.

use baton_model::event::{ApprovalAction, Outcome};
use baton_model::{Decision, Draft, Event, Fault, code};
use serde_json::Value;

use super::human_answer::Answer;
use super::turn::decided;
use super::votes::{EDIT, EDIT_ACCEPT};
use super::{finish, votes};
use crate::command::Refusal;
use crate::nodes::read_answers;
use crate::plan::Supervisor;
use crate::state::{Interrupt, RunState};

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
    let by = votes::voter(value, actor);
    let ratified = read_answer(&held, interrupt, value)?;
    let (outcome, action) = match &ratified {
        Ratified::Go(_, action) => (Outcome::Accepted, *action),
        Ratified::Again(_) => (Outcome::Answered, ApprovalAction::Refine),
        Ratified::Never => (Outcome::Rejected, ApprovalAction::Reject),
    };
    let mut drafts = answer.closes(Some(&by), outcome);
    if interrupt.kind != "clarification" {
        drafts.push(votes::decision_received(state.plan.nodes[node].id.clone(), action, &by, value));
    }
    match ratified {
        // A ratified decision is not judged again: a human has.
        Ratified::Go(decision, _) => drafts.extend(decided(state, node, supervisor, decision, at)),
        // The turn is taken again as soon as the run goes on; see `turn::enter`.
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
            drafts.extend(finish::fail(state, node, fault, at));
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
        "clarification" => match read_answers(value) {
            Some(mut answers) => answers.remove("decision").ok_or_else(|| {
                Refusal::invalid("Answer with {\"answers\": {\"decision\": \"accept\" or a decision}}.")
            })?,
            // What answers a held decision of any other kind answers this one too.
            None => value.clone(),
        },
        _ => value.clone(),
    };
    // A bare word, an action, or a whole decision.
    let word = value.as_str().or_else(|| value.get("action").and_then(Value::as_str));
    match word {
        Some("accept") => Ok(Ratified::Go(held.clone(), ApprovalAction::Accept)),
        Some("reject") => Ok(Ratified::Never),
        Some("refine") => match value.get("refineFeedback").filter(|feedback| votes::is_refinement(feedback)) {
            Some(feedback) => Ok(Ratified::Again(feedback.clone())),
            None => Err(Refusal::invalid("`refine` needs `refineFeedback`, an object with `scope`.")),
        },
        Some(EDIT_ACCEPT | EDIT) => {
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
    if value.get("confidence").is_some_and(Value::is_null) {
        let message = "`confidence` is a number from 0 to 1; leave it out where there is none.";
        return Err(Refusal::invalid(message).with("path", "/editedArtifactData/confidence"));
    }
    Decision::read(value).map_err(|error| {
        Refusal::invalid(format!("That is not a decision: {error}.")).with("path", "/editedArtifactData")
    })
}
