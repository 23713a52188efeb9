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
mod memory;
mod routes;
mod runners;
mod stream;
mod transfer;
mod types;
mod webhooks;
mod workspace;

pub use baton_api::{
    Agent, AgentList, Ancestry, AnnotationList, Answer, BulkPrune, BulkPruneError, BulkPruned, BulkPrunedRun,
    CancelledRun, ChatMessage, DeadLetter, DeadLetterList, DiffOp, EventDiff, EventPage, ExportFooter, FileChange,
    FileChanges, FileList, Fork, ForkOverlay, ForkedRun, ImportedRun, Interrupt, Interrupts, MemoryList, MemoryScope,
    MemoryScopes, NewAnnotation, NewFile, NewMemory, NewWebhook, Parent, PauseRun, PausedRun, PrunedRun,
    QuarantineList, QuarantinedTree, Redelivery, RenderPrompt, ResolvedInterrupt, ResumedRun, RetentionDue,
    RetentionDueRun, RunDiff, RunEvent, RunList, RunListItem, StartRun, StartedRun, StateAt, Surroundings, Target,
    Verified, VerifiedDifference, Webhook, WebhookFailure, WebhookList, WebhookSecret, WorkflowList, WorkflowVersion,
    WorkflowVersions,
};

pub use baton_api::{
    DispatchContext, DispatchFrame, NewRunnerToken, RegisterRunner, Runner, RunnerCapabilities, RunnerList,
    RunnerRegistered, RunnerReports, RunnerTokenEntry, RunnerTokenList, RunnerTokenMade, RunnerToolEntry, RunnerTools,
    RunnerWork, StepLease, StepName, StepReport, StepReportState, StepResult, StepResultError, StepResultOutcome,
    StepResultTaken, StepResults, StepResultsTaken, StepToken,
};
pub use runners::{DispatchStream, Dispatched, RunnerClient};

pub use agents::{PromptList, RenderedPrompt, Tool};
pub use client::Client;
pub use error::Error;
pub use handover::Handover;
pub use stream::{EventStream, StreamMode};
pub use transfer::RunExport;
pub use types::{Readiness, RegisteredWorkflow, RunFilter};
