//! Dead letters: what becomes of them in a commit, and what is asked about them.

use baton_model::{RunId, TenantId, WebhookId};
use baton_store::codec::{Existing, integer, webhook_load};
use baton_store::{DeadLetter, DeadLetterPlace, DeadLetterWrite, Letters, WebhookLoad};
use rusqlite::{Connection, ToSql, params};

use crate::insert;
use crate::query::{bound, list, one};
use crate::rows;

/// The earliest beyond what may stay.
const BURY: &str = "INSERT OR REPLACE INTO dead_letters (webhook, run, seq, kind, attempts, reason, status, at)
    SELECT webhook, run, seq, coalesce((SELECT e.kind FROM events e
            WHERE e.run = (SELECT r.run FROM runs r WHERE r.id = deliveries.run) AND e.seq = deliveries.seq), ''),
        attempts, ?2, NULL, ?3
    FROM deliveries WHERE webhook = ?1 ORDER BY due_at, run, seq
    LIMIT max(0, (SELECT count(*) FROM deliveries WHERE webhook = ?1) - ?4)";
const BURIED: &str = "DELETE FROM deliveries WHERE (webhook, run, seq) IN (
    SELECT webhook, run, seq FROM deliveries WHERE webhook = ?1 ORDER BY due_at, run, seq
    LIMIT max(0, (SELECT count(*) FROM deliveries WHERE webhook = ?1) - ?2))";
/// A macro for what all of them or one of them share; `$which` narrows.
macro_rules! queue {
    ($which:literal) => {
        concat!(
            "INSERT OR IGNORE INTO deliveries (webhook, run, seq, attempts, due_at)
            SELECT webhook, run, seq, 0, ?2 FROM dead_letters WHERE webhook = ?1 AND NOT EXISTS
                (SELECT 1 FROM runs WHERE id = dead_letters.run AND pruned_log)",
            $which
        )
    };
}
macro_rules! queued {
    ($which:literal) => {
        concat!(
            "DELETE FROM dead_letters WHERE webhook = ?1 AND NOT EXISTS
                (SELECT 1 FROM runs WHERE id = dead_letters.run AND pruned_log)",
            $which
        )
    };
}
const TRIM: &str = "DELETE FROM dead_letters WHERE (webhook, run, seq) IN (
    SELECT webhook, run, seq FROM dead_letters WHERE webhook = ?1 ORDER BY at DESC, run DESC, seq DESC
    LIMIT -1 OFFSET ?2)";
const EXPIRE: &str = "DELETE FROM dead_letters WHERE (webhook, run, seq) IN (
    SELECT webhook, run, seq FROM dead_letters WHERE at < ?1 ORDER BY at, webhook, run, seq LIMIT ?2)";

pub(crate) fn write(connection: &Connection, write: &DeadLetterWrite) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn ToSql]| connection.prepare_cached(sql)?.execute(values);
    match write {
        DeadLetterWrite::Put(letter) => insert::row(connection, Existing::Replace, letter),
        DeadLetterWrite::Bury { webhook, keep, reason, at } => {
            let (webhook, keep) = (webhook.as_str(), integer(*keep));
            run(BURY, params![webhook, reason.as_str(), at.as_micros(), keep])?;
            run(BURIED, params![webhook, keep]).map(|_rows| ())
        }
        DeadLetterWrite::Redeliver { webhook, which: Letters::All, due_at } => {
            run(queue!(""), params![webhook.as_str(), due_at.as_micros()])?;
            run(queued!(""), params![webhook.as_str()]).map(|_rows| ())
        }
        DeadLetterWrite::Redeliver { webhook, which: Letters::One { run: id, seq }, due_at } => {
            let (webhook, id, seq) = (webhook.as_str(), id.as_str(), integer(*seq));
            run(queue!(" AND run = ?3 AND seq = ?4"), params![webhook, due_at.as_micros(), id, seq])?;
            run(queued!(" AND run = ?2 AND seq = ?3"), params![webhook, id, seq]).map(|_rows| ())
        }
        DeadLetterWrite::Forget { webhook, which: Letters::All } => {
            run("DELETE FROM dead_letters WHERE webhook = ?1", params![webhook.as_str()]).map(|_rows| ())
        }
        DeadLetterWrite::Forget { webhook, which: Letters::One { run: id, seq } } => run(
            "DELETE FROM dead_letters WHERE webhook = ?1 AND run = ?2 AND seq = ?3",
            params![webhook.as_str(), id.as_str(), integer(*seq)],
        )
        .map(|_rows| ()),
        DeadLetterWrite::Trim { webhook, keep } => {
            let gone = run(TRIM, params![webhook.as_str(), integer(*keep)])?;
            if gone == 0 {
                return Ok(());
            }
            let gone = integer(gone as u64);
            run(
                "UPDATE webhooks SET letters_dropped = letters_dropped + ?2 WHERE id = ?1",
                params![webhook.as_str(), gone],
            )
            .map(|_rows| ())
        }
        DeadLetterWrite::Expire { before, limit } => {
            run(EXPIRE, params![before.as_micros(), integer(*limit)]).map(|_rows| ())
        }
    }
}

pub(crate) fn loads(c: &Connection, tenant: &TenantId, only: Option<&WebhookId>) -> rusqlite::Result<Vec<WebhookLoad>> {
    let sql = "SELECT id, (SELECT count(*) FROM dead_letters WHERE webhook = id),
                   (SELECT count(*) FROM deliveries WHERE webhook = id)
               FROM webhooks WHERE tenant = ?1 AND (?2 IS NULL OR id = ?2) ORDER BY id";
    list(c, sql, params![tenant.as_str(), only.map(WebhookId::as_str)], |row| rows::fields(row, webhook_load))
}

/// A subscriber's letters, newest first.
pub(crate) fn before(
    c: &Connection,
    webhook: &WebhookId,
    before: Option<&DeadLetterPlace>,
    limit: usize,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let older = if before.is_some() { "AND (at, run, seq) < (?3, ?4, ?5)" } else { "" };
    let sql = format!(
        "SELECT {} FROM dead_letters WHERE webhook = ?1 {older} ORDER BY at DESC, run DESC, seq DESC LIMIT ?2",
        rows::columns::<DeadLetter>()
    );
    let webhook = webhook.as_str();
    match before {
        None => list(c, &sql, params![webhook, bound(limit)], rows::stored),
        Some(DeadLetterPlace { at, run, seq }) => {
            let values = params![webhook, bound(limit), at.as_micros(), run.as_str(), integer(*seq)];
            list(c, &sql, values, rows::stored)
        }
    }
}

pub(crate) fn one_of(
    c: &Connection,
    webhook: &WebhookId,
    run: &RunId,
    seq: u64,
) -> rusqlite::Result<Option<DeadLetter>> {
    let sql = format!(
        "SELECT {} FROM dead_letters WHERE webhook = ?1 AND run = ?2 AND seq = ?3",
        rows::columns::<DeadLetter>()
    );
    one(c, &sql, params![webhook.as_str(), run.as_str(), integer(seq)], rows::stored)
}
