//! Rows that are not the log: projections written in the same transaction as the records they follow from, and the
//! few things that have no log of their own.

use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Digest, NodeId, Origin, RunId, RunStatus, TenantId, Timestamp, WebhookId, WorkflowId};
use serde_json::Value;

use crate::WebhookChange;
use crate::checksum::LogChain;

/// A run as lists and schedulers see it: a projection of its log, never ahead of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    pub id: RunId,
    pub tenant: TenantId,
    pub workflow: WorkflowId,
    pub digest: Digest,
    pub status: RunStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// How many records the log has; the next one gets this sequence.
    pub next_seq: u64,
    /// When the run next has something to do by itself, if it does.
    pub wake_at: Option<Timestamp>,
    /// A restart must look at this run: it has work that no timer and no human will bring back.
    pub busy: bool,
    pub parent: Option<RunId>,
    /// The top of the tree this run descends from; none for a top-level run.
    pub root: Option<RunId>,
    pub scope: Option<String>,
    pub tags: Vec<String>,
    pub current_node: Option<NodeId>,
    pub error_code: Option<String>,
    /// The memory scope the run reads and writes.
    pub memory_scope: String,
    /// The workspace the run reads and writes.
    pub workspace_scope: String,
    /// Where a fork comes from. Its log begins at the fork point; what came before is the source's.
    pub origin: Option<Origin>,
    /// Set once something of the run was dropped for good.
    pub pruned: Option<Pruned>,
    /// What lists say of the run beyond its columns: a [`baton_model::RunSummary`] as JSON, encoded by whoever changes
    /// it. None where there is nothing to say.
    pub summary: Option<Arc<str>>,
    /// The checksums of its log, as far as this row goes.
    pub chain: LogChain,
}

impl RunRow {
    /// Its memory scope where somebody named one, as stores keep it; empty where it follows from the rest of the row.
    pub fn named_memory_scope(&self) -> &str {
        if self.memory_scope == self.default_memory_scope() { "" } else { &self.memory_scope }
    }

    /// The same of its workspace.
    pub fn named_workspace_scope(&self) -> &str {
        if self.workspace_scope == DEFAULT_WORKSPACE { "" } else { &self.workspace_scope }
    }

    /// The row with the scopes that stores kept.
    #[must_use]
    pub fn with_scopes(mut self, memory: String, workspace: String) -> Self {
        self.memory_scope = if memory.is_empty() { self.default_memory_scope().to_owned() } else { memory };
        self.workspace_scope = if workspace.is_empty() { DEFAULT_WORKSPACE.to_owned() } else { workspace };
        self
    }

    fn default_memory_scope(&self) -> &str {
        let inherited = self.scope.as_deref().or(self.root.as_ref().map(RunId::as_str));
        inherited.unwrap_or(self.id.as_str())
    }
}

/// What retention has taken from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub at: Timestamp,
    /// The log is gone too; otherwise only what memory and workspace looked like.
    pub log: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFilter {
    pub tenant: Option<TenantId>,
    pub status: Vec<RunStatus>,
    pub workflow: Option<WorkflowId>,
    pub tag: Option<String>,
    pub parent: Option<RunId>,
    /// Every descendant of this top-level run.
    pub root: Option<RunId>,
    pub id_prefix: Option<String>,
    /// One of these; any where there are none.
    pub ids: Vec<RunId>,
    /// Both ends are included.
    pub created_from: Option<Timestamp>,
    pub created_until: Option<Timestamp>,
    /// Both ends are included.
    pub updated_from: Option<Timestamp>,
    pub updated_until: Option<Timestamp>,
    /// Whether the summary says so.
    pub diverged: Option<bool>,
    pub over_budget: Option<bool>,
    /// Whose own models have cost at least this much.
    pub cost_usd_from: Option<f64>,
    /// The beginning of the run's id, or of its workflow's.
    pub text_prefix: Option<String>,
    /// Without a parent.
    pub top_level: bool,
    /// What the previous page said.
    pub cursor: Option<RunPlace>,
    pub limit: usize,
}

/// Where a run is in lists, which go from the newest to the oldest. The position, which is its alone, parts those that were
/// created in the same microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunPlace {
    pub created_at: Timestamp,
    pub position: u64,
}

impl RunPlace {
    /// Before all that there are.
    pub const NEWEST: Self = Self { created_at: Timestamp::from_micros(i64::MAX), position: i64::MAX.unsigned_abs() };
}

/// How many trees of runs have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveTrees {
    /// Whose top-level run waits for an answer.
    pub waiting: u64,
    /// All others.
    pub running: u64,
}

impl ActiveTrees {
    /// Adds so many top-level runs of this status.
    pub fn add(&mut self, status: RunStatus, count: u64) {
        match status {
            ended if ended.is_terminal() => {}
            waiting if waiting.is_waiting() => self.waiting += count,
            _ => self.running += count,
        }
    }
}

