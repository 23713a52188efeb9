//! Questions to the database, over a pool of connections.

use std::time::Duration;

use baton_store::Error;
use deadpool_postgres::{Pool, PoolError};
use futures_util::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::{connect_error, is_retryable, read_error, unavailable};

/// How often a question may come again because somebody else was in its way.
const RETRIES: u32 = 10;
/// However long the lease: no answer that is still wanted takes longer, and a slow one may take this long.
const LONGEST: Duration = Duration::from_secs(30);
const SHORTEST: Duration = Duration::from_secs(3);

#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) sql: &'a str,
    pub(crate) values: &'a [&'a (dyn ToSql + Sync)],
}

pub(crate) struct Questions {
    pub(crate) pool: Pool,
    /// How the database is called in messages.
    pub(crate) place: String,
    /// How long an answer may take.
    pub(crate) policy: Duration,
}

/// How long an answer may take. A host that hears nothing for longer than its lease is not one any more. Without a lease
/// nobody waits for us, so it may take its time.
pub(crate) fn policy(lease: Option<Duration>) -> Duration {
    lease.map_or(Duration::from_secs(24 * 3600), |lease| lease.clamp(SHORTEST, LONGEST))
}

impl Questions {
    pub(crate) async fn connection(&self) -> Result<deadpool_postgres::Client, Error> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => connect_error(&self.place, error),
            PoolError::Timeout(_) => unavailable("all connections are busy; raise the pool size, or look what is slow"),
            error => unavailable(format!("no connection to {}: {error}", self.place)),
        })
    }

    /// Asks one question, or makes one change that does no harm when made twice.
    pub(crate) async fn ask(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let mut answers = self.ask_all(&[Question { sql, values }]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// The same for several: one way there and back. A connection that turns out to be gone is replaced once: the server
    /// may have been restarted since it was last used.
    pub(crate) async fn ask_all(&self, questions: &[Question<'_>]) -> Result<Vec<Vec<Row>>, Error> {
        let (mut again, mut retries) = (true, RETRIES);
        loop {
            let client = self.connection().await?;
            let asked = try_join_all(questions.iter().map(async |question| {
                let prepared = client.prepare_cached(question.sql).await?;
                client.query(&prepared, question.values).await
            }));
            match tokio::time::timeout(self.policy, asked).await {
                Ok(Err(error)) if error.is_closed() && std::mem::take(&mut again) => {}
                Ok(Err(error)) if is_retryable(&error) && retries > 0 => retries -= 1,
                Ok(answer) => return answer.map_err(read_error),
                Err(_elapsed) => {
                    // What it is in the middle of is not for the next one to wait for.
                    drop(deadpool_postgres::Client::take(client));
                    return Err(unavailable("the database does not answer"));
                }
            }
        }
    }

    pub(crate) async fn list<T>(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.ask(sql, values).await?.iter().map(read).collect()
    }

    /// The same without rows that are damaged: what is whole is shown, and what is not is told of in the log. For lists that
    /// nothing is decided by.
    pub(crate) async fn list_whole<T>(
        &self,
        table: &'static str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        Ok(self.ask(sql, values).await?.iter().filter_map(|row| whole(table, read(row))).collect())
    }

    pub(crate) async fn one<T>(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.ask(sql, values).await?.first().map(read).transpose()
    }
}

/// Where nobody asks for more than this, it is no bound.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// What was read of a row, unless it is damaged.
pub(crate) fn whole<T>(table: &'static str, read: Result<T, Error>) -> Option<T> {
    read.inspect_err(|error| {
        tracing::error!(table, %error, "a damaged row is left out of a list; `baton storage check` finds what else is damaged");
        metrics::counter!("baton_damaged_rows_total", "table" => table).increment(1);
    })
    .ok()
}
