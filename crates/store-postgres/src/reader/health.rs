//! What is asked about the store itself.

use async_trait::async_trait;
use baton_store::{Error, HealthReads, Usage};

use crate::{PostgresStore, rows, usage};

#[async_trait]
impl HealthReads for PostgresStore {
    async fn usage(&self) -> Result<Usage, Error> {
        Ok(usage::read(self).await)
    }

    async fn record_bytes(&self) -> Result<Option<u64>, Error> {
        // Not the size of the table: room that deleted rows have left is not what those that are there take.
        let sql =
            "SELECT avg(octet_length(body) + coalesce(octet_length(private), 0) + octet_length(kind) + 100)::BIGINT
                   FROM (SELECT body, private, kind FROM events LIMIT 500) some";
        Ok(self.questions.one(sql, &[], rows::maybe_count).await?.flatten())
    }

    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        let sql = "SELECT number FROM canary WHERE epoch = $1";
        let found = self.questions.one(sql, &[&self.me()], rows::raw::<i64>).await?;
        Ok(found.map(i64::cast_unsigned))
    }

    async fn ping(&self) -> Result<(), Error> {
        // Touches a table, which a bare `SELECT 1` would not.
        self.questions.ask("SELECT id FROM runs LIMIT 1", &[]).await.map(|_rows| ())
    }
}
