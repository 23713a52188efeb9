use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workflow::Reducer;
use crate::{NodeId, RunId, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelWritten {
    pub channel: String,
    /// What was written, not what the channel then held.
    pub value: Value,
    pub reducer: Reducer,
    pub written_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
    #[serde(skip)]
    pub private: ChannelWrittenFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelWrittenFacts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<usize>,
    /// The real value when the channel is sensitive.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VariableChanged {
    pub name: String,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub previous: Option<Value>,
    pub next: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip)]
    pub private: VariableChangedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableChangedFacts {
    /// The real value when the variable is sensitive.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputChunk {
    pub node_id: NodeId,
    pub run_id: RunId,
    pub chunk: String,
    pub is_last: bool,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}
