//! Checkpoints, as SQL.

use baton_model::RunId;
use baton_store::codec::{Existing, integer};
use baton_store::{CheckpointWrite, SpendingRow};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::insert;
use crate::rows;

const TABLES: [&str; 3] = [
    "DELETE FROM checkpoints WHERE run = ?1",
    "DELETE FROM checkpoint_chunks WHERE run = ?1",
    "DELETE FROM spending WHERE run = ?1",
];

pub(crate) fn write(connection: &Connection, write: &CheckpointWrite) -> rusqlite::Result<()> {
    match write {
        CheckpointWrite::Put { checkpoint, chunks } => {
            if !keeps_log(connection, &checkpoint.run)? {
                return Ok(());
            }
            for chunk in chunks {
                insert::row(connection, Existing::Keep, chunk)?;
            }
            insert::row(connection, Existing::Replace, checkpoint)
        }
        CheckpointWrite::Drop { run, seqs, chunks } => {
            let mut delete = connection.prepare_cached("DELETE FROM checkpoints WHERE run = ?1 AND seq = ?2")?;
            for seq in seqs {
                delete.execute(params![run.as_str(), integer(*seq)])?;
            }
            let mut delete = connection.prepare_cached("DELETE FROM checkpoint_chunks WHERE run = ?1 AND name = ?2")?;
            for name in chunks {
                delete.execute([run.as_str(), name])?;
            }
            Ok(())
        }
    }
}

pub(crate) fn spending(connection: &Connection, row: &SpendingRow) -> rusqlite::Result<()> {
    if keeps_log(connection, &row.run)? { insert::row(connection, Existing::Replace, row) } else { Ok(()) }
}

fn keeps_log(connection: &Connection, run: &RunId) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM runs WHERE id = ?1 AND NOT pruned_log")?.exists([run.as_str()])
}

/// The runs of which it is noted wrongly what they have spent, and what is wrong.
pub(crate) fn damaged_spending(connection: &Connection) -> rusqlite::Result<Vec<(Value, rusqlite::Error)>> {
    let sql = format!("SELECT {} FROM spending ORDER BY run", rows::columns::<SpendingRow>());
    let mut statement = connection.prepare(&sql)?;
    let mut found = statement.query([])?;
    let mut damaged = Vec::new();
    while let Some(row) = found.next()? {
        if let Err(error) = rows::stored::<SpendingRow>(row) {
            damaged.push((row.get(0)?, error));
        }
    }
    Ok(damaged)
}

/// Forgets what is noted wrongly of what runs have spent: their logs say it too. Says how many notes there were.
pub(crate) fn forget_damaged_spending(connection: &Connection) -> rusqlite::Result<usize> {
    let damaged = damaged_spending(connection)?;
    for (run, _) in &damaged {
        connection.execute("DELETE FROM spending WHERE run = ?1", [run])?;
    }
    Ok(damaged.len())
}

/// Everything of a run, whose log goes.
pub(crate) fn forget(connection: &Connection, run: &str) -> rusqlite::Result<()> {
    for sql in TABLES {
        connection.prepare_cached(sql)?.execute([run])?;
    }
    Ok(())
}
