//! The shell around the pure engine: run heads, effects, timers, recovery, interrupts, webhooks.
//!
//! Run ahead, reveal behind: a command is decided and folded in memory at once and its records are queued to the one
//! writer; whatever leaves the process waits for the commit it depends on.

mod agents;
mod api;
mod budgets;
mod canary;
mod clock;
mod commits;
mod conformance;
mod connections;
mod conversations;
mod drive;
mod error;
mod faces;
mod family;
mod fork;
mod handed_over;
mod host;
mod hub;
mod inner;
mod ledgers;
mod lineage;
mod load;
mod models;
mod observe;
mod options;
mod outbox;
mod plans;
mod progress;
mod project;
mod quarantine;
mod recovery;
mod remote;
mod replay;
mod shared;
mod start;
mod starting;
mod steps;
mod summary;
mod tasks;
mod timers;
mod token;
mod tools;
mod transfer;
mod upkeep;
mod vitals;
mod watchdog;
mod webhooks;
mod world;

pub use agents::{ModelTable, Roster};
pub use api::{
    Ancestry, Answer, EventDiff, EventLine, EventPage, FileChange, ForkRun, ForkedRun, Idempotent, Known, LogPage,
    NewFile, NewMemory, NewWebhook, Parent, PauseRun, PausedRun, PrunedTree, Readiness, RegisteredWebhook,
    RegisteredWorkflow, Render, Resolved, RunDiff, StartRun, StartedRun, StateAt, Surroundings, TokenView, Verified,
    VerifiedDifference, Via,
};
pub use baton_engine::{UNKNOWN_EFFECT, acceptor, node_types};
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use conformance::{CONFORMANCE_AGENT, CONFORMANCE_STRICT_AGENT};
pub use conversations::{ConversationView, TurnView};
pub use error::{Error, Kind};
pub use host::{Host, ModelRoute, NewAnnotation};
pub use hub::{Activity, Annotated, News, Subscription};
pub use models::Models;
pub use observe::{Caller, Follower, Observer};
pub use options::Options;
pub use remote::{Accepted, End, Handover, RemoteFault, RemoteHost, Remotes, Sighting};
pub use shared::{Sharing, key_of_letter, letter_matters};
pub use steps::{BeforeStep, BeforeWork, Noted, StepNotes, StepThreads, Work, WorkKind};
pub use transfer::{Export, Import, Imported, Transferred};
pub use vitals::{Condition, Held, Recovery};
pub use watchdog::Watchdog;
pub use webhooks::{DeadLetterBounds, LetterView, WebhookState, WebhookView};
