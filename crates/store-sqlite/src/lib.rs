//! The embedded default: the storage port on one SQLite file.
//!
//! ```text
//!   submit ──queue──▶ writer thread ──BEGIN … COMMIT──▶ baton.db
//!                        │   whatever is queued becomes one transaction, so many commits share one fsync
//!                        └──▶ observer, then tickets
//!   reads  ──▶ a few read-only connections, each query on a blocking thread
//! ```
//!
//! One process owns a data directory: `baton.lock` is held with an OS lock, which dies with the process.

mod apply;
mod archive;
mod cache;
mod check;
mod error;
mod insert;
mod ledgers;
mod lens;
#[cfg(test)]
mod lens_cost;
mod lock;
mod open;
mod pool;
mod reader;
mod rows;
mod runs;
mod store;
mod usage;
mod writer;

pub use check::{Gap, LedgerGap, Report};
pub use store::SqliteStore;
