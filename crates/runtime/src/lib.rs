//! The shell around the pure engine: run heads, effects, timers, recovery, interrupts, webhooks.
//!
//! Run ahead, reveal behind: a command is decided and folded in memory at once and its records are queued to the one
//! writer; whatever leaves the process waits for the commit it depends on.

mod api;
mod clock;
mod commits;
mod conformance;
mod drive;
mod error;
mod family;
mod host;
mod hub;
mod inner;
mod load;
mod options;
mod outbox;
mod plans;
mod project;
mod start;
mod timers;
mod token;
mod upkeep;
mod webhooks;
mod world;

pub use api::{
    EventLine, EventPage, Idempotent, Known, NewWebhook, PauseRun, PausedRun, Readiness, RegisteredWebhook,
    RegisteredWorkflow, Render, Resolved, StartRun, StartedRun, TokenView, Via,
};
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use error::{Error, Kind};
pub use host::Host;
pub use hub::Subscription;
pub use options::Options;
