//! Going on with a directory that has lost something, once somebody says so.

use std::path::Path;

use baton_store::Error;

use crate::checkpoints;
use crate::damage;
use crate::derived;
use crate::error::read_error;
use crate::lock::DirLock;
use crate::note::{self, Note};
use crate::open::{self, Database};
use crate::store::SqliteStore;

/// What was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// That transactions are missing at the end, in words.
    pub lost_end: Option<String>,
    /// What was wrong with indexes and counts, which were made anew from the rows.
    pub rebuilt: Vec<String>,
}

/// Enough to see what was wrong.
const SHOWN: u32 = 100;

/// What is derived from rows, made anew.
const REBUILD: &str = "REINDEX;
    DELETE FROM run_tags;
    INSERT OR IGNORE INTO run_tags (tenant, tag, created_at, run)
        SELECT tenant, value, created_at, run FROM runs, json_each(runs.tags) WHERE runs.tags <> '[]';
    DELETE FROM run_counts;
    INSERT INTO run_counts (tenant, status, count) SELECT tenant, status, count(*) FROM runs GROUP BY tenant, status;";

impl SqliteStore {
    /// Takes the file in `dir` as it is: what is missing at its end is given up, and indexes are made anew. Refuses a file
    /// whose pages do not hold together; of that one everything readable can be copied. For a directory that no host has
    /// open. What is damaged in a row stays as it is and is noticed when it is read.
    pub fn accept(dir: &Path) -> Result<Accepted, Error> {
        let path = open::file(dir);
        damage::refuse_gone(dir)?;
        if !path.exists() {
            return Err(Error::Unavailable { reason: format!("there is no {}", path.display()), source: None });
        }
        let lock = DirLock::acquire(dir)?;
        let mut connection = open::writer(&Database::of(dir))?;
        let lost_end = note::behind(&connection, dir)?;
        let mut wrong = damage::integrity(&connection, SHOWN)?;
        open::migrate(&mut connection)?;
        wrong.extend(derived::rebuilt(&connection));
        let mut changed = damage::changed_schema(&connection)?;
        if changed.is_empty() {
            // In one transaction: a crash leaves everything as it was.
            let rebuilt = connection.unchecked_transaction().and_then(|all| {
                all.execute_batch(REBUILD)?;
                let forgotten = checkpoints::forget_damaged_spending(&all)?;
                all.commit().map(|()| forgotten)
            });
            let forgotten = rebuilt.map_err(read_error)?;
            if forgotten > 0 {
                wrong.push(format!("what {forgotten} runs have spent was noted wrongly, and is read from their logs"));
            }
            changed = damage::integrity(&connection, SHOWN)?;
            changed.extend(derived::rebuilt(&connection));
        }
        if let Some(left) = changed.first() {
            let reason = format!(
                "{} cannot be mended: {left}. Copy what can be read of it: `baton storage copy --salvage`",
                path.display()
            );
            return Err(Error::Corrupt { reason });
        }
        open::fold_on_close(&connection, true)?;
        drop(Note::begin(dir, &connection)?);
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(read_error)?;
        connection.close().map_err(|(_, error)| read_error(error))?;
        drop(lock);
        Ok(Accepted { lost_end, rebuilt: wrong })
    }
}
