//! Running ahead. A command is decided and folded under the run's lock, its records are pushed to the outbox in the
//! same breath, and what it means for other runs becomes messages that are delivered next. No run's lock is held while
//! that of another run that is at work is taken; a versioned store's comes second and the outbox's last.
//!
//! ```text
//!  command ──► step ──► fold ──► outbox ──► effects ──► timers, calls, remote_actions
//!                ▲                    └───► parent ─┐ │
//!                └───────── messages ◄──────────────┴─┘
//! ```

pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod caller;
pub(crate) mod charge;
pub(crate) mod commands;
pub(crate) mod effects;
pub(crate) mod evict;
pub(crate) mod eviction_queue;
pub(crate) mod first_row;
pub(crate) mod interrupt_link;
pub(crate) mod interrupts;
pub(crate) mod lead_over_disk;
pub(crate) mod live;
pub(crate) mod load;
pub(crate) mod memory_check;
pub(crate) mod message;
pub(crate) mod parent;
pub(crate) mod projections;
pub(crate) mod reads;
pub(crate) mod refusals;
pub(crate) mod requests;
pub(crate) mod requests_read;
pub(crate) mod router;
pub(crate) mod second_executor;
pub(crate) mod start;
pub(crate) mod start_barrier;
pub(crate) mod start_for_remote;
pub(crate) mod start_turn;
pub(crate) mod step;
pub(crate) mod stepper;
pub(crate) mod stored_reply;
pub(crate) mod summary;
pub(crate) mod tree;

pub(crate) use caller::{on_behalf, simulates};
pub(crate) use lead_over_disk::Ahead;
pub(crate) use parent::outcome;
pub(crate) use refusals::{disk_is_behind, refused};
pub use second_executor::SecondExecutor;
