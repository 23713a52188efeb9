//! What is asked about checkpoints.

use async_trait::async_trait;
use baton_model::RunId;
use baton_store::codec::{Stored as _, integer};
use baton_store::{Checkpoint, CheckpointChunk, CheckpointMark, CheckpointReads, Error, SpendingRow};
use rusqlite::params;

use crate::query::{bound, list, list_whole, one};
use crate::rows;
use crate::store::SqliteStore;

#[async_trait]
impl CheckpointReads for SqliteStore {
    async fn checkpoint(&self, run: &RunId, key: &str, from: u64, until: u64) -> Result<Option<Checkpoint>, Error> {
        let (run, key) = (run.clone(), key.to_owned());
        let sql = format!(
            "SELECT {} FROM checkpoints WHERE run = ?1 AND key = ?2 AND seq BETWEEN ?3 AND ?4
             ORDER BY seq DESC LIMIT 1",
            rows::columns::<Checkpoint>()
        );
        let read = move |c: &rusqlite::Connection| {
            one(c, &sql, params![run.as_str(), key, integer(from), integer(until)], rows::stored)
        };
        self.readers().read(read).await
    }

    async fn checkpoint_chunks(&self, run: &RunId, names: &[String]) -> Result<Vec<CheckpointChunk>, Error> {
        let (run, names) = (run.clone(), names.to_vec());
        let sql = format!(
            "SELECT {} FROM checkpoint_chunks WHERE run = ?1 AND name = ?2",
            rows::columns::<CheckpointChunk>()
        );
        let read = move |c: &rusqlite::Connection| {
            let found = names.iter().map(|name| one(c, &sql, [run.as_str(), name], rows::stored));
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        self.readers().read(read).await
    }

    async fn checkpoint_marks(&self, run: &RunId) -> Result<Vec<CheckpointMark>, Error> {
        let run = run.clone();
        let sql = "SELECT seq, key, chunks, length(body) FROM checkpoints WHERE run = ?1 ORDER BY seq";
        let mark = |row: &rusqlite::Row<'_>| {
            rows::fields(row, |row| {
                let (seq, key, chunks) = (row.count("seq")?, row.text("key")?, row.texts("chunks")?);
                Ok(CheckpointMark { seq, key, chunks, bytes: row.count("length")? })
            })
        };
        self.readers().read(move |c| list(c, sql, [run.as_str()], mark)).await
    }

    async fn run_spending(&self, run: &RunId) -> Result<Option<SpendingRow>, Error> {
        let run = run.clone();
        let sql = format!("SELECT {} FROM spending WHERE run = ?1", rows::columns::<SpendingRow>());
        // The log says what a damaged note does not.
        let read = move |c: &rusqlite::Connection| {
            Ok(list_whole(c, SpendingRow::TABLE, &sql, [run.as_str()], rows::stored)?.pop())
        };
        self.readers().read(read).await
    }

    async fn spending(&self, root: &RunId, after: Option<&RunId>, limit: usize) -> Result<Vec<SpendingRow>, Error> {
        // No id is empty, so the empty one comes before all.
        let after = after.map_or_else(String::new, |after| after.as_str().to_owned());
        let (root, limit) = (root.clone(), bound(limit));
        let sql = format!(
            "SELECT {} FROM spending WHERE root = ?1 AND run > ?2 ORDER BY run LIMIT ?3",
            rows::columns::<SpendingRow>()
        );
        self.readers()
            .read(move |c| list_whole(c, SpendingRow::TABLE, &sql, params![root.as_str(), after, limit], rows::stored))
            .await
    }
}
