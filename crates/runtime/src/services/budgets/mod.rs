//! What trees of runs spend. One account for each tree that is in memory; every head of the tree holds it, so where one
//! run of a tree is, the account is, and where none is, everything is on disk and the account can be read from there.
//!
//! ```text
//!  model call ──► reserve prompt and room ──► call, held to the room ──► usage on the log: charged ──► given back
//!                    │ calls in flight may leave more: wait                 │ says how much is gone
//!                    └ too little left: the run is told
//!  tool calls, retries: charged when they are decided, before they are on the log
//! ```

pub(crate) mod account;
pub(crate) mod counts;
pub(crate) mod estimate;
pub(crate) mod in_flight;
pub(crate) mod open_accounts;
pub(crate) mod read;
pub(crate) mod spending;

pub(crate) use account::Account;
pub(crate) use estimate::{cost, has_price};
pub(crate) use in_flight::{AllInFlight, Reservation};
