//! Registering and ending webhook subscriptions. What becomes of what they did not take: `letters.rs`.

use baton_model::{Principal, TenantId, WebhookId, code};
use baton_store::{Commit, Webhook, WebhookStatus, Write};

use crate::inner::Inner;
use crate::services::webhooks::fingerprint;
use crate::{Error, Host, Kind, NewWebhook, RegisteredWebhook};

impl Host {
    /// Registers a subscription. Once this returns, whatever any host of this store records goes by it.
    pub async fn register_webhook(&self, who: &Principal, request: NewWebhook) -> Result<RegisteredWebhook, Error> {
        let inner = &self.inner;
        inner.webhooks.check_url(&request.url)?;
        let secret = inner.ids.secret(32);
        let fingerprint = fingerprint(&secret);
        let at = inner.clock.now();
        let webhook = Webhook {
            id: WebhookId::new(format!("wh_{}", inner.ids.secret(16))),
            tenant: who.tenant.clone(),
            url: request.url,
            events: request.events,
            tags: request.tags,
            secret: secret.clone(),
            status: WebhookStatus::Active,
            consecutive_failures: 0,
            failures: 0,
            window_start: at,
            open_until: None,
            created_at: at,
            last_failure: None,
            letters_dropped: 0,
        };
        let id = webhook.id.clone();
        inner.see_through(|inner| async move { inner.subscribe(webhook).await }).await?;
        Ok(RegisteredWebhook { id, secret, fingerprint })
    }

    /// Ends a subscription. Once this returns, no host begins to send it anything.
    pub async fn delete_webhook(&self, who: &Principal, id: &WebhookId) -> Result<(), Error> {
        let inner = &self.inner;
        let webhook = inner.subscription(&who.tenant, id).await?;
        inner.see_through(|inner| async move { inner.unsubscribe(webhook).await }).await
    }
}

impl Inner {
    /// A subscription of this tenant as it is in the store.
    pub(super) async fn subscription(&self, tenant: &TenantId, id: &WebhookId) -> Result<Webhook, Error> {
        self.store.webhook(tenant, id).await?.ok_or_else(|| {
            let message = "There is no such webhook subscription.";
            Error::new(Kind::NotFound, code::SUBSCRIPTION_NOT_FOUND, message)
        })
    }

    async fn subscribe(&self, webhook: Webhook) -> Result<(), Error> {
        let id = webhook.id.clone();
        let generation = self.world()?.generation;
        self.store.submit(Commit::new(generation, vec![Write::PutWebhook(webhook.clone())])).await?;
        self.webhooks.put(webhook);
        let Err(error) = self.tell_subscriptions().await else { return Ok(()) };
        tracing::warn!(webhook = %id, %error, "not every host took in a new subscription; it is taken back");
        // Nobody has its secret, so nobody could make use of it.
        self.withdraw(&id).await?;
        let message = "Another host has not taken this subscription in, so it was not made. Try again shortly.";
        Err(Error::unavailable(message).because(error))
    }

    async fn unsubscribe(&self, webhook: Webhook) -> Result<(), Error> {
        if let Err(error) = self.withdraw(&webhook.id).await {
            self.webhooks.put(webhook);
            return Err(error);
        }
        self.tell_subscriptions().await.map_err(|error| {
            let message = "The subscription was deleted. Another host may not know yet and send it a little more.";
            Error::unavailable(message).because(error)
        })
    }

    async fn withdraw(&self, id: &WebhookId) -> Result<(), Error> {
        let commit = Commit::new(self.world()?.generation, vec![Write::DeleteWebhook(id.clone())]);
        // Queued while nobody can look: a delivery that ends just now must not put itself off afterwards.
        self.webhooks.remove(id, || self.store.submit(commit)).await?;
        // Somebody may have read it again while this was on its way to the disk.
        self.webhooks.remove(id, || ());
        Ok(())
    }
}
