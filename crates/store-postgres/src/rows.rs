//! How PostgreSQL hands out the columns of a row.

use std::borrow::Cow;

use baton_model::RunId;
use baton_store::archive::{Entry, Table};
use baton_store::codec::{Column, Fields, Kind, Source, Stored, Unreadable};
use baton_store::{Error, RunRow, VersionedStoreId};
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

/// The columns of a table.
pub(crate) fn columns<T: Stored>() -> String {
    list(T::COLUMNS)
}

/// A row whose columns are read by this.
pub(crate) fn fields<'r, T>(
    row: &'r Row,
    read: impl FnOnce(&mut Fields<'_, Answer<'r>>) -> Result<T, Unreadable>,
) -> Result<T, Error> {
    Ok(read(&mut Fields::new(&Answer(row)))?)
}

/// A row of a table.
pub(crate) fn stored<T: Stored>(row: &Row) -> Result<T, Error> {
    fields(row, T::read)
}

/// A row of an archive's page.
pub(crate) fn entry(table: Table, row: &Row) -> Result<Entry, Error> {
    Ok(Entry::read(table, &Answer(row))?)
}

/// A run, and its position behind it.
pub(crate) fn run(row: &Row) -> Result<(u64, RunRow), Error> {
    fields(row, |row| {
        let run = RunRow::read(row)?;
        Ok((row.count("position")?, run))
    })
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
