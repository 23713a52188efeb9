//! What is asked about runners.

use async_trait::async_trait;
use baton_model::Timestamp;
use baton_store::codec::Stored as _;
use baton_store::{Error, RunnerReads, RunnerRow, StepRow, StepState, TokenRow};
use rusqlite::params;

use crate::query::{bound, list, list_whole, one};
use crate::rows;
use crate::store::SqliteStore;

#[async_trait]
impl RunnerReads for SqliteStore {
    async fn tokens(&self, limit: usize) -> Result<Vec<TokenRow>, Error> {
        let sql = format!("SELECT {} FROM tokens ORDER BY id LIMIT ?1", rows::columns::<TokenRow>());
        // One that is damaged lets nobody in.
        self.readers().read(move |c| list_whole(c, TokenRow::TABLE, &sql, [bound(limit)], rows::stored)).await
    }

    async fn token(&self, hash: &str) -> Result<Option<TokenRow>, Error> {
        let hash = hash.to_owned();
        let sql = format!("SELECT {} FROM tokens WHERE hash = ?1", rows::columns::<TokenRow>());
        self.readers().read(move |c| one(c, &sql, [hash], rows::stored)).await
    }

    async fn runners(&self, limit: usize) -> Result<Vec<RunnerRow>, Error> {
        let sql = format!("SELECT {} FROM runners ORDER BY key LIMIT ?1", rows::columns::<RunnerRow>());
        self.readers().read(move |c| list(c, &sql, [bound(limit)], rows::stored)).await
    }

    async fn step(&self, key: &str) -> Result<Option<StepRow>, Error> {
        let key = key.to_owned();
        let sql = format!("SELECT {} FROM runner_steps WHERE key = ?1", rows::columns::<StepRow>());
        self.readers().read(move |c| one(c, &sql, [key], rows::stored)).await
    }

    async fn steps_of(
        &self,
        owner: &str,
        state: StepState,
        after: Option<(Timestamp, &str)>,
        limit: usize,
    ) -> Result<Vec<StepRow>, Error> {
        let owner = owner.to_owned();
        let (at, key) = after.map_or((i64::MIN, String::new()), |(at, key)| (at.as_micros(), key.to_owned()));
        let sql = format!(
            "SELECT {} FROM runner_steps WHERE owner = ?1 AND state = ?2 AND (at, key) > (?3, ?4) ORDER BY at, key LIMIT ?5",
            rows::columns::<StepRow>()
        );
        self.readers()
            .read(move |c| list(c, &sql, params![owner, state.as_str(), at, key, bound(limit)], rows::stored))
            .await
    }
}
