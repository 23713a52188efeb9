//! The whole database, table by table; see [`Archive`].

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp};
use baton_store::archive::{Archive, Entry, LedgerState, Table};
use baton_store::{Error, LedgerId, LedgerKind, RunRow};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::{read_error, unavailable};
use crate::reader::bound;
use crate::statement::{Statement, Statements};
use crate::summary::Told;
use crate::text::{self, written};
use crate::{PostgresStore, rows};

#[async_trait]
impl Archive for PostgresStore {
    async fn count(&self, table: Table) -> Result<u64, Error> {
        let narrow = if table == Table::Bases { " WHERE base IS NOT NULL" } else { "" };
        let sql = format!("SELECT count(*) FROM {}{narrow}", table.name());
        Ok(self.questions.one(&sql, &[], |row| rows::count(row, 0)).await?.unwrap_or(0))
    }

    async fn page(&self, table: Table, after: Option<&Entry>, limit: usize) -> Result<Vec<Entry>, Error> {
        let (columns, key) = shape(table);
        let (place, mut values) = after.map_or_else(|| (String::new(), Vec::new()), place);
        let mut wanted = vec!["true".to_owned()];
        if table == Table::Bases {
            wanted.push("base IS NOT NULL".to_owned());
        }
        if !place.is_empty() {
            wanted.push(format!("({key}) > ({place})"));
        }
        values.push(Box::new(bound(limit)));
        let (from, wanted, count) = (table.name(), wanted.join(" AND "), values.len());
        let sql = format!("SELECT {columns} FROM {from} WHERE {wanted} ORDER BY {key} LIMIT ${count}");
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        self.questions.list(&sql, &values, |row| read(table, row)).await
    }

    async fn restore(&self, entries: Vec<Entry>) -> Result<(), Error> {
        let client = self.questions.connection().await?;
        let statements: Vec<Statement<'_>> = entries.iter().map(restored).collect();
        let mut prepared = Statements::default();
        prepared.transact(&client, &statements).await.map_err(|failure| read_error(failure.error))
    }
}

impl PostgresStore {
    /// Something that is made once and then is the same for every host: what was first proposed under this name.
    pub async fn common(&self, name: &str, proposed: &[u8]) -> Result<Vec<u8>, Error> {
        let keep = "INSERT INTO common (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        self.questions.ask(keep, &[&written(name), &proposed]).await?;
        let kept = self.find_common(name).await?;
        kept.ok_or_else(|| unavailable(format!("what all hosts share as {name} was not kept")))
    }

    pub async fn find_common(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.questions.one("SELECT value FROM common WHERE name = $1", &[&written(name)], |row| rows::get(row, 0)).await
    }

    /// Hosts that are using the database now, by name.
    pub async fn hosts(&self) -> Result<Vec<String>, Error> {
        let sql = "SELECT host FROM sessions WHERE NOT ended AND lease_until > now() ORDER BY epoch";
        self.questions.list(sql, &[], |row| rows::text(row, 0)).await
    }
}

/// Columns and key.
fn shape(table: Table) -> (String, &'static str) {
    match table {
        Table::Blobs => ("digest, bytes".to_owned(), "digest"),
        Table::Workflows => (rows::WORKFLOW.to_owned(), "tenant, id, version"),
        Table::Runs => (rows::RUN.to_owned(), "position"),
        Table::Records => (format!("{}, run", rows::RECORD), "run, seq"),
        Table::Ledgers => {
            ("tenant, kind, coalesce(long_scope, scope), version, updated_at, forgotten".to_owned(), "ledger")
        }
        Table::Bases => {
            let base = "(SELECT coalesce(b.long_scope, b.scope) FROM ledgers b WHERE b.ledger = ledgers.base)";
            (format!("tenant, kind, coalesce(long_scope, scope), base_version, {base}"), "ledger")
        }
        Table::Changes => {
            let of = |column| format!("(SELECT {column} FROM ledgers l WHERE l.ledger = changes.ledger)");
            let change = "version, coalesce(long_key, key), at, run, expires_at, tags, meta, content";
            (
                format!("{change}, {}, {}, {}", of("tenant"), of("kind"), of("coalesce(long_scope, scope)")),
                "ledger, version",
            )
        }
        Table::Interrupts => (rows::INTERRUPT.to_owned(), "run, node"),
        Table::Replies => ("key, request, status, body, expires_at".to_owned(), "key"),
        Table::Webhooks => (rows::WEBHOOK.to_owned(), "id"),
        Table::Deliveries => ("webhook, run, seq, attempts, due_at".to_owned(), "webhook, run, seq"),
        Table::DeadLetters => (rows::DEAD_LETTER.to_owned(), "webhook, run, seq"),
        Table::Quarantine => (rows::QUARANTINE.to_owned(), "root"),
    }
}

