//! Writes to what outlives a run: memory and workspace. All content-free; what was written is read elsewhere.

use serde::{Deserialize, Serialize};

use crate::NodeId;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryWritten {
    pub memory_ref: String,
    pub memory_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip)]
    pub private: VersionedStoreFacts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryDeleted {
    pub memory_ref: String,
    pub memory_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip)]
    pub private: VersionedStoreFacts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceUpdated {
    pub path: String,
    /// The file's own version.
    pub version: u64,
    #[serde(skip)]
    pub private: VersionedStoreFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedStoreFacts {
    /// The version of the versioned store that this write is.
    pub version: u64,
    /// The node that wrote, where the public payload has no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
}
