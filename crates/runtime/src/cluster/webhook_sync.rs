//! Webhook subscriptions, which every host has in memory: an event finds its subscribers where it is recorded. What was
//! registered or deleted on one host holds on all of them before the caller hears of it.

use baton_store::{Address, Letter};

use super::messages::PeerRequest;
use crate::Error;
use crate::inner::Inner;

impl Inner {
    /// Takes the subscriptions as they are in the store.
    pub(crate) async fn reload_webhooks(&self) -> Result<(), Error> {
        let reading = self.webhooks.begin_reading();
        self.webhooks.take_all(reading, self.store.webhooks().await?);
        Ok(())
    }

    /// Waits until every host goes by the subscriptions that are durable now. One that says nothing loses its session, and
    /// reads them again before it writes under the next; one that comes later reads them when it does.
    pub(crate) async fn tell_subscriptions(&self) -> Result<(), Error> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let me = shared.epoch();
        let mut letters = Vec::new();
        for session in shared.sessions().await?.iter().filter(|session| session.epoch != me) {
            let letter = Letter {
                id: format!("subscriptions:{me}:{}", self.ids.secret(16)),
                to: Address::Session(session.epoch),
                body: serde_json::to_string(&PeerRequest::Subscriptions).unwrap_or_default(),
            };
            shared.send(letter.clone()).await?;
            letters.push(letter);
        }
        // Long enough for a lease to run out, where it is not longer than whoever asks would wait.
        let deadline = self.clock.now().plus_millis(self.options.sharing.patience_ms);
        for letter in &letters {
            self.answer_to(letter, deadline).await?;
        }
        Ok(())
    }
}
