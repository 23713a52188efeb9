//! Questions to a connection, each compiled once.

use rusqlite::{Connection, OptionalExtension as _, Params, Row};

pub(crate) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(params, map).optional()
}

pub(crate) fn list<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, map)?.collect()
}

/// Where nobody asks for more than this, it is no bound.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The same without rows that are damaged: what is whole is shown, and what is not is told of in the log. For lists that
/// nothing is decided by.
pub(crate) fn list_whole<T>(
    connection: &Connection,
    table: &'static str,
    sql: &str,
    params: impl Params,
    mut map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match map(row) {
            Ok(row) => found.push(row),
            Err(error) => left_out(table, &error),
        }
    }
    Ok(found)
}

/// A row is damaged, and a list goes on without it.
pub(crate) fn left_out(table: &'static str, error: &rusqlite::Error) {
    tracing::error!(table, %error, "a damaged row is left out of a list; `baton storage check` finds what else is damaged");
    metrics::counter!("baton_damaged_rows_total", "table" => table).increment(1);
}