type Value = Box<dyn ToSql + Sync + Send>;

fn text_of(text: &str) -> Value {
    Box::new(written(text).into_owned())
}

fn key_of(text: &str) -> Value {
    Box::new(text::key(text).into_owned())
}

/// The key of an entry, as an expression and its values.
fn place(entry: &Entry) -> (String, Vec<Value>) {
    let seq = |seq: u64| -> Value { Box::new(rows::integer(seq)) };
    let key = |ledger: &LedgerId| -> Value { Box::new(rows::ledger_key(ledger)) };
    let values = match entry {
        Entry::Run(row) => {
            return ("(SELECT position FROM runs WHERE id = $1)".to_owned(), vec![text_of(row.id.as_str())]);
        }
        Entry::Blob { digest, .. } => vec![text_of(digest.as_str())],
        Entry::Workflow(row) => vec![text_of(row.tenant.as_str()), key_of(row.id.as_str()), seq(row.version.into())],
        Entry::Record { run, record } => vec![text_of(run.as_str()), seq(record.seq)],
        Entry::Ledger(state) => vec![key(&state.ledger)],
        Entry::Base { ledger, .. } => vec![key(ledger)],
        Entry::Change { ledger, change } => vec![key(ledger), seq(change.version)],
        Entry::Interrupt(row) => vec![text_of(row.run.as_str()), key_of(row.node.as_str())],
        Entry::Reply(reply) => vec![text_of(reply.key.as_str())],
        Entry::Webhook(row) => vec![text_of(row.id.as_str())],
        Entry::Quarantine(row) => vec![text_of(row.root.as_str())],
        Entry::Delivery(row) => vec![text_of(row.webhook.as_str()), text_of(row.run.as_str()), seq(row.seq)],
        Entry::DeadLetter(row) => vec![text_of(row.webhook.as_str()), text_of(row.run.as_str()), seq(row.seq)],
    };
    let places: Vec<String> = (1..=values.len()).map(|index| format!("${index}")).collect();
    (places.join(", "), values)
}

pub(crate) fn ledger_id(row: &Row, first: usize) -> Result<LedgerId, Error> {
    Ok(LedgerId {
        tenant: TenantId::new(rows::text(row, first)?),
        kind: rows::parsed(row, first + 1, "kind", LedgerKind::parse)?,
        scope: rows::text(row, first + 2)?,
    })
}

fn read(table: Table, row: &Row) -> Result<Entry, Error> {
    Ok(match table {
        Table::Blobs => {
            Entry::Blob { digest: rows::parsed(row, 0, "digest", Digest::parse)?, bytes: rows::get(row, 1)? }
        }
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
        Table::Changes => Entry::Change { ledger: ledger_id(row, 8)?, change: rows::change(row)? },
        Table::Interrupts => Entry::Interrupt(rows::interrupt(row)?),
        Table::Replies => Entry::Reply(rows::reply(row)?),
        Table::Webhooks => Entry::Webhook(rows::webhook(row)?),
        Table::Deliveries => Entry::Delivery(rows::delivery(row)?),
        Table::DeadLetters => Entry::DeadLetter(rows::dead_letter(row)?),
        Table::Quarantine => Entry::Quarantine(rows::quarantine(row)?),
    })
}

