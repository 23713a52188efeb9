//! The whole file, table by table; see [`Archive`].

use async_trait::async_trait;
use baton_store::archive::{Archive, Entry, KeyPart, Table};
use baton_store::codec::{integer, names};
use baton_store::{Error, VersionedStoreId};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::query::bound;
use crate::rows;
use crate::store::SqliteStore;

#[async_trait]
impl Archive for SqliteStore {
    async fn count(&self, table: Table) -> Result<u64, Error> {
        let narrow = if table == Table::Bases { " WHERE base IS NOT NULL" } else { "" };
        let sql = format!("SELECT count(*) FROM {}{narrow}", table.name());
        self.readers().read(move |c| c.query_row(&sql, [], rows::count)).await
    }

    async fn page(&self, table: Table, after: Option<&Entry>, limit: usize) -> Result<Vec<Entry>, Error> {
        let after = after.cloned();
        self.readers().read(move |c| page(c, table, after.as_ref(), 0, limit)).await
    }

    async fn row_past(&self, table: Table, after: Option<&Entry>, skipped: u64) -> Result<Option<Entry>, Error> {
        let after = after.cloned();
        let mut found = self.readers().read(move |c| page(c, table, after.as_ref(), skipped, 1)).await?;
        Ok(found.pop())
    }

    async fn restore(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.restore_entries(entries).await
    }
}

/// At most `limit` rows after this one and `skipped` others.
pub(crate) fn page(
    connection: &Connection,
    table: Table,
    after: Option<&Entry>,
    skipped: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Entry>> {
    // A small number stands for a run's id.
    let key = if table == Table::Runs { "run".to_owned() } else { table.key().join(", ") };
    let mut wanted = if table == Table::Bases { "base IS NOT NULL" } else { "true" }.to_owned();
    let mut values = Vec::new();
    if let Some(after) = after {
        let place: Vec<&str> = after.key().into_iter().map(|part| place(part, &mut values)).collect();
        wanted.push_str(&format!(" AND ({key}) > ({})", place.join(", ")));
    }
    let sums: String = table.sums().iter().map(|sum| format!(", {}", sum.column)).collect();
    let (columns, from) = (columns(table) + &sums, table.name());
    let sql = format!("SELECT {columns} FROM {from} WHERE {wanted} ORDER BY {key} LIMIT ? OFFSET ?");
    values.push(Value::from(bound(limit)));
    values.push(Value::from(integer(skipped)));
    let mut query = connection.prepare_cached(&sql)?;
    query.query_map(params_from_iter(values), |row| rows::entry(table, row))?.collect()
}

/// As [`Entry::read`] wants them.
fn columns(table: Table) -> String {
    let own = names(table.columns());
    match table {
        Table::Blobs => "digest, bytes".to_owned(),
        Table::Records => format!("{own}, (SELECT id FROM runs WHERE runs.run = events.run)"),
        Table::Bases => {
            "tenant, kind, scope, base_version, (SELECT b.scope FROM ledgers b WHERE b.ledger = ledgers.base)"
                .to_owned()
        }
        Table::Changes => {
            let of = |column| format!("(SELECT {column} FROM ledgers l WHERE l.ledger = changes.ledger)");
            format!("{own}, {}, {}, {}", of("tenant"), of("kind"), of("scope"))
        }
        _ => own,
    }
}

/// Part of a key as an expression, and its values.
fn place(part: KeyPart<'_>, values: &mut Vec<Value>) -> &'static str {
    let mut text = |text: &str| values.push(Value::from(text.to_owned()));
    match part {
        KeyPart::Creation(run) | KeyPart::Run(run) => {
            text(run.as_str());
            "(SELECT run FROM runs WHERE id = ?)"
        }
        KeyPart::VersionedStore(VersionedStoreId { tenant, kind, scope }) => {
            [tenant.as_str(), kind.as_str(), scope].into_iter().for_each(text);
            "(SELECT ledger FROM ledgers l WHERE l.tenant = ? AND l.kind = ? AND l.scope = ?)"
        }
        KeyPart::Text(key) | KeyPart::Name(key) => {
            text(key);
            "?"
        }
        KeyPart::Number(number) => {
            values.push(Value::from(integer(number)));
            "?"
        }
    }
}
