//! The whole file, table by table; see [`Archive`].

use async_trait::async_trait;
use baton_model::{Digest, RunId, TenantId};
use baton_store::archive::{Archive, Entry, LedgerState, Table};
use baton_store::{Error, LedgerId, LedgerKind};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::rows;
use crate::store::SqliteStore;

#[async_trait]
impl Archive for SqliteStore {
    async fn count(&self, table: Table) -> Result<u64, Error> {
        let narrow = if table == Table::Bases { " WHERE base IS NOT NULL" } else { "" };
        let sql = format!("SELECT count(*) FROM {}{narrow}", table.name());
        self.readers().read(move |c| c.query_row(&sql, [], |row| rows::count(row, 0))).await
    }

    async fn page(&self, table: Table, after: Option<&Entry>, limit: usize) -> Result<Vec<Entry>, Error> {
        let after = after.cloned();
        self.readers().read(move |c| page(c, table, after.as_ref(), limit)).await
    }

    async fn restore(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.restore_entries(entries).await
    }
}

fn text(text: &str) -> Value {
    Value::from(text.to_owned())
}

const LEDGER: &str = "(SELECT ledger FROM ledgers l WHERE l.tenant = ? AND l.kind = ? AND l.scope = ?)";

fn page(connection: &Connection, table: Table, after: Option<&Entry>, limit: usize) -> rusqlite::Result<Vec<Entry>> {
    let columns = match table {
        Table::Blobs => "digest, bytes".to_owned(),
        Table::Workflows => "tenant, id, version, digest, name, created_at".to_owned(),
        Table::Runs => rows::RUN.to_owned(),
        Table::Records => {
            "seq, at, kind, body, private, memory, workspace, part, (SELECT id FROM runs WHERE runs.run = events.run)"
                .to_owned()
        }
        Table::Ledgers => "tenant, kind, scope, version, updated_at, forgotten".to_owned(),
        Table::Bases => {
            "tenant, kind, scope, base_version, (SELECT b.scope FROM ledgers b WHERE b.ledger = ledgers.base)"
                .to_owned()
        }
        Table::Changes => "version, key, at, run, expires_at, meta, content,
            (SELECT tenant FROM ledgers l WHERE l.ledger = changes.ledger),
            (SELECT kind FROM ledgers l WHERE l.ledger = changes.ledger),
            (SELECT scope FROM ledgers l WHERE l.ledger = changes.ledger)"
            .to_owned(),
        Table::Interrupts => rows::INTERRUPT.to_owned(),
        Table::Replies => "key, request, status, body, expires_at".to_owned(),
        Table::Webhooks => rows::WEBHOOK.to_owned(),
        Table::Deliveries => "webhook, run, seq, attempts, due_at".to_owned(),
        Table::DeadLetters => rows::DEAD_LETTER.to_owned(),
        Table::Quarantine => rows::QUARANTINE.to_owned(),
        Table::Annotations => rows::ANNOTATION.to_owned(),
    };
    let key = match table {
        Table::Blobs => "digest",
        Table::Workflows => "tenant, id, version",
        Table::Runs => "run",
        Table::Records => "run, seq",
        Table::Ledgers | Table::Bases => "ledger",
        Table::Changes => "ledger, version",
        Table::Interrupts => "run, node",
        Table::Replies => "key",
        Table::Webhooks => "id",
        Table::Deliveries | Table::DeadLetters => "webhook, run, seq",
        Table::Quarantine => "root",
        Table::Annotations => "run, id",
    };
    let (place, mut values) = after.map_or_else(|| (String::new(), Vec::new()), place);
    let mut wanted = Vec::new();
    if table == Table::Bases {
        wanted.push("base IS NOT NULL".to_owned());
    }
    if !place.is_empty() {
        wanted.push(format!("({key}) > ({place})"));
    }
    let wanted = if wanted.is_empty() { "true".to_owned() } else { wanted.join(" AND ") };
    let sql = format!("SELECT {columns} FROM {} WHERE {wanted} ORDER BY {key} LIMIT ?", table.name());
    values.push(Value::from(i64::try_from(limit).unwrap_or(i64::MAX)));
    let mut query = connection.prepare_cached(&sql)?;
    query.query_map(params_from_iter(values), |row| read(table, row))?.collect()
}

