//! What answers to approvals have in common: who says it, which words there are, and how it is recorded.

use baton_model::event::{ApprovalAction, ApprovalReceived, Words};
use baton_model::{Draft, Event, NodeId};
use serde_json::Value;

use crate::command::Actor;

/// To approve something else in its place. `approval.requested` offers it by its older name, so that counts too.
pub(super) const EDIT_ACCEPT: &str = "edit-accept";

pub(super) const EDIT: &str = "edit";

/// Whose vote this is.
pub(super) fn voter(value: &Value, actor: &Actor) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match &actor.subject {
        Some(subject) => text("voter").or_else(|| text("decidedBy")).unwrap_or_else(|| subject.clone()),
        // Whoever holds a link is not known, so it cannot speak for anybody.
        None => "link".to_owned(),
    }
}

pub(super) fn is_refinement(value: &Value) -> bool {
    let absent_or = |key: &str, fits: fn(&Value) -> bool| value.get(key).is_none_or(fits);
    let texts = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    value.get("scope").and_then(Value::as_str).is_some_and(|scope| ["whole", "section", "items"].contains(&scope))
        && absent_or("sectionPath", Value::is_string)
        && absent_or("itemIds", texts)
        && absent_or("tags", texts)
        && absent_or("text", Value::is_string)
}

pub(super) fn timed_out(node_id: NodeId) -> Draft {
    Event::from(ApprovalReceived {
        node_id,
        action: ApprovalAction::Timeout,
        decided_by: None,
        feedback: None,
        refine_feedback: None,
        edited_artifact_data: None,
        private: Words::default(),
    })
    .into()
}

/// An answer to a held decision or a merge, for the record.
pub(super) fn decision_received(node_id: NodeId, action: ApprovalAction, by: &str, value: &Value) -> Draft {
    Event::from(ApprovalReceived {
        node_id,
        action,
        decided_by: Some(by.to_owned()),
        feedback: value.get("feedback").and_then(Value::as_str).map(str::to_owned),
        refine_feedback: value.get("refineFeedback").filter(|feedback| is_refinement(feedback)).cloned(),
        edited_artifact_data: value.get("editedArtifactData").cloned(),
        private: Words::default(),
    })
    .into()
}
