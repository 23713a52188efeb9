//! Columns and the types they stand for.

use baton_model::{Digest, NodeId, Part, RunId, RunStatus, TenantId, Timestamp, Versions, WebhookId, WorkflowId};
use baton_store::{
    Change, DeadLetter, DeathReason, Delivery, InterruptRow, Item, LastFailure, LedgerRow, Pruned, Quarantine, Reply,
    RunRow, StoredRecord, Webhook, WebhookLoad, WebhookStatus, WorkflowVersion,
};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use serde::de::DeserializeOwned;

use crate::cache::{LedgerPlace, Place};

pub(crate) const RUN: &str = "run, id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, \
                              parent, scope, tags, current_node, error_code, busy, root, memory_scope, pruned_at, \
                              pruned_log, workspace_scope, origin, summary";
pub(crate) const INTERRUPT: &str =
    "run, node, tenant, workflow, interrupt_id, key, kind, data, requested_at, expires_at";
pub(crate) const QUARANTINE: &str = "root, tenant, run, seq, cause, detail, at";
pub(crate) const WEBHOOK: &str = "id, tenant, url, events, tags, secret, status, consecutive_failures, failures, \
                                  window_start, open_until, created_at, last_failed_at, last_status, letters_dropped";
pub(crate) const DEAD_LETTER: &str = "webhook, run, seq, kind, attempts, reason, status, at";

#[derive(Debug, thiserror::Error)]
#[error("{column} holds {text:?}")]
struct Unreadable {
    column: &'static str,
    text: String,
}

/// SQLite's integers are signed; counts beyond that do not occur, and a bound beyond that means "no bound".
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(index)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(index, value))
}

/// What an aggregate says, which is nothing when there were no rows.
pub(crate) fn maybe_count(row: &Row<'_>) -> rusqlite::Result<Option<u64>> {
    if row.get_ref(0)? == ValueRef::Null { Ok(None) } else { count(row, 0).map(Some) }
}

/// The first text after all that start with `prefix`; `None` if they go on to the end. A range instead of LIKE: it can
/// use an index, and nothing in a prefix is a wildcard.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let last = prefix.trim_end_matches(char::MAX);
    let letter = last.chars().next_back()?;
    // A range of letters steps over the gap in the middle of them.
    let next = (letter..=char::MAX).nth(1)?;
    Some(format!("{}{next}", &last[..last.len() - letter.len_utf8()]))
}

pub(crate) fn json_list(list: &[String]) -> String {
    // Nearly always empty, and then it costs nothing.
    if list.is_empty() { "[]".to_owned() } else { serde_json::json!(list).to_string() }
}

pub(crate) fn place(row: &Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place {
        run: row.get(0)?,
        next_seq: count(row, 1)?,
        status: parsed(row, 2, "status", RunStatus::parse)?,
        wake_at: maybe_time(row, 3)?,
        busy: row.get(4)?,
        summary: Place::mark(row.get::<_, Option<String>>(5)?.as_deref()),
    })
}

/// A run and its position.
pub(crate) fn run(row: &Row<'_>) -> rusqlite::Result<(u64, RunRow)> {
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
        busy: row.get(15)?,
        parent: row.get::<_, Option<String>>(10)?.map(RunId::new),
        root: row.get::<_, Option<String>>(16)?.map(RunId::new),
        scope: row.get(11)?,
        tags: json(row, 12, "tags")?,
        current_node: row.get::<_, Option<String>>(13)?.map(NodeId::new),
        error_code: row.get(14)?,
        memory_scope: String::new(),
        pruned: match maybe_time(row, 18)? {
            Some(at) => Some(Pruned { at, log: row.get(19)? }),
            None => None,
        },
        workspace_scope: String::new(),
        origin: match row.get_ref(21)? {
            ValueRef::Null => None,
            _ => Some(json(row, 21, "origin")?),
        },
        summary: row.get::<_, Option<String>>(22)?.map(Into::into),
    };
    Ok((count(row, 0)?, run.with_scopes(row.get(17)?, row.get(20)?)))
}

pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    Ok(StoredRecord {
        seq: count(row, 0)?,
        at: time(row, 1)?,
        kind: row.get(2)?,
        body: row.get(3)?,
        private: row.get(4)?,
        versions: Versions { memory: count(row, 5)?, workspace: count(row, 6)? },
        part: row.get::<_, Option<i64>>(7)?.map(|code| Part { outside: code & 2 != 0, first: code & 1 == 0 }),
    })
}

/// 0 and 1 take no room in a row, and most records are one of them: what the engine decided by itself.
pub(crate) fn part(part: Part) -> i64 {
    i64::from(part.outside) << 1 | i64::from(!part.first)
}

pub(crate) fn ledger_place(row: &Row<'_>) -> rusqlite::Result<LedgerPlace> {
    Ok(LedgerPlace { ledger: row.get(0)?, version: count(row, 1)? })
}

pub(crate) fn ledger(row: &Row<'_>) -> rusqlite::Result<LedgerRow> {
    Ok(LedgerRow { scope: row.get(0)?, version: count(row, 1)?, updated_at: time(row, 2)? })
}