/// A top-level run whose log is there, and what its tree holds: what retention goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptTree {
    pub place: RunPlace,
    pub id: RunId,
    pub workflow: WorkflowId,
    pub status: RunStatus,
    pub updated_at: Timestamp,
    /// With the top.
    pub runs: u64,
    /// Records of all of them.
    pub records: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Page<T, P = u64> {
    pub items: Vec<T>,
    /// Where the next page starts; `None` when this is the last. A page of runs may be short, or empty, and not be the
    /// last: see [`crate::run_list::LOOKED_AT`].
    pub next: Option<P>,
}

/// An open question to a human or another system.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptRow {
    pub run: RunId,
    pub tenant: TenantId,
    pub workflow: WorkflowId,
    pub node: NodeId,
    pub interrupt_id: String,
    pub key: String,
    pub kind: String,
    pub data: Value,
    pub requested_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterruptFilter {
    pub tenant: Option<TenantId>,
    pub run: Option<RunId>,
    pub kind: Option<String>,
    pub limit: usize,
}

/// One registered version of a workflow. The definition itself is the blob named by `digest`.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowVersion {
    pub tenant: TenantId,
    pub id: WorkflowId,
    /// 1, 2, 3, … per workflow and tenant.
    pub version: u32,
    pub digest: Digest,
    pub name: String,
    pub created_at: Timestamp,
}

/// The stored answer to an idempotent request.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Hash of tenant, operation and the caller's key; the raw key is never stored.
    pub key: Digest,
    /// Digest of what was asked: another question under the same key is refused.
    pub request: Digest,
    pub status: u16,
    pub body: String,
    pub expires_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookStatus {
    Active,
    /// Too many failures: not called until this instant, then probed once.
    Open,
    /// Given up: not called until somebody resumes it. What it would have got becomes dead letters.
    Failed,
}

impl WebhookStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Open => "open",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Open, Self::Failed].into_iter().find(|status| status.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    pub id: WebhookId,
    pub tenant: TenantId,
    pub url: String,
    /// Event type names; `*` matches all.
    pub events: Vec<String>,
    pub tags: Vec<String>,
    pub secret: String,
    pub status: WebhookStatus,
    pub consecutive_failures: u32,
    /// Failures since `window_start`, for the seven-day rule.
    pub failures: u32,
    pub window_start: Timestamp,
    pub open_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub last_failure: Option<LastFailure>,
    /// How many dead letters were let go because there were too many.
    pub letters_dropped: u64,
}

/// The last call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastFailure {
    pub at: Timestamp,
    /// What was answered, if anything was.
    pub status: Option<u16>,
}

/// How a call of a subscriber ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Succeeded,
    Failed { at: Timestamp, status: Option<u16>, policy: FailurePolicy },
}

/// How many failures are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailurePolicy {
    /// This many in a row open the circuit, for so long.
    pub opens_at: u32,
    pub open_ms: u64,
    /// This many within a window are too many: it is given up. The first failure after it begins the next.
    pub gives_up_at: u32,
    pub window_ms: u64,
}

impl Webhook {
    /// Takes note of a call. False if there was nothing to note. One that was given up stays so until it is resumed.
    pub fn note(&mut self, attempt: &Attempt) -> bool {
        if self.status == WebhookStatus::Failed {
            return false;
        }
        match attempt {
            Attempt::Succeeded => {
                if self.status == WebhookStatus::Active && self.consecutive_failures == 0 {
                    return false;
                }
                (self.status, self.consecutive_failures, self.open_until) = (WebhookStatus::Active, 0, None);
            }
            Attempt::Failed { at, status, policy } => {
                self.last_failure = Some(LastFailure { at: *at, status: *status });
                if at.millis_since(self.window_start) >= policy.window_ms {
                    (self.window_start, self.failures) = (*at, 0);
                }
                self.failures = self.failures.saturating_add(1);
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
                if self.failures >= policy.gives_up_at {
                    (self.status, self.open_until) = (WebhookStatus::Failed, None);
                } else if self.consecutive_failures >= policy.opens_at {
                    (self.status, self.open_until) = (WebhookStatus::Open, Some(at.plus_millis(policy.open_ms)));
                }
            }
        }
        true
    }

    /// Takes in what its owner changed.
    pub fn change(&mut self, change: &WebhookChange) {
        match change {
            WebhookChange::Resumed { at } => {
                (self.status, self.open_until, self.window_start) = (WebhookStatus::Active, None, *at);
                (self.consecutive_failures, self.failures) = (0, 0);
            }
            WebhookChange::Secret(secret) => self.secret.clone_from(secret),
        }
    }
}

/// One event on its way to one subscriber.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub webhook: WebhookId,
    pub run: RunId,
    pub seq: u64,
    pub attempts: u32,
    pub due_at: Timestamp,
}

/// What a store holds, in round numbers: reading it must cost next to nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// `sqlite`, `memory`, …; empty where the store does not say.
    pub kind: &'static str,
    /// All of it, as it lies on disk.
    pub bytes: Option<u64>,
    pub classes: Vec<UsageClass>,
}

/// A class of what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageClass {
    pub class: &'static str,
    /// About how much: counted where that is cheap, otherwise judged by the newest.
    pub bytes: u64,
    pub count: u64,
}
