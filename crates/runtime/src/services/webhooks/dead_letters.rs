//! Deliveries that were given up, sent again when somebody asks.

use baton_model::{RunId, code};
use baton_store::{DeadLetterWrite, Letters, Webhook, WebhookChange, Write};

use crate::journal::lane::Lane;
use crate::services::webhooks::closed_until;
use crate::services::webhooks::register::WebhookRegistry;
use crate::{Error, ErrorKind};

impl WebhookRegistry {
    /// How many letters there are to be queued again.
    pub(crate) async fn count_letters(&self, webhook: &Webhook, which: &Letters) -> Result<u64, Error> {
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

    pub(crate) async fn queue_again(&self, webhook: Webhook, which: Letters) -> Result<(), Error> {
        let now = self.clock.now();
        let due_at = closed_until(&webhook, now).unwrap_or(now);
        let write = Write::DeadLetters(DeadLetterWrite::Redeliver { webhook: webhook.id.clone(), which, due_at });
        self.storage.write(self.storage.live()?.generation, Lane::Of(&webhook.tenant), vec![write]).await?;
        self.webhooks.look_at(&webhook.id);
        // Whoever drives a run sends its events. A host that does not hear of it looks by itself before long.
        if let Err(error) = self.forwarding.tell_subscriptions().await {
            tracing::debug!(webhook = %webhook.id, %error, "not every host knows of letters that were queued again");
        }
        Ok(())
    }

    pub(crate) async fn change_webhook(&self, webhook: Webhook, change: WebhookChange) -> Result<(), Error> {
        let write = Write::ChangeWebhook { webhook: webhook.id.clone(), change };
        self.storage.write(self.storage.live()?.generation, Lane::Of(&webhook.tenant), vec![write]).await?;
        self.reload_webhook(&webhook).await?;
        self.webhooks.look_at(&webhook.id);
        self.forwarding.tell_subscriptions().await.map_err(|error| {
            let message = "The subscription was changed. Another host may not know yet; it will within a minute.";
            Error::unavailable(message).because(error)
        })
    }
}

pub(crate) fn no_such_letter() -> Error {
    let message = "There is no such dead letter. It may have been delivered since, let go, or have expired.";
    Error::new(ErrorKind::NotFound, code::NOT_FOUND, message)
}
