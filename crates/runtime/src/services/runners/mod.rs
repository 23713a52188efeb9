//! Runners: programs of a user's own that dial in and make calls of tools for runs.
//!
//! ```text
//!  a run wants a call ──► board: which runner? ──► row on disk ──► stream of the runner
//!                                                                     │
//!  the run's log ◄── command, with the step's row in its commit ◄── result
//! ```
//!
//! The log has the call and its result and knows nothing of runners. The store has a row for each step that a runner was
//! given, which says whether somebody may have it; which runner is connected is known in memory only.

pub(crate) mod board;
pub(crate) mod calls;
pub(crate) mod channel;
pub(crate) mod dispatcher;
pub(crate) mod names;
pub(crate) mod news;
pub(crate) mod registry;
pub(crate) mod rows;
pub(crate) mod step_token;
pub(crate) mod tokens;
pub(crate) mod upkeep;
mod view;

pub use board::{DispatchContext, DispatchFrame, Told};
pub use channel::{
    OutsideStep, ReportedState, ResultFrame, RunnerReport, RunnerReports, RunnerStream, RunnerWork, StepLease, StepName,
};
pub use names::RunnerOwner;
pub use rows::{RunnerCapabilities, RunnerToolListing, RunnerTools};
pub use step_token::{StepClaims, StepToken};
pub use tokens::{NewToken, RunnerBearer, RunnerToken};
pub use view::{RunnerRegistration, RunnerView};

/// How long a runner may say nothing before what it has counts as lost.
pub(crate) const LEASE_MS: u64 = 30_000;
/// How often a step is given to runners that all give it back. A row names them all, and each time costs one.
pub(crate) const MOST_GIVEN: usize = 32;
/// The largest inputs of a step.
pub(crate) const MOST_INPUT_BYTES: usize = 1024 * 1024;
/// A runner that was not heard of for so long is no runner any more.
pub(crate) const FORGET_RUNNERS_MS: u64 = 24 * 60 * 60 * 1000;
/// A step that is over is forgotten after so long: a result that a runner sends again within that time is known again.
pub(crate) const FORGET_DONE_MS: u64 = 10 * 60 * 1000;
/// What is known of a step is forgotten after so long: no runner may take that long for one.
pub(crate) const FORGET_STEPS_MS: u64 = 2 * FORGET_RUNNERS_MS;
/// How many runners one subject may have.
pub(crate) const MOST_RUNNERS: usize = 1_000;
/// How many tokens a tenant may have.
pub(crate) const MOST_TOKENS: usize = 1_000;
/// How many rows of either are read when a host starts.
pub(crate) const MOST_ROWS: usize = 100_000;
