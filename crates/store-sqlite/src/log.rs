//! Records as they are read: each is compared with its checksum before anybody sees it.

use baton_model::RunId;
use baton_store::codec::integer;
use baton_store::{LogCheck, LogEnds, StoredRecord};
use rusqlite::{Connection, params};

use crate::query::{bound, one};
use crate::{rows, runs};

/// Records of a run from a sequence on; see [`baton_store::RunReads::records_within`].
pub(crate) fn records(
    connection: &Connection,
    run: &RunId,
    from: u64,
    limit: usize,
    bytes: usize,
) -> rusqlite::Result<Vec<StoredRecord>> {
    // The row of the run and its records are of the same moment.
    let snapshot = connection.unchecked_transaction()?;
    let Some((number, ends)) = one(&snapshot, runs::LOG_ENDS, [run.as_str()], rows::log_ends)? else {
        return Ok(Vec::new());
    };
    let mut check = begin(&snapshot, run, number, ends, from)?;
    let mut statement = snapshot.prepare_cached(&runs::RECORDS)?;
    let mut found = statement.query(params![number, integer(from), bound(limit)])?;
    let (mut records, mut left): (Vec<StoredRecord>, usize) = (Vec::new(), bytes);
    while records.len() < limit {
        // Rows come one by one, so at most one is read that does not fit.
        let Some(row) = found.next()? else {
            check.end().map_err(rows::damaged)?;
            break;
        };
        let record: StoredRecord = rows::stored(row)?;
        match left.checked_sub(record.weight()) {
            Some(rest) => left = rest,
            None if records.is_empty() => left = 0,
            None => break,
        }
        check.take(&record).map_err(rows::damaged)?;
        records.push(record);
    }
    Ok(records)
}

/// What compares records from a sequence on.
pub(crate) fn begin<'r>(
    connection: &Connection,
    run: &'r RunId,
    number: i64,
    ends: LogEnds,
    from: u64,
) -> rusqlite::Result<LogCheck<'r>> {
    let before = match LogCheck::needs(&ends, from) {
        Some(seq) => one(connection, runs::SUM, params![number, integer(seq)], rows::checksum)?.flatten(),
        None => None,
    };
    Ok(LogCheck::new(run, ends, from, before))
}

/// All records of a run from a sequence on, one after the other.
pub(crate) fn each(
    connection: &Connection,
    run: i64,
    from: u64,
    mut take: impl FnMut(&StoredRecord) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&runs::RECORDS)?;
    let mut found = statement.query(params![run, integer(from), i64::MAX])?;
    while let Some(row) = found.next()? {
        take(&rows::stored(row)?)?;
    }
    Ok(())
}
