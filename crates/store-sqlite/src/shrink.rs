//! Giving room back to the file system after something was pruned: by and by, while nobody writes.

use std::time::Duration;

use baton_store::{Commit, Write};
use rusqlite::Connection;

/// How long nobody must have written before a step is made.
pub(crate) const QUIET: Duration = Duration::from_millis(50);
/// Pages that one step moves: a megabyte, and one sync. Whoever comes meanwhile waits for no more than that.
const PAGES: u32 = 256;
/// Free pages that stay: what is written next needs some.
const SPARE: u32 = 1024;

/// Whether the file may be larger than it has to be.
#[derive(Debug, Default)]
pub(crate) struct Shrink {
    due: bool,
}

impl Shrink {
    /// A file that is opened may have been left in the middle of it.
    pub(crate) fn at_start() -> Self {
        Self { due: true }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Makes the file smaller by a step. Nothing is lost by one that fails: what it wanted to move stays where it is.
    pub(crate) fn step(&mut self, connection: Option<&Connection>) {
        self.due = match connection.map(step).transpose() {
            Ok(more) => more.unwrap_or(false),
            Err(error) => {
                tracing::debug!(%error, "the file could not be made smaller");
                false
            }
        };
    }

    /// Takes note of what is about to be written.
    pub(crate) fn note(&mut self, commits: &[Commit]) {
        let frees = |write: &Write| {
            matches!(write, Write::Prune { .. } | Write::DropVersionedStore(_) | Write::ForgetHistory { .. })
        };
        self.due |= commits.iter().flat_map(Commit::writes).any(frees);
    }
}

/// Moves some pages from the end of the file to where there is room. Says whether there is more to move.
fn step(connection: &Connection) -> rusqlite::Result<bool> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0));
    // Files from before this have no map of their pages: they keep their size until they are compacted.
    if number("PRAGMA auto_vacuum")? != 2 {
        return Ok(false);
    }
    let free = number("PRAGMA freelist_count")?;
    if free <= SPARE {
        return Ok(false);
    }
    let pages = PAGES.min(free - SPARE);
    let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    let left = number("PRAGMA freelist_count")?;
    // One that gets nowhere is not tried again and again.
    Ok(left > SPARE && left < free)
}
