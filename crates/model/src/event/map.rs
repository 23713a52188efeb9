//! A node that does the same for each item of a list: what began, what ended and how, item by item. No record holds more
//! than its own item; the list is in the first, and the results are in the end of the node.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChildPlan, NodePlace};
use crate::tool::FoundTool;
use crate::{Fault, NodeId, RunId, Timestamp};

/// The list is known. The first of a map's records after the start of its node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapStarted {
    pub node_id: NodeId,
    /// How many items there are.
    pub count: u32,
    /// How many are worked on at once, at most.
    pub max_concurrency: u32,
    #[serde(skip)]
    pub private: MapStartedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapStartedFacts {
    pub items: Vec<Value>,
    /// The tool that is called for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<FoundTool>>,
}

/// A child run is wanted for an item. An item for which a tool is called begins with `agent.toolCalled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapItemStarted {
    pub node_id: NodeId,
    /// From 0.
    pub index: u32,
    pub attempt: u32,
    pub child_run_id: RunId,
    #[serde(skip)]
    pub private: MapItemStartedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapItemStartedFacts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildPlan>>,
}

/// An item is done, and is never worked on again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapItemCompleted {
    pub node_id: NodeId,
    pub index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<RunId>,
    #[serde(skip)]
    pub private: MapItemCompletedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapItemCompletedFacts {
    /// What the child made of it. What a tool made of it is on the record of its return.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How far the child had written the memory it shares with its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_memory: Option<u64>,
}

/// An item has failed for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapItemFailed {
    pub node_id: NodeId,
    pub index: u32,
    pub error: Fault,
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<RunId>,
    #[serde(skip)]
    pub private: NodePlace,
}

/// An item is tried again after a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapItemRetried {
    pub node_id: NodeId,
    pub index: u32,
    /// The attempt that follows.
    pub attempt: u32,
    pub delay_ms: u64,
    pub last_error: Fault,
    #[serde(skip)]
    pub private: MapItemRetriedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapItemRetriedFacts {
    pub place: NodePlace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Timestamp>,
}

/// No further item begins. The node fails of this once what is under way has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapStopping {
    pub node_id: NodeId,
    pub error: Fault,
    #[serde(skip)]
    pub private: NodePlace,
}
