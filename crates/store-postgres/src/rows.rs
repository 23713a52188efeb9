//! Columns and the types they stand for.

use baton_model::{Digest, NodeId, Part, RunId, RunStatus, TenantId, Timestamp, Versions, WebhookId, WorkflowId};
use baton_store::{
    Change, DeadLetter, DeathReason, Delivery, Error, InterruptRow, Item, LastFailure, LedgerId, LedgerRow, Meta,
    Pruned, Quarantine, Reply, RunRow, StoredRecord, Webhook, WebhookLoad, WebhookStatus, WorkflowVersion,
};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::error::corrupt;
use crate::text;

pub(crate) const RUN: &str = "position, id, tenant, coalesce(long_workflow, workflow), digest, status, created_at, \
                              updated_at, next_seq, wake_at, parent, coalesce(long_scope, scope), tags, current_node, \
                              error_code, busy, root, coalesce(long_memory_scope, memory_scope), pruned_at, pruned_log, workspace_scope, origin, summary";
pub(crate) const RECORD: &str = "seq, at, kind, body, private, memory, workspace, part";
pub(crate) const INTERRUPT: &str =
    "run, coalesce(long_node, node), tenant, workflow, interrupt_id, key, kind, data, requested_at, expires_at";
pub(crate) const QUARANTINE: &str = "root, tenant, run, seq, cause, detail, at";
pub(crate) const WORKFLOW: &str = "tenant, coalesce(long_id, id), version, digest, name, created_at";
pub(crate) const WEBHOOK: &str = "id, tenant, url, events, tags, secret, status, consecutive_failures, failures, \
                                  window_start, open_until, created_at, last_failed_at, last_status, letters_dropped";
pub(crate) const DEAD_LETTER: &str = "webhook, run, seq, kind, attempts, reason, status, at";

type Read<T> = Result<T, Error>;

/// Integers there are signed; counts beyond that do not occur, and a bound beyond that means "no bound".
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The key of a ledger, made from its name.
pub(crate) fn ledger_key(ledger: &LedgerId) -> Vec<u8> {
    let mut hash = Sha256::new();
    for part in [ledger.tenant.as_str(), ledger.kind.as_str(), &ledger.scope] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize()[..16].to_vec()
}

pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Read<T> {
    row.try_get(index).map_err(|error| match error.into_source() {
        Some(source) => Error::Corrupt { reason: format!("column {index}: {source}") },
        None => Error::Corrupt { reason: format!("column {index} is not what it should be") },
    })
}

pub(crate) fn count(row: &Row, index: usize) -> Read<u64> {
    let value: i64 = get(row, index)?;
    u64::try_from(value).map_err(|_| corrupt("a count", &value.to_string()))
}

pub(crate) fn maybe_count(row: &Row, index: usize) -> Read<Option<u64>> {
    Ok(get::<Option<i64>>(row, index)?.map(i64::cast_unsigned))
}

fn small(row: &Row, index: usize) -> Read<u32> {
    let value: i64 = get(row, index)?;
    u32::try_from(value).map_err(|_| corrupt("a count", &value.to_string()))
}

pub(crate) fn time(row: &Row, index: usize) -> Read<Timestamp> {
    get(row, index).map(Timestamp::from_micros)
}

pub(crate) fn maybe_time(row: &Row, index: usize) -> Read<Option<Timestamp>> {
    Ok(get::<Option<i64>>(row, index)?.map(Timestamp::from_micros))
}

pub(crate) fn text(row: &Row, index: usize) -> Read<String> {
    get(row, index).map(text::read)
}

pub(crate) fn maybe_text(row: &Row, index: usize) -> Read<Option<String>> {
    Ok(get::<Option<String>>(row, index)?.map(text::read))
}

fn texts(row: &Row, index: usize) -> Read<Vec<String>> {
    Ok(get::<Vec<String>>(row, index)?.into_iter().map(text::read).collect())
}

