//! What is asked about the store itself.

use async_trait::async_trait;
use baton_store::{Error, HealthReads, Usage};

use crate::{PostgresStore, rows, usage};

#[async_trait]
impl HealthReads for PostgresStore {
    async fn usage(&self) -> Result<Usage, Error> {
        Ok(usage::read(self).await)
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
