//! Where runs are stepped. A step is plain computation: it folds, decides and evaluates whatever a tenant wrote, and it
//! cannot be interrupted. It therefore has threads of its own, and the workers that answer requests never wait for one.
//!
//! ```text
//!  request, timer, reply ──► task on the step threads ──► turn (fair between tenants) ──► note ──► step
//!                                                              │                            │
//!                                            at most half of the threads a tenant     read after a crash
//! ```
//!
//! A tenant that computes much while others work gives way: its steps rest now and then (`pace.rs`), and all such tenants
//! together have half of the places.

mod guard;
mod notes;
mod pace;
mod threads;
mod turns;
mod usage;
mod work;

pub use guard::BeforeStep;
pub(crate) use guard::{Stepping, cut_short, panic_text};
pub(crate) use notes::deaths;
pub use notes::{Noted, StepNotes};
pub(crate) use pace::breather;
pub use threads::StepThreads;
pub(crate) use threads::pass;
pub(crate) use turns::{Turn, Turns};
pub use work::{BeforeWork, Work, WorkKind};
