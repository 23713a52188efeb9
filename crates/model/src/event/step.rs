//! What a program of a user's own keeps under the step that it has in hand.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::NodeId;

/// A value was kept under a key. The first one counts for as long as the step lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepMemo {
    pub node_id: NodeId,
    pub call_id: String,
    pub tool_name: String,
    pub key: String,
    /// How large the value is.
    pub bytes: u64,
    #[serde(skip)]
    pub private: StepMemoFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepMemoFacts {
    /// The key, where the public part hides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub value: Value,
}

impl StepMemo {
    pub fn real_key(&self) -> &str {
        self.private.key.as_deref().unwrap_or(&self.key)
    }
}
