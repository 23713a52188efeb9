//! What callers hand to the [`crate::Host`] and get back. Plain data; no HTTP, no storage rows.

use std::sync::Arc;

use baton_model::TraceContext;
use baton_model::event::{DivergenceKind, DrainPolicy};
use baton_model::{
    Digest, FileMeta, ForeignCause, ForkMode, InvocationSource, MemoryEntry, NodeId, RunId, RunSnapshot, RunStatus,
    SideEffects, Timestamp, Versions, WebhookId, WorkflowId,
};
use serde_json::{Map, Value};

/// A run to be started.
#[derive(Clone, Debug, Default)]
pub struct StartRun {
    pub workflow_id: String,
    pub inputs: Map<String, Value>,
    pub configurable: Map<String, Value>,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
    pub scope_id: Option<String>,
    /// The conversation that it is the next turn of. It names the memory scope, too.
    pub conversation: Option<String>,
    /// Refuse if a run of the same tenant and scope has not ended (`X-Dedup: enforce`).
    pub exclusive: bool,
    /// `X-Force-Engine-Version`; test keys only.
    pub force_engine_version: Option<i64>,
    /// `traceparent` and `tracestate`, handed on to whoever the run calls.
    pub trace: Option<TraceContext>,
    /// Through which door an agent is called, where the run is nothing but that agent.
    pub source: Option<InvocationSource>,
    /// The event on another host that asks for it. Such a run is made once per idempotency key, for ever.
    pub cause: Option<ForeignCause>,
    /// Whoever asks has taken it back: if it is not there yet, it is made as a cancelled run.
    pub withdrawn: bool,
    /// The version of its agents, where tests want another than the one that is installed; see `Host::unchecked`.
    pub card: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StartedRun {
    pub run_id: RunId,
    /// Never a terminal status, even if the run has already ended.
    pub status: RunStatus,
}

/// Turns an outcome into the status and body of its reply.
pub type Render<T> = Box<dyn FnOnce(&T) -> (u16, String) + Send>;

/// An `Idempotency-Key` in force: where the reply is kept, what was asked, and how to render the reply so that it
/// becomes durable in the same commit as the effect.
pub struct Idempotent<T> {
    pub key: Digest,
    pub request: Digest,
    pub render: Render<T>,
}

/// What is known about an idempotency key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyLookup {
    /// Nobody used it (or the reply expired).
    New,
    /// The stored reply to exactly this request.
    Replay { status: u16, body: String },
    /// The key was used for something else.
    Mismatch,
}

#[derive(Clone, Debug)]
pub struct PauseRun {
    pub reason: Option<String>,
    pub drain: DrainPolicy,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PausedRun {
    pub run_id: RunId,
    pub at: Timestamp,
}

/// An answer to an interrupt, and which one it is for. Without a name it is for a node's first question only: whoever
/// answers twice must not answer the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub value: Value,
    pub interrupt_id: Option<String>,
}

impl Answer {
    /// An answer to this question and no other.
    pub fn to(interrupt_id: impl Into<String>, value: Value) -> Self {
        Self { value, interrupt_id: Some(interrupt_id.into()) }
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self { value, interrupt_id: None }
    }
}

/// How an answer to an interrupt arrived.
#[derive(Clone, Debug)]
pub enum Via {
    /// An API key with `approvals:respond`; `subject` is the credential's opaque id.
    Bearer { subject: String },
    /// A signed link.
    Token,
}

/// What a signed interrupt link may be used for.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenView {
    pub run_id: RunId,
    pub node_id: NodeId,
    pub interrupt_id: String,
    pub kind: String,
    pub key: String,
    pub data: Value,
    pub resume_schema: Option<Value>,
    pub timeout_ms: Option<u64>,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub run_id: RunId,
    pub node_id: NodeId,
    pub status: RunStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredWorkflow {
    pub id: WorkflowId,
    pub version: u32,
    pub digest: Digest,
    pub name: String,
    /// False when this exact content was already the newest version.
    pub created: bool,
    pub registered_at: Timestamp,
}

/// One public event, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLine {
    pub seq: u64,
    pub kind: Arc<str>,
    /// The RunEvent as one line of JSON.
    pub body: String,
}

/// A segment of a run's log, and where the run stood when it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct EventPage {
    pub events: Vec<EventLine>,
    /// Status of the run at least as new as `events`; terminal only if `next_seq` covers the terminal event.
    pub status: RunStatus,
    /// The log's length when it was read.
    pub next_seq: u64,
}

