use baton_model::{Digest, Principal, WebhookId, code};
use baton_store::{Commit, Webhook, WebhookStatus, Write};

use crate::{Error, Host, Kind, NewWebhook, RegisteredWebhook};

impl Host {
    pub async fn register_webhook(&self, who: &Principal, request: NewWebhook) -> Result<RegisteredWebhook, Error> {
        let inner = &self.inner;
        inner.webhooks.check_url(&request.url)?;
        let secret = inner.ids.secret(32);
        let fingerprint = Digest::of_bytes(&secret).as_str()[..8].to_owned();
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
        };
        let id = webhook.id.clone();
        let generation = inner.world()?.generation;
        inner.store.submit(Commit::new(generation, vec![Write::PutWebhook(webhook.clone())])).await?;
        inner.webhooks.put(webhook);
        Ok(RegisteredWebhook { id, secret, fingerprint })
    }

    pub async fn delete_webhook(&self, who: &Principal, id: &WebhookId) -> Result<(), Error> {
        let inner = &self.inner;
        let Some(webhook) = inner.store.webhook(&who.tenant, id).await? else {
            let message = "There is no such webhook subscription.";
            return Err(Error::new(Kind::NotFound, code::SUBSCRIPTION_NOT_FOUND, message));
        };
        let generation = inner.world()?.generation;
        let commit = Commit::new(generation, vec![Write::DeleteWebhook(id.clone())]);
        // Queued while nobody can change it: a delivery that ends just now must not write it back afterwards.
        let deleted = inner.webhooks.remove(id, || inner.store.submit(commit)).await;
        if deleted.is_err() {
            inner.webhooks.put(webhook);
        }
        Ok(deleted?)
    }
}
