//! Dead letters of webhooks.
//!
//! Whoever takes letters away holds the row of their subscriber, so two hosts that trim or queue the same ones do so one
//! after the other. What waits for a subscriber is only touched by the host that drives its run.

use baton_model::{RunId, Timestamp, WebhookId};
use baton_store::codec::{Existing, integer};
use baton_store::{DeadLetter, DeadLetterWrite, Letters};

use super::left::{Left, split};
use crate::insert;
use crate::statement::Statement;
use crate::text::written;

pub(super) fn put<'a>(
    dropped: &[&'a WebhookId],
    letters: &Left<(&'a WebhookId, &'a RunId, u64), &'a DeadLetter>,
    all: &mut Vec<Statement<'a>>,
) {
    if !dropped.is_empty() {
        all.push(Statement::new(DROP).texts(dropped.iter().map(|id| id.as_str())));
    }
    let (_, kept) = split(letters);
    if kept.is_empty() {
        return;
    }
    all.push(insert::rows(Existing::Replace, kept));
}

pub(super) fn lock(webhook: &WebhookId) -> Statement<'_> {
    Statement::new(LOCK).value(written(webhook.as_str()))
}

pub(super) fn expire<'a>(before: Timestamp, limit: u64) -> Statement<'a> {
    Statement::new(EXPIRE).value(before.as_micros()).value(integer(limit))
}

/// `me` is the session, or 0 where there is none and everything is ours.
pub(super) fn statement(write: &DeadLetterWrite, me: u64) -> Statement<'_> {
    let of = |sql, webhook| Statement::new(sql).value(written(WebhookId::as_str(webhook)));
    match write {
        DeadLetterWrite::Bury { webhook, keep, reason, at } => {
            let mine = me != 0;
            let bury = of(if mine { BURY_MINE } else { BURY }, webhook)
                .value(reason.as_str())
                .value(at.as_micros())
                .value(integer(*keep));
            if mine { bury.value(integer(me)) } else { bury }
        }
        DeadLetterWrite::Redeliver { webhook, which: Letters::All, due_at } => {
            of(REDELIVER, webhook).value(due_at.as_micros())
        }
        DeadLetterWrite::Redeliver { webhook, which: Letters::One { run, seq }, due_at } => {
            of(REDELIVER_ONE, webhook).value(due_at.as_micros()).value(written(run.as_str())).value(integer(*seq))
        }
        DeadLetterWrite::Forget { webhook, which: Letters::All } => Statement::new(DROP).texts([webhook.as_str()]),
        DeadLetterWrite::Forget { webhook, which: Letters::One { run, seq } } => {
            of(FORGET_ONE, webhook).value(written(run.as_str())).value(integer(*seq))
        }
        DeadLetterWrite::Trim { webhook, keep } => of(TRIM, webhook).value(integer(*keep)),
        // These two are no steps of one subscriber; see [`super::Plan`].
        DeadLetterWrite::Put(letter) => lock(&letter.webhook),
        DeadLetterWrite::Expire { before, limit } => expire(*before, *limit),
    }
}

pub(super) const LOCK: &str = "SELECT 1 FROM webhooks WHERE id = $1 FOR UPDATE";
pub(super) const DROP: &str = "DELETE FROM dead_letters WHERE webhook = ANY($1)";
macro_rules! bury {
    ($mine:literal) => {
        concat!(
            "WITH over AS (
            SELECT run, seq FROM deliveries WHERE webhook = $1",
            $mine,
            " ORDER BY due_at, run, seq LIMIT greatest(0, (SELECT count(*) FROM deliveries WHERE webhook = $1",
            $mine,
            ") - $4::BIGINT)
        ), gone AS (
            DELETE FROM deliveries USING over
            WHERE deliveries.webhook = $1 AND deliveries.run = over.run AND deliveries.seq = over.seq
            RETURNING deliveries.webhook, deliveries.run, deliveries.seq, deliveries.attempts
        )
        INSERT INTO dead_letters (webhook, run, seq, kind, attempts, reason, status, at)
        SELECT webhook, run, seq,
            coalesce((SELECT kind FROM events WHERE events.run = gone.run AND events.seq = gone.seq), ''),
            attempts, $2::TEXT, NULL, $3::BIGINT
        FROM gone
        ON CONFLICT (webhook, run, seq) DO UPDATE SET kind = excluded.kind, attempts = excluded.attempts, \
            reason = excluded.reason, status = excluded.status, at = excluded.at"
        )
    };
}
pub(super) const BURY: &str = bury!("");
pub(super) const BURY_MINE: &str =
    bury!(" AND EXISTS (SELECT 1 FROM runs WHERE runs.id = deliveries.run AND runs.owner = $5::BIGINT)");
macro_rules! redeliver {
    ($which:literal) => {
        concat!(
            "WITH again AS (
            DELETE FROM dead_letters WHERE webhook = $1 AND NOT EXISTS
                (SELECT 1 FROM runs WHERE runs.id = dead_letters.run AND runs.pruned_log)",
            $which,
            " RETURNING webhook, run, seq
        )
        INSERT INTO deliveries (webhook, run, seq, attempts, due_at)
        SELECT webhook, run, seq, 0, $2::BIGINT FROM again ORDER BY run, seq
        ON CONFLICT (webhook, run, seq) DO NOTHING"
        )
    };
}
pub(super) const REDELIVER: &str = redeliver!("");
pub(super) const REDELIVER_ONE: &str = redeliver!(" AND run = $3 AND seq = $4");
pub(super) const FORGET_ONE: &str = "DELETE FROM dead_letters WHERE webhook = $1 AND run = $2 AND seq = $3";
pub(super) const TRIM: &str = "WITH over AS (
        SELECT run, seq FROM dead_letters WHERE webhook = $1 ORDER BY at DESC, run DESC, seq DESC OFFSET $2::BIGINT
    ), gone AS (
        DELETE FROM dead_letters USING over
        WHERE dead_letters.webhook = $1 AND dead_letters.run = over.run AND dead_letters.seq = over.seq
        RETURNING dead_letters.seq
    )
    UPDATE webhooks SET letters_dropped = letters_dropped + (SELECT count(*) FROM gone) WHERE id = $1";
/// Nobody is waited for: what somebody else is at is expired the next time.
pub(super) const EXPIRE: &str = "WITH old AS (
        SELECT webhook, run, seq FROM dead_letters WHERE at < $1 ORDER BY at, webhook, run, seq LIMIT $2::BIGINT
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM dead_letters USING old
    WHERE dead_letters.webhook = old.webhook AND dead_letters.run = old.run AND dead_letters.seq = old.seq";
