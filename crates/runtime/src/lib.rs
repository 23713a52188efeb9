//! What happens around the pure engine: live runs, effects, timers, recovery, interrupts, webhooks.
//!
//! Run ahead, reveal behind: a command is decided and folded in memory at once and its records are queued to the one
//! writer; whatever leaves the process waits for the commit it depends on.

mod api;
mod canary;
mod clock;
mod cluster;
mod error;
mod health;
mod history;
mod host;
mod journal;
mod keyed_locks;
mod options;
mod panics;
mod ports;
mod quarantine;
mod recovery;
mod retention_rules;
mod run;
mod services;
mod steady_clock;
mod steps;
mod tasks;
mod test_hooks;
mod tree_limits;
mod watch;
mod watchdog;
mod work_limits;

pub use api::{
    Ancestry, Answer, EventDiff, EventLine, EventPage, FileChange, ForkRun, ForkedRun, Idempotent, KeyLookup, LogPage,
    NewFile, NewMemory, NewWebhook, Parent, PauseRun, PausedRun, PrunedTree, Readiness, RegisteredWebhook,
    RegisteredWorkflow, Render, Resolved, RunDiff, StartRun, StartedRun, StateAt, Surroundings, TokenView, Verified,
    VerifiedDifference, Via,
};
pub use baton_engine::{UNKNOWN_EFFECT, acceptor, node_types};
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use cluster::sharing::Sharing;
pub use cluster::{forwarded_matters, key_of_forwarded};
pub use error::{Error, ErrorKind};
pub use health::{HostStatus, Recovery, StorageUsage};
pub use history::transfer::{Export, Import, Imported, Transferred};
pub use host::{Host, ModelRoute};
pub use options::Options;
pub use retention_rules::{RETENTION_WINDOW_MS, RetentionPolicy, RetentionReason, RetentionRule};
pub use run::SecondExecutor;
pub use services::agents::{AgentRegistry, ModelTable};
pub use services::annotations::NewAnnotation;
pub use services::children::remote::{
    Accepted, RemoteFault, RemoteHost, RemoteRunRequest, RemoteRunResult, RemoteRunStatus, Remotes,
};
pub use services::conversations::{ConversationView, TurnView};
pub use services::models::Models;
pub use services::notifications::{Activity, Annotated, RunActivity, Subscription};
pub use services::observer::{Caller, Follower, Observer};
pub use services::retention_pass::{DueTree, RetentionReport};
pub use services::runners::{
    DispatchContext, DispatchFrame, NewToken, OutsideStep, ReportedState, ResultFrame, RunnerBearer,
    RunnerCapabilities, RunnerOwner, RunnerRegistration, RunnerReport, RunnerReports, RunnerStream, RunnerToken,
    RunnerToolListing, RunnerTools, RunnerView, RunnerWork, StepClaims, StepLease, StepName, StepToken, Told,
};
pub use services::step_gateway::{KeptValue, StepQuestion, StepReply};
pub use services::webhooks::{
    DeadLetterBounds, DeadLetterView, SignedDelivery, WebhookCarrier, WebhookState, WebhookView,
};
pub use steps::{BeforeStep, BeforeWork, Noted, StepNotes, StepThreads, Work, WorkKind};
pub use test_hooks::{Note, Readback, TestEquipment, TestHooks};
pub use tree_limits::TreeLimits;
pub use watch::Watchdog;
pub use work_limits::WorkLimits;
