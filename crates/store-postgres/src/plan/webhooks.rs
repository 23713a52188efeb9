//! Webhooks, and what is to be delivered to them. Their dead letters are beside this.

use std::collections::BTreeMap;

use baton_model::{RunId, Timestamp, WebhookId};
use baton_store::codec::{Existing, integer};
use baton_store::{Attempt, DeadLetter, DeadLetterWrite, Delivery, Webhook, WebhookChange};

use super::dead_letters;
use super::left::{Left, split};
use crate::insert;
use crate::statement::Statement;
use crate::text::written;

/// What becomes of subscribers, and of what is on its way to them. Those of different subscribers have nothing to do with
/// each other.
#[derive(Default)]
pub(super) struct Hooks<'a> {
    pub(super) rows: Left<&'a WebhookId, &'a Webhook>,
    pub(super) dropped: Vec<&'a WebhookId>,
    pub(super) deliveries: Left<(&'a WebhookId, &'a RunId, u64), &'a Delivery>,
    pub(super) letters: Left<(&'a WebhookId, &'a RunId, u64), &'a DeadLetter>,
}

/// What can only be said of rows as they are over there.
pub(super) enum Step<'a> {
    Note(&'a Attempt),
    Change(&'a WebhookChange),
    Letters(&'a DeadLetterWrite),
}

impl<'a> Hooks<'a> {
    pub(super) fn delete(&mut self, webhook: &'a WebhookId) {
        self.rows.insert(webhook, None);
        self.dropped.push(webhook);
        let there = |(key, _): &(&(&WebhookId, &RunId, u64), &mut Option<&Delivery>)| key.0 == webhook;
        self.deliveries.iter_mut().filter(there).for_each(|(_, delivery)| *delivery = None);
        self.letters.retain(|key, _| key.0 != webhook);
    }

    /// What there is about one of them so far.
    pub(super) fn take(&mut self, webhook: &WebhookId) -> Self {
        let (dropped, others) = std::mem::take(&mut self.dropped).into_iter().partition(|id| *id == webhook);
        let (deliveries, rest) =
            std::mem::take(&mut self.deliveries).into_iter().partition(|(key, _)| key.0 == webhook);
        let (letters, other_letters) =
            std::mem::take(&mut self.letters).into_iter().partition(|(key, _)| key.0 == webhook);
        (self.dropped, self.deliveries, self.letters) = (others, rest, other_letters);
        Self { rows: self.rows.remove_entry(webhook).into_iter().collect(), dropped, deliveries, letters }
    }

    fn subscribers(&self, all: &mut Vec<Statement<'a>>) {
        let (gone, kept) = split(&self.rows);
        if !gone.is_empty() {
            all.push(Statement::new(DELETE_WEBHOOKS).texts(gone.iter().map(|id| id.as_str())));
        }
        if !kept.is_empty() {
            all.push(insert::rows(Existing::Replace, kept));
        }
    }

    fn deliveries(&self, all: &mut Vec<Statement<'a>>) {
        if !self.dropped.is_empty() {
            all.push(Statement::new(DROP_DELIVERIES).texts(self.dropped.iter().map(|id| id.as_str())));
        }
        let (gone, kept) = split(&self.deliveries);
        if !gone.is_empty() {
            all.push(
                Statement::new(DELETE_DELIVERIES)
                    .texts(gone.iter().map(|(webhook, ..)| webhook.as_str()))
                    .texts(gone.iter().map(|(_, run, _)| run.as_str()))
                    .list(gone.iter().map(|(.., seq)| integer(*seq))),
            );
        }
        if !kept.is_empty() {
            all.push(insert::rows(Existing::Replace, kept));
        }
    }
}

/// What becomes of all of them.
#[derive(Default)]
pub(super) struct Subscribers<'a> {
    /// What comes after the last step of each.
    pub(super) next: Hooks<'a>,
    /// What changes rows of a subscriber by what they are over there, and what comes before each of those.
    steps: BTreeMap<&'a WebhookId, Vec<(Hooks<'a>, Step<'a>)>>,
    /// Letters that are too old: last, because they are anybody's.
    pub(super) expired: Vec<(Timestamp, u64)>,
}

impl<'a> Subscribers<'a> {
    pub(super) fn step(&mut self, webhook: &'a WebhookId, step: Step<'a>) {
        let before = self.next.take(webhook);
        self.steps.entry(webhook).or_default().push((before, step));
    }

    /// A subscriber's row before its deliveries, and one subscriber after the other: hosts that call the same ones wait for
    /// each other and do not deadlock.
    pub(super) fn statements(self, me: u64, all: &mut Vec<Statement<'a>>) {
        for (webhook, steps) in self.steps {
            for (before, step) in steps {
                before.subscribers(all);
                all.push(match step {
                    Step::Note(attempt) => note(webhook, attempt),
                    Step::Change(change) => changed(webhook, change),
                    Step::Letters(_) => dead_letters::lock(webhook),
                });
                before.deliveries(all);
                dead_letters::put(&before.dropped, &before.letters, all);
                match step {
                    Step::Letters(write) => all.push(dead_letters::statement(write, me)),
                    Step::Change(WebhookChange::Resumed { at }) => {
                        all.push(Statement::new(HASTEN).value(written(webhook.as_str())).value(at.as_micros()));
                    }
                    Step::Change(_) | Step::Note(_) => {}
                }
            }
        }
        self.next.subscribers(all);
        self.next.deliveries(all);
        dead_letters::put(&self.next.dropped, &self.next.letters, all);
        all.extend(self.expired.into_iter().map(|(before, limit)| dead_letters::expire(before, limit)));
    }
}

/// [`Webhook::note`], in the row as it is over there.
fn note<'a>(webhook: &'a WebhookId, attempt: &Attempt) -> Statement<'a> {
    match attempt {
        Attempt::Succeeded => Statement::new(NOTE_SUCCESS).value(written(webhook.as_str())),
        Attempt::Failed { at, status, policy } => Statement::new(NOTE_FAILURE)
            .value(written(webhook.as_str()))
            .value(at.as_micros())
            .value(integer(policy.window_ms.saturating_mul(1000)))
            .value(i64::from(policy.gives_up_at))
            .value(i64::from(policy.opens_at))
            .value(at.plus_millis(policy.open_ms).as_micros())
            .value(status.map(i64::from)),
    }
}

