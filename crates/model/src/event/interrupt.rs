use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{NodeId, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptRequested {
    pub kind: String,
    /// Unique per visit of the node; the same key never asks twice.
    pub key: String,
    /// What an answer names it by. Runs of engine rules before 4 say it in `node.suspended` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_id: Option<String>,
    pub data: Value,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub resume_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(skip)]
    pub private: InterruptRequestedFacts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptRequestedFacts {
    pub node_id: NodeId,
    pub interrupt_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The gate refuses signed links; only a bearer key may answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bearer_only: bool,
    /// What the question is about, where the question itself may not show it.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Value>,
    /// A model asks, and nobody vouches for what it says. Older logs do not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl Default for InterruptRequestedFacts {
    fn default() -> Self {
        Self {
            node_id: NodeId::new(""),
            interrupt_id: String::new(),
            expires_at: None,
            bearer_only: false,
            hidden: None,
            untrusted: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Accepted,
    Rejected,
    Answered,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptResolved {
    pub node_id: NodeId,
    pub interrupt_id: String,
    pub kind: String,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub resume_value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip)]
    pub private: InterruptResolvedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptResolvedFacts {
    /// What a human wants changed: the supervisor takes its turn again, with this as an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refine: Option<Value>,
    /// Somebody outside answered, and nobody vouches for what they say. Older logs do not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// Whose words an event holds, where it has nothing else to keep to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// A model or somebody outside said them, and nobody vouches for them. Older logs do not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalAction {
    Accept,
    Reject,
    Refine,
    /// `edit` is the older spelling.
    #[serde(alias = "edit")]
    EditAccept,
    Ask,
    Timeout,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequested {
    pub node_id: NodeId,
    pub interrupt_id: String,
    pub artifact_id: String,
    pub artifact_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(serialize_with = "in_older_words")]
    pub actions: Vec<ApprovalAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_approvals: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers_list: Option<Vec<String>>,
}

/// This event is kept for older clients, which know `edit-accept` as `edit`.
fn in_older_words<S: serde::Serializer>(actions: &[ApprovalAction], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Word<'a> {
        Older(&'static str),
        Same(&'a ApprovalAction),
    }
    serializer.collect_seq(actions.iter().map(|action| match action {
        ApprovalAction::EditAccept => Word::Older("edit"),
        same => Word::Same(same),
    }))
}

/// An approver asked back; the gate keeps waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAsked {
    pub node_id: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    pub asked_by: String,
    #[serde(skip)]
    pub private: Words,
}

/// One vote, or the decision itself when one vote suffices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalReceived {
    pub node_id: NodeId,
    pub action: ApprovalAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub refine_feedback: Option<Value>,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub edited_artifact_data: Option<Value>,
    #[serde(skip)]
    pub private: Words,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClarificationRequested {
    pub node_id: NodeId,
    pub interrupt_id: String,
    pub questions: Vec<Value>,
    #[serde(skip)]
    pub private: Words,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClarificationResolved {
    pub node_id: NodeId,
    pub answers: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    #[serde(skip)]
    pub private: Words,
}
