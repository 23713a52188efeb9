//! The subscriptions this host goes by, in memory. They are read again from the store now and then, by several tasks at
//! a time, and none of those reads is ever repeated: each subscription remembers which read it came from, and a read
//! that began earlier does not replace it. Whoever reads after a change is durable therefore sees it here afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::{TenantId, WebhookId};
use baton_store::Webhook;
use parking_lot::RwLock;

#[derive(Default)]
pub(super) struct Subscriptions {
    known: BTreeMap<WebhookId, Known>,
    of_tenant: BTreeMap<TenantId, BTreeSet<WebhookId>>,
    /// What was taken away while somebody was reading. Who began before that must not bring it back.
    removed: BTreeMap<WebhookId, u64>,
    /// How many reads are under way.
    reading: usize,
    /// Numbers reads and changes in the order they began.
    last: u64,
    /// Reads with a lower number say nothing: everything was replaced since.
    first: u64,
}

struct Known {
    webhook: Arc<Webhook>,
    /// The read or the change that it came from.
    from: u64,
}

impl Subscriptions {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn get(&self, id: &WebhookId) -> Option<&Arc<Webhook>> {
        self.known.get(id).map(|known| &known.webhook)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &WebhookId> {
        self.known.keys()
    }

    pub(super) fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.of_tenant.keys()
    }

    pub(super) fn of(&self, tenant: &TenantId) -> impl Iterator<Item = &Arc<Webhook>> {
        let ids = self.of_tenant.get(tenant).into_iter().flatten();
        ids.filter_map(|id| self.get(id))
    }

    pub(super) fn put(&mut self, webhook: Webhook) {
        let from = self.next();
        self.insert(webhook, from);
    }

    pub(super) fn remove(&mut self, id: &WebhookId) {
        let from = self.next();
        self.take_out(id, from);
    }

    /// Forgets everything that was known, whatever is being read.
    pub(super) fn replace_all(&mut self, webhooks: Vec<Webhook>) {
        self.first = self.next();
        (self.known, self.of_tenant, self.removed) = Default::default();
        for webhook in webhooks {
            self.put(webhook);
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn insert(&mut self, webhook: Webhook, from: u64) {
        self.removed.remove(&webhook.id);
        self.of_tenant.entry(webhook.tenant.clone()).or_default().insert(webhook.id.clone());
        self.known.insert(webhook.id.clone(), Known { webhook: Arc::new(webhook), from });
    }

    fn take_out(&mut self, id: &WebhookId, from: u64) {
        if let Some(known) = self.known.remove(id)
            && let Some(ids) = self.of_tenant.get_mut(&known.webhook.tenant)
        {
            ids.remove(id);
            if ids.is_empty() {
                self.of_tenant.remove(&known.webhook.tenant);
            }
        }
        if self.reading > 0 {
            self.removed.insert(id.clone(), from);
        }
    }

    /// Whether a read that began as this number knows more of a subscription than is known here.
    fn is_news(&self, id: &WebhookId, read: u64) -> bool {
        let from = self.known.get(id).map(|known| known.from).or_else(|| self.removed.get(id).copied());
        read > self.first && from.is_none_or(|from| read > from)
    }

    fn take_one(&mut self, read: u64, id: &WebhookId, found: Option<Webhook>) {
        if self.is_news(id, read) {
            match found {
                Some(webhook) => self.insert(webhook, read),
                None => self.take_out(id, read),
            }
        }
    }
}

/// A read of the store that is under way. What it finds is taken in unless something newer is known by then.
pub(crate) struct Reading<'a> {
    subscriptions: &'a RwLock<Subscriptions>,
    number: u64,
}

impl<'a> Reading<'a> {
    pub(super) fn begin(subscriptions: &'a RwLock<Subscriptions>) -> Self {
        let mut all = subscriptions.write();
        all.reading += 1;
        let number = all.next();
        drop(all);
        Self { subscriptions, number }
    }

    /// Takes in what the store had of one of them.
    pub(super) fn take_one(self, id: &WebhookId, found: Option<Webhook>) {
        self.subscriptions.write().take_one(self.number, id, found);
    }