/// The key of an entry, as an expression and its values.
fn place(entry: &Entry) -> (String, Vec<Value>) {
    let ledger =
        |ledger: &LedgerId| vec![text(ledger.tenant.as_str()), text(ledger.kind.as_str()), text(&ledger.scope)];
    let run = "(SELECT run FROM runs WHERE id = ?)";
    match entry {
        Entry::Blob { digest, .. } => ("?".to_owned(), vec![text(digest.as_str())]),
        Entry::Workflow(row) => {
            let values = vec![text(row.tenant.as_str()), text(row.id.as_str()), Value::from(i64::from(row.version))];
            ("?, ?, ?".to_owned(), values)
        }
        Entry::Run(row) => (run.to_owned(), vec![text(row.id.as_str())]),
        Entry::Record { run: id, record } => {
            (format!("{run}, ?"), vec![text(id.as_str()), Value::from(rows::integer(record.seq))])
        }
        Entry::Ledger(state) => (LEDGER.to_owned(), ledger(&state.ledger)),
        Entry::Base { ledger: id, .. } => (LEDGER.to_owned(), ledger(id)),
        Entry::Change { ledger: id, change } => {
            let mut values = ledger(id);
            values.push(Value::from(rows::integer(change.version)));
            (format!("{LEDGER}, ?"), values)
        }
        Entry::Interrupt(row) => ("?, ?".to_owned(), vec![text(row.run.as_str()), text(row.node.as_str())]),
        Entry::Reply(reply) => ("?".to_owned(), vec![text(reply.key.as_str())]),
        Entry::Webhook(row) => ("?".to_owned(), vec![text(row.id.as_str())]),
        Entry::Annotation(row) => ("?, ?".to_owned(), vec![text(row.run.as_str()), text(&row.id)]),
        Entry::Quarantine(row) => ("?".to_owned(), vec![text(row.root.as_str())]),
        Entry::Delivery(row) => {
            let seq = Value::from(rows::integer(row.seq));
            ("?, ?, ?".to_owned(), vec![text(row.webhook.as_str()), text(row.run.as_str()), seq])
        }
        Entry::DeadLetter(row) => {
            let seq = Value::from(rows::integer(row.seq));
            ("?, ?, ?".to_owned(), vec![text(row.webhook.as_str()), text(row.run.as_str()), seq])
        }
    }
}

fn ledger_id(row: &Row<'_>, first: usize) -> rusqlite::Result<LedgerId> {
    Ok(LedgerId {
        tenant: TenantId::new(rows::text(row, first)?),
        kind: rows::parsed(row, first + 1, "kind", LedgerKind::parse)?,
        scope: rows::text(row, first + 2)?,
    })
}

fn read(table: Table, row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(match table {
        Table::Blobs => Entry::Blob { digest: rows::parsed(row, 0, "digest", Digest::parse)?, bytes: row.get(1)? },
        Table::Workflows => Entry::Workflow(rows::workflow(row)?),
        Table::Runs => Entry::Run(Box::new(rows::run(row)?.1)),
        Table::Records => Entry::Record { run: RunId::new(rows::text(row, 8)?), record: rows::record(row)? },
        Table::Ledgers => Entry::Ledger(LedgerState {
            ledger: ledger_id(row, 0)?,
            version: rows::count(row, 3)?,
            updated_at: rows::time(row, 4)?,
            forgotten: rows::count(row, 5)?,
        }),
        Table::Bases => {
            let ledger = ledger_id(row, 0)?;
            let base = LedgerId { scope: rows::text(row, 4)?, ..ledger.clone() };
            Entry::Base { ledger, base, version: rows::count(row, 3)? }
        }
        Table::Changes => Entry::Change { ledger: ledger_id(row, 7)?, change: rows::change(row)? },
        Table::Interrupts => Entry::Interrupt(rows::interrupt(row)?),
        Table::Replies => Entry::Reply(rows::reply(row)?),
        Table::Webhooks => Entry::Webhook(rows::webhook(row)?),
        Table::Deliveries => Entry::Delivery(rows::delivery(row)?),
        Table::DeadLetters => Entry::DeadLetter(rows::dead_letter(row)?),
        Table::Quarantine => Entry::Quarantine(rows::quarantine(row)?),
        Table::Annotations => Entry::Annotation(rows::annotation(row)?),
    })
}
