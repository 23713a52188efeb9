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
//! together have half of the places. One that evaluates more than its share of a second waits (`evaluation.rs`).

pub(crate) mod before_step;
pub(crate) mod evaluation;
pub(crate) mod notes;
pub(crate) mod pace;
pub(crate) mod pool;
pub(crate) mod threads;
pub(crate) mod turns;
pub(crate) mod usage;
pub(crate) mod work;

pub use before_step::BeforeStep;
pub(crate) use notes::deaths;
pub use notes::{Noted, StepNotes};
pub(crate) use pace::breather;
pub(crate) use pool::{StepPool, Stepping};
pub use threads::StepThreads;
pub(crate) use threads::pass;
pub(crate) use turns::{Turn, Turns};
pub use work::{BeforeWork, Work, WorkKind};
