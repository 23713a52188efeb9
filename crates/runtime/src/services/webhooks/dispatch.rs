//! Sends what the outbox of deliveries holds.
//!
//! ```text
//!  records with deliveries are durable ──┐
//!  a pause has passed ───────────────────┼──► schedule ──► one task per subscriber: reads what is due, sends it
//!  a subscriber's task has finished ─────┘               (bounded in all, per tenant, and for those in trouble)
//! ```
//!
//! The dispatcher itself waits for nothing but its next piece of news: whoever reads from the store or calls a
//! subscriber is a task of its own, so a task that was given a reader or a connection is always running. Deliveries are
//! rows in the store, so a restart goes on where the last process stopped; one that was answered but not yet taken off
//! the list is sent again.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::{Timestamp, WebhookId};
use tokio::task::{Id, JoinError, JoinSet};

use super::post::Sender;
use super::queue::{Shift, SubscriberQueue};
use super::schedule::{Calling, Later, Ready, Standing};
use crate::services::webhooks::dead_letter_retention::WebhookDelivery;

/// How far apart looks at everybody's deliveries are, in case some news was lost.
const SWEEP_MS: u64 = 30_000;
/// How long a subscriber is left alone when storage did not answer.
const PAUSE_MS: u64 = 1000;

pub(crate) async fn deliver(room: Arc<WebhookDelivery>) {
    let dispatcher = Dispatcher {
        sender: Arc::new(Sender::new(room.webhooks.guard.clone(), room.options.webhook_carrier.clone())),
        room: Arc::clone(&room),
        resting: BTreeMap::new(),
        calling: Calling::default(),
        ready: Ready::default(),
        later: Later::default(),
        shifts: JoinSet::new(),
        sweep_at: room.clock.now(),
    };
    tokio::select! {
        biased;
        () = dispatcher.run() => {}
        () = room.tasks.stop.cancelled() => {}
    }
}

struct Dispatcher {
    room: Arc<WebhookDelivery>,
    sender: Arc<Sender>,
    /// Lanes that are not at work but remember something.
    resting: BTreeMap<WebhookId, SubscriberQueue>,
    calling: Calling,
    ready: Ready,
    later: Later,
    shifts: JoinSet<Shift>,
    sweep_at: Timestamp,
}

impl Dispatcher {
    async fn run(mut self) {
        let room = Arc::clone(&self.room);
        loop {
            let now = room.clock.now();
            self.schedule(now);
            self.start();
            let next = self.later.first().map_or(self.sweep_at, |at| at.min(self.sweep_at));
            tokio::select! {
                biased;
                Some(ended) = self.shifts.join_next_with_id() => self.end(ended),
                () = room.webhooks.work.notified() => {}
                () = room.clock.until_housekeeping(next) => {}
            }
        }
    }

    /// Notes who may have something due.
    fn schedule(&mut self, now: Timestamp) {
        if now >= self.sweep_at {
            self.sweep_at = now.plus_millis(SWEEP_MS);
            self.room.webhooks.all_fresh();
            // Of those who were deleted meanwhile nobody asks again.
            self.resting.retain(|webhook, _| self.room.webhooks.get(webhook).is_some());
        }
        for webhook in self.later.take_due(now).into_iter().chain(self.room.webhooks.take_fresh()) {
            self.later.remove(&webhook);
            if self.calling.call_again(&webhook) {
                continue;
            }
            let Some(known) = self.room.webhooks.get(&webhook) else {
                // Deleted, and its deliveries with it.
                self.resting.remove(&webhook);
                continue;
            };
            let standing = match self.resting.get(&webhook).and_then(SubscriberQueue::is_prompt) {
                _ if known.consecutive_failures > 0 => Standing::Troubled,
                Some(true) => Standing::Prompt,
                Some(false) => Standing::Troubled,
                None => Standing::Unknown,
            };
            self.ready.add(&known.tenant, webhook, standing);
        }
    }

    /// Sets lanes to work, tenant by tenant.
    fn start(&mut self) {
        while !self.calling.is_full() {
            let Some(next) = self.ready.next(&self.calling) else { return };
            let lane = self.resting.remove(&next.webhook).unwrap_or_else(|| SubscriberQueue::new(next.webhook.clone()));
            let (room, sender) = (Arc::clone(&self.room), Arc::clone(&self.sender));
            let task = self.shifts.spawn(async move { lane.work(&room, &sender).await });
            self.calling.begin(task.id(), next);
        }
    }

    /// Takes a lane back. One that panicked has forgotten what it held back, and is tried again.
    fn end(&mut self, ended: Result<(Id, Shift), JoinError>) {
        let now = self.room.clock.now();
        let (id, lane, next) = match ended {
            Ok((id, Shift { lane, next: Ok(next) })) => (id, Some(lane), next),
            Ok((id, Shift { lane, next: Err(error) })) => {
                tracing::warn!(%error, "webhook deliveries are held up by storage");
                (id, Some(lane), Some(now.plus_millis(PAUSE_MS)))
            }
            Err(error) => {
                tracing::error!(%error, "calling a webhook ended in a panic");
                (error.id(), None, Some(now.plus_millis(PAUSE_MS)))
            }
        };
        let Some(call) = self.calling.end(id) else { return };
        let next = if call.again { Some(next.map_or(now, |at| at.min(now))) } else { next };
        if let Some(at) = next {
            self.later.set(call.webhook.clone(), at);
        }
        if let Some(lane) = lane.filter(SubscriberQueue::remembers) {
            self.resting.insert(call.webhook, lane);
        }
    }
}
