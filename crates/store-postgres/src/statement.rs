//! Statements with their values, sent without waiting for the one before.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::time::Instant;

use futures_util::FutureExt as _;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement as Prepared};

use crate::text;

type Value<'a> = Box<dyn ToSql + Sync + Send + 'a>;

pub(crate) struct Statement<'a> {
    pub(crate) sql: &'static str,
    values: Vec<Value<'a>>,
    /// It fails unless it says as many rows as its last value: what was assumed is not so.
    counted: bool,
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("sql", &self.sql).field("counted", &self.counted).finish_non_exhaustive()
    }
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), counted: false }
    }

    /// How many rows it must say (an update says those that it touched by `RETURNING`). Judged over there, so that the end
    /// of the transaction need not wait for us to judge. See [`is_miscounted`].
    pub(crate) fn touching(self, rows: usize) -> Self {
        Self { counted: true, ..self.value(i64::try_from(rows).unwrap_or(i64::MAX)) }
    }

    fn text(&self) -> Cow<'static, str> {
        if !self.counted {
            return Cow::Borrowed(self.sql);
        }
        // Nothing but an error ends a transaction in the middle, and dividing by zero is one everywhere.
        let count = self.values.len();
        Cow::Owned(format!("WITH touched AS ({}) SELECT 1 / (count(*) = ${count})::INT FROM touched", self.sql))
    }

    pub(crate) fn value(mut self, value: impl ToSql + Sync + Send + 'a) -> Self {
        self.values.push(Box::new(value));
        self
    }

    pub(crate) fn list<T: ToSql + Sync + Send + 'a>(self, values: impl IntoIterator<Item = T>) -> Self {
        self.value(values.into_iter().collect::<Vec<T>>())
    }

    pub(crate) fn texts(self, values: impl IntoIterator<Item = &'a str>) -> Self {
        self.list(values.into_iter().map(text::written))
    }

    pub(crate) fn maybe_texts(self, values: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        self.list(values.into_iter().map(|value| value.map(text::written)))
    }

    /// What an index knows of texts; see [`text::key`].
    pub(crate) fn keys(self, values: impl IntoIterator<Item = &'a str>) -> Self {
        self.list(values.into_iter().map(text::key))
    }
}

/// A statement did not find as many rows as it should have; see [`Statement::touching`].
pub(crate) fn is_miscounted(error: &Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

/// Why a transaction did not happen, or may not have.
pub(crate) struct Failure {
    /// The statement that failed; `None` for its beginning or its end.
    pub(crate) at: Option<&'static str>,
    pub(crate) error: Error,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { at: None, error }
    }
}

/// Prepared once per connection.
#[derive(Default)]
pub(crate) struct Statements(HashMap<&'static str, Prepared>);

type Answer<'a> = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'a>>;

impl Statements {
    pub(crate) async fn prepare(&mut self, client: &Client, sql: &'static str) -> Result<Prepared, Error> {
        self.prepare_as(client, sql, || Cow::Borrowed(sql)).await
    }

    async fn prepare_as(
        &mut self,
        client: &Client,
        sql: &'static str,
        text: impl FnOnce() -> Cow<'static, str>,
    ) -> Result<Prepared, Error> {
        if let Some(prepared) = self.0.get(sql) {
            return Ok(prepared.clone());
        }
        let prepared = client.prepare(&text()).await?;
        self.0.insert(sql, prepared.clone());
        Ok(prepared)
    }

    /// Runs these one after the other, and undoes them. The database ends what is not done by then, and those that come
    /// after it are not tried.
    pub(crate) async fn rehearse(
        &mut self,
        client: &Client,
        statements: &[Statement<'_>],
        until: Instant,
    ) -> Result<(), Failure> {
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(self.prepare_as(client, statement.sql, || statement.text()).await?);
        }
        // Zero would be no limit.
        let left = until.saturating_duration_since(Instant::now()).as_millis().max(1);
        client.batch_execute(&format!("BEGIN; SET LOCAL statement_timeout = {left}")).await?;
        let mut failed = None;
        for (statement, prepared) in statements.iter().zip(&prepared) {
            if Instant::now() >= until {
                break;
            }
            let values: Vec<&(dyn ToSql + Sync)> =
                statement.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            if let Err(error) = client.execute(prepared, &values).await {
                failed = Some(Failure { at: Some(statement.sql), error });
                break;
            }
        }
        client.batch_execute("ROLLBACK").await?;
        failed.map_or(Ok(()), Err)
    }

    /// Runs all of these as one transaction, in order and without waiting in between: two ways there and back, and one
    /// sync, however many there are. The first that fails makes an end of it: what comes after it is refused, the
    /// commit as well, and the connection can be used again.
    pub(crate) async fn transact(&mut self, client: &Client, statements: &[Statement<'_>]) -> Result<(), Failure> {
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(self.prepare_as(client, statement.sql, || statement.text()).await?);
        }
        // Waited for: had it failed, what follows would be a transaction each.
        client.batch_execute("BEGIN").await?;
        let mut asked: Vec<(Option<&'static str>, Sent<'_>)> = Vec::with_capacity(statements.len() + 1);
        for (statement, prepared) in statements.iter().zip(&prepared) {
            let values: Vec<&(dyn ToSql + Sync)> =
                statement.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            let answer: Answer<'_> = Box::pin(async move { client.execute(prepared, &values).await });
            asked.push((Some(statement.sql), Sent::new(answer)));
        }
        // One that could not even be sent would be missing over there, and nobody there would know.
        let end = if asked.iter().any(|(_, sent)| sent.failed()) { "ROLLBACK" } else { "COMMIT" };
        asked.push((None, Sent::new(Box::pin(async move { client.batch_execute(end).await.map(|()| 0) }))));
        for (at, sent) in asked {
            sent.answer().await.map_err(|error| Failure { at, error })?;
        }
        Ok(())
    }
}

/// A request on its way. It is sent when it is first asked about, so making them in order is sending them in order.
struct Sent<'a> {
    answer: Answer<'a>,
    now: Option<Result<u64, Error>>,
}

impl<'a> Sent<'a> {
    fn new(mut answer: Answer<'a>) -> Self {
        let now = answer.as_mut().now_or_never();
        Self { answer, now }
    }

    fn failed(&self) -> bool {
        matches!(self.now, Some(Err(_)))
    }

    async fn answer(self) -> Result<u64, Error> {
        match self.now {
            Some(answer) => answer,
            None => self.answer.await,
        }
    }
}
