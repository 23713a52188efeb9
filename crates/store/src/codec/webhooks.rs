//! Subscribers, what is on its way to them and what they did not take, as columns.

use baton_model::{RunId, TenantId, WebhookId};

use super::column::{Column, integer, text, texts};
use super::fields::{Fields, Source, Unreadable};
use super::stored::Stored;
use super::sum_columns::Sum;
use super::values::Values;
use crate::dead_letters::{DeadLetter, DeathReason, WebhookLoad};
use crate::rows::{Delivery, LastFailure, Webhook, WebhookStatus};

impl Stored for Webhook {
    const TABLE: &'static str = "webhooks";
    const COLUMNS: &'static [Column] = &[
        text("id"),
        text("tenant"),
        text("url"),
        texts("events"),
        texts("tags"),
        text("secret"),
        text("status"),
        integer("consecutive_failures"),
        integer("failures"),
        integer("window_start"),
        integer("open_until"),
        integer("created_at"),
        integer("last_failed_at"),
        integer("last_status"),
        integer("letters_dropped"),
    ];
    const KEY: &'static [&'static str] = &["id"];
    /// Where it goes and what it gets. What changes with every call has none: it is counted where it lies.
    const SUMS: &'static [Sum] = &[Sum { column: "sum", of: &["id", "tenant", "url", "events", "tags", "created_at"] }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        let mut webhook = Self {
            id: WebhookId::new(row.text("id")?),
            tenant: TenantId::new(row.text("tenant")?),
            url: row.text("url")?,
            events: row.texts("events")?,
            tags: row.texts("tags")?,
            secret: row.text("secret")?,
            status: row.parsed("status", WebhookStatus::parse)?,
            consecutive_failures: row.count("consecutive_failures")?,
            failures: row.count("failures")?,
            window_start: row.time("window_start")?,
            open_until: row.maybe_time("open_until")?,
            created_at: row.time("created_at")?,
            last_failure: None,
            letters_dropped: 0,
        };
        let (failed_at, status) = (row.maybe_time("last_failed_at")?, row.maybe_count("last_status")?);
        webhook.last_failure = failed_at.map(|at| LastFailure { at, status });
        webhook.letters_dropped = row.count("letters_dropped")?;
        Ok(webhook)
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("id", self.id.as_str());
        out.text("tenant", self.tenant.as_str());
        out.text("url", &self.url);
        out.texts("events", &self.events);
        out.texts("tags", &self.tags);
        out.text("secret", &self.secret);
        out.text("status", self.status.as_str());
        out.integer("consecutive_failures", self.consecutive_failures.into());
        out.integer("failures", self.failures.into());
        out.time("window_start", self.window_start);
        out.maybe_time("open_until", self.open_until);
        out.time("created_at", self.created_at);
        out.maybe_time("last_failed_at", self.last_failure.map(|last| last.at));
        out.maybe_integer("last_status", self.last_failure.and_then(|last| last.status).map(i64::from));
        out.count("letters_dropped", self.letters_dropped);
    }
}

impl Stored for Delivery {
    const TABLE: &'static str = "deliveries";
    const COLUMNS: &'static [Column] =
        &[text("webhook"), text("run"), integer("seq"), integer("attempts"), integer("due_at")];
    const KEY: &'static [&'static str] = &["webhook", "run", "seq"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            webhook: WebhookId::new(row.text("webhook")?),
            run: RunId::new(row.text("run")?),
            seq: row.count("seq")?,
            attempts: row.count("attempts")?,
            due_at: row.time("due_at")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("webhook", self.webhook.as_str());
        out.text("run", self.run.as_str());
        out.count("seq", self.seq);
        out.integer("attempts", self.attempts.into());
        out.time("due_at", self.due_at);
    }
}

impl Stored for DeadLetter {
    const TABLE: &'static str = "dead_letters";
    const COLUMNS: &'static [Column] = &[
        text("webhook"),
        text("run"),
        integer("seq"),
        text("kind"),
        integer("attempts"),
        text("reason"),
        integer("status"),
        integer("at"),
    ];
    const KEY: &'static [&'static str] = &["webhook", "run", "seq"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            webhook: WebhookId::new(row.text("webhook")?),
            run: RunId::new(row.text("run")?),
            seq: row.count("seq")?,
            kind: row.text("kind")?,
            attempts: row.count("attempts")?,
            reason: row.parsed("reason", DeathReason::parse)?,
            status: row.maybe_count("status")?,
            at: row.time("at")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("webhook", self.webhook.as_str());
        out.text("run", self.run.as_str());
        out.count("seq", self.seq);
        out.text("kind", &self.kind);
        out.integer("attempts", self.attempts.into());
        out.text("reason", self.reason.as_str());
        out.maybe_integer("status", self.status.map(i64::from));
        out.time("at", self.at);
    }
}

/// A subscriber's id, its dead letters and what waits for it.
pub fn webhook_load(row: &mut Fields<'_, impl Source>) -> Result<WebhookLoad, Unreadable> {
    let webhook = WebhookId::new(row.text("id")?);
    Ok(WebhookLoad { webhook, letters: row.count("dead_letters")?, waiting: row.count("deliveries")? })
}