/// The statement that writes an entry down.
fn restored(entry: &Entry) -> Statement<'_> {
    match entry {
        Entry::Blob { digest, bytes } => {
            Statement::new("INSERT INTO blobs (digest, bytes) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING")
                .value(digest.as_str())
                .value(bytes.as_slice())
        }
        Entry::Workflow(row) => Statement::new(
            "INSERT INTO workflows (tenant, id, version, digest, name, created_at, long_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, id, version) DO NOTHING",
        )
        .value(written(row.tenant.as_str()))
        .value(text::key(row.id.as_str()))
        .value(i64::from(row.version))
        .value(row.digest.as_str())
        .value(written(&row.name))
        .value(row.created_at.as_micros())
        .value(text::long(row.id.as_str())),
        Entry::Run(row) => restored_run(row),
        Entry::Record { run, record } => Statement::new(
            "INSERT INTO events (run, seq, at, kind, body, private, memory, workspace, part)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (run, seq) DO NOTHING",
        )
        .value(written(run.as_str()))
        .value(rows::integer(record.seq))
        .value(record.at.as_micros())
        .value(written(&record.kind))
        .value(written(&record.body))
        .value(record.private.as_deref().map(written))
        .value(rows::integer(record.versions.memory))
        .value(rows::integer(record.versions.workspace))
        .value(record.part.map(rows::part)),
        Entry::Ledger(LedgerState { ledger, version, updated_at, forgotten }) => Statement::new(
            "INSERT INTO ledgers (ledger, tenant, kind, scope, version, updated_at, forgotten, long_scope)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (ledger) DO NOTHING",
        )
        .value(rows::ledger_key(ledger))
        .value(written(ledger.tenant.as_str()))
        .value(ledger.kind.as_str())
        .value(text::key(&ledger.scope))
        .value(rows::integer(*version))
        .value(updated_at.as_micros())
        .value(rows::integer(*forgotten))
        .value(text::long(&ledger.scope)),
        Entry::Base { ledger, base, version } => {
            Statement::new("UPDATE ledgers SET base = $2, base_version = $3 WHERE ledger = $1")
                .value(rows::ledger_key(ledger))
                .value(rows::ledger_key(base))
                .value(rows::integer(*version))
        }
        Entry::Change { ledger, change } => {
            let item = change.item.as_ref();
            let tags: Vec<_> = item.map_or(&[][..], |item| &item.meta.tags).iter().map(|tag| written(tag)).collect();
            Statement::new(
                "INSERT INTO changes (ledger, version, key, at, run, expires_at, tags, meta, content, long_key)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (ledger, version) DO NOTHING",
            )
            .value(rows::ledger_key(ledger))
            .value(rows::integer(change.version))
            .value(text::key(&change.key))
            .value(change.at.as_micros())
            .value(change.run.as_ref().map(|run| written(run.as_str())))
            .value(item.and_then(|item| item.expires_at).map(Timestamp::as_micros))
            .value(tags)
            .value(rows::meta(item))
            .value(item.map(|item| written(&item.content)))
            .value(text::long(&change.key))
        }
        Entry::Interrupt(row) => Statement::new(
            "INSERT INTO interrupts (run, node, tenant, workflow, interrupt_id, key, kind, data, requested_at,
                    expires_at, long_node)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (run, node) DO NOTHING",
        )
        .value(written(row.run.as_str()))
        .value(text::key(row.node.as_str()))
        .value(written(row.tenant.as_str()))
        .value(written(row.workflow.as_str()))
        .value(written(&row.interrupt_id))
        .value(written(&row.key))
        .value(written(&row.kind))
        .value(row.data.to_string())
        .value(row.requested_at.as_micros())
        .value(row.expires_at.map(Timestamp::as_micros))
        .value(text::long(row.node.as_str())),
        Entry::Reply(reply) => Statement::new(
            "INSERT INTO replies (key, request, status, body, expires_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (key) DO NOTHING",
        )
        .value(reply.key.as_str())
        .value(reply.request.as_str())
        .value(i32::from(reply.status))
        .value(written(&reply.body))
        .value(reply.expires_at.as_micros()),
        Entry::Webhook(row) => Statement::new(
            "INSERT INTO webhooks (id, tenant, url, events, tags, secret, status, consecutive_failures, failures,
                    window_start, open_until, created_at, last_failed_at, last_status, letters_dropped)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (id) DO NOTHING",
        )
        .value(written(row.id.as_str()))
        .value(written(row.tenant.as_str()))
        .value(written(&row.url))
        .texts(row.events.iter().map(String::as_str))
        .texts(row.tags.iter().map(String::as_str))
        .value(written(&row.secret))
        .value(row.status.as_str())
        .value(i64::from(row.consecutive_failures))
        .value(i64::from(row.failures))
        .value(row.window_start.as_micros())
        .value(row.open_until.map(Timestamp::as_micros))
        .value(row.created_at.as_micros())
        .value(row.last_failure.map(|last| last.at.as_micros()))
        .value(row.last_failure.and_then(|last| last.status).map(i64::from))
        .value(rows::integer(row.letters_dropped)),
        Entry::Quarantine(row) => Statement::new(
            "INSERT INTO quarantine (root, tenant, run, seq, cause, detail, at) VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (root) DO NOTHING",
        )
        .value(written(row.root.as_str()))
        .value(written(row.tenant.as_str()))
        .value(written(row.run.as_str()))
        .value(rows::integer(row.seq))
        .value(written(&row.cause))
        .value(written(&row.detail))
        .value(row.at.as_micros()),
        Entry::Delivery(row) => Statement::new(
            "INSERT INTO deliveries (webhook, run, seq, attempts, due_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (webhook, run, seq) DO NOTHING",
        )
        .value(written(row.webhook.as_str()))
        .value(written(row.run.as_str()))
        .value(rows::integer(row.seq))
        .value(i64::from(row.attempts))
        .value(row.due_at.as_micros()),
        Entry::DeadLetter(row) => Statement::new(
            "INSERT INTO dead_letters (webhook, run, seq, kind, attempts, reason, status, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (webhook, run, seq) DO NOTHING",
        )
        .value(written(row.webhook.as_str()))
        .value(written(row.run.as_str()))
        .value(rows::integer(row.seq))
        .value(written(&row.kind))
        .value(i64::from(row.attempts))
        .value(row.reason.as_str())
        .value(row.status.map(i64::from))
        .value(row.at.as_micros()),
    }
}

