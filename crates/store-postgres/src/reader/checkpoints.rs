//! What is asked about checkpoints.

use async_trait::async_trait;
use baton_model::RunId;
use baton_store::codec::{Stored as _, integer};
use baton_store::{Checkpoint, CheckpointChunk, CheckpointMark, CheckpointReads, Error, SpendingRow};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::questions::bound;
use crate::text::written;
use crate::{PostgresStore, rows};

#[async_trait]
impl CheckpointReads for PostgresStore {
    async fn checkpoint(&self, run: &RunId, key: &str, from: u64, until: u64) -> Result<Option<Checkpoint>, Error> {
        let sql = format!(
            "SELECT {} FROM checkpoints WHERE run = $1 AND key = $2 AND seq BETWEEN $3 AND $4
             ORDER BY seq DESC LIMIT 1",
            rows::columns::<Checkpoint>()
        );
        let (run, key) = (written(run.as_str()), written(key));
        self.questions.one(&sql, &[&run, &key, &integer(from), &integer(until)], rows::stored).await
    }

    async fn checkpoint_chunks(&self, run: &RunId, names: &[String]) -> Result<Vec<CheckpointChunk>, Error> {
        let sql = format!(
            "SELECT {} FROM checkpoint_chunks WHERE run = $1 AND name = ANY($2)",
            rows::columns::<CheckpointChunk>()
        );
        let names: Vec<_> = names.iter().map(|name| written(name)).collect();
        self.questions.list(&sql, &[&written(run.as_str()), &names], rows::stored).await
    }

    async fn checkpoint_marks(&self, run: &RunId) -> Result<Vec<CheckpointMark>, Error> {
        let sql = "SELECT seq, key, chunks, length(body)::BIGINT FROM checkpoints WHERE run = $1 ORDER BY seq";
        let mark = |row: &Row| {
            rows::fields(row, |row| {
                let (seq, key, chunks) = (row.count("seq")?, row.text("key")?, row.texts("chunks")?);
                Ok(CheckpointMark { seq, key, chunks, bytes: row.count("length")? })
            })
        };
        self.questions.list(sql, &[&written(run.as_str())], mark).await
    }

    async fn run_spending(&self, run: &RunId) -> Result<Option<SpendingRow>, Error> {
        let sql = format!("SELECT {} FROM spending WHERE run = $1", rows::columns::<SpendingRow>());
        // The log says what a damaged note does not.
        let found = self.questions.list_whole(SpendingRow::TABLE, &sql, &[&written(run.as_str())], rows::stored).await;
        Ok(found?.pop())
    }

    async fn spending(&self, root: &RunId, after: Option<&RunId>, limit: usize) -> Result<Vec<SpendingRow>, Error> {
        // No id is empty, so the empty one comes before all.
        let after = after.map_or_else(String::new, |after| written(after.as_str()).into_owned());
        let sql = format!(
            "SELECT {} FROM spending WHERE root = $1 AND run > $2 ORDER BY run LIMIT $3",
            rows::columns::<SpendingRow>()
        );
        let values: [&(dyn ToSql + Sync); 3] = [&written(root.as_str()), &after, &bound(limit)];
        self.questions.list_whole(SpendingRow::TABLE, &sql, &values, rows::stored).await
    }
}