    /// The same for all of them. Says whether there are some now and were none before.
    pub(super) fn take_all(self, found: Vec<Webhook>) -> bool {
        let mut all = self.subscriptions.write();
        let none_before = all.is_empty();
        let there: BTreeSet<WebhookId> = found.iter().map(|webhook| webhook.id.clone()).collect();
        let gone: Vec<WebhookId> = all.ids().filter(|id| !there.contains(*id)).cloned().collect();
        for id in gone {
            all.take_one(self.number, &id, None);
        }
        for webhook in found {
            let id = webhook.id.clone();
            all.take_one(self.number, &id, Some(webhook));
        }
        none_before && !all.is_empty()
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut all = self.subscriptions.write();
        all.reading -= 1;
        if all.reading == 0 {
            all.removed.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_model::Timestamp;
    use baton_store::WebhookStatus;

    use super::*;

    fn webhook(id: &str, failures: u32) -> Webhook {
        Webhook {
            id: WebhookId::new(id),
            tenant: TenantId::new("acme"),
            url: String::new(),
            events: Vec::new(),
            tags: Vec::new(),
            secret: String::new(),
            status: WebhookStatus::Active,
            consecutive_failures: failures,
            failures,
            window_start: Timestamp::from_micros(0),
            open_until: None,
            created_at: Timestamp::from_micros(0),
            last_failure: None,
            letters_dropped: 0,
        }
    }

    fn known(all: &RwLock<Subscriptions>) -> Vec<(String, u32)> {
        let all = all.read();
        all.of(&TenantId::new("acme")).map(|known| (known.id.to_string(), known.failures)).collect()
    }

    fn entry(id: &str, failures: u32) -> (String, u32) {
        (id.to_owned(), failures)
    }

    /// Two ask at the same time: the one that is told last has what was earlier.
    #[test]
    fn what_was_read_earlier_does_not_replace_what_was_read_since() {
        let all = RwLock::default();
        let (early, late) = (Reading::begin(&all), Reading::begin(&all));
        assert!(late.take_all(vec![webhook("a", 2), webhook("b", 0)]));
        assert!(!early.take_all(vec![webhook("a", 1)]), "there were some");
        assert_eq!(known(&all), [entry("a", 2), entry("b", 0)]);
        let (early, late) = (Reading::begin(&all), Reading::begin(&all));
        early.take_all(vec![webhook("a", 3)]);
        late.take_one(&WebhookId::new("a"), Some(webhook("a", 4)));
        assert_eq!(known(&all), [entry("a", 4)], "in whichever order they come back");
    }

    #[test]
    fn what_was_changed_here_meanwhile_stays_so() {
        let all = RwLock::default();
        let read = Reading::begin(&all);
        all.write().put(webhook("new", 0));
        all.write().put(webhook("deleted", 0));
        all.write().remove(&WebhookId::new("deleted"));
        read.take_all(vec![webhook("deleted", 0), webhook("old", 0)]);
        assert_eq!(known(&all), [entry("new", 0), entry("old", 0)]);
        let read = Reading::begin(&all);
        all.write().replace_all(Vec::new());
        read.take_all(vec![webhook("old", 0)]);
        assert_eq!(known(&all), []);
        assert!(all.read().removed.is_empty() && all.read().of_tenant.is_empty(), "nothing is left behind");
    }

    /// A subscription whose attempts are noted all the time keeps nobody else's from being read, and the other way round.
    #[test]
    fn reads_of_others_do_not_disturb() {
        let all = RwLock::default();
        Reading::begin(&all).take_all(vec![webhook("a", 0), webhook("b", 0)]);
        let (of_a, of_all) = (Reading::begin(&all), Reading::begin(&all));
        for failures in 1..100 {
            Reading::begin(&all).take_one(&WebhookId::new("b"), Some(webhook("b", failures)));
        }
        of_a.take_one(&WebhookId::new("a"), Some(webhook("a", 7)));
        of_all.take_all(vec![webhook("a", 8), webhook("b", 1), webhook("c", 0)]);
        assert_eq!(known(&all), [entry("a", 8), entry("b", 99), entry("c", 0)]);
    }
}
