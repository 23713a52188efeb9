//! How SQLite hands out the columns of a row.

use std::borrow::Cow;

use baton_model::{RunId, RunStatus};
use baton_store::archive::{Entry, Table};
use baton_store::codec::{self, Fields, Source, Stored, Sum, Unreadable};
use baton_store::{Change, Checksum, Error, LogChain, LogEnds, RunPlace, RunRow, VersionedStoreId};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};

use crate::cache::{CachedVersion, Place};

/// A row of an answer.
pub(crate) struct Answer<'r, 's>(&'r Row<'s>);

impl Answer<'_, '_> {
    fn value(&self, index: usize) -> Result<ValueRef<'_>, String> {
        self.0.get_ref(index).map_err(|error| error.to_string())
    }
}

/// What is there instead of what should be.
fn other(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "nothing".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

impl Source for Answer<'_, '_> {
    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>, String> {
        match self.value(index)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => {
                str::from_utf8(text).map(|text| Some(Cow::Borrowed(text))).map_err(|error| error.to_string())
            }
            value => Err(other(value)),
        }
    }

    fn integer(&self, index: usize) -> Result<Option<i64>, String> {
        match self.value(index)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => Ok(Some(number)),
            value => Err(other(value)),
        }
    }

    fn flag(&self, index: usize) -> Result<Option<bool>, String> {
        match self.integer(index)? {
            Some(number @ (0 | 1)) => Ok(Some(number == 1)),
            Some(number) => Err(number.to_string()),
            None => Ok(None),
        }
    }

    fn texts(&self, index: usize) -> Result<Option<Vec<String>>, String> {
        let Some(text) = self.text(index)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|_| format!("{text:?}"))
    }

    fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, String> {
        match self.value(index)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes.to_vec())),
            value => Err(other(value)),
        }
    }
}

/// A list of texts as it lies in a column.
pub(crate) fn json_list(list: &[String]) -> String {
    // Nearly always empty, and then it costs nothing.
    if list.is_empty() { "[]".to_owned() } else { serde_json::json!(list).to_string() }
}

/// The columns of a table and their checksums, as a statement lists them.
pub(crate) fn columns<T: Stored>() -> String {
    codec::names(T::COLUMNS) + &codec::sum_names::<T>()
}

