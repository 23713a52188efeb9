//! Forking a run, proving one, comparing two, and asking where one comes from.

use baton_model::event::DivergenceKind;
use baton_model::{ForkMode, RunStatus, SideEffects};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::routes::append;
use crate::{Client, Error};

/// A fork to be made.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fork {
    pub mode: ForkMode,
    /// The first sequence that happens again. A replay begins at 0 when this is absent; a branch must say. A branch may
    /// begin before it; [`ForkedRun`] says where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_seq: Option<u64>,
    /// Branches only.
    #[serde(rename = "runOptionsOverlay", skip_serializing_if = "ForkOverlay::is_empty")]
    pub overlay: ForkOverlay,
}

/// What a branch has otherwise than its source.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkOverlay {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub configurable: Map<String, Value>,
    /// `simulated` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_effects: Option<SideEffects>,
}

impl ForkOverlay {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkedRun {
    pub run_id: String,
    pub source_run_id: String,
    /// The first sequence that happens anew.
    pub from_seq: u64,
    /// The one that was asked for, where a branch begins before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_from_seq: Option<u64>,
    pub mode: ForkMode,
    pub status: RunStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_url: Option<String>,
}

/// What going through a log again has shown.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    pub run_id: String,
    /// Events of the log that were gone through.
    pub events: u64,
    /// How many of them were decided anew; the others are what the world said.
    pub decided: u64,
    pub equal: bool,
    /// The first difference, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<VerifiedDifference>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedDifference {
    pub seq: u64,
    pub kind: DivergenceKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Value>,
}

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunDiff {
    pub a: String,
    pub b: String,
    /// The first sequence where they do.
    pub diverged_at_seq: Option<u64>,
    pub event_diffs: Vec<EventDiff>,
    /// `{status: {a, b}, variables: {name: {a, b}}, …}`; empty if they stand the same.
    pub state_diff: Map<String, Value>,
    /// Only a beginning was compared: one of them has not ended, or there are too many differences.
    #[serde(default)]
    pub truncated: bool,
}

/// One place of two logs that differs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDiff {
    pub seq: u64,
    pub op: DiffOp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_event: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// Where a run comes from, one step up.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ancestry {
    pub run_id: String,
    pub host_id: String,
    /// None for a top-level run. The source of a fork is no parent.
    pub parent: Option<Parent>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    pub run_id: String,
    pub host_id: String,
    /// The primitive that made the child, e.g. `core.dispatch`.
    pub cause: String,
    /// Set when the parent is on another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well_known_url: Option<String>,
}

impl Client {
    /// Forks a run. The new run goes on by itself.
    pub async fn fork(&self, run: &str, fork: &Fork, idempotency_key: Option<&str>) -> Result<ForkedRun, Error> {
        self.post(self.url(&["v1", "runs", &format!("{run}:fork")]), fork, idempotency_key).await
    }

    pub async fn diff(&self, a: &str, b: &str) -> Result<RunDiff, Error> {
        let mut url = self.url(&["v1", "runs", &format!("{a}:diff")]);
        append(&mut url, [("against", Some(b.to_owned()))]);
        self.get(url).await
    }

    pub async fn ancestry(&self, run: &str) -> Result<Ancestry, Error> {
        self.get(self.url(&["v1", "runs", run, "ancestry"])).await
    }

    /// Goes through a run's log again on the host, without writing anything down.
    pub async fn verify(&self, run: &str) -> Result<Verified, Error> {
        self.post(self.url(&["v1", "host", "baton", "runs", run, "verify"]), &json!({}), None).await
    }

    /// Everything about a run that may leave the host, in one document, exactly as the host sent it.
    pub async fn debug_bundle(&self, run: &str) -> Result<Value, Error> {
        self.get(self.url(&["v1", "runs", run, "debug-bundle"])).await
    }
}
