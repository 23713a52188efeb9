//! Writing the file of a stopped host anew, as small as it can be.

use std::path::Path;

use baton_store::Error;
use rusqlite::Connection;

use crate::damage;
use crate::error::{io_error, read_error};
use crate::lock::DirLock;
use crate::open::{self, Database};
use crate::store::SqliteStore;

/// What compacting did to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes before and after.
    pub before: u64,
    pub after: u64,
}

impl SqliteStore {
    /// Writes the file in `dir` anew without its free room. For a directory that no host has open; needs as much room beside
    /// it as the file takes. From then on the file becomes smaller by itself.
    pub fn compact(dir: &Path) -> Result<Compacted, Error> {
        let path = open::file(dir);
        let size =
            || std::fs::metadata(&path).map(|data| data.len()).map_err(|error| io_error("cannot read its size", error));
        damage::refuse_gone(dir)?;
        if !path.exists() {
            return Err(Error::Unavailable { reason: format!("there is no {}", path.display()), source: None });
        }
        let lock = DirLock::acquire(dir)?;
        let mut connection = open::writer(&Database::of(dir))?;
        // Written anew, a damaged file would look whole.
        damage::refuse(&connection, dir)?;
        open::migrate(&mut connection)?;
        let folded = |connection: &Connection| {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(read_error)
        };
        damage::refuse_migrated(&connection, dir)?;
        open::fold_on_close(&connection, true)?;
        folded(&connection)?;
        let before = size()?;
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM").map_err(read_error)?;
        folded(&connection)?;
        connection.close().map_err(|(_, error)| read_error(error))?;
        let after = size()?;
        drop(lock);
        Ok(Compacted { before, after })
    }
}
