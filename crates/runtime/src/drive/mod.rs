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
mod effects;
mod fold;
mod insist;
mod messages;
mod on_behalf;
mod parent;
mod race;
mod refused;
mod step;

pub(crate) use ahead::Ahead;
pub(crate) use fold::Batch;
pub(crate) use messages::Message;
pub(crate) use on_behalf::{on_behalf, simulates};
pub(crate) use parent::outcome;
pub(crate) use refused::refused;
