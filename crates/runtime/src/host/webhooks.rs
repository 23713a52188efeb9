//! Registering and ending webhook subscriptions, and what becomes of deliveries that they did not take.

use baton_model::{Principal, TenantId, WebhookId, code};
use baton_store::{DeadLetterPlace, DeadLetterWrite, Letters, Webhook, WebhookChange, WebhookStatus, Write};

use crate::journal::lane::Lane;
use crate::services::webhooks::dead_letters::no_such_letter;
use crate::services::webhooks::fingerprint;
use crate::{DeadLetterView, Error, ErrorKind, Host, NewWebhook, RegisteredWebhook, WebhookView};

impl Host {
    /// Registers a subscription. Once this returns, whatever any host of this store records goes by it.
    pub async fn register_webhook(&self, who: &Principal, request: NewWebhook) -> Result<RegisteredWebhook, Error> {
        let rooms = &self.rooms;
        rooms.webhooks.check_url(&request.url)?;
        let secret = rooms.ids.secret(32);
        let fingerprint = fingerprint(&secret);
        let at = rooms.clock.now();
        let webhook = Webhook {
            id: WebhookId::new(format!("wh_{}", rooms.ids.secret(16))),
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
        rooms.tasks.see_through(rooms, |rooms| async move { rooms.subscriptions.subscribe(webhook).await }).await?;
        Ok(RegisteredWebhook { id, secret, fingerprint })
    }

    /// Ends a subscription. Once this returns, no host begins to send it anything.
    pub async fn delete_webhook(&self, who: &Principal, id: &WebhookId) -> Result<(), Error> {
        let rooms = &self.rooms;
        let webhook = rooms.subscriptions.subscription(&who.tenant, id).await?;
        rooms.tasks.see_through(rooms, |rooms| async move { rooms.subscriptions.unsubscribe(webhook).await }).await
    }

    /// Subscriptions of a tenant, by id; those after `after`.
    pub async fn webhooks(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<WebhookView>, Error> {
        let store = &self.rooms.store;
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
        let webhook = self.rooms.subscriptions.subscription(tenant, id).await?;
        let loads = self.rooms.store.webhook_loads(tenant, Some(id)).await?;
        Ok(WebhookView::new(webhook, loads.first()))
    }

    /// What a subscriber did not take, newest first; what comes after `before` in that order.
    pub async fn dead_letters(
        &self,
        tenant: &TenantId,
        id: &WebhookId,
        before: Option<&DeadLetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetterView>, Error> {
        self.rooms.subscriptions.subscription(tenant, id).await?;
        let bounds = self.rooms.options.dead_letters;
        let letters = self.rooms.store.dead_letters(id, before, limit).await?;
        Ok(letters
            .into_iter()
            .map(|letter| DeadLetterView { expires_at: bounds.expires_at(letter.at), letter })
            .collect())
    }

    /// How long a dead letter is kept.
    pub fn dead_letter_days(&self) -> u64 {
        self.rooms.options.dead_letters.days
    }

    /// Queues dead letters again and says how many. One that is on its way already is not queued twice.
    pub async fn redeliver(&self, who: &Principal, id: &WebhookId, which: Letters) -> Result<u64, Error> {
        let rooms = &self.rooms;
        let webhook = rooms.subscriptions.subscription(&who.tenant, id).await?;
        if webhook.status == WebhookStatus::Failed {
            let message = "This subscription was given up after too many failures. Resume it first: \
                           POST /v1/host/baton/webhooks/{webhookId}/resume, or `baton webhook resume`.";
            return Err(Error::new(ErrorKind::Conflict, code::SUBSCRIPTION_NOT_ACTIVE, message));
        }
        let count = rooms.subscriptions.count_letters(&webhook, &which).await?;
        if count > 0 {
            rooms
                .tasks
                .see_through(rooms, |rooms| async move { rooms.subscriptions.queue_again(webhook, which).await })
                .await?;
        }
        Ok(count)
    }

    /// Lets dead letters go and says how many.
    pub async fn forget_letters(&self, who: &Principal, id: &WebhookId, which: Letters) -> Result<u64, Error> {
        let rooms = &self.rooms;
        let webhook = rooms.subscriptions.subscription(&who.tenant, id).await?;
        let count = match &which {
            Letters::All => {
                rooms.store.webhook_loads(&webhook.tenant, Some(id)).await?.first().map_or(0, |l| l.letters)
            }
            Letters::One { run, seq } => match rooms.store.dead_letter(id, run, *seq).await? {
                Some(_) => 1,
                None => return Err(no_such_letter()),
            },
        };
        let write = Write::DeadLetters(DeadLetterWrite::Forget { webhook: webhook.id, which });
        rooms.storage.write(rooms.storage.live()?.generation, Lane::Of(&who.tenant), vec![write]).await?;
        Ok(count)
    }

    /// Calls a subscriber again, at once, and holds nothing against it. Its dead letters stay until they are queued again.
    pub async fn resume_webhook(&self, who: &Principal, id: &WebhookId) -> Result<WebhookView, Error> {
        let rooms = &self.rooms;
        let webhook = rooms.subscriptions.subscription(&who.tenant, id).await?;
        let change = WebhookChange::Resumed { at: rooms.clock.now() };
        rooms
            .tasks
            .see_through(rooms, |rooms| async move { rooms.subscriptions.change_webhook(webhook, change).await })
            .await?;
        self.webhook(&who.tenant, id).await
    }

    /// A new secret. Whatever any host sends from now on, dead letters too, is signed with it.
    pub async fn rotate_secret(&self, who: &Principal, id: &WebhookId) -> Result<RegisteredWebhook, Error> {
        let rooms = &self.rooms;
        let webhook = rooms.subscriptions.subscription(&who.tenant, id).await?;
        let secret = rooms.ids.secret(32);
        let change = WebhookChange::Secret(secret.clone());
        rooms
            .tasks
            .see_through(rooms, |rooms| async move { rooms.subscriptions.change_webhook(webhook, change).await })
            .await?;
        Ok(RegisteredWebhook { id: id.clone(), fingerprint: fingerprint(&secret), secret })
    }
}
