//! Webhooks, and what is to be delivered to them.

use baton_model::Timestamp;
use baton_store::Webhook;

use super::{Plan, split};
use crate::rows;
use crate::statement::Statement;

impl<'a> Plan<'a> {
    pub(super) fn webhooks(&mut self, all: &mut Vec<Statement<'a>>) {
        let dropped = &self.dropped_webhooks;
        if !dropped.is_empty() {
            all.push(Statement::new(DROP_DELIVERIES).texts(dropped.iter().map(|id| id.as_str())));
        }
        if !self.updated_webhooks.is_empty() {
            let rows: Vec<&Webhook> = self.updated_webhooks.values().copied().collect();
            all.push(put_webhooks(UPDATE_WEBHOOKS, &rows));
        }
        let (gone, kept) = split(&self.webhooks);
        if !gone.is_empty() {
            all.push(Statement::new(DELETE_WEBHOOKS).texts(gone.iter().map(|id| id.as_str())));
        }
        if !kept.is_empty() {
            all.push(put_webhooks(PUT_WEBHOOKS, &kept));
        }
        let (gone, kept) = split(&self.deliveries);
        if !gone.is_empty() {
            all.push(
                Statement::new(DELETE_DELIVERIES)
                    .texts(gone.iter().map(|(webhook, ..)| webhook.as_str()))
                    .texts(gone.iter().map(|(_, run, _)| run.as_str()))
                    .list(gone.iter().map(|(.., seq)| rows::integer(*seq))),
            );
        }
        if !kept.is_empty() {
            all.push(
                Statement::new(PUT_DELIVERIES)
                    .texts(kept.iter().map(|row| row.webhook.as_str()))
                    .texts(kept.iter().map(|row| row.run.as_str()))
                    .list(kept.iter().map(|row| rows::integer(row.seq)))
                    .list(kept.iter().map(|row| i64::from(row.attempts)))
                    .list(kept.iter().map(|row| row.due_at.as_micros())),
            );
        }
    }
}

pub(super) const DROP_DELIVERIES: &str = "DELETE FROM deliveries WHERE webhook = ANY($1)";
pub(super) const DELETE_WEBHOOKS: &str = "DELETE FROM webhooks WHERE id = ANY($1)";
pub(super) const PUT_WEBHOOKS: &str = "INSERT INTO webhooks (id, tenant, url, events, tags, secret, status, \
        consecutive_failures, failures, window_start, open_until, created_at)
    SELECT id, tenant, url, events::TEXT[], tags::TEXT[], secret, status, consecutive_failures, failures, \
        window_start, open_until, created_at
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::BIGINT[], \
        $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[]) AS new (id, tenant, url, events, tags, secret, \
        status, consecutive_failures, failures, window_start, open_until, created_at)
    ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, url = excluded.url, events = excluded.events, \
        tags = excluded.tags, secret = excluded.secret, status = excluded.status, \
        consecutive_failures = excluded.consecutive_failures, failures = excluded.failures, \
        window_start = excluded.window_start, open_until = excluded.open_until, created_at = excluded.created_at";

pub(super) const UPDATE_WEBHOOKS: &str = "UPDATE webhooks SET tenant = new.tenant, url = new.url, \
        events = new.events::TEXT[], tags = new.tags::TEXT[], secret = new.secret, status = new.status, \
        consecutive_failures = new.consecutive_failures, failures = new.failures, window_start = new.window_start, \
        open_until = new.open_until, created_at = new.created_at
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::BIGINT[], \
        $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[]) AS new (id, tenant, url, events, tags, secret, \
        status, consecutive_failures, failures, window_start, open_until, created_at)
    WHERE webhooks.id = new.id";

fn put_webhooks<'a>(sql: &'static str, kept: &[&'a Webhook]) -> Statement<'a> {
    let rows = || kept.iter().copied();
    Statement::new(sql)
        .texts(rows().map(|row| row.id.as_str()))
        .texts(rows().map(|row| row.tenant.as_str()))
        .texts(rows().map(|row| row.url.as_str()))
        .lists(rows().map(|row| row.events.as_slice()))
        .lists(rows().map(|row| row.tags.as_slice()))
        .texts(rows().map(|row| row.secret.as_str()))
        .texts(rows().map(|row| row.status.as_str()))
        .list(rows().map(|row| i64::from(row.consecutive_failures)))
        .list(rows().map(|row| i64::from(row.failures)))
        .list(rows().map(|row| row.window_start.as_micros()))
        .list(rows().map(|row| row.open_until.map(Timestamp::as_micros)))
        .list(rows().map(|row| row.created_at.as_micros()))
}

pub(super) const DELETE_DELIVERIES: &str =
    "DELETE FROM deliveries USING unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[]) AS gone (webhook, run, seq)
    WHERE deliveries.webhook = gone.webhook AND deliveries.run = gone.run AND deliveries.seq = gone.seq";
pub(super) const PUT_DELIVERIES: &str = "INSERT INTO deliveries (webhook, run, seq, attempts, due_at)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[])
    ON CONFLICT (webhook, run, seq) DO UPDATE SET attempts = excluded.attempts, due_at = excluded.due_at";