fn restored_run(row: &RunRow) -> Statement<'_> {
    let told = Told::by(row);
    Statement::new(
        "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, parent, scope,
                tags, current_node, error_code, busy, root, memory_scope, workspace_scope, origin, origin_run,
                origin_seq, pruned_at, pruned_log, summary, diverged, over_budget, cost_usd, long_workflow,
                long_scope, long_memory_scope)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                $24, $25, $26, $27, $28, $29, $30)
         ON CONFLICT (id) DO NOTHING",
    )
    .value(written(row.id.as_str()))
    .value(written(row.tenant.as_str()))
    .value(text::key(row.workflow.as_str()))
    .value(row.digest.as_str())
    .value(row.status.as_str())
    .value(row.created_at.as_micros())
    .value(row.updated_at.as_micros())
    .value(rows::integer(row.next_seq))
    .value(row.wake_at.map(Timestamp::as_micros))
    .value(row.parent.as_ref().map(|run| written(run.as_str())))
    .value(row.scope.as_deref().map(text::key))
    .texts(row.tags.iter().map(String::as_str))
    .value(row.current_node.as_ref().map(NodeId::as_str).map(written))
    .value(row.error_code.as_deref().map(written))
    .value(row.busy)
    .value(row.root.as_ref().map(|run| written(run.as_str())))
    .value(text::key(row.named_memory_scope()))
    .value(written(row.named_workspace_scope()))
    .value(row.origin.as_ref().and_then(|origin| serde_json::to_string(origin).ok()))
    .value(row.origin.as_ref().map(|origin| written(origin.source.as_str())))
    .value(row.origin.as_ref().map_or(0, |origin| rows::integer(origin.seq)))
    .value(row.pruned.map(|pruned| pruned.at.as_micros()))
    .value(row.pruned.is_some_and(|pruned| pruned.log))
    .value(row.summary.as_deref().map(written))
    .value(told.diverged)
    .value(told.over_budget)
    .value(told.cost_usd)
    .value(text::long(row.workflow.as_str()))
    .value(row.scope.as_deref().and_then(text::long))
    .value(text::long(row.named_memory_scope()))
}
