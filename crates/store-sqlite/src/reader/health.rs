//! What is asked about the store itself.

use async_trait::async_trait;
use baton_store::{Error, HealthReads, Usage};
use rusqlite::Connection;

use crate::query::one;
use crate::store::SqliteStore;
use crate::usage;

#[async_trait]
impl HealthReads for SqliteStore {
    async fn usage(&self) -> Result<Usage, Error> {
        self.readers().read(usage::read).await
    }

    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        let query = |c: &Connection| one(c, "SELECT number FROM canary", [], |row| row.get::<_, i64>(0));
        Ok(self.readers().read(query).await?.map(i64::cast_unsigned))
    }

    async fn ping(&self) -> Result<(), Error> {
        // Touches the file, which a bare `SELECT 1` would not.
        let query = |c: &Connection| one(c, "SELECT run FROM runs LIMIT 1", [], |_| Ok(()));
        self.readers().read(query).await.map(|_found| ())
    }
}
