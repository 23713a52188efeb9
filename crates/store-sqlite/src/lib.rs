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

mod accept;
mod apply;
mod archive;
mod cache;
mod check;
mod check_contents;
mod checkpoints;
mod compact;
mod damage;
mod dead_letters;
mod derived;
mod error;
mod files;
mod insert;
mod lock;
mod log;
mod note;
mod open;
mod permissions;
mod pool;
#[cfg(test)]
mod prune_cost;
mod query;
mod read_view;
#[cfg(test)]
mod read_view_cost;
mod reader;
mod restore;
mod rows;
mod run_list;
mod runners;
mod runs;
mod shrink;
mod store;
mod transact;
mod usage;
mod versioned;
mod writer;

pub use accept::Accepted;
pub use check::{Gap, Report, VersionGap};
pub use check_contents::Progress;
pub use compact::Compacted;
pub use permissions::{DataAccess, FolderRefusal, inspect_folder, prepare_folder};
pub use store::{SqliteOptions, SqliteStore};