/// A row whose columns are read by this.
pub(crate) fn fields<'r, 's, T>(
    row: &'r Row<'s>,
    read: impl FnOnce(&mut Fields<'_, Answer<'r, 's>>) -> Result<T, Unreadable>,
) -> rusqlite::Result<T> {
    read(&mut Fields::new(&Answer(row))).map_err(failed)
}

/// A row of a table, which is as it was written.
pub(crate) fn stored<T: Stored>(row: &Row<'_>) -> rusqlite::Result<T> {
    stored_at(row, 0, &[], T::SUMS)
}

/// The same for one whose columns begin later, which belongs to somebody, or of which not everything is compared.
pub(crate) fn stored_at<T: Stored>(
    row: &Row<'_>,
    first: usize,
    whose: &[&str],
    sums: &'static [Sum],
) -> rusqlite::Result<T> {
    let row = &Answer(row);
    let read = T::read(&mut Fields::starting_at(row, first)).map_err(failed)?;
    let places = (first, first + T::COLUMNS.len());
    codec::check_sums(T::TABLE, T::COLUMNS, sums, whose, row, places).map_err(failed)?;
    Ok(read)
}

/// A change of a versioned store.
pub(crate) fn change(row: &Row<'_>, whose: &VersionedStoreId) -> rusqlite::Result<Change> {
    stored_at(row, 0, &codec::whose(whose), Change::SUMS)
}

/// The same without its content, which is last of what has a checksum.
pub(crate) fn bare_change(row: &Row<'_>, whose: &VersionedStoreId) -> rusqlite::Result<Change> {
    stored_at(row, 0, &codec::whose(whose), &Change::SUMS[..1])
}

/// Where a run is in lists, and the run if it is as asked; see [`crate::run_list`].
/// One that is damaged is left to whoever asks.
pub(crate) fn listed(row: &Row<'_>) -> rusqlite::Result<(RunPlace, rusqlite::Result<Option<RunRow>>)> {
    fields(row, |row| {
        let place = RunPlace { created_at: row.time("created_at")?, position: row.count("run")? };
        let fits = row.flag("fits")?;
        Ok((place, fits))
    })
    .map(|(place, fits)| {
        let read = || stored_at(row, 3, &[], RunRow::SUMS).map(Some);
        (place, if fits { read() } else { Ok(None) })
    })
}

pub(crate) fn run_id(row: &Row<'_>) -> rusqlite::Result<RunId> {
    fields(row, |row| row.text("id").map(RunId::new))
}

pub(crate) fn count(row: &Row<'_>) -> rusqlite::Result<u64> {
    fields(row, |row| row.count("count"))
}

/// What an aggregate says, which is nothing when there were no rows.
pub(crate) fn maybe_count(row: &Row<'_>) -> rusqlite::Result<Option<u64>> {
    fields(row, |row| row.maybe_count("count"))
}

pub(crate) fn place(row: &Row<'_>) -> rusqlite::Result<Place> {
    fields(row, |row| {
        Ok(Place {
            run: row.integer("run")?,
            next_seq: row.count("next_seq")?,
            status: row.parsed("status", RunStatus::parse)?,
            wake_at: row.maybe_time("wake_at")?,
            busy: row.flag("busy")?,
            summary: Place::mark(row.maybe_text("summary")?.as_deref()),
        })
    })
}

pub(crate) fn cached_version(row: &Row<'_>) -> rusqlite::Result<CachedVersion> {
    fields(row, |row| Ok(CachedVersion { ledger: row.integer("ledger")?, version: row.count("version")? }))
}

/// A row of an archive's page.
pub(crate) fn entry(table: Table, row: &Row<'_>) -> rusqlite::Result<Entry> {
    let answer = &Answer(row);
    let entry = Entry::read(table, answer).map_err(failed)?;
    let sums = table.sums();
    if !sums.is_empty() {
        let places = (0, row.as_ref().column_count() - sums.len());
        let of = |whose: &[&str]| codec::check_sums(table.name(), table.columns(), sums, whose, answer, places);
        match &entry {
            Entry::Change { ledger, .. } => of(&codec::whose(ledger)),
            _ => of(&[]),
        }
        .map_err(failed)?;
    }
    Ok(entry)
}

/// Where a log stands: the number that stands for its run, and its ends.
pub(crate) fn log_ends(row: &Row<'_>) -> rusqlite::Result<(i64, LogEnds)> {
    fields(row, |row| {
        let run = row.integer("run")?;
        let (begins, next_seq, gone) = (row.count("origin")?, row.count("next_seq")?, row.flag("pruned_log")?);
        let base = row.maybe_bytes("chain_base", Checksum::from_bytes)?;
        let head = row.maybe_bytes("chain", Checksum::from_bytes)?;
        Ok((run, LogEnds { begins, next_seq, chain: LogChain { base, head }, gone }))
    })
}

/// How many transactions there were.
pub(crate) fn commits(row: &Row<'_>) -> rusqlite::Result<u64> {
    fields(row, |row| row.count("number"))
}

/// The checksum of a record, if it has one.
pub(crate) fn checksum(row: &Row<'_>) -> rusqlite::Result<Option<Checksum>> {
    fields(row, |row| row.maybe_bytes("sum", Checksum::from_bytes))
}

/// Something that reads back and is not what was written.
pub(crate) fn damaged(error: Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Null, Box::new(error))
}

fn failed(unreadable: Unreadable) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(unreadable.index, Type::Text, Box::new(unreadable))
}
