//! What goes over the wire: the bodies of requests and replies, written once for the host and its clients.
//!
//! A request refuses members it does not know, so that nobody's spelling mistake is ignored in silence. A reply takes
//! them, so that an older client reads a newer host. Members that earlier hosts left out have a default here, and the
//! schema still says that they are always there. With the feature `schema` every type describes itself for OpenAPI;
//! the name there may be an older one, and what is written about a member is its description.

mod agent;
mod annotation;
mod error;
mod event;
mod forks;
mod interrupt;
mod memory;
mod newer_fields;
mod quarantine;
mod retention;
mod run;
mod run_list;
mod runner;
mod state;
mod step;
mod transfer;
mod webhook;
mod workflow;
mod workspace;

pub use agent::{Agent, AgentList, ChatMessage, RenderPrompt};
pub use annotation::{AnnotationList, NewAnnotation, Target};
pub use error::ErrorBody;
pub use event::{EventPage, RunEvent};
pub use forks::{
    Ancestry, DiffOp, EventDiff, Fork, ForkOverlay, ForkedRun, Parent, RunDiff, Verified, VerifiedDifference,
};
pub use interrupt::{Answer, Interrupt, Interrupts, ResolvedInterrupt};
pub use memory::{MemoryList, MemoryScope, MemoryScopes, NewMemory};
pub use newer_fields::NewerFields;
pub use quarantine::{QuarantineList, QuarantinedTree};
pub use retention::{BulkPrune, BulkPruneError, BulkPruned, BulkPrunedRun, RetentionDue, RetentionDueRun};
pub use run::{CancelledRun, PauseRun, PausedRun, PruneRun, PrunedRun, Reason, ResumedRun, StartRun, StartedRun};
pub use run_list::{RunList, RunListError, RunListItem};
pub use runner::{
    DispatchContext, DispatchFrame, NewRunnerToken, RegisterRunner, Runner, RunnerCapabilities, RunnerList,
    RunnerRegistered, RunnerReports, RunnerTokenEntry, RunnerTokenList, RunnerTokenMade, RunnerToolEntry, RunnerTools,
    RunnerWork, StepLease, StepName, StepReport, StepReportState, StepResult, StepResultError, StepResultOutcome,
    StepResultTaken, StepResults, StepResultsTaken,
};
pub use state::{RunSurroundings, StateAt, Surroundings};
pub use step::{KeepValue, StepToken, StepValue};
pub use transfer::{ExportFooter, ImportedRun};
pub use webhook::{
    DeadLetter, DeadLetterList, NewWebhook, Redelivery, Webhook, WebhookFailure, WebhookList, WebhookSecret,
};
pub use workflow::{Problem, WorkflowList, WorkflowVersion, WorkflowVersions};
pub use workspace::{FileChange, FileChanges, FileList, NewFile};
