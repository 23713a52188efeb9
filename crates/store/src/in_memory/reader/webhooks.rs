//! What is asked about webhooks.

use async_trait::async_trait;
use baton_model::{RunId, TenantId, Timestamp, WebhookId};

use super::super::store::MemoryStore;
use crate::{DeadLetter, DeadLetterPlace, Delivery, Error, Webhook, WebhookLoad, WebhookReads};

#[async_trait]
impl WebhookReads for MemoryStore {
    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        Ok(disk.webhooks.get(id).filter(|webhook| webhook.tenant == *tenant).cloned())
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().webhooks.values().cloned().collect())
    }

    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let mine = |delivery: &&Delivery| self.is_mine(&disk, &delivery.run);
        let mut due: Vec<_> =
            disk.deliveries.values().filter(|delivery| delivery.due_at <= now).filter(mine).cloned().collect();
        due.sort_by_key(|delivery| delivery.due_at);
        due.truncate(limit);
        Ok(due)
    }

    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let wanted = |delivery: &&Delivery| delivery.webhook == *webhook && self.is_mine(&disk, &delivery.run);
        let mut found: Vec<_> = disk.deliveries.values().filter(wanted).cloned().collect();
        found.sort_by_key(|delivery| delivery.due_at);
        found.truncate(limit);
        Ok(found)
    }

    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().deliveries.get(&(webhook.clone(), run.clone(), seq)).cloned())
    }

    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let later = disk.webhooks.values().filter(|webhook| after.is_none_or(|after| webhook.id > *after));
        Ok(later.filter(|webhook| webhook.tenant == *tenant).take(limit).cloned().collect())
    }

    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().webhook_loads(tenant, only))
    }

    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&DeadLetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        let _turn = self.turn().await;
        let mut found = self.disk.lock().letters_of(webhook);
        found.retain(|letter| before.is_none_or(|before| letter.place() < *before));
        found.truncate(limit);
        Ok(found)
    }

    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().dead_letters.get(&(webhook.clone(), run.clone(), seq)).cloned())
    }

    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().dead_letters.values().map(|letter| letter.at).min())
    }
}
