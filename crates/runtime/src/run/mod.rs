//! Running ahead. A command is decided and folded under the run's lock, its records are pushed to the outbox in the
//! same breath, and what it means for other runs becomes messages that are delivered next. No run's lock is held while
//! that of another run that is at work is taken; a ledger's comes second and the outbox's last.
//!
//! ```text
//!  command ──► step ──► fold ──► outbox ──► effects ──► timers, calls, mandates
//!                ▲                    └───► parent ─┐ │
//!                └───────── messages ◄──────────────┴─┘
//! ```

mod ahead;
mod apply;
mod caller;
mod effects;
pub(crate) mod interrupt_link;
pub(crate) mod load;
mod parent;
pub(crate) mod project;
mod refusals;
mod router;
mod second_executor;
pub(crate) mod start;
pub(crate) mod start_barrier;
pub(crate) mod start_for_remote;
mod step;
pub(crate) mod summary;
mod until_durable;
pub(crate) mod world;

pub(crate) use ahead::Ahead;
pub(crate) use apply::Batch;
pub(crate) use caller::{on_behalf, simulates};
pub(crate) use parent::outcome;
pub(crate) use refusals::refused;
pub(crate) use router::Message;
pub use second_executor::SecondExecutor;
