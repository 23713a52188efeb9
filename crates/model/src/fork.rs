use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Budget, Digest, ModelPins, Owner, RunId, Timestamp, Versions, WorkflowId};

/// What a fork is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForkMode {
    /// Proves: what the engine decided is decided again, what the world said is taken as it stands.
    Replay,
    /// Goes its own way from there.
    Branch,
}

impl ForkMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Branch => "branch",
        }
    }
}

/// Where a fork comes from. Everything before `seq` is the source's log, shared and not copied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub source: RunId,
    pub seq: u64,
    /// The point that was asked for, where a branch begins before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
    pub mode: ForkMode,
    pub at: Timestamp,
    /// When the source stood there: what had an hour left then has an hour left at `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<Timestamp>,
    /// How long the source's log was when a replay of it was asked for; what came later is not its matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// How far memory and workspace had been written at the fork point.
    #[serde(default, skip_serializing_if = "Versions::is_zero")]
    pub versions: Versions,
    #[serde(default, skip_serializing_if = "Overlay::is_empty")]
    pub overlay: Overlay,
    /// What a branch does about calls that would change the world.
    #[serde(default)]
    pub side_effects: SideEffects,
    /// Which versions of its workers a branch starts. Older branches start the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Box<WorkerVersions>>,
}

/// Which versions of other workflows a branch, and everything below it, starts as children: what its source used, else
/// the newest that there was when the branch was made. So a branch differs from its source by what was changed, and not
/// by what somebody has registered since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerVersions {
    pub as_of: Timestamp,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<WorkflowId, Digest>,
}

/// What a branch has otherwise than its source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overlay {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    /// Whose it is, where the log it begins with names somebody whom nobody here vouches for: it came with a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The bounds that follow from `configurable`, and what the host allows where the source was allowed more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_loop_iterations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_node_executions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fan_out: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<Budget>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_threshold: Option<f64>,
    /// The host's floor for decisions, where the source's lay lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_floor: Option<f64>,
    /// The tools its agents may have at most: never more than the source's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_grant: Option<Vec<String>>,
    /// The scopes its tools are called with: those of the source that whoever made the branch holds too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_scopes: Option<Vec<String>>,
    /// What the models can do that the branch may ask otherwise than its source.
    #[serde(skip_serializing_if = "ModelPins::is_empty")]
    pub models: ModelPins,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SideEffects {
    /// The recorded outcome where there is one, else the declared stub, else the node fails.
    #[default]
    Simulated,
    Real,
}