/// A segment of a run's log with both faces, and where the run comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPage {
    pub origin: Option<baton_model::Origin>,
    pub records: Vec<baton_model::Record>,
}

impl EventPage {
    /// Whether the run has ended and this page reaches its last event.
    pub fn is_final(&self, after: Option<u64>) -> bool {
        self.status.is_terminal() && self.reaches_end(after)
    }

    /// Whether there was nothing behind this page when it was read. That it holds fewer events than were asked for says
    /// nothing: it may have been cut for its weight.
    pub fn reaches_end(&self, after: Option<u64>) -> bool {
        let last = self.events.last().map(|event| event.seq).or(after);
        last.map_or(0, |last| last.saturating_add(1)) >= self.next_seq
    }
}

/// Something to be remembered.
#[derive(Clone, Debug)]
pub struct NewMemory {
    pub content: String,
    pub tags: Vec<String>,
    pub ttl_ms: Option<u64>,
}

/// A file to be written.
#[derive(Clone, Debug)]
pub struct NewFile {
    pub path: String,
    pub content: String,
    pub content_type: Option<String>,
    /// Refuse unless the file is still this one.
    pub if_match: Option<String>,
}

/// One thing that happened to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileChange {
    pub path: String,
    /// The workspace's version after it.
    pub change: u64,
    pub at: Timestamp,
    pub run_id: Option<RunId>,
    /// What the file was then; none if it was deleted.
    pub file: Option<FileMeta>,
}

/// Memory and workspace of a run as of one of its records.
#[derive(Clone, Debug, PartialEq)]
pub struct Surroundings {
    pub versions: Versions,
    pub memory_scope: String,
    /// Newest first.
    pub memory: Vec<MemoryEntry>,
    /// By path.
    pub workspace: Vec<FileMeta>,
}

/// A run as of one of its records.
#[derive(Clone, Debug, PartialEq)]
pub struct StateAt {
    pub seq: u64,
    pub at: Timestamp,
    pub view: RunSnapshot,
    pub surroundings: Surroundings,
}

/// A fork to be made.
#[derive(Clone, Debug)]
pub struct ForkRun {
    pub mode: ForkMode,
    pub from_seq: u64,
    pub inputs: Map<String, Value>,
    pub variables: Map<String, Value>,
    pub configurable: Map<String, Value>,
    pub side_effects: SideEffects,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForkedRun {
    pub run_id: RunId,
    pub source_run_id: RunId,
    /// The first sequence that happens anew.
    pub from_seq: u64,
    /// The one that was asked for, where a branch begins before it.
    pub requested_from_seq: Option<u64>,
    pub mode: ForkMode,
}

/// What going through a log again has shown.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Records of the source that were gone through.
    pub events: u64,
    /// How many of them were decided anew; the others are what the world said.
    pub decided: u64,
    /// The first difference, if there is one: where, of what kind, and both events as JSON.
    pub difference: Option<VerifiedDifference>,
}

#[derive(Clone, Debug)]
pub struct VerifiedDifference {
    pub seq: u64,
    pub kind: DivergenceKind,
    pub original: Option<Value>,
    pub replayed: Option<Value>,
}

/// How two runs differ.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDiff {
    /// The first sequence where they do.
    pub diverged_at: Option<u64>,
    pub events: Vec<EventDiff>,
    pub state: Map<String, Value>,
    /// Only a beginning was compared.
    pub truncated: bool,
}

/// One place of two logs that differs; an event that is missing is on the other side only.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDiff {
    pub seq: u64,
    pub a: Option<Value>,
    pub b: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ancestry {
    pub run_id: RunId,
    pub host_id: String,
    pub parent: Option<Parent>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    pub run_id: RunId,
    pub host_id: String,
    /// The primitive that made the child.
    pub cause: String,
    /// Where the parent's host describes itself, if that is another one.
    pub well_known_url: Option<String>,
}

/// What pruning took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedTree {
    /// Runs that lost something they had.
    pub runs: usize,
    pub log: bool,
}

#[derive(Clone, Debug)]
pub struct NewWebhook {
    pub url: String,
    pub events: Vec<String>,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct RegisteredWebhook {
    pub id: WebhookId,
    pub secret: String,
    pub fingerprint: String,
}

/// Whether the host takes writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Readiness {
    pub ready: bool,
    /// Why not, for anybody: it names nothing that belongs to a tenant.
    pub reason: Option<String>,
    /// The same for whoever operates the host, with names.
    pub detail: Option<String>,
}
