//! Tokens, runners and their steps, as SQL.

use baton_store::RunnerWrite;
use baton_store::codec::{Existing, integer};
use rusqlite::{Connection, params};

use crate::insert;

pub(crate) fn write(connection: &Connection, write: &RunnerWrite) -> rusqlite::Result<()> {
    let run =
        |sql: &str, params: &[&dyn rusqlite::ToSql]| connection.prepare_cached(sql)?.execute(params).map(|_rows| ());
    match write {
        RunnerWrite::PutToken(row) => insert::row(connection, Existing::Replace, row),
        RunnerWrite::DeleteToken { id } => run("DELETE FROM tokens WHERE id = ?1", params![id]),
        RunnerWrite::PutRunner(row) => insert::row(connection, Existing::Newer, row),
        RunnerWrite::DeleteRunner { key } => run("DELETE FROM runners WHERE key = ?1", params![key]),
        RunnerWrite::PutStep(row) => insert::row(connection, Existing::Newer, row),
        RunnerWrite::DeleteStep { key } => run("DELETE FROM runner_steps WHERE key = ?1", params![key]),
        RunnerWrite::ForgetSteps { before, state, limit } => run(
            "DELETE FROM runner_steps WHERE key IN
                 (SELECT key FROM runner_steps WHERE at < ?1 AND (?2 = '' OR state = ?2) ORDER BY at, key LIMIT ?3)",
            params![before.as_micros(), state.map_or("", |state| state.as_str()), integer(*limit)],
        ),
    }
}