/// [`Webhook::change`], in the row as it is over there.
fn changed<'a>(webhook: &'a WebhookId, change: &'a WebhookChange) -> Statement<'a> {
    match change {
        WebhookChange::Resumed { at } => Statement::new(RESUME).value(written(webhook.as_str())).value(at.as_micros()),
        WebhookChange::Secret(secret) => Statement::new(SECRET).value(written(webhook.as_str())).value(written(secret)),
    }
}

pub(super) const RESUME: &str = "UPDATE webhooks SET status = 'active', consecutive_failures = 0, failures = 0, \
        open_until = NULL, window_start = $2
    WHERE id = $1";
pub(super) const HASTEN: &str = "UPDATE deliveries SET due_at = $2 WHERE webhook = $1 AND due_at > $2";
pub(super) const SECRET: &str = "UPDATE webhooks SET secret = $2 WHERE id = $1";

pub(super) const NOTE_SUCCESS: &str = "UPDATE webhooks SET status = 'active', consecutive_failures = 0, \
        open_until = NULL
    WHERE id = $1 AND status <> 'failed' AND (status <> 'active' OR consecutive_failures <> 0)";
macro_rules! in_window {
    () => {
        "CASE WHEN greatest($2::BIGINT - window_start, 0) >= $3::BIGINT THEN 1 ELSE least(failures + 1, 4294967295) END"
    };
}
macro_rules! in_a_row {
    () => {
        "least(consecutive_failures + 1, 4294967295)"
    };
}
pub(super) const NOTE_FAILURE: &str = concat!(
    "UPDATE webhooks SET window_start = CASE WHEN greatest($2::BIGINT - window_start, 0) >= $3::BIGINT \
        THEN $2::BIGINT ELSE window_start END, last_failed_at = $2::BIGINT, last_status = $7::BIGINT, failures = ",
    in_window!(),
    ", consecutive_failures = ",
    in_a_row!(),
    ", status = CASE WHEN ",
    in_window!(),
    " >= $4::BIGINT THEN 'failed' WHEN ",
    in_a_row!(),
    " >= $5::BIGINT THEN 'open' ELSE status END, open_until = CASE WHEN ",
    in_window!(),
    " >= $4::BIGINT THEN NULL WHEN ",
    in_a_row!(),
    " >= $5::BIGINT THEN $6::BIGINT ELSE open_until END
    WHERE id = $1 AND status <> 'failed'"
);
pub(super) const DROP_DELIVERIES: &str = "DELETE FROM deliveries WHERE webhook = ANY($1)";
pub(super) const DELETE_WEBHOOKS: &str = "DELETE FROM webhooks WHERE id = ANY($1)";
pub(super) const DELETE_DELIVERIES: &str =
    "DELETE FROM deliveries USING unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[]) AS gone (webhook, run, seq)
    WHERE deliveries.webhook = gone.webhook AND deliveries.run = gone.run AND deliveries.seq = gone.seq";
