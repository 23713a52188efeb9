//! A typed client for a Baton host: every route the command line needs, and an event stream that survives lost
//! connections. It knows the wire, not the engine.
//!
//! TLS uses the process-wide rustls provider; install one before building a [`Client`].

mod agents;
mod annotations;
mod client;
mod error;
mod handover;
mod history;
mod lineage;
mod memory;
mod routes;
mod stream;
mod transfer;
mod types;
mod webhooks;
mod workspace;

pub use agents::{Agent, AgentList, ChatMessage, PromptList, RenderPrompt, RenderedPrompt, Tool};
pub use annotations::{AnnotationList, NewAnnotation};
pub use client::Client;
pub use error::Error;
pub use handover::Handover;
pub use history::{PrunedRun, StateAt};
pub use lineage::{
    Ancestry, DiffOp, EventDiff, Fork, ForkOverlay, ForkedRun, Parent, RunDiff, Verified, VerifiedDifference,
};
pub use memory::{MemoryList, MemoryScope, MemoryScopes, NewMemory};
pub use stream::{EventStream, StreamMode};
pub use transfer::{ExportFooter, ImportedRun, RunExport};
pub use types::{
    CancelledRun, EventPage, Interrupt, Interrupts, PausedRun, Problem, QuarantineList, Readiness, ResolvedInterrupt,
    ResumedRun, RunEvent, RunFilter, RunList, RunSummary, RunTarget, StartRun, StartedRun, SummaryError, WorkflowList,
    WorkflowSummary, WorkflowVersions,
};
pub use webhooks::{
    DeadLetter, DeadLetterList, NewWebhook, Redelivery, Webhook, WebhookFailure, WebhookList, WebhookSecret,
};
pub use workspace::{FileChange, FileChanges, FileList, NewFile};
