//! What is asked about runners.

use async_trait::async_trait;
use baton_model::Timestamp;
use baton_store::codec::Stored as _;
use baton_store::{Error, RunnerReads, RunnerRow, StepRow, StepState, TokenRow};

use crate::questions::bound;
use crate::text::written;
use crate::{PostgresStore, rows};

#[async_trait]
impl RunnerReads for PostgresStore {
    async fn tokens(&self, limit: usize) -> Result<Vec<TokenRow>, Error> {
        let sql = format!("SELECT {} FROM tokens ORDER BY id LIMIT $1", rows::columns::<TokenRow>());
        // One that is damaged lets nobody in.
        self.questions.list_whole(TokenRow::TABLE, &sql, &[&bound(limit)], rows::stored).await
    }

    async fn token(&self, hash: &str) -> Result<Option<TokenRow>, Error> {
        let sql = format!("SELECT {} FROM tokens WHERE hash = $1", rows::columns::<TokenRow>());
        self.questions.one(&sql, &[&written(hash)], rows::stored).await
    }

    async fn runners(&self, limit: usize) -> Result<Vec<RunnerRow>, Error> {
        let sql = format!("SELECT {} FROM runners ORDER BY key LIMIT $1", rows::columns::<RunnerRow>());
        self.questions.list(&sql, &[&bound(limit)], rows::stored).await
    }

    async fn step(&self, key: &str) -> Result<Option<StepRow>, Error> {
        let sql = format!("SELECT {} FROM runner_steps WHERE key = $1", rows::columns::<StepRow>());
        self.questions.one(&sql, &[&written(key)], rows::stored).await
    }

    async fn steps_of(
        &self,
        owner: &str,
        state: StepState,
        after: Option<(Timestamp, &str)>,
        limit: usize,
    ) -> Result<Vec<StepRow>, Error> {
        let sql = format!(
            "SELECT {} FROM runner_steps WHERE owner = $1 AND state = $2 AND (at, key) > ($3, $4) ORDER BY at, key LIMIT $5",
            rows::columns::<StepRow>()
        );
        let (at, key) = after.map_or((i64::MIN, ""), |(at, key)| (at.as_micros(), key));
        let asked =
            [&written(owner) as &(dyn tokio_postgres::types::ToSql + Sync), &state.as_str(), &at, &key, &bound(limit)];
        self.questions.list(&sql, &asked, rows::stored).await
    }
}
