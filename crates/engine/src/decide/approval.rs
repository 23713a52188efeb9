//! Approval gates: one vote or a quorum, and what each action does.

use baton_model::event::{ApprovalAction, ApprovalAsked, ApprovalReceived, Outcome, Words};
use baton_model::{Draft, Event, Fault, NodeId, code};
use serde_json::{Map, Value, json};

use super::finish;
use super::human_answer::Answer;
use super::votes::{is_refinement, voter};
use crate::command::{Actor, Refusal, RefusalKind};
use crate::nodes::Done;
use crate::plan::{ApprovalGate, GenericInterrupt, Kind, Rejection};
use crate::state::RunState;

/// One answer to an approval, read and judged.
struct Vote {
    action: ApprovalAction,
    by: String,
    feedback: Option<String>,
    refine: Option<Value>,
    edited: Option<Value>,
}

pub(super) fn vote(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, at } = answer;
    let (Kind::ApprovalGate(gate) | Kind::Interrupt(GenericInterrupt::Approval(gate))) = &state.plan.nodes[node].kind
    else {
        return Err(Refusal::invalid("This node does not take approvals."));
    };
    let vote = read(gate, value, actor)?;
    if !gate.approvers.is_empty() && !gate.approvers.contains(&vote.by) {
        return Err(Refusal::new(
            RefusalKind::Forbidden,
            code::FORBIDDEN,
            format!("`{}` is not among the approvers of this gate.", vote.by),
        ));
    }
    let node_id = state.plan.nodes[node].id.clone();
    if vote.action == ApprovalAction::Ask {
        return Ok(vec![
            Event::from(ApprovalAsked {
                node_id,
                question: vote.feedback,
                asked_by: vote.by,
                private: Words::default(),
            })
            .into(),
        ]);
    }
    let mut votes = interrupt.votes.clone();
    votes.insert(vote.by.clone(), vote.action);
    let count = |wanted: &[ApprovalAction]| votes.values().filter(|action| wanted.contains(action)).count();
    let accepts = count(&[ApprovalAction::Accept, ApprovalAction::EditAccept]);
    let rejects = count(&[ApprovalAction::Reject]);
    let needed = gate.required as usize;
    let veto = match gate.rejection {
        Rejection::SingleVeto => 1,
        Rejection::Majority => needed / 2 + 1,
    };
    let by = if needed > 1 { format!("quorum:{accepts}-of-{needed}") } else { vote.by.clone() };
    let received = received(node_id, &vote);
    let outcome = if rejects >= veto {
        Outcome::Rejected
    } else if accepts >= needed {
        Outcome::Accepted
    } else if vote.action == ApprovalAction::Refine {
        Outcome::Answered
    } else {
        return Ok(vec![received]);
    };
    let mut drafts = answer.closes(Some(&by), outcome);
    drafts.push(received);
    let action = match outcome {
        Outcome::Rejected => ApprovalAction::Reject,
        _ => vote.action,
    };
    if outcome == Outcome::Rejected && !routed(state, node, "reject") {
        let fault = Fault::new(code::APPROVAL_REJECTED, "The approval was rejected.").with("decidedBy", by);
        drafts.extend(finish::fail(state, node, fault, at));
        return Ok(drafts);
    }
    drafts.extend(finish::complete(state, node, decided(action, &by, vote), at));
    Ok(drafts)
}

/// Whether the workflow has somewhere to go for this action.
fn routed(state: &RunState, node: usize, action: &str) -> bool {
    state.plan.nodes[node].outgoing.iter().any(|&edge| state.plan.edges[edge].output == action)
}

/// Silence takes the way of rejection, where the workflow has drawn one.
pub(super) fn routed_timeout(state: &RunState, node: usize) -> Option<Done> {
    let outputs = [("action".to_owned(), json!(ApprovalAction::Timeout))].into_iter().collect();
    routed(state, node, "reject").then(|| Done { outputs, port: Some("reject"), ..Done::default() })
}

fn decided(action: ApprovalAction, by: &str, vote: Vote) -> Done {
    let mut outputs: Map<String, Value> =
        [("action".to_owned(), json!(action)), ("decidedBy".to_owned(), json!(by))].into_iter().collect();
    for (name, value) in
        [("feedback", vote.feedback.map(Value::from)), ("refineFeedback", vote.refine), ("artifactData", vote.edited)]
    {
        if let Some(value) = value {
            outputs.insert(name.to_owned(), value);
        }
    }
    let port = match action {
        ApprovalAction::Accept => "accept",
        ApprovalAction::Reject | ApprovalAction::Timeout => "reject",
        ApprovalAction::Refine => "refine",
        ApprovalAction::EditAccept => "edit-accept",
        ApprovalAction::Ask => "ask",
    };
    Done { outputs, port: Some(port), ..Done::default() }
}

fn received(node_id: NodeId, vote: &Vote) -> Draft {
    Event::from(ApprovalReceived {
        node_id,
        action: vote.action,
        decided_by: Some(vote.by.clone()),
        feedback: vote.feedback.clone(),
        refine_feedback: vote.refine.clone(),
        edited_artifact_data: vote.edited.clone(),
        private: Words::default(),
    })
    .into()
}

fn read(gate: &ApprovalGate, value: &Value, actor: &Actor) -> Result<Vote, Refusal> {
    let Value::Object(body) = value else {
        return Err(Refusal::invalid("Answer with {\"action\": \"accept\"} or another of the offered actions."));
    };
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
    let feedback = text("feedback");
    let mut refine = body.get("refineFeedback").cloned();
    let action = match (body.get("action"), text("decision").as_deref()) {
        (Some(action), _) => serde_json::from_value(action.clone()).ok(),
        // The older vocabulary.
        (None, Some("approved")) => Some(ApprovalAction::Accept),
        (None, Some("rejected")) if feedback.is_some() => {
            refine = Some(json!({"scope": "whole", "text": feedback}));
            Some(ApprovalAction::Refine)
        }
        (None, Some("rejected")) => Some(ApprovalAction::Reject),
        (None, _) => None,
    };
    let offered = || json!(gate.actions);
    let action = action.filter(|action| gate.actions.contains(action)).ok_or_else(|| {
        let shown = serde_json::to_string(&gate.actions).unwrap_or_default();
        Refusal::invalid(format!("`action` must be one of {shown}.")).with("actions", offered())
    })?;
    let edited = body.get("editedArtifactData").cloned();
    match action {
        ApprovalAction::Refine if !refine.as_ref().is_some_and(is_refinement) => {
            return Err(Refusal::invalid(
                "`refine` needs `refineFeedback`: `scope` (whole, section or items), and perhaps `sectionPath`, `itemIds`, \
                 `tags` and `text`.",
            ));
        }
        ApprovalAction::EditAccept if edited.is_none() => {
            return Err(Refusal::invalid("`edit-accept` needs `editedArtifactData`."));
        }
        _ => {}
    }
    // A trusted caller may vote for somebody: the suite casts several votes with one key.
    Ok(Vote { action, by: voter(value, actor), feedback, refine: refine.filter(is_refinement), edited })
}
