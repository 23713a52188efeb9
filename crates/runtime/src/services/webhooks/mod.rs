//! Webhooks: which events go to whom, decided when the event is recorded and written in the same commit, so that a
//! crash can neither lose a delivery nor invent one.

pub(crate) mod address;
pub(crate) mod bounds;
pub(crate) mod carrier;
pub(crate) mod circuit;
pub(crate) mod dead_letter_retention;
pub(crate) mod dead_letters;
pub(crate) mod dispatch;
pub(crate) mod post;
pub(crate) mod queue;
pub(crate) mod register;
pub(crate) mod row_counts;
pub(crate) mod schedule;
pub(crate) mod subscriptions;
pub(crate) mod view;

pub use bounds::DeadLetterBounds;
pub use carrier::{SignedDelivery, WebhookCarrier};
pub(crate) use circuit::closed_until;
pub(crate) use dead_letter_retention::keep;
pub(crate) use dispatch::deliver;
pub(crate) use view::fingerprint;
pub use view::{DeadLetterView, WebhookState, WebhookView};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::{Record, RunId, Timestamp, WebhookId};
use baton_store::{DeadLetter, DeadLetterWrite, DeathReason, Delivery, RunRow, Webhook, WebhookStatus, Write};
use baton_tool::egress::Guard;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use self::row_counts::Growth;
use self::subscriptions::{Reading, Subscriptions};

pub(crate) struct Webhooks {
    subscriptions: RwLock<Subscriptions>,
    guard: Guard,
    /// Something may be due.
    work: Notify,
    /// Deliveries that were queued with a run's records, until those are durable.
    queued: Mutex<BTreeMap<RunId, Queued>>,
    /// Subscribers that may have something due.
    fresh: Mutex<BTreeSet<WebhookId>>,
    /// How much there is more of since somebody counted.
    growth: Growth,
}

/// Whom the records of one run go to, and up to which record.
#[derive(Default)]
struct Queued {
    last: u64,
    webhooks: BTreeSet<WebhookId>,
}

impl Webhooks {
    pub(crate) fn new(allow_private: bool) -> Self {
        let (subscriptions, guard) = (RwLock::default(), Guard::new(allow_private));
        let (queued, fresh) = (Mutex::default(), Mutex::default());
        Self { subscriptions, guard, work: Notify::new(), queued, fresh, growth: Growth::default() }
    }

    /// To be called before the store is asked for subscriptions.
    pub(crate) fn begin_reading(&self) -> Reading<'_> {
        Reading::begin(&self.subscriptions)
    }

    /// Takes in all that the store had, as far as nothing newer is known.
    pub(crate) fn take_all(&self, reading: Reading<'_>, webhooks: Vec<Webhook>) {
        if reading.take_all(webhooks) {
            self.look();
        }
    }

    /// There may be deliveries that were queued elsewhere.
    pub(crate) fn look(&self) {
        self.all_fresh();
        self.work.notify_one();
    }

    /// One of them may have something due.
    pub(crate) fn look_at(&self, webhook: &WebhookId) {
        self.fresh.lock().insert(webhook.clone());
        self.work.notify_one();
    }

    /// Everybody may have something due.
    fn all_fresh(&self) {
        let all: Vec<WebhookId> = self.subscriptions.read().ids().cloned().collect();
        self.fresh.lock().extend(all);
    }

    fn take_fresh(&self) -> BTreeSet<WebhookId> {
        std::mem::take(&mut *self.fresh.lock())
    }

    /// A run's records are durable, and their deliveries with them.
    pub(crate) fn committed(&self, run: &RunId, next_seq: u64) {
        let mut queued = self.queued.lock();
        let Some(of_run) = queued.get(run) else { return };
        self.fresh.lock().extend(of_run.webhooks.iter().cloned());
        if next_seq > of_run.last {
            queued.remove(run);
        }
        drop(queued);
        self.work.notify_one();
    }

    /// A generation ended: what was queued in it is gone, or durable and found by looking.
    pub(crate) fn started_over(&self) {
        self.queued.lock().clear();
        self.look();
    }

    /// What a run had queued was lost with it.
    pub(crate) fn forget_queued(&self, run: &RunId) {
        self.queued.lock().remove(run);
    }

    pub(crate) fn replace_all(&self, webhooks: Vec<Webhook>) {
        self.subscriptions.write().replace_all(webhooks);
    }

    pub(crate) fn put(&self, webhook: Webhook) {
        self.subscriptions.write().put(webhook);
    }

    /// Removes a subscription and does `then` before anybody can look again.
    pub(crate) fn remove<T>(&self, id: &WebhookId, then: impl FnOnce() -> T) -> T {
        let mut all = self.subscriptions.write();
        all.remove(id);
        then()
    }

    /// Does something about a subscription that cannot be removed meanwhile: what is queued for it comes before its
    /// deletion, and is gone with it.
    fn hold<T>(&self, id: &WebhookId, work: impl FnOnce(Option<&Webhook>) -> T) -> T {
        let all = self.subscriptions.read();
        work(all.get(id).map(Arc::as_ref))
    }

    pub(crate) fn get(&self, id: &WebhookId) -> Option<Arc<Webhook>> {
        self.subscriptions.read().get(id).map(Arc::clone)
    }

    /// Adds a delivery for every subscriber of every record; a dead letter where the subscriber is given up.
    pub(crate) fn enqueue(&self, row: &RunRow, records: &[Record], at: Timestamp, writes: &mut Vec<Write>) {
        let all = self.subscriptions.read();
        for webhook in all.of(&row.tenant).filter(|webhook| wants_run(webhook, row)) {
            let due_at = circuit::closed_until(webhook, at).unwrap_or(at);
            let given_up = webhook.status == WebhookStatus::Failed;
            let mut count = 0;
            for record in records {
                let kind = record.event.type_name();
                if !webhook.events.iter().any(|wanted| wanted == "*" || wanted == kind) {
                    continue;
                }
                count += 1;
                if given_up {
                    let (reason, kind) = (DeathReason::SubscriptionFailed, kind.to_owned());
                    let (webhook, run, seq) = (webhook.id.clone(), row.id.clone(), record.seq);
                    let letter = DeadLetter { webhook, run, seq, kind, attempts: 0, reason, status: None, at };
                    writes.push(Write::DeadLetters(DeadLetterWrite::Put(letter)));
                } else {
                    self.note_queued(&row.id, record.seq, &webhook.id);
                    writes.push(Write::PutDelivery(Delivery {
                        webhook: webhook.id.clone(),
                        run: row.id.clone(),
                        seq: record.seq,
                        attempts: 0,
                        due_at,
                    }));
                }
            }
            if given_up {
                died(DeathReason::SubscriptionFailed, count);
            }
            self.growth.add(&row.tenant, count);
        }
    }

    fn note_queued(&self, run: &RunId, seq: u64, webhook: &WebhookId) {
        let mut queued = self.queued.lock();
        let of_run = queued.entry(run.clone()).or_default();
        of_run.last = of_run.last.max(seq);
        if !of_run.webhooks.contains(webhook) {
            of_run.webhooks.insert(webhook.clone());
        }
    }
}

/// Counts dead letters for whoever operates the host.
fn died(reason: DeathReason, count: u64) {
    if count > 0 {
        metrics::counter!("baton_webhook_dead_letters_total", "reason" => reason.as_str()).increment(count);
    }
}

fn wants_run(webhook: &Webhook, row: &RunRow) -> bool {
    webhook.tags.is_empty() || webhook.tags.iter().any(|tag| row.tags.contains(tag))
}
