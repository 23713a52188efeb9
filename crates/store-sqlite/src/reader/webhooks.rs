//! What is asked about webhooks.

use async_trait::async_trait;
use baton_model::{RunId, TenantId, Timestamp, WebhookId};
use baton_store::codec::{Stored as _, integer};
use baton_store::{DeadLetter, DeadLetterPlace, Delivery, Error, Webhook, WebhookLoad, WebhookReads};
use rusqlite::{Connection, params};

use crate::query::{bound, list, list_whole, one};
use crate::store::SqliteStore;
use crate::{dead_letters, rows};

fn deliveries(narrowed: &str) -> String {
    format!("SELECT {} FROM deliveries {narrowed}", rows::columns::<Delivery>())
}

#[async_trait]
impl WebhookReads for SqliteStore {
    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let sql = format!("SELECT {} FROM webhooks WHERE id = ?1 AND tenant = ?2", rows::columns::<Webhook>());
        self.readers().read(move |c| one(c, &sql, [id.as_str(), tenant.as_str()], rows::stored)).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        let sql = format!("SELECT {} FROM webhooks ORDER BY id", rows::columns::<Webhook>());
        self.readers().read(move |c| list_whole(c, Webhook::TABLE, &sql, [], rows::stored)).await
    }

    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        let sql = deliveries("WHERE due_at <= ?1 ORDER BY due_at, webhook, run, seq LIMIT ?2");
        let query = move |c: &Connection| list(c, &sql, params![now.as_micros(), bound(limit)], rows::stored);
        self.readers().read(query).await
    }

    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error> {
        let sql = deliveries("WHERE webhook = ?1 ORDER BY due_at, run, seq LIMIT ?2");
        let webhook = webhook.to_string();
        let query = move |c: &Connection| list(c, &sql, params![webhook, bound(limit)], rows::stored);
        self.readers().read(query).await
    }

    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        let sql = deliveries("WHERE webhook = ?1 AND run = ?2 AND seq = ?3");
        let (webhook, run) = (webhook.to_string(), run.to_string());
        let query = move |c: &Connection| one(c, &sql, params![webhook, run, integer(seq)], rows::stored);
        self.readers().read(query).await
    }

    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        let sql = format!(
            "SELECT {} FROM webhooks WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            rows::columns::<Webhook>()
        );
        let (tenant, after) = (tenant.to_string(), after.map(ToString::to_string).unwrap_or_default());
        self.readers()
            .read(move |c| list_whole(c, Webhook::TABLE, &sql, params![tenant, after, bound(limit)], rows::stored))
            .await
    }

    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        let (tenant, only) = (tenant.clone(), only.cloned());
        self.readers().read(move |c| dead_letters::loads(c, &tenant, only.as_ref())).await
    }

    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&DeadLetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        let (webhook, before) = (webhook.clone(), before.cloned());
        self.readers().read(move |c| dead_letters::before(c, &webhook, before.as_ref(), limit)).await
    }

    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        let (webhook, run) = (webhook.clone(), run.clone());
        self.readers().read(move |c| dead_letters::one_of(c, &webhook, &run, seq)).await
    }

    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        let query = |c: &Connection| {
            one(c, "SELECT at FROM dead_letters ORDER BY at LIMIT 1", [], |row| rows::fields(row, |row| row.time("at")))
        };
        self.readers().read(query).await
    }
}
