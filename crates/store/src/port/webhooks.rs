//! What is asked about webhooks.

use async_trait::async_trait;
use baton_model::{RunId, TenantId, Timestamp, WebhookId};

use crate::{DeadLetter, DeadLetterPlace, Delivery, Error, Webhook, WebhookLoad};

/// Subscribers, what is on its way to them and what they did not take. A delivery is on disk with the record that it tells
/// of, before it is first sent.
#[async_trait]
pub trait WebhookReads: Send + Sync {
    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error>;
    /// All subscriptions of all tenants: the runtime keeps them in memory.
    async fn webhooks(&self) -> Result<Vec<Webhook>, Error>;
    /// Deliveries due at `now`, earliest first. On a shared store only those of runs that this session owns.
    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error>;
    /// What waits for one subscriber, due or not, earliest first. On a shared store only of runs that this session owns.
    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error>;
    /// What waits of one event for one subscriber, whoever owns its run.
    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error>;
    /// Subscriptions of a tenant, by id: those after `after` (`None` = from the start).
    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error>;
    /// How much there is of each subscriber of a tenant, or of one of them; by id.
    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error>;
    /// A subscriber's dead letters, newest first: those before this place (`None` = from the newest).
    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&DeadLetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error>;
    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error>;
    /// Since when the oldest dead letter of all is there.
    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error>;
}
