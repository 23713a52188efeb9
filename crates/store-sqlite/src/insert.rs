//! Things as rows. A commit and an archive write the same ones; they differ in what becomes of a row that is there
//! already.

use baton_model::{Digest, RunId, Timestamp};
use baton_store::{
    Change, DeadLetter, Delivery, InterruptRow, LedgerId, Pruned, Quarantine, Reply, RunRow, StoredRecord, Webhook,
    WorkflowVersion,
};
use rusqlite::{Connection, ToSql, params};

use crate::rows;

/// What becomes of a row that is there already.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Existing {
    /// It must not be.
    Refuse,
    Keep,
    Replace,
}

/// The statement as a constant: nothing is put together for each row, and each is prepared once.
macro_rules! insert {
    ($existing:expr, $into:literal) => {
        match $existing {
            Existing::Refuse => concat!("INSERT INTO ", $into),
            Existing::Keep => concat!("INSERT OR IGNORE INTO ", $into),
            Existing::Replace => concat!("INSERT OR REPLACE INTO ", $into),
        }
    };
}

fn execute(connection: &Connection, sql: &str, values: &[&dyn ToSql]) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(values).map(|_rows| ())
}

/// `row` says what the run is, `latest` where it stands.
pub(crate) fn run(
    connection: &Connection,
    existing: Existing,
    row: &RunRow,
    latest: &RunRow,
    next_seq: u64,
    pruned: Option<Pruned>,
) -> rusqlite::Result<()> {
    let sql = insert!(
        existing,
        "runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, parent, scope, tags,
                current_node, error_code, busy, root, memory_scope, workspace_scope, origin, origin_run, pruned_at,
                pruned_log, summary)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                ?23)"
    );
    let values = params![
        row.id.as_str(),
        row.tenant.as_str(),
        row.workflow.as_str(),
        row.digest.as_str(),
        latest.status.as_str(),
        row.created_at.as_micros(),
        latest.updated_at.as_micros(),
        rows::integer(next_seq),
        latest.wake_at.map(Timestamp::as_micros),
        row.parent.as_ref().map(RunId::as_str),
        row.scope,
        rows::json_list(&row.tags),
        latest.current_node.as_ref().map(|node| node.as_str()),
        latest.error_code,
        latest.busy,
        row.root.as_ref().map(RunId::as_str),
        row.named_memory_scope(),
        row.named_workspace_scope(),
        row.origin.as_ref().and_then(|origin| serde_json::to_string(origin).ok()),
        row.origin.as_ref().map(|origin| origin.source.as_str()),
        pruned.map(|pruned| pruned.at.as_micros()),
        pruned.is_some_and(|pruned| pruned.log),
        latest.summary.as_deref(),
    ];
    execute(connection, sql, values)
}

