//! Sends what the outbox of deliveries holds.
//!
//! ```text
//!  a record is pushed ──► work (Notify) ──┐
//!  a pause has passed ────────────────────┼──► look: which deliveries are due? ──► one lane per subscriber
//!  a lane has finished ───────────────────┘        (committed rows only)             (many at once, bounded)
//! ```
//!
//! The notification comes before the commit, so the first look may be too early: looks follow each other quickly at
//! first and then further apart. Deliveries are rows in the store, so a restart goes on where the last process
//! stopped; one that was answered but not yet taken off the list is sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::{Timestamp, WebhookId};
use baton_store::Delivery;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::lane::{Lane, Shift};
use super::send::Sender;
use crate::inner::Inner;

/// How many deliveries one subscriber gets in one go, and how many are asked for at first.
const PAGE: usize = 64;
/// How far a look goes past the backlog of busy subscribers to find work for the others, once in `IDLE_MS`.
const WIDEST_PAGE: usize = 16 * 1024;
/// How many subscribers are called at the same time: bounds sockets, not throughput of a healthy one.
const LANES: usize = 16;
/// How soon after a notification the first look happens.
const SOON_MS: u64 = 20;
/// How far apart looks are when nothing is found.
const IDLE_MS: u64 = 1000;

pub(crate) async fn deliver(inner: Arc<Inner>) {
    let dispatcher = Dispatcher {
        sender: Arc::new(Sender::new(inner.webhooks.guard.clone())),
        inner: Arc::clone(&inner),
        resting: BTreeMap::new(),
        busy: BTreeSet::new(),
        widen_at: inner.clock.now(),
        shifts: FuturesUnordered::new(),
    };
    tokio::select! {
        () = dispatcher.run() => {}
        () = inner.stop.cancelled() => {}
    }
}

struct Dispatcher {
    inner: Arc<Inner>,
    sender: Arc<Sender>,
    /// Lanes that are not at work but remember something.
    resting: BTreeMap<WebhookId, Lane>,
    busy: BTreeSet<WebhookId>,
    /// When a look may go wide again.
    widen_at: Timestamp,
    shifts: FuturesUnordered<BoxFuture<'static, Shift>>,
}

impl Dispatcher {
    async fn run(mut self) {
        let inner = Arc::clone(&self.inner);
        let mut pause = IDLE_MS;
        // Once at the start, whoever is subscribed: there may be rows from before.
        let mut look_at = Some(inner.clock.now());
        loop {
            tokio::select! {
                Some(shift) = self.shifts.next() => {
                    look_at = Some(self.end(shift));
                }
                () = inner.webhooks.work.notified() => {
                    pause = SOON_MS;
                    let soon = inner.clock.now().plus_millis(pause);
                    look_at = Some(look_at.map_or(soon, |at| at.min(soon)));
                }
                () = reached(&inner, look_at) => {
                    let started = self.look().await;
                    pause = if started { SOON_MS } else { (pause * 2).min(IDLE_MS) };
                    let expected = started || !inner.webhooks.is_empty();
                    look_at = expected.then(|| inner.clock.now().plus_millis(pause));
                }
            }
        }
    }

    /// Sets lanes to work on what is due. False if there was nothing to start.
    async fn look(&mut self) -> bool {
        // While storage takes no writes, an answer could not be noted and the subscriber would be called for ever.
        if self.busy.len() >= LANES || self.inner.world().is_err() || !self.inner.may_speak() {
            return false;
        }
        let batches = match self.due().await {
            Ok(batches) => batches,
            Err(error) => {
                tracing::warn!(%error, "could not read webhook deliveries");
                return false;
            }
        };
        let started = !batches.is_empty();
        let free = LANES - self.busy.len();
        for (webhook, batch) in batches.into_iter().take(free) {
            let lane = self.resting.remove(&webhook).unwrap_or_else(|| Lane::new(webhook.clone()));
            self.busy.insert(webhook);
            let (inner, sender) = (Arc::clone(&self.inner), Arc::clone(&self.sender));
            self.shifts.push(Box::pin(async move { lane.work(&inner, &sender, batch).await }));
        }
        started
    }

    /// What is due for subscribers that are not being called already; who has waited longest comes first.
    async fn due(&mut self) -> Result<Vec<(WebhookId, Vec<Delivery>)>, baton_store::Error> {
        let now = self.inner.clock.now();
        let mut width = PAGE;
        loop {
            let due = self.inner.store.deliveries(now, width).await?;
            let hidden = due.len() == width;
            let mut batches: Vec<(WebhookId, Vec<Delivery>)> = Vec::new();
            for delivery in due.into_iter().filter(|delivery| !self.busy.contains(&delivery.webhook)) {
                match batches.iter_mut().find(|(webhook, _)| *webhook == delivery.webhook) {
                    Some((_, batch)) if batch.len() >= PAGE => {}
                    Some((_, batch)) => batch.push(delivery),
                    None => batches.push((delivery.webhook.clone(), vec![delivery])),
                }
            }
            if !batches.is_empty() || !hidden || now < self.widen_at {
                return Ok(batches);
            }
            if width >= WIDEST_PAGE {
                self.widen_at = now.plus_millis(IDLE_MS);
                return Ok(batches);
            }
            width = (width * 4).min(WIDEST_PAGE);
        }
    }

    /// Takes a lane back. Says when to look again: at once, unless storage is in trouble.
    fn end(&mut self, shift: Shift) -> Timestamp {
        let Shift { lane, result } = shift;
        self.busy.remove(lane.webhook());
        if lane.remembers() {
            self.resting.insert(lane.webhook().clone(), lane);
        }
        let now = self.inner.clock.now();
        match result {
            Ok(()) => now,
            Err(error) => {
                tracing::warn!(%error, "webhook deliveries are held up by storage");
                now.plus_millis(IDLE_MS)
            }
        }
    }
}

async fn reached(inner: &Inner, at: Option<Timestamp>) {
    match at {
        Some(at) => inner.clock.until(at).await,
        None => std::future::pending().await,
    }
}
