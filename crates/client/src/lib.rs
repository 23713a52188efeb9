//! A typed client for a Baton host: every route the command line needs, and an event stream that survives lost
//! connections. It knows the wire, not the engine.
//!
//! TLS uses the process-wide rustls provider; install one before building a [`Client`].

mod client;
mod error;
mod routes;
mod sse;
mod stream;
mod types;

pub use client::Client;
pub use error::Error;
pub use stream::{EventStream, StreamMode};
pub use types::{
    CancelledRun, EventPage, Interrupt, Interrupts, PausedRun, Problem, Readiness, ResolvedInterrupt, ResumedRun,
    RunEvent, RunFilter, RunList, RunSummary, StartRun, StartedRun, SummaryError, WorkflowList, WorkflowSummary,
};
