//! The embedded default: the storage port on one SQLite file.
//!
//! ```text
//!   submit ──queue──▶ writer thread ──BEGIN … COMMIT──▶ baton.db
//!                        │   whatever is queued becomes one transaction, so many commits share one fsync
//!                        └──▶ observer, then tickets
//!   reads  ──▶ a few read-only connections, each query on a blocking thread
//! ```
//!
//! One process owns a data directory: it and `baton.lock` in it are held with OS locks, which die with the process.

mod apply;
mod archive;
mod cache;
mod check;
mod dead_letters;
mod error;
mod insert;
mod lock;
mod open;
mod pool;
mod query;
mod read_view;
#[cfg(test)]
mod read_view_cost;
mod reader;
mod restore;
mod rows;
mod runs;
mod store;
mod transact;
mod usage;
mod versioned;
mod writer;

pub use check::{Gap, Report, VersionGap};
pub use store::{SqliteOptions, SqliteStore};