pub(crate) fn records(
    connection: &Connection,
    existing: Existing,
    run: i64,
    records: &[StoredRecord],
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(insert!(
        existing,
        "events (run, seq, at, kind, body, private, memory, workspace, part)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    ))?;
    for record in records {
        insert.execute(params![
            run,
            rows::integer(record.seq),
            record.at.as_micros(),
            record.kind,
            record.body,
            record.private,
            rows::integer(record.versions.memory),
            rows::integer(record.versions.workspace),
            record.part.map(rows::part),
        ])?;
    }
    Ok(())
}

pub(crate) fn ledger(
    connection: &Connection,
    existing: Existing,
    id: &LedgerId,
    version: u64,
    updated_at: Timestamp,
    forgotten: u64,
) -> rusqlite::Result<()> {
    let sql = insert!(
        existing,
        "ledgers (tenant, kind, scope, version, updated_at, forgotten) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    );
    let values = params![
        id.tenant.as_str(),
        id.kind.as_str(),
        id.scope,
        rows::integer(version),
        updated_at.as_micros(),
        rows::integer(forgotten),
    ];
    execute(connection, sql, values)
}

pub(crate) fn change(
    connection: &Connection,
    existing: Existing,
    ledger: i64,
    change: &Change,
) -> rusqlite::Result<()> {
    let item = change.item.as_ref();
    let sql = insert!(
        existing,
        "changes (ledger, version, key, at, run, expires_at, meta, content)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    );
    let values = params![
        ledger,
        rows::integer(change.version),
        change.key,
        change.at.as_micros(),
        change.run.as_ref().map(RunId::as_str),
        item.and_then(|item| item.expires_at).map(Timestamp::as_micros),
        rows::meta(item),
        item.map(|item| &item.content),
    ];
    execute(connection, sql, values)
}

pub(crate) fn interrupt(connection: &Connection, existing: Existing, row: &InterruptRow) -> rusqlite::Result<()> {
    let sql = insert!(
        existing,
        "interrupts (run, node, tenant, workflow, interrupt_id, key, kind, data, requested_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
    );
    let values = params![
        row.run.as_str(),
        row.node.as_str(),
        row.tenant.as_str(),
        row.workflow.as_str(),
        row.interrupt_id,
        row.key,
        row.kind,
        row.data.to_string(),
        row.requested_at.as_micros(),
        row.expires_at.map(Timestamp::as_micros),
    ];
    execute(connection, sql, values)
}

/// What is there under a digest is the same.
pub(crate) fn blob(connection: &Connection, digest: &Digest, bytes: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING";
    execute(connection, sql, params![digest.as_str(), bytes])
}

pub(crate) fn workflow(connection: &Connection, existing: Existing, row: &WorkflowVersion) -> rusqlite::Result<()> {
    let sql =
        insert!(existing, "workflows (tenant, id, version, digest, name, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    let values = params![
        row.tenant.as_str(),
        row.id.as_str(),
        row.version,
        row.digest.as_str(),
        row.name,
        row.created_at.as_micros(),
    ];
    execute(connection, sql, values)
}

pub(crate) fn reply(connection: &Connection, existing: Existing, reply: &Reply) -> rusqlite::Result<()> {
    let sql = insert!(existing, "replies (key, request, status, body, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)");
    let values =
        params![reply.key.as_str(), reply.request.as_str(), reply.status, reply.body, reply.expires_at.as_micros()];
    execute(connection, sql, values)
}

pub(crate) fn webhook(connection: &Connection, existing: Existing, row: &Webhook) -> rusqlite::Result<()> {
    let sql = insert!(
        existing,
        "webhooks (id, tenant, url, events, tags, secret, status, consecutive_failures, failures, window_start,
                open_until, created_at, last_failed_at, last_status, letters_dropped)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
    );
    let values = params![
        row.id.as_str(),
        row.tenant.as_str(),
        row.url,
        rows::json_list(&row.events),
        rows::json_list(&row.tags),
        row.secret,
        row.status.as_str(),
        row.consecutive_failures,
        row.failures,
        row.window_start.as_micros(),
        row.open_until.map(Timestamp::as_micros),
        row.created_at.as_micros(),
        row.last_failure.map(|last| last.at.as_micros()),
        row.last_failure.and_then(|last| last.status),
        rows::integer(row.letters_dropped),
    ];
    execute(connection, sql, values)
}

pub(crate) fn dead_letter(connection: &Connection, existing: Existing, row: &DeadLetter) -> rusqlite::Result<()> {
    let sql = insert!(
        existing,
        "dead_letters (webhook, run, seq, kind, attempts, reason, status, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    );
    let values = params![
        row.webhook.as_str(),
        row.run.as_str(),
        rows::integer(row.seq),
        row.kind,
        row.attempts,
        row.reason.as_str(),
        row.status,
        row.at.as_micros(),
    ];
    execute(connection, sql, values)
}

pub(crate) fn quarantine(connection: &Connection, existing: Existing, row: &Quarantine) -> rusqlite::Result<()> {
    let sql =
        insert!(existing, "quarantine (root, tenant, run, seq, cause, detail, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let values = params![
        row.root.as_str(),
        row.tenant.as_str(),
        row.run.as_str(),
        rows::integer(row.seq),
        row.cause,
        row.detail,
        row.at.as_micros(),
    ];
    execute(connection, sql, values)
}

pub(crate) fn delivery(connection: &Connection, existing: Existing, row: &Delivery) -> rusqlite::Result<()> {
    let sql = insert!(existing, "deliveries (webhook, run, seq, attempts, due_at) VALUES (?1, ?2, ?3, ?4, ?5)");
    let values =
        params![row.webhook.as_str(), row.run.as_str(), rows::integer(row.seq), row.attempts, row.due_at.as_micros(),];
    execute(connection, sql, values)
}
