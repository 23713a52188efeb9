//! Test cases for workflows and agents: what is started, what models and tools say, how people answer, and what must
//! come of it.
//!
//! A case runs on a host of its own, in memory and without a network, on one thread. Its clock stands still while there
//! is something to do and jumps to the next timer when there is nothing ([`run::idle`]), so a workflow that waits for a
//! day is done in milliseconds, and the same case takes the same way every time.
//!
//! ```text
//!  files ─► file::Document (values with their places) ─► case::Case ─┐
//!  Project (workflows, agents, models' names, prices) ───────────────┴─► suite: threads, deadlines ─► run ─► check
//! ```
//!
//! Nothing here reads a configuration or prints: that is the business of whoever has a command line.

pub mod case;
mod check;
mod compare;
pub mod file;
mod load;
mod project;
pub mod report;
mod run;
mod suite;

pub use load::{Loaded, load};
pub use project::{Project, WorkflowFile};
pub use report::{CaseReport, Problem, SuiteReport};
pub use suite::{Suite, run_suite};
