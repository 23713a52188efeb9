//! Forking a run, proving one, comparing two, and where one comes from.

use baton_model::event::DivergenceKind;
use baton_model::{ForkMode, RunId, RunStatus, SideEffects};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

// `mode` and `fromSeq` are taken as they come: the host's own words say better what is wrong with them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fork {
    /// `replay` or `branch`.
    pub mode: String,
    /// The first sequence to execute again; 0 when absent, which only a replay may.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub from_seq: Option<Value>,
    /// Branches only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_options_overlay: Option<ForkOverlay>,
}

impl Fork {
    pub fn new(mode: ForkMode, from_seq: Option<u64>, overlay: ForkOverlay) -> Self {
        let run_options_overlay = (overlay != ForkOverlay::default()).then_some(overlay);
        Self { mode: mode.as_str().to_owned(), from_seq: from_seq.map(Value::from), run_options_overlay }
    }
}

/// What a branch has otherwise than its source. Unknown members are refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ForkOverlay {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    /// `simulated` (the default) or `real`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub side_effects: Option<SideEffects>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Forked))]
pub struct ForkedRun {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub source_run_id: RunId,
    /// The first sequence that happens anew.
    pub from_seq: u64,
    /// The one that was asked for, where a branch begins before it: inside a step, or while a child was under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_from_seq: Option<u64>,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub mode: ForkMode,
    /// Always `pending`: the fork goes on by itself.
    pub status: RunStatus,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub events_url: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub status_url: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Verification))]
pub struct Verified {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// Events that were gone through.
    pub events: u64,
    /// How many of them were decided anew; the others are what the world said.
    pub decided: u64,
    pub equal: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<VerifiedDifference>,
}

/// The first thing that came out otherwise.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = FoundDifference))]
pub struct VerifiedDifference {
    pub seq: u64,
    /// `output`, `missing`, `extra` or `type-mismatch`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub kind: DivergenceKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub original: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub replayed: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Diff))]
pub struct RunDiff {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub a: RunId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub b: RunId,
    /// The first sequence where they differ; null if they do not.
    #[cfg_attr(feature = "schema", schema(required))]
    pub diverged_at_seq: Option<u64>,
    pub event_diffs: Vec<EventDiff>,
    /// `{status: {a, b}, variables: {name: {a, b}}, …}`; empty if they stand the same.
    pub state_diff: Map<String, Value>,
    /// Only a beginning was compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DiffEntry))]
pub struct EventDiff {
    pub seq: u64,
    /// `added` (only in b), `removed` (only in a) or `changed`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub op: DiffOp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub a_event: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub b_event: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffOp {
    /// Only `b` has it.
    Added,
    /// Only `a` has it.
    Removed,
    Changed,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ancestry {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    /// This host, as discovery names it.
    pub host_id: String,
    /// Null for a top-level run. The source of a fork is no parent.
    #[cfg_attr(feature = "schema", schema(required))]
    pub parent: Option<Parent>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Parent {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub host_id: String,
    /// `core.subWorkflow` or `core.dispatch`.
    pub cause: String,
    /// Where the parent's host describes itself. Absent when that is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well_known_url: Option<String>,
}
