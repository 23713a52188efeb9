//! How PostgreSQL hands out the columns of a row.

use std::borrow::Cow;

use baton_model::RunId;
use baton_store::archive::{Entry, Table};
use baton_store::codec::{self, CHANGE_WITH_TAGS, Column, Fields, Kind, Source, Stored, Sum, Unreadable};
use baton_store::{Change, Checksum, Error, LogChain, LogEnds, RunPlace, RunRow, VersionedStoreId};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, FromSqlOwned, Type};

use crate::text;

/// The key of a versioned store, made from its name.
pub(crate) fn versioned_key(ledger: &VersionedStoreId) -> Vec<u8> {
    let mut hash = Sha256::new();
    for part in [ledger.tenant.as_str(), ledger.kind.as_str(), &ledger.scope] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize()[..16].to_vec()
}

/// A row of an answer.
pub(crate) struct Answer<'r>(&'r Row);

impl<'r> Answer<'r> {
    fn value<T: FromSql<'r>>(&self, index: usize) -> Result<Option<T>, String> {
        self.0.try_get(index).map_err(|error| match error.into_source() {
            Some(source) => format!("something else: {source}"),
            None => "something else".to_owned(),
        })
    }
}

impl Source for Answer<'_> {
    const TAGS_APART: bool = true;

    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>, String> {
        Ok(self.value::<&str>(index)?.map(text::read))
    }

    fn integer(&self, index: usize) -> Result<Option<i64>, String> {
        match self.0.columns().get(index).map(tokio_postgres::Column::type_) {
            Some(&Type::INT2) => Ok(self.value::<i16>(index)?.map(i64::from)),
            Some(&Type::INT4) => Ok(self.value::<i32>(index)?.map(i64::from)),
            _ => self.value(index),
        }
    }

    fn flag(&self, index: usize) -> Result<Option<bool>, String> {
        self.value(index)
    }

    fn texts(&self, index: usize) -> Result<Option<Vec<String>>, String> {
        let texts: Option<Vec<&str>> = self.value(index)?;
        Ok(texts.map(|texts| texts.into_iter().map(|text| text::read(text).into_owned()).collect()))
    }

    fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, String> {
        self.value(index)
    }
}

/// Columns as a question lists them. Of a long name the column itself holds only what an index knows; see [`text::key`].
pub(crate) fn list(columns: &[Column]) -> String {
    let expression = |Column { name, kind }: &Column| match kind {
        Kind::Name => format!("coalesce(long_{name}, {name})"),
        _ => (*name).to_owned(),
    };
    columns.iter().map(expression).collect::<Vec<_>>().join(", ")
}

/// The columns of a table and its checksums.
pub(crate) fn columns<T: Stored>() -> String {
    list(T::COLUMNS) + &codec::sum_names::<T>()
}

/// A row whose columns are read by this.
pub(crate) fn fields<'r, T>(
    row: &'r Row,
    read: impl FnOnce(&mut Fields<'_, Answer<'r>>) -> Result<T, Unreadable>,
) -> Result<T, Error> {
    Ok(read(&mut Fields::new(&Answer(row)))?)
}

/// A row of a table, which is as it was written.
pub(crate) fn stored<T: Stored>(row: &Row) -> Result<T, Error> {
    let read = fields(row, T::read)?;
    check::<T>(row, T::COLUMNS, T::SUMS, &[])?;
    Ok(read)
}

/// Its checksums, which follow its columns.
fn check<T: Stored>(row: &Row, columns: &[Column], sums: &'static [Sum], whose: &[&str]) -> Result<(), Error> {
    Ok(codec::check_sums(T::TABLE, columns, sums, whose, &Answer(row), (0, columns.len()))?)
}

/// A change of a versioned store, with its content or without.
pub(crate) fn change(row: &Row, whose: &VersionedStoreId, bare: bool) -> Result<Change, Error> {
    let read = fields(row, Change::read)?;
    let sums = if bare { &Change::SUMS[..1] } else { Change::SUMS };
    check::<Change>(row, CHANGE_WITH_TAGS, sums, &codec::whose(whose))?;
    Ok(read)
}

/// A row of an archive's page.
pub(crate) fn entry(table: Table, row: &Row) -> Result<Entry, Error> {
    let answer = &Answer(row);
    let entry = Entry::read(table, answer)?;
    let columns = if table == Table::Changes { CHANGE_WITH_TAGS } else { table.columns() };
    let places = (0, row.len() - table.sums().len());
    let of = |whose: &[&str]| codec::check_sums(table.name(), columns, table.sums(), whose, answer, places);
    match &entry {
        Entry::Change { ledger, .. } => of(&codec::whose(ledger)),
        _ => of(&[]),
    }?;
    Ok(entry)
}

/// Where a log stands, and the checksum of the record before the one that is asked for.
pub(crate) fn log_ends(row: &Row) -> Result<(LogEnds, Option<Checksum>), Error> {
    fields(row, |row| {
        let (begins, next_seq, gone) = (row.count("origin_seq")?, row.count("next_seq")?, row.flag("pruned_log")?);
        let base = row.maybe_bytes("chain_base", Checksum::from_bytes)?;
        let head = row.maybe_bytes("chain", Checksum::from_bytes)?;
        let before = row.maybe_bytes("sum", Checksum::from_bytes)?;
        Ok((LogEnds { begins, next_seq, chain: LogChain { base, head }, gone }, before))
    })
}

/// The checksum of a record, if it has one.
pub(crate) fn checksum(row: &Row) -> Result<Option<Checksum>, Error> {
    fields(row, |row| row.maybe_bytes("sum", Checksum::from_bytes))
}

/// Where a run is in lists, and the run; see [`crate::run_list`]. One that is damaged is left to whoever asks.
pub(crate) fn listed(row: &Row) -> Result<(RunPlace, Result<RunRow, Error>), Error> {
    const CREATED_AT: &str = "created_at";
    let answer = &Answer(row);
    let created_at = RunRow::COLUMNS.iter().position(|column| column.name == CREATED_AT).unwrap_or_default();
    let created_at = Fields::starting_at(answer, created_at).time(CREATED_AT)?;
    let position = Fields::starting_at(answer, RunRow::COLUMNS.len() + RunRow::SUMS.len()).count("position")?;
    Ok((RunPlace { created_at, position }, stored(row)))
}

pub(crate) fn place(row: &Row) -> Result<RunPlace, Error> {
    fields(row, |row| Ok(RunPlace { created_at: row.time("created_at")?, position: row.count("position")? }))
}

pub(crate) fn run_id(row: &Row) -> Result<RunId, Error> {
    fields(row, |row| row.text("id").map(RunId::new))
}

pub(crate) fn count(row: &Row) -> Result<u64, Error> {
    fields(row, |row| row.count("count"))
}

/// What an aggregate says, which is nothing when there were no rows.
pub(crate) fn maybe_count(row: &Row) -> Result<Option<u64>, Error> {
    fields(row, |row| row.maybe_count("count"))
}

/// The first column as the driver has it: what is never read by people.
pub(crate) fn raw<T: FromSqlOwned>(row: &Row) -> Result<T, Error> {
    let value = Answer(row).value(0).map_err(|found| Error::Corrupt { reason: format!("a column holds {found}") })?;
    value.ok_or_else(|| Error::Corrupt { reason: "a column holds nothing".to_owned() })
}
