//! Webhooks: which events go to whom, decided when the event is recorded and written in the same commit, so that a
//! crash can neither lose a delivery nor invent one.

mod address;
mod deliver;
mod health;
mod lane;
mod send;

pub(crate) use deliver::deliver;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::{Record, Timestamp, WebhookId};
use baton_store::{Delivery, RunRow, Webhook, WebhookStatus, Write};
use baton_tool::egress::Guard;
use parking_lot::RwLock;
use tokio::sync::Notify;

use crate::Error;
use crate::inner::Inner;

pub(crate) struct Webhooks {
    subscriptions: RwLock<Vec<Arc<Webhook>>>,
    guard: Guard,
    /// How often something was changed here.
    changes: AtomicU64,
    /// Something may be due.
    work: Notify,
}

impl Webhooks {
    pub(crate) fn new(allow_private: bool) -> Self {
        let (subscriptions, guard) = (RwLock::new(Vec::new()), Guard::new(allow_private));
        Self { subscriptions, guard, changes: AtomicU64::new(0), work: Notify::new() }
    }

    pub(crate) fn edition(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Takes what the store had, unless something was changed here since it was asked. Says whether it was taken.
    pub(crate) fn replace_if(&self, edition: u64, webhooks: Vec<Webhook>) -> bool {
        let mut all = self.subscriptions.write();
        if self.edition() != edition {
            return false;
        }
        // Somebody who asked before this, and is told only now, would bring back what was then.
        self.changed();
        let some = all.is_empty() && !webhooks.is_empty();
        *all = webhooks.into_iter().map(Arc::new).collect();
        if some {
            self.work.notify_one();
        }
        true
    }

    /// The same for one of them.
    fn replace_one_if(&self, edition: u64, id: &WebhookId, webhook: Option<Webhook>) -> bool {
        let mut all = self.subscriptions.write();
        if self.edition() != edition {
            return false;
        }
        // Whoever has read all of them before this must read again.
        self.changed();
        all.retain(|known| known.id != *id);
        all.extend(webhook.map(Arc::new));
        true
    }

    /// There may be deliveries that were queued elsewhere.
    pub(crate) fn look(&self) {
        self.work.notify_one();
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn replace_all(&self, webhooks: Vec<Webhook>) {
        let mut all = self.subscriptions.write();
        self.changed();
        *all = webhooks.into_iter().map(Arc::new).collect();
    }

    pub(crate) fn put(&self, webhook: Webhook) {
        let mut all = self.subscriptions.write();
        self.changed();
        all.retain(|known| known.id != webhook.id);
        all.push(Arc::new(webhook));
    }

    /// Removes a subscription and does `then` before anybody can look again.
    pub(crate) fn remove<T>(&self, id: &WebhookId, then: impl FnOnce() -> T) -> T {
        let mut all = self.subscriptions.write();
        self.changed();
        all.retain(|known| known.id != *id);
        then()
    }

    /// Does something about a subscription that cannot be removed meanwhile: what is queued for it comes before its
    /// deletion, and is gone with it.
    fn hold<T>(&self, id: &WebhookId, work: impl FnOnce(Option<&Webhook>) -> T) -> T {
        let all = self.subscriptions.read();
        work(all.iter().find(|known| known.id == *id).map(Arc::as_ref))
    }

    fn is_empty(&self) -> bool {
        self.subscriptions.read().is_empty()
    }

    pub(crate) fn get(&self, id: &WebhookId) -> Option<Arc<Webhook>> {
        self.subscriptions.read().iter().find(|known| known.id == *id).map(Arc::clone)
    }

    /// Adds a delivery for every subscriber of every record.
    pub(crate) fn enqueue(&self, row: &RunRow, records: &[Record], at: Timestamp, writes: &mut Vec<Write>) {
        let all = self.subscriptions.read();
        let before = writes.len();
        for webhook in all.iter().filter(|webhook| wants_run(webhook, row)) {
            let due_at = health::closed_until(webhook, at).unwrap_or(at);
            for record in records {
                let kind = record.event.type_name();
                if webhook.events.iter().any(|wanted| wanted == "*" || wanted == kind) {
                    writes.push(Write::PutDelivery(Delivery {
                        webhook: webhook.id.clone(),
                        run: row.id.clone(),
                        seq: record.seq,
                        attempts: 0,
                        due_at,
                    }));
                }
            }
        }
        if writes.len() > before {
            self.work.notify_one();
        }
    }
}

impl Inner {
    /// Takes one subscription as it is in the store.
    async fn reload_webhook(&self, webhook: &Webhook) -> Result<(), Error> {
        loop {
            let edition = self.webhooks.edition();
            let now = self.store.webhook(&webhook.tenant, &webhook.id).await?;
            if self.webhooks.replace_one_if(edition, &webhook.id, now) {
                return Ok(());
            }
        }
    }
}

fn wants_run(webhook: &Webhook, row: &RunRow) -> bool {
    webhook.tenant == row.tenant
        && webhook.status != WebhookStatus::Failed
        && (webhook.tags.is_empty() || webhook.tags.iter().any(|tag| row.tags.contains(tag)))
}

#[cfg(test)]
mod tests {
    use baton_model::{TenantId, Timestamp};

    use super::*;

    /// Two ask at the same time: the one that is told last has what was earlier.
    #[test]
    fn what_was_read_earlier_does_not_replace_what_was_read_since() {
        let webhook = Webhook {
            id: WebhookId::new("wh_1"),
            tenant: TenantId::new("acme"),
            url: String::new(),
            events: Vec::new(),
            tags: Vec::new(),
            secret: String::new(),
            status: WebhookStatus::Active,
            consecutive_failures: 0,
            failures: 0,
            window_start: Timestamp::from_micros(0),
            open_until: None,
            created_at: Timestamp::from_micros(0),
        };
        let webhooks = Webhooks::new(false);
        let edition = webhooks.edition();
        assert!(webhooks.replace_if(edition, vec![webhook.clone()]));
        assert!(!webhooks.replace_if(edition, Vec::new()));
        assert!(webhooks.get(&webhook.id).is_some());
        let edition = webhooks.edition();
        webhooks.replace_all(Vec::new());
        assert!(!webhooks.replace_if(edition, vec![webhook]));
    }
}
