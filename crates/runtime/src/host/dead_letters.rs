//! Subscriptions as their owners look after them: what they did not take, sending it again, resuming one that was given
//! up, and a new secret.

use baton_model::{Principal, RunId, TenantId, WebhookId, code};
use baton_store::{Commit, LetterPlace, LetterWrite, Letters, Webhook, WebhookChange, WebhookStatus, Write};

use crate::inner::Inner;
use crate::services::webhooks::{closed_until, fingerprint};
use crate::{Error, Host, Kind, LetterView, RegisteredWebhook, WebhookView};

impl Host {
    /// Subscriptions of a tenant, by id; those after `after`.
    pub async fn webhooks(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<WebhookView>, Error> {
        let store = &self.inner.store;
        let found = store.webhooks_of(tenant, after, limit).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let loads = store.webhook_loads(tenant, None).await?;
        let view = |webhook: Webhook| {
            let load = loads.binary_search_by(|load| load.webhook.cmp(&webhook.id)).ok();
            WebhookView::new(webhook, load.and_then(|place| loads.get(place)))
        };
        Ok(found.into_iter().map(view).collect())
    }

    pub async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<WebhookView, Error> {
        let webhook = self.inner.subscription(tenant, id).await?;
        let loads = self.inner.store.webhook_loads(tenant, Some(id)).await?;
        Ok(WebhookView::new(webhook, loads.first()))
    }

    /// What a subscriber did not take, newest first; what comes after `before` in that order.
    pub async fn dead_letters(
        &self,
        tenant: &TenantId,
        id: &WebhookId,
        before: Option<&LetterPlace>,
        limit: usize,
    ) -> Result<Vec<LetterView>, Error> {
        self.inner.subscription(tenant, id).await?;
        let bounds = self.inner.options.dead_letters;
        let letters = self.inner.store.dead_letters(id, before, limit).await?;
        Ok(letters.into_iter().map(|letter| LetterView { expires_at: bounds.expires_at(letter.at), letter }).collect())
    }

    /// How long a dead letter is kept.
    pub fn dead_letter_days(&self) -> u64 {
        self.inner.options.dead_letters.days
    }

    /// Queues dead letters again and says how many. One that is on its way already is not queued twice.
    pub async fn redeliver(&self, who: &Principal, id: &WebhookId, which: Letters) -> Result<u64, Error> {
        let inner = &self.inner;
        let webhook = inner.subscription(&who.tenant, id).await?;
        if webhook.status == WebhookStatus::Failed {
            let message = "This subscription was given up after too many failures. Resume it first: \
                           POST /v1/host/baton/webhooks/{webhookId}/resume, or `baton webhook resume`.";
            return Err(Error::new(Kind::Conflict, code::SUBSCRIPTION_NOT_ACTIVE, message));
        }
        let count = inner.count_letters(&webhook, &which).await?;
        if count > 0 {
            inner.see_through(|inner| async move { inner.queue_again(webhook, which).await }).await?;
        }
        Ok(count)
    }

    /// Lets dead letters go and says how many.
    pub async fn forget_letters(&self, who: &Principal, id: &WebhookId, which: Letters) -> Result<u64, Error> {
        let inner = &self.inner;
        let webhook = inner.subscription(&who.tenant, id).await?;
        let count = match &which {
            Letters::All => {
                inner.store.webhook_loads(&webhook.tenant, Some(id)).await?.first().map_or(0, |l| l.letters)
            }
            Letters::One { run, seq } => match inner.store.dead_letter(id, run, *seq).await? {
                Some(_) => 1,
                None => return Err(no_such_letter()),
            },
        };
        let write = Write::DeadLetters(LetterWrite::Forget { webhook: webhook.id, which });
        inner.store.submit(Commit::new(inner.world()?.generation, vec![write])).await?;
        Ok(count)
    }

    /// Calls a subscriber again, at once, and holds nothing against it. Its dead letters stay until they are queued again.
    pub async fn resume_webhook(&self, who: &Principal, id: &WebhookId) -> Result<WebhookView, Error> {
        let inner = &self.inner;
        let webhook = inner.subscription(&who.tenant, id).await?;
        let change = WebhookChange::Resumed { at: inner.clock.now() };
        inner.see_through(|inner| async move { inner.change_webhook(webhook, change).await }).await?;
        self.webhook(&who.tenant, id).await
    }

    /// A new secret. Whatever any host sends from now on, old letters too, is signed with it.
    pub async fn rotate_secret(&self, who: &Principal, id: &WebhookId) -> Result<RegisteredWebhook, Error> {
        let inner = &self.inner;
        let webhook = inner.subscription(&who.tenant, id).await?;
        let secret = inner.ids.secret(32);
        let change = WebhookChange::Secret(secret.clone());
        inner.see_through(|inner| async move { inner.change_webhook(webhook, change).await }).await?;
        Ok(RegisteredWebhook { id: id.clone(), fingerprint: fingerprint(&secret), secret })
    }
}

fn no_such_letter() -> Error {
    let message = "There is no such dead letter. It may have been delivered since, let go, or have expired.";
    Error::new(Kind::NotFound, code::NOT_FOUND, message)
}

impl Inner {
    /// How many letters there are to be queued again.
    async fn count_letters(&self, webhook: &Webhook, which: &Letters) -> Result<u64, Error> {
        let Letters::One { run, seq } = which else {
            let loads = self.store.webhook_loads(&webhook.tenant, Some(&webhook.id)).await?;
            return Ok(loads.first().map_or(0, |load| load.letters));
        };
        if self.store.dead_letter(&webhook.id, run, *seq).await?.is_none() {
            return match self.store.delivery(&webhook.id, run, *seq).await? {
                // Asked for twice.
                Some(_) => Ok(0),
                None => Err(no_such_letter()),
            };
        }
        self.still_there(run).await?;
        Ok(1)
    }

    async fn still_there(&self, run: &RunId) -> Result<(), Error> {
        match self.store.run(run).await?.and_then(|row| row.pruned).filter(|pruned| pruned.log) {
            Some(pruned) => Err(Error::run_pruned(pruned.at)),
            None => Ok(()),
        }
    }

    async fn queue_again(&self, webhook: Webhook, which: Letters) -> Result<(), Error> {
        let now = self.clock.now();
        let due_at = closed_until(&webhook, now).unwrap_or(now);
        let write = Write::DeadLetters(LetterWrite::Redeliver { webhook: webhook.id.clone(), which, due_at });
        self.store.submit(Commit::new(self.world()?.generation, vec![write])).await?;
        self.webhooks.look_at(&webhook.id);
        // Whoever drives a run sends its events. A host that does not hear of it looks by itself before long.
        if let Err(error) = self.tell_subscriptions().await {
            tracing::debug!(webhook = %webhook.id, %error, "not every host knows of letters that were queued again");
        }
        Ok(())
    }

    async fn change_webhook(&self, webhook: Webhook, change: WebhookChange) -> Result<(), Error> {
        let write = Write::ChangeWebhook { webhook: webhook.id.clone(), change };
        self.store.submit(Commit::new(self.world()?.generation, vec![write])).await?;
        self.reload_webhook(&webhook).await?;
        self.webhooks.look_at(&webhook.id);
        self.tell_subscriptions().await.map_err(|error| {
            let message = "The subscription was changed. Another host may not know yet; it will within a minute.";
            Error::unavailable(message).because(error)
        })
    }
}