pub(crate) fn parsed<T>(row: &Row, index: usize, column: &str, parse: impl FnOnce(&str) -> Option<T>) -> Read<T> {
    let text = text(row, index)?;
    parse(&text).ok_or_else(|| corrupt(column, &text))
}

fn json<T: DeserializeOwned>(row: &Row, index: usize, column: &str) -> Read<T> {
    parsed(row, index, column, |text| serde_json::from_str(text).ok())
}

/// A run and its position.
pub(crate) fn run(row: &Row) -> Read<(u64, RunRow)> {
    let run = RunRow {
        id: RunId::new(text(row, 1)?),
        tenant: TenantId::new(text(row, 2)?),
        workflow: WorkflowId::new(text(row, 3)?),
        digest: parsed(row, 4, "digest", Digest::parse)?,
        status: parsed(row, 5, "status", RunStatus::parse)?,
        created_at: time(row, 6)?,
        updated_at: time(row, 7)?,
        next_seq: count(row, 8)?,
        wake_at: maybe_time(row, 9)?,
        parent: maybe_text(row, 10)?.map(RunId::new),
        scope: maybe_text(row, 11)?,
        tags: texts(row, 12)?,
        current_node: maybe_text(row, 13)?.map(NodeId::new),
        error_code: maybe_text(row, 14)?,
        busy: get(row, 15)?,
        root: maybe_text(row, 16)?.map(RunId::new),
        memory_scope: String::new(),
        pruned: match maybe_time(row, 18)? {
            Some(at) => Some(Pruned { at, log: get(row, 19)? }),
            None => None,
        },
        workspace_scope: String::new(),
        origin: match get::<Option<&str>>(row, 21)? {
            None => None,
            Some(_) => Some(json(row, 21, "origin")?),
        },
        summary: maybe_text(row, 22)?.map(Into::into),
    };
    Ok((count(row, 0)?, run.with_scopes(text(row, 17)?, text(row, 20)?)))
}

pub(crate) fn record(row: &Row) -> Read<StoredRecord> {
    Ok(StoredRecord {
        seq: count(row, 0)?,
        at: time(row, 1)?,
        kind: text(row, 2)?,
        body: text(row, 3)?,
        private: maybe_text(row, 4)?,
        versions: Versions { memory: count(row, 5)?, workspace: count(row, 6)? },
        part: get::<Option<i16>>(row, 7)?.map(|code| Part { outside: code & 2 != 0, first: code & 1 == 0 }),
    })
}

pub(crate) fn part(part: Part) -> i16 {
    i16::from(part.outside) << 1 | i16::from(!part.first)
}

pub(crate) fn ledger(row: &Row) -> Read<LedgerRow> {
    Ok(LedgerRow { scope: text(row, 0)?, version: count(row, 1)?, updated_at: time(row, 2)? })
}

/// What is kept beside an item's content and tags, as text.
pub(crate) fn meta(item: Option<&Item>) -> String {
    let rest = |item: &Item| serde_json::to_string(&Meta { tags: Vec::new(), ..item.meta.clone() });
    item.and_then(|item| rest(item).ok()).unwrap_or_else(|| "{}".to_owned())
}

pub(crate) fn change(row: &Row) -> Read<Change> {
    let item = match maybe_text(row, 7)? {
        Some(content) => {
            let meta = Meta { tags: texts(row, 5)?, ..json(row, 6, "meta")? };
            Some(Item { content, expires_at: maybe_time(row, 4)?, meta })
        }
        None => None,
    };
    let run = maybe_text(row, 3)?.map(RunId::new);
    Ok(Change { version: count(row, 0)?, key: text(row, 1)?, at: time(row, 2)?, run, item })
}

