//! Trees of runs that are left alone because they broke something. A tree is a top-level run and everything below it,
//! and it is all that one bad run may take along.
//!
//! ```text
//!  a step panics, a log does not fold     twice ──┐
//!  the process died while stepping it     twice ──┼──► quarantine (durable) ──► release: goes on where it was
//!  a commit is refused for its data    3 times ──┤                        └──► cancel: ends on its log
//!  a step does not end                    once  ──┘
//! ```
//!
//! Being in quarantine is no event: the log stays as it is until somebody decides.

pub(crate) mod by_hand;
pub(crate) mod pardon;
pub(crate) mod refused;
pub(crate) mod service;
pub(crate) mod suspect_guard;
pub(crate) mod suspects;
pub(crate) mod trees;
