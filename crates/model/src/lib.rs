//! The words of Baton: ids, time, workflow definitions, events, errors and views.
//!
//! Everything here is plain data. No clock, no IO, no async: whatever depends on the world enters as an argument in
//! the rings around this crate.

mod decision;
pub mod event;
mod fault;
pub mod id;
pub mod json;
mod limits;
mod principal;
mod record;
mod snapshot;
mod status;
mod time;
pub mod workflow;

pub use decision::Decision;
pub use event::Event;
pub use fault::{Fault, code};
pub use id::{EventId, NodeId, RunId, TenantId, WebhookId, WorkflowId};
pub use json::Digest;
pub use limits::Limits;
pub use principal::{Principal, Scope, Scopes};
pub use record::{Draft, Record};
pub use snapshot::{AgentRef, ChildRun, InterruptView, NodeStateView, Owner, RunSnapshot};
pub use status::{NodeStatus, RunStatus};
pub use time::Timestamp;
