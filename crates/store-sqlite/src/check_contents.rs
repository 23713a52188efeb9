//! Everything in the file against its checksums, row by row, and what is derived from rows against them.

use baton_model::RunId;
use baton_store::archive::{Entry, Table};
use baton_store::codec::{Stored as _, Sum, integer};
use baton_store::{Error, LogCheck, LogEnds, RunRow, SpendingRow};
use rusqlite::{Connection, params};

use crate::archive::page;
use crate::checkpoints;
use crate::damage;
use crate::derived;
use crate::error::read_error;
use crate::log;
use crate::query::one;
use crate::rows;

/// How many findings are told of each table: a broken disk would otherwise fill the screen.
const FINDINGS: usize = 100;
/// Rows that are read at a time: fewer where one may be large.
const fn page_of(table: Table) -> usize {
    match table {
        Table::Blobs => 16,
        _ => 200,
    }
}
/// How often it says how far it has come.
const TELL_EVERY: u64 = 20_000;

/// How far a check has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it goes through.
    pub what: &'static str,
    pub done: u64,
    pub all: u64,
}

/// What is wrong, in words. A file from before there were checksums has nothing to compare but its blobs.
pub(crate) fn all(connection: &Connection, tell: &mut impl FnMut(Progress)) -> Result<Vec<String>, Error> {
    let column = "SELECT count(*) FROM pragma_table_info('events') WHERE name = 'sum'";
    let summed = connection.query_row(column, [], rows::count).map_err(read_error)? > 0;
    let mut wrong = Vec::new();
    blobs(connection, &mut wrong, tell)?;
    if !summed {
        return Ok(wrong);
    }
    match damage::changed_schema(connection) {
        // One that an older version has written, and that was not opened since.
        _ if damage::is_older(connection) => {}
        Ok(changed) => wrong.extend(changed),
        Err(error) => wrong.push(error.to_string()),
    }
    for table in Table::ALL {
        if !has_sums(connection, table.name(), table.sums())? {
            continue;
        }
        each(connection, table, &mut wrong, tell, |entry, wrong| {
            if let Entry::Run(row) = entry {
                log(connection, &row, wrong);
            }
        })?;
    }
    if has_sums(connection, SpendingRow::TABLE, SpendingRow::SUMS)? {
        let damaged = checkpoints::damaged_spending(connection).map_err(read_error)?;
        wrong.extend(damaged.into_iter().take(FINDINGS).map(|(_, error)| format!("spending: {}", read_error(error))));
    }
    wrong.extend(derived::all(connection));
    Ok(wrong)
}

/// Whether there is anything to compare: a file of an older version does not have all checksums.
fn has_sums(connection: &Connection, table: &str, sums: &[Sum]) -> Result<bool, Error> {
    let column = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2";
    for sum in sums {
        if connection.query_row(column, [table, sum.column], rows::count).map_err(read_error)? == 0 {
            return Ok(false);
        }
    }
    Ok(!sums.is_empty())
}

/// Goes through a table. A page that does not read back is gone through row by row, so that the damaged ones are named.
fn each(
    connection: &Connection,
    table: Table,
    wrong: &mut Vec<String>,
    tell: &mut impl FnMut(Progress),
    mut look: impl FnMut(Entry, &mut Vec<String>),
) -> Result<(), Error> {
    let count = format!("SELECT count(*) FROM {}", table.name());
    let all = connection.query_row(&count, [], rows::count).map_err(read_error)?;
    let (mut done, mut skipped, mut after) = (0, 0, None);
    let found = wrong.len();
    loop {
        let entries = match page(connection, table, after.as_ref(), skipped, page_of(table)) {
            Ok(entries) => entries,
            Err(_) => match page(connection, table, after.as_ref(), skipped, 1) {
                Ok(entries) => entries,
                Err(error) => {
                    let error = read_error(error);
                    wrong.push(format!("{}: {error}", table.as_str()));
                    if !error.is_damage() || wrong.len() - found >= FINDINGS {
                        return Ok(());
                    }
                    (skipped, done) = (skipped + 1, done + 1);
                    if done > all {
                        return Ok(());
                    }
                    continue;
                }
            },
        };
        let Some(last) = entries.last().cloned() else { return Ok(()) };
        (after, skipped) = (Some(last), 0);
        for entry in entries {
            done += 1;
            if done % TELL_EVERY == 0 {
                tell(Progress { what: table.as_str(), done, all });
            }
            look(entry, wrong);
        }
        if wrong.len() - found >= FINDINGS {
            wrong.push(format!("{}: there may be more", table.as_str()));
            return Ok(());
        }
    }
}

/// Blobs against what they are named after, one at a time: they may be large.
fn blobs(connection: &Connection, wrong: &mut Vec<String>, tell: &mut impl FnMut(Progress)) -> Result<(), Error> {
    each(connection, Table::Blobs, wrong, tell, |entry, wrong| {
        if let Entry::Blob { digest, bytes } = entry
            && !baton_store::is_blob_of(&bytes, &digest)
        {
            wrong.push(format!("the blob {digest} does not hold what it is named after"));
        }
    })
}

/// A run's log against its chain, and a fork's beginning against its source.
fn log(connection: &Connection, row: &RunRow, wrong: &mut Vec<String>) {
    if let Err(error) = check_log(connection, row) {
        wrong.push(read_error(error).to_string());
    }
}

const OF_RUN: &str = "SELECT run FROM runs WHERE id = ?1";

fn number(connection: &Connection, run: &RunId) -> rusqlite::Result<Option<i64>> {
    one(connection, OF_RUN, [run.as_str()], |row| row.get(0))
}

fn check_log(connection: &Connection, row: &RunRow) -> rusqlite::Result<()> {
    let Some(run) = number(connection, &row.id)? else { return Ok(()) };
    let ends = LogEnds::of(row);
    let mut check = LogCheck::new(&row.id, ends.clone(), ends.begins, None);
    log::each(connection, run, ends.begins, |record| check.take(record).map_err(rows::damaged))?;
    check.end().map_err(rows::damaged)?;
    if let (Some(base), Some(origin)) = (row.chain.base, &row.origin)
        && let Some(before) = origin.seq.checked_sub(1)
    {
        // The record that a fork follows may be its source's source's.
        let mut source = origin.source.clone();
        while let Some(found) = one(connection, &crate::runs::BY_ID, [source.as_str()], rows::stored::<RunRow>)? {
            match found.origin {
                Some(further) if further.seq > before => source = further.source,
                _ => {
                    let Some(run) = number(connection, &found.id)? else { break };
                    let sum =
                        one(connection, crate::runs::SUM, params![run, integer(before)], rows::checksum)?.flatten();
                    if sum.is_some_and(|sum| sum != base) {
                        let what = format!("it does not follow the record {before} of {}", found.id);
                        return Err(rows::damaged(Error::damaged(&row.id, origin.seq, what)));
                    }
                    break;
                }
            }
        }
    }
    Ok(())
}
