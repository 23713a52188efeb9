//! Deterministic simulation: one host, or three hosts on one store, in a single thread, on simulated time, with everything
//! around them in the process. The seed decides who runs when, what clients ask for and what goes wrong: the same seed
//! gives the same journal, byte for byte. See ADR 0018.
//!
//! ```text
//!  simulation  ── who goes next: a host's tasks, a disk, or time
//!    host      ── one life of a host: its tasks (executor), its clock (time), its way to the disk (line)
//!    clients   ── what is asked for (wishes), and what was acknowledged
//!    faults    ── what goes wrong
//!    peers     ── models, tools and subscribers
//!    checks    ── what must hold, by the rows of the table in ARCHITECTURE.md
//! ```
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a simulation that cannot go on must fail"
)]

mod checks;
mod clients;
mod disk;
mod drain;
mod executor;
mod faults;
mod host;
mod line;
mod panics;
mod peers;
mod prepared;
mod rng;
mod simulation;
mod time;
mod trace;
mod wishes;
mod workflows;

pub use simulation::{Report, Setup, Simulation};
