//! What is asked about webhooks.

use async_trait::async_trait;
use baton_model::{RunId, TenantId, Timestamp, WebhookId};
use baton_store::codec::{Stored as _, integer, webhook_load};
use baton_store::{DeadLetter, DeadLetterPlace, Delivery, Error, Webhook, WebhookLoad, WebhookReads};

use crate::questions::bound;
use crate::text::written;
use crate::{PostgresStore, rows};

const RUNS_OF_MINE: &str = "EXISTS (SELECT 1 FROM runs WHERE runs.id = deliveries.run AND runs.owner = $3)";

fn deliveries(narrowed: &str) -> String {
    format!("SELECT {} FROM deliveries {narrowed}", rows::columns::<Delivery>())
}

#[async_trait]
impl WebhookReads for PostgresStore {
    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        let sql = format!("SELECT {} FROM webhooks WHERE id = $1 AND tenant = $2", rows::columns::<Webhook>());
        self.questions.one(&sql, &[&written(id.as_str()), &written(tenant.as_str())], rows::stored).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        self.questions
            .list_whole(
                Webhook::TABLE,
                &format!("SELECT {} FROM webhooks ORDER BY id", rows::columns::<Webhook>()),
                &[],
                rows::stored,
            )
            .await
    }

    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        let (now, limit, order) = (now.as_micros(), bound(limit), "ORDER BY due_at, webhook, run, seq LIMIT $2");
        match self.lease {
            None => {
                let all = deliveries(&format!("WHERE due_at <= $1 {order}"));
                self.questions.list(&all, &[&now, &limit], rows::stored).await
            }
            Some(_) => {
                let mine = deliveries(&format!("WHERE due_at <= $1 AND {RUNS_OF_MINE} {order}"));
                self.questions.list(&mine, &[&now, &limit, &self.me()], rows::stored).await
            }
        }
    }

    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error> {
        let (webhook, limit, order) = (written(webhook.as_str()), bound(limit), "ORDER BY due_at, run, seq LIMIT $2");
        match self.lease {
            None => {
                let all = deliveries(&format!("WHERE webhook = $1 {order}"));
                self.questions.list(&all, &[&webhook, &limit], rows::stored).await
            }
            Some(_) => {
                let mine = deliveries(&format!("WHERE webhook = $1 AND {RUNS_OF_MINE} {order}"));
                self.questions.list(&mine, &[&webhook, &limit, &self.me()], rows::stored).await
            }
        }
    }

    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        let sql = deliveries("WHERE webhook = $1 AND run = $2 AND seq = $3");
        let (webhook, run) = (written(webhook.as_str()), written(run.as_str()));
        self.questions.one(&sql, &[&webhook, &run, &integer(seq)], rows::stored).await
    }

    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        let sql = format!(
            "SELECT {} FROM webhooks WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3",
            rows::columns::<Webhook>()
        );
        let (tenant, after) = (written(tenant.as_str()), written(after.map_or("", |after| after.as_str())));
        self.questions.list_whole(Webhook::TABLE, &sql, &[&tenant, &after, &bound(limit)], rows::stored).await
    }

    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        let sql = "SELECT id, (SELECT count(*) FROM dead_letters WHERE webhook = id),
                (SELECT count(*) FROM deliveries WHERE webhook = id)
            FROM webhooks WHERE tenant = $1 AND ($2::TEXT IS NULL OR id = $2) ORDER BY id";
        let (tenant, only) = (written(tenant.as_str()), only.map(|only| written(only.as_str())));
        self.questions.list(sql, &[&tenant, &only], |row| rows::fields(row, webhook_load)).await
    }

    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&DeadLetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        let older = if before.is_some() { "AND (at, run, seq) < ($3, $4, $5)" } else { "" };
        let sql = format!(
            "SELECT {} FROM dead_letters WHERE webhook = $1 {older} ORDER BY at DESC, run DESC, seq DESC LIMIT $2",
            rows::columns::<DeadLetter>()
        );
        let (webhook, limit) = (written(webhook.as_str()), bound(limit));
        let Some(DeadLetterPlace { at, run, seq }) = before else {
            return self.questions.list(&sql, &[&webhook, &limit], rows::stored).await;
        };
        let (at, run, seq) = (at.as_micros(), written(run.as_str()), integer(*seq));
        self.questions.list(&sql, &[&webhook, &limit, &at, &run, &seq], rows::stored).await
    }

    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        let sql = format!(
            "SELECT {} FROM dead_letters WHERE webhook = $1 AND run = $2 AND seq = $3",
            rows::columns::<DeadLetter>()
        );
        let (webhook, run) = (written(webhook.as_str()), written(run.as_str()));
        self.questions.one(&sql, &[&webhook, &run, &integer(seq)], rows::stored).await
    }

    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        self.questions
            .one("SELECT at FROM dead_letters ORDER BY at LIMIT 1", &[], |row| rows::fields(row, |row| row.time("at")))
            .await
    }
}
