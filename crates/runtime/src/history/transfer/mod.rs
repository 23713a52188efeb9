//! Runs on their way from one host to another: a run with its tree, the runs it was forked from, the definitions and
//! agents they are pinned to, and what their memory and workspace had become by then, as lines of JSON.
//!
//! ```text
//!  export: gather (what belongs to it) ──► lines, page by page ──► footer with counts and a digest
//!  import: lines ──► a store in memory, each line judged ──► folded as a whole ──► settled in this host's store
//! ```
//!
//! Nothing of a file reaches the host's store before all of it has been judged.

pub(crate) mod api;
pub(crate) mod check;
pub(crate) mod export;
pub(crate) mod format;
pub(crate) mod gather;
pub(crate) mod import;
pub(crate) mod line_checks;
pub(crate) mod open;
pub(crate) mod secrets;
pub(crate) mod service;
pub(crate) mod settle;
pub(crate) mod settle_stores;
pub(crate) mod staged;
pub(crate) mod staged_runs;
pub(crate) mod staged_stores;

pub use api::{Imported, Transferred};
pub use export::Export;
pub use import::Import;
pub(crate) use secrets::clean as take_out;

use std::sync::Arc;

use tokio::sync::Semaphore;

/// The largest file that is taken. It is held in memory until all of it has been judged.
pub(crate) const LARGEST_FILE: u64 = 256 * 1024 * 1024;
/// The longest line of one: a full workspace file, written the most wasteful way JSON has, and something around it.
pub(crate) const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// The longest chain of forks: reading the last of them goes through all that came before.
pub(crate) const MOST_FORKS: usize = 100;

/// One import at a time: what bounds the memory they take.
#[derive(Clone)]
pub(crate) struct Importing(Arc<Semaphore>);

impl Default for Importing {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}
