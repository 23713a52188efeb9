//! The whole database, table by table; see [`Archive`].

use async_trait::async_trait;
use baton_store::Error;
use baton_store::archive::{Archive, Entry, KeyPart, Table};
use baton_store::codec::{CHANGE_WITH_TAGS, integer};
use tokio_postgres::types::ToSql;

use crate::error::read_error;
use crate::questions::bound;
use crate::restore::statements;
use crate::rows;
use crate::statement::Statements;
use crate::store::PostgresStore;
use crate::text::{self, written};

#[async_trait]
impl Archive for PostgresStore {
    async fn count(&self, table: Table) -> Result<u64, Error> {
        let narrow = if table == Table::Bases { " WHERE base IS NOT NULL" } else { "" };
        let sql = format!("SELECT count(*) FROM {}{narrow}", table.name());
        Ok(self.questions.one(&sql, &[], rows::count).await?.unwrap_or(0))
    }

    async fn page(&self, table: Table, after: Option<&Entry>, limit: usize) -> Result<Vec<Entry>, Error> {
        self.page_past(table, after, 0, limit).await
    }

    async fn row_past(&self, table: Table, after: Option<&Entry>, skipped: u64) -> Result<Option<Entry>, Error> {
        Ok(self.page_past(table, after, skipped, 1).await?.pop())
    }

    async fn restore(&self, entries: Vec<Entry>) -> Result<(), Error> {
        let client = self.questions.connection().await?;
        let mut prepared = Statements::default();
        prepared.transact(&client, &statements(&entries)).await.map_err(|failure| read_error(failure.error))
    }
}

impl PostgresStore {
    async fn page_past(
        &self,
        table: Table,
        after: Option<&Entry>,
        skipped: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        // A number that only goes up stands for when a run was created.
        let key = if table == Table::Runs { "position".to_owned() } else { table.key().join(", ") };
        let mut wanted = if table == Table::Bases { "base IS NOT NULL" } else { "true" }.to_owned();
        let mut values: Vec<Value> = Vec::new();
        if let Some(after) = after {
            let place: Vec<String> = after.key().into_iter().map(|part| place(part, &mut values)).collect();
            wanted.push_str(&format!(" AND ({key}) > ({})", place.join(", ")));
        }
        values.push(Box::new(bound(limit)));
        let (from, count) = (table.name(), values.len());
        let sums: String = table.sums().iter().map(|sum| format!(", {}", sum.column)).collect();
        let columns = columns(table) + &sums;
        let sql = format!("SELECT {columns} FROM {from} WHERE {wanted} ORDER BY {key} LIMIT ${count} OFFSET {skipped}");
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        self.questions.list(&sql, &values, |row| rows::entry(table, row)).await
    }
}

/// As [`Entry::read`] wants them.
pub(crate) fn columns(table: Table) -> String {
    match table {
        Table::Blobs => "digest, bytes".to_owned(),
        Table::Records => format!("{}, run", rows::list(table.columns())),
        Table::Bases => {
            let base = "(SELECT coalesce(b.long_scope, b.scope) FROM ledgers b WHERE b.ledger = ledgers.base)";
            format!("tenant, kind, coalesce(long_scope, scope), base_version, {base}")
        }
        Table::Changes => {
            let of = |column| format!("(SELECT {column} FROM ledgers l WHERE l.ledger = changes.ledger)");
            let (tenant, kind, scope) = (of("tenant"), of("kind"), of("coalesce(long_scope, scope)"));
            format!("{}, {tenant}, {kind}, {scope}", rows::list(CHANGE_WITH_TAGS))
        }
        _ => rows::list(table.columns()),
    }
}

type Value = Box<dyn ToSql + Sync + Send>;

/// Part of a key as an expression, and its value.
fn place(part: KeyPart<'_>, values: &mut Vec<Value>) -> String {
    values.push(match part {
        KeyPart::Creation(run) | KeyPart::Run(run) => Box::new(written(run.as_str()).into_owned()),
        KeyPart::Text(key) => Box::new(written(key).into_owned()),
        KeyPart::Name(name) => Box::new(text::key(name).into_owned()),
        KeyPart::VersionedStore(ledger) => Box::new(rows::versioned_key(ledger)),
        KeyPart::Number(number) => Box::new(integer(number)),
    });
    match part {
        KeyPart::Creation(_) => format!("(SELECT position FROM runs WHERE id = ${})", values.len()),
        _ => format!("${}", values.len()),
    }
}