/// What is kept beside an item's content, as text. A deletion has nothing to keep.
pub(crate) fn meta(item: Option<&Item>) -> String {
    let text = item.and_then(|item| serde_json::to_string(&item.meta).ok());
    text.unwrap_or_else(|| "{}".to_owned())
}

pub(crate) fn change(row: &Row<'_>) -> rusqlite::Result<Change> {
    let item = match row.get(6)? {
        Some(content) => Some(Item { content, expires_at: maybe_time(row, 4)?, meta: json(row, 5, "meta")? }),
        None => None,
    };
    Ok(Change {
        version: count(row, 0)?,
        key: row.get(1)?,
        at: time(row, 2)?,
        run: row.get::<_, Option<String>>(3)?.map(RunId::new),
        item,
    })
}

pub(crate) fn interrupt(row: &Row<'_>) -> rusqlite::Result<InterruptRow> {
    Ok(InterruptRow {
        run: RunId::new(text(row, 0)?),
        node: NodeId::new(text(row, 1)?),
        tenant: TenantId::new(text(row, 2)?),
        workflow: WorkflowId::new(text(row, 3)?),
        interrupt_id: row.get(4)?,
        key: row.get(5)?,
        kind: row.get(6)?,
        data: json(row, 7, "data")?,
        requested_at: time(row, 8)?,
        expires_at: maybe_time(row, 9)?,
    })
}

pub(crate) fn workflow(row: &Row<'_>) -> rusqlite::Result<WorkflowVersion> {
    Ok(WorkflowVersion {
        tenant: TenantId::new(text(row, 0)?),
        id: WorkflowId::new(text(row, 1)?),
        version: row.get(2)?,
        digest: parsed(row, 3, "digest", Digest::parse)?,
        name: row.get(4)?,
        created_at: time(row, 5)?,
    })
}

pub(crate) fn reply(row: &Row<'_>) -> rusqlite::Result<Reply> {
    Ok(Reply {
        key: parsed(row, 0, "key", Digest::parse)?,
        request: parsed(row, 1, "request", Digest::parse)?,
        status: row.get(2)?,
        body: row.get(3)?,
        expires_at: time(row, 4)?,
    })
}

pub(crate) fn webhook(row: &Row<'_>) -> rusqlite::Result<Webhook> {
    Ok(Webhook {
        id: WebhookId::new(text(row, 0)?),
        tenant: TenantId::new(text(row, 1)?),
        url: row.get(2)?,
        events: json(row, 3, "events")?,
        tags: json(row, 4, "tags")?,
        secret: row.get(5)?,
        status: parsed(row, 6, "status", WebhookStatus::parse)?,
        consecutive_failures: row.get(7)?,
        failures: row.get(8)?,
        window_start: time(row, 9)?,
        open_until: maybe_time(row, 10)?,
        created_at: time(row, 11)?,
        last_failure: match maybe_time(row, 12)? {
            Some(at) => Some(LastFailure { at, status: row.get(13)? }),
            None => None,
        },
        letters_dropped: count(row, 14)?,
    })
}

pub(crate) fn dead_letter(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    Ok(DeadLetter {
        webhook: WebhookId::new(text(row, 0)?),
        run: RunId::new(text(row, 1)?),
        seq: count(row, 2)?,
        kind: text(row, 3)?,
        attempts: row.get(4)?,
        reason: parsed(row, 5, "reason", DeathReason::parse)?,
        status: row.get(6)?,
        at: time(row, 7)?,
    })
}

pub(crate) fn webhook_load(row: &Row<'_>) -> rusqlite::Result<WebhookLoad> {
    Ok(WebhookLoad { webhook: WebhookId::new(text(row, 0)?), letters: count(row, 1)?, waiting: count(row, 2)? })
}

pub(crate) fn quarantine(row: &Row<'_>) -> rusqlite::Result<Quarantine> {
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

pub(crate) fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        webhook: WebhookId::new(text(row, 0)?),
        run: RunId::new(text(row, 1)?),
        seq: count(row, 2)?,
        attempts: row.get(3)?,
        due_at: time(row, 4)?,
    })
}

pub(crate) fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    row.get(index).map(Timestamp::from_micros)
}

fn maybe_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_micros))
}

pub(crate) fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<String> {
    row.get(index)
}

pub(crate) fn parsed<T>(
    row: &Row<'_>,
    index: usize,
    column: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text = text(row, index)?;
    parse(&text).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(Unreadable { column, text }))
    })
}

fn json<T: DeserializeOwned>(row: &Row<'_>, index: usize, column: &'static str) -> rusqlite::Result<T> {
    parsed(row, index, column, |text| serde_json::from_str(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_just_behind_it() {
        let after = |prefix| after_prefix(prefix);
        assert_eq!(after("a"), Some("b".to_owned()));
        assert_eq!(after("notes/"), Some("notes0".to_owned()));
        assert_eq!(after("a\u{D7FF}"), Some("a\u{E000}".to_owned()), "there are no letters in between");
        assert_eq!(after("a\u{10FFFF}\u{10FFFF}"), Some("b".to_owned()), "no letter is larger");
        assert_eq!(after("\u{10FFFF}"), None);
        assert_eq!(after(""), None);
    }
}
