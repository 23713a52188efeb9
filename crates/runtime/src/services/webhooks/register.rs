//! Subscriptions as callers change them. What was registered or deleted on one host holds on all of them before the
//! caller hears of it.

use std::sync::Arc;

use baton_model::{TenantId, WebhookId, code};
use baton_store::{Store, Webhook, Write};

use crate::clock::Clock;
use crate::cluster::forward::Forwarding;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::services::webhooks::Webhooks;
use crate::{Error, ErrorKind};

/// Changes subscriptions, on every host before the caller hears of it.
pub(crate) struct WebhookRegistry {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) forwarding: Arc<Forwarding>,
    pub(crate) storage: Arc<Storage>,
}

impl WebhookRegistry {
    /// Takes the subscriptions as they are in the store.
    pub(crate) async fn reload_webhooks(&self) -> Result<(), Error> {
        let reading = self.webhooks.begin_reading();
        self.webhooks.take_all(reading, self.store.webhooks().await?);
        Ok(())
    }

    /// A subscription of this tenant as it is in the store.
    pub(crate) async fn subscription(&self, tenant: &TenantId, id: &WebhookId) -> Result<Webhook, Error> {
        self.store.webhook(tenant, id).await?.ok_or_else(|| {
            let message = "There is no such webhook subscription.";
            Error::new(ErrorKind::NotFound, code::SUBSCRIPTION_NOT_FOUND, message)
        })
    }

    pub(crate) async fn subscribe(&self, webhook: Webhook) -> Result<(), Error> {
        let (id, tenant) = (webhook.id.clone(), webhook.tenant.clone());
        let generation = self.storage.live()?.generation;
        self.storage.write(generation, Lane::Of(&webhook.tenant), vec![Write::PutWebhook(webhook.clone())]).await?;
        self.webhooks.put(webhook);
        let Err(error) = self.forwarding.tell_subscriptions().await else { return Ok(()) };
        tracing::warn!(webhook = %id, %error, "not every host took in a new subscription; it is taken back");
        // Nobody has its secret, so nobody could make use of it.
        self.withdraw(&tenant, &id).await?;
        let message = "Another host has not taken this subscription in, so it was not made. Try again shortly.";
        Err(Error::unavailable(message).because(error))
    }

    pub(crate) async fn unsubscribe(&self, webhook: Webhook) -> Result<(), Error> {
        if let Err(error) = self.withdraw(&webhook.tenant, &webhook.id).await {
            self.webhooks.put(webhook);
            return Err(error);
        }
        self.forwarding.tell_subscriptions().await.map_err(|error| {
            let message = "The subscription was deleted. Another host may not know yet and send it a little more.";
            Error::unavailable(message).because(error)
        })
    }

    async fn withdraw(&self, tenant: &TenantId, id: &WebhookId) -> Result<(), Error> {
        let (generation, delete) = (self.storage.live()?.generation, vec![Write::DeleteWebhook(id.clone())]);
        // Queued while nobody can look: a delivery that ends just now must not put itself off afterwards.
        self.webhooks.remove(id, || self.storage.write(generation, Lane::Of(tenant), delete)).await?;
        // Somebody may have read it again while this was on its way to the disk.
        self.webhooks.remove(id, || ());
        Ok(())
    }

    /// Takes one subscription as it is in the store.
    pub(crate) async fn reload_webhook(&self, webhook: &Webhook) -> Result<(), Error> {
        let reading = self.webhooks.begin_reading();
        let now = self.store.webhook(&webhook.tenant, &webhook.id).await?;
        reading.take_one(&webhook.id, now);
        Ok(())
    }
}
