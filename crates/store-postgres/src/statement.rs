//! Statements with their values, sent without waiting for the one before.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;

use futures_util::FutureExt as _;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement as Prepared};

use crate::text;

type Value<'a> = Box<dyn ToSql + Sync + Send + 'a>;

pub(crate) struct Statement<'a> {
    pub(crate) sql: &'static str,
    values: Vec<Value<'a>>,
    /// How many rows it must touch; anything else means that what was assumed is not so.
    pub(crate) rows: Option<u64>,
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("sql", &self.sql).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), rows: None }
    }

    pub(crate) fn touching(self, rows: usize) -> Self {
        Self { rows: Some(rows as u64), ..self }
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

    /// Lists of texts. There are no lists of lists of different lengths there, so each goes as a text: `…::TEXT[]`.
    pub(crate) fn lists(self, values: impl IntoIterator<Item = &'a [String]>) -> Self {
        self.list(values.into_iter().map(literal))
    }
}

/// A list as PostgreSQL writes one.
fn literal(list: &[String]) -> String {
    let quoted = |text: &String| format!("\"{}\"", text::written(text).replace('\\', "\\\\").replace('"', "\\\""));
    format!("{{{}}}", list.iter().map(quoted).collect::<Vec<_>>().join(","))
}

/// Prepared once per connection.
#[derive(Default)]
pub(crate) struct Statements(HashMap<&'static str, Prepared>);

impl Statements {
    pub(crate) async fn prepare(&mut self, client: &Client, sql: &'static str) -> Result<Prepared, Error> {
        if let Some(prepared) = self.0.get(sql) {
            return Ok(prepared.clone());
        }
        let prepared = client.prepare(sql).await?;
        self.0.insert(sql, prepared.clone());
        Ok(prepared)
    }

    /// Begins a transaction and runs all of these in it, in order and without waiting in between: one way there and
    /// back however many there are. Says how many rows each touched, or the first error.
    pub(crate) async fn begin_and_run(
        &mut self,
        client: &Client,
        statements: &[Statement<'_>],
    ) -> Result<Vec<u64>, Error> {
        let mut prepared = Vec::with_capacity(statements.len());
        for statement in statements {
            prepared.push(self.prepare(client, statement.sql).await?);
        }
        let mut begin = Box::pin(client.batch_execute("BEGIN"));
        // A request is sent when it is first asked about, so asking in order is sending in order.
        let mut begun = begin.as_mut().now_or_never();
        let mut asked = Vec::with_capacity(statements.len());
        for (statement, prepared) in statements.iter().zip(&prepared) {
            let values: Vec<&(dyn ToSql + Sync)> =
                statement.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            let mut answer: Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> =
                Box::pin(async move { client.execute(prepared, &values).await });
            let now = answer.as_mut().now_or_never();
            asked.push((answer, now));
        }
        if begun.is_none() {
            begun = Some(begin.await);
        }
        if let Some(outcome) = begun {
            outcome?;
        }
        let mut touched = Vec::with_capacity(asked.len());
        for (answer, now) in asked {
            touched.push(match now {
                Some(outcome) => outcome?,
                None => answer.await?,
            });
        }
        Ok(touched)
    }
}