pub(crate) fn interrupt(row: &Row) -> Read<InterruptRow> {
    Ok(InterruptRow {
        run: RunId::new(text(row, 0)?),
        node: NodeId::new(text(row, 1)?),
        tenant: TenantId::new(text(row, 2)?),
        workflow: WorkflowId::new(text(row, 3)?),
        interrupt_id: text(row, 4)?,
        key: text(row, 5)?,
        kind: text(row, 6)?,
        data: json(row, 7, "data")?,
        requested_at: time(row, 8)?,
        expires_at: maybe_time(row, 9)?,
    })
}

pub(crate) fn workflow(row: &Row) -> Read<WorkflowVersion> {
    Ok(WorkflowVersion {
        tenant: TenantId::new(text(row, 0)?),
        id: WorkflowId::new(text(row, 1)?),
        version: small(row, 2)?,
        digest: parsed(row, 3, "digest", Digest::parse)?,
        name: text(row, 4)?,
        created_at: time(row, 5)?,
    })
}

pub(crate) fn reply(row: &Row) -> Read<Reply> {
    let status: i32 = get(row, 2)?;
    Ok(Reply {
        key: parsed(row, 0, "key", Digest::parse)?,
        request: parsed(row, 1, "request", Digest::parse)?,
        status: u16::try_from(status).map_err(|_| corrupt("status", &status.to_string()))?,
        body: text(row, 3)?,
        expires_at: time(row, 4)?,
    })
}

pub(crate) fn webhook(row: &Row) -> Read<Webhook> {
    Ok(Webhook {
        id: WebhookId::new(text(row, 0)?),
        tenant: TenantId::new(text(row, 1)?),
        url: text(row, 2)?,
        events: texts(row, 3)?,
        tags: texts(row, 4)?,
        secret: text(row, 5)?,
        status: parsed(row, 6, "status", WebhookStatus::parse)?,
        consecutive_failures: small(row, 7)?,
        failures: small(row, 8)?,
        window_start: time(row, 9)?,
        open_until: maybe_time(row, 10)?,
        created_at: time(row, 11)?,
        last_failure: match maybe_time(row, 12)? {
            Some(at) => Some(LastFailure { at, status: maybe_status(row, 13)? }),
            None => None,
        },
        letters_dropped: count(row, 14)?,
    })
}

fn maybe_status(row: &Row, index: usize) -> Read<Option<u16>> {
    let status: Option<i64> = get(row, index)?;
    status.map(|status| u16::try_from(status).map_err(|_| corrupt("status", &status.to_string()))).transpose()
}

pub(crate) fn dead_letter(row: &Row) -> Read<DeadLetter> {
    Ok(DeadLetter {
        webhook: WebhookId::new(text(row, 0)?),
        run: RunId::new(text(row, 1)?),
        seq: count(row, 2)?,
        kind: text(row, 3)?,
        attempts: small(row, 4)?,
        reason: parsed(row, 5, "reason", DeathReason::parse)?,
        status: maybe_status(row, 6)?,
        at: time(row, 7)?,
    })
}

pub(crate) fn webhook_load(row: &Row) -> Read<WebhookLoad> {
    Ok(WebhookLoad { webhook: WebhookId::new(text(row, 0)?), letters: count(row, 1)?, waiting: count(row, 2)? })
}

pub(crate) fn quarantine(row: &Row) -> Read<Quarantine> {
    Ok(Quarantine {
        root: RunId::new(text(row, 0)?),
        tenant: TenantId::new(text(row, 1)?),
        run: RunId::new(text(row, 2)?),
        seq: count(row, 3)?,
        cause: text(row, 4)?,
        detail: text(row, 5)?,
        at: time(row, 6)?,
    })
}

pub(crate) fn delivery(row: &Row) -> Read<Delivery> {
    Ok(Delivery {
        webhook: WebhookId::new(text(row, 0)?),
        run: RunId::new(text(row, 1)?),
        seq: count(row, 2)?,
        attempts: small(row, 3)?,
        due_at: time(row, 4)?,
    })
}
