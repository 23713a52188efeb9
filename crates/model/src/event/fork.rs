use serde::{Deserialize, Serialize};

use crate::{NodeId, RunId};

/// Somebody who may answer questions made a branch for real that rests on what people had answered before. That is
/// answering anew, so it is on the log: who, on what it rests, and what is otherwise than it was then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkApproved {
    pub source_run_id: RunId,
    pub from_seq: u64,
    /// The credential it was made with, by its opaque id.
    pub approved_by: String,
    pub rests_on: RestsOn,
    pub changed: ForkChanges,
}

/// The first thing found that makes a branch rest on somebody's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum RestsOn {
    /// A question was answered, or got a vote.
    Answer {
        run_id: RunId,
        node_id: NodeId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupt_id: Option<String>,
    },
    /// A question is open and shows the data of before.
    OpenQuestion { run_id: RunId, node_id: NodeId, interrupt_id: String },
    /// Some of it happened on another host, where questions may have been answered.
    OtherHost { run_id: RunId },
    /// It came with a file, which says of itself what was answered.
    Imported { run_id: RunId },
    /// The logs are gone, or more than a request looks through.
    Unknown,
}

/// Names of what a branch has otherwise than its source. The values are kept with the branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkChanges {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurable: Vec<String>,
}
