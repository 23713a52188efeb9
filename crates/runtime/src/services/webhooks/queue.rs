//! One subscriber's deliveries, one after the other. Events of one run arrive in order: while one of them waits for
//! its next attempt, the later ones wait with it. (What a lane remembers for that is not stored; after a restart a
//! new event can arrive before a retried one, and its sequence tells.)

use std::collections::{BTreeMap, VecDeque};

use baton_model::{RunId, Timestamp, WebhookId};
use baton_store::{
    Attempt, CommitReceipt, DeadLetter, DeadLetterWrite, DeathReason, Delivery, StoredRecord, Webhook, WebhookStatus,
    Write,
};

use super::post::{Sender, Undelivered, WebhookBody};
use super::{circuit, died};
use crate::Error;
use crate::journal::lane::Lane;
use crate::services::webhooks::dead_letter_retention::WebhookDelivery;

pub(crate) struct SubscriberQueue {
    webhook: WebhookId,
    held: BTreeMap<RunId, BlockedRun>,
    /// Whether the last call was answered at once; none if there was none.
    prompt: Option<bool>,
}

/// The event of a run that must arrive before its later ones.
struct BlockedRun {
    seq: u64,
    until: Timestamp,
}

/// A lane back from work.
pub(crate) struct Shift {
    pub(crate) lane: SubscriberQueue,
    /// When to go on, if there is anything left. An error means that storage did not read or take notes.
    pub(crate) next: Result<Option<Timestamp>, Error>,
}

/// How many deliveries a subscriber gets in one go.
const PAGE: usize = 64;
/// After how long of calling a subscriber the lane goes to the next one: one that answers late must not keep it for a
/// whole page. Many calls of one that answers at once fit in.
const SHIFT_MS: u64 = 1000;
/// A call that takes this long counts like a failed one where lanes are counted: it holds its lane nearly as long.
const SLOW_MS: u64 = 1000;
/// How long a subscriber is left alone whose call has just failed: others get the lane meanwhile.
const AFTER_FAILURE_MS: u64 = 1000;
/// How long everybody is left alone while storage takes no writes: an answer could not be noted, and the subscriber
/// would be called for ever.
const HELD_UP_MS: u64 = 1000;

impl SubscriberQueue {
    pub(crate) fn new(webhook: WebhookId) -> Self {
        Self { webhook, held: BTreeMap::new(), prompt: None }
    }

    pub(crate) fn remembers(&self) -> bool {
        self.prompt.is_some() || !self.held.is_empty()
    }

    pub(crate) fn is_prompt(&self) -> Option<bool> {
        self.prompt
    }

    /// Sends what is due.
    pub(crate) async fn work(mut self, room: &WebhookDelivery, sender: &Sender) -> Shift {
        let next = self.shift(room, sender).await;
        Shift { lane: self, next }
    }

    async fn shift(&mut self, room: &WebhookDelivery, sender: &Sender) -> Result<Option<Timestamp>, Error> {
        let now = room.clock.now();
        if room.storage.live().is_err() || !room.membership.may_speak() {
            return Ok(Some(now.plus_millis(HELD_UP_MS)));
        }
        let found = {
            let _watched = room.watch.work("reading webhook deliveries");
            room.store.deliveries_of(&self.webhook, PAGE).await?
        };
        if room.webhooks.get(&self.webhook).is_some_and(|webhook| webhook.status == WebhookStatus::Failed) {
            return self.give_up(room, &found).await;
        }
        self.look_after_holds(&found, now);
        let (mut due, waiting): (Vec<_>, Vec<_>) = found.into_iter().partition(|delivery| delivery.due_at <= now);
        if due.is_empty() {
            return Ok(waiting.first().map(|delivery| delivery.due_at));
        }
        due.sort_by(|a, b| (&a.run, a.seq).cmp(&(&b.run, b.seq)));
        let well = self.go_through(room, sender, due.into()).await?;
        let now = room.clock.now();
        Ok(Some(if well { now } else { now.plus_millis(AFTER_FAILURE_MS) }))
    }

    /// The subscriber was given up, here or by another host: what waits for it is kept for whoever resumes it.
    async fn give_up(&mut self, room: &WebhookDelivery, found: &[Delivery]) -> Result<Option<Timestamp>, Error> {
        self.held.clear();
        if found.is_empty() {
            return Ok(None);
        }
        let (at, reason) = (room.clock.now(), DeathReason::SubscriptionFailed);
        let generation = room.storage.live()?.generation;
        let buried = room.webhooks.hold(&self.webhook, |webhook| {
            // Resumed in this very moment: then they go out after all.
            let webhook = webhook.filter(|webhook| webhook.status == WebhookStatus::Failed)?;
            room.webhooks.growth.add(&webhook.tenant, found.len() as u64);
            let bury = DeadLetterWrite::Bury { webhook: webhook.id.clone(), keep: 0, reason, at };
            Some(room.storage.write(generation, Lane::Of(&webhook.tenant), vec![Write::DeadLetters(bury)]))
        });
        let Some(buried) = buried else { return Ok(Some(at)) };
        buried.await?;
        died(reason, found.len() as u64);
        tracing::warn!(webhook = %self.webhook, "a webhook was given up; what waited for it are dead letters now");
        Ok(None)
    }

    /// Ends holds whose delivery is gone: somebody else sent it, or dropped it. One that was put off is waited for.
    /// `found` is what there is, earliest first, up to a page.
    fn look_after_holds(&mut self, found: &[Delivery], now: Timestamp) {
        let all_until = found.last().filter(|_| found.len() >= PAGE).map(|last| last.due_at);
        self.held.retain(|run, held| {
            if held.until > now {
                return true;
            }
            match found.iter().find(|delivery| delivery.run == *run && delivery.seq == held.seq) {
                Some(delivery) => {
                    held.until = delivery.due_at;
                    true
                }
                // It may stand on a later page; what comes after it in the log goes behind it meanwhile.
                None => all_until.is_some_and(|until| until <= held.until),
            }
        });
    }

    /// Says whether the subscriber took everything it was given.
    async fn go_through(
        &mut self,
        room: &WebhookDelivery,
        sender: &Sender,
        mut left: VecDeque<Delivery>,
    ) -> Result<bool, Error> {
        let mut well = true;
        let began = room.clock.now();
        // Notes are queued as we go and waited for at the end: a slow disk does not slow the subscriber down.
        let mut notes = Vec::new();
        while !left.is_empty() {
            let now = room.clock.now();
            if now.millis_since(began) >= SHIFT_MS {
                break;
            }
            let Some(webhook) = room.webhooks.get(&self.webhook) else {
                self.held.clear();
                notes.push(submit(room, left.drain(..).map(|delivery| forget(&delivery)).collect())?);
                break;
            };
            if webhook.status == WebhookStatus::Failed {
                // The next shift looks after the rest.
                break;
            }
            if let Some(until) = circuit::closed_until(&webhook, now) {
                notes.push(self.postpone(room, left.drain(..), until)?);
                break;
            }
            let Some(delivery) = left.pop_front() else { break };
            if let Some(held) = self.held.get(&delivery.run)
                && delivery.seq > held.seq
            {
                let until = held.until.max(now);
                notes.push(self.postpone(room, [delivery], until)?);
                continue;
            }
            let record = room.store.records(&delivery.run, delivery.seq, 1).await?.pop();
            let Some(letter) = write_letter(&webhook, &delivery, record.as_ref()) else {
                let kind = record.map(|record| record.kind).unwrap_or_default();
                let dead = dead(&delivery, kind, DeathReason::EventGone, None, now);
                notes.push(self.bury(room, &delivery, dead)?);
                continue;
            };
            let kind = letter.kind().to_owned();
            let letter = letter.traced(room.trace_of(&delivery.run).await?);
            if !room.membership.may_speak() {
                return Err(Error::unavailable("Another host may have taken over what this one was sending."));
            }
            let sent = sender.post(&webhook, letter, now).await;
            self.prompt = Some(room.clock.now().millis_since(now) < SLOW_MS);
            let failed = sent.is_err();
            let (note, attempt) = self.settle(room, delivery, kind, sent)?;
            if attempt {
                // How the subscriber does is counted in the store, by everybody who calls it. What comes next goes by that.
                note.await?;
                room.subscriptions.reload_webhook(&webhook).await?;
            } else {
                notes.push(note);
            }
            if failed {
                well = false;
                break;
            }
        }
        for note in notes {
            note.await?;
        }
        Ok(well)
    }

    /// A letter in place of a delivery that is not tried, unless its subscription was deleted in this very moment.
    fn bury(&self, room: &WebhookDelivery, delivery: &Delivery, letter: DeadLetter) -> Result<CommitReceipt, Error> {
        let generation = room.storage.live()?.generation;
        Ok(room.webhooks.hold(&self.webhook, |webhook| {
            let writes = webhook.map(|webhook| bury(room, webhook, delivery, letter)).unwrap_or_default();
            room.storage.write(generation, lane_of(webhook), writes)
        }))
    }

    fn postpone(
        &self,
        room: &WebhookDelivery,
        deliveries: impl IntoIterator<Item = Delivery>,
        due_at: Timestamp,
    ) -> Result<CommitReceipt, Error> {
        let generation = room.storage.live()?.generation;
        let later = |delivery| Write::PutDelivery(Delivery { due_at, ..delivery });
        Ok(room.webhooks.hold(&self.webhook, |webhook| {
            // Deleted in this very moment: then its deliveries are gone, and must stay so.
            let writes = webhook.map(|_| deliveries.into_iter().map(later).collect()).unwrap_or_default();
            room.storage.write(generation, lane_of(webhook), writes)
        }))
    }

    /// Notes how an attempt ended, for the delivery and for the subscriber, in one commit. Says whether there was anything
    /// to note for the subscriber.
    fn settle(
        &mut self,
        room: &WebhookDelivery,
        delivery: Delivery,
        kind: String,
        sent: Result<(), Undelivered>,
    ) -> Result<(CommitReceipt, bool), Error> {
        let generation = room.storage.live()?.generation;
        let id = self.webhook.clone();
        Ok(room.webhooks.hold(&id, |webhook| {
            let lane = lane_of(webhook);
            let writes = match (webhook, sent) {
                (None, _) => vec![forget(&delivery)],
                (Some(webhook), Ok(())) => self.arrived(webhook, &delivery),
                (Some(webhook), Err(reason)) => self.missed(room, webhook, delivery, kind, &reason),
            };
            let attempt = writes.iter().any(|write| matches!(write, Write::NoteAttempt { .. }));
            (room.storage.write(generation, lane, writes), attempt)
        }))
    }

    fn arrived(&mut self, webhook: &Webhook, delivery: &Delivery) -> Vec<Write> {
        metrics::counter!("baton_webhook_attempts_total", "outcome" => "delivered").increment(1);
        self.held.remove(&delivery.run);
        let mut writes = vec![forget(delivery)];
        // Nothing to say of one that is well, as far as is known here.
        if webhook.clone().note(&Attempt::Succeeded) {
            writes.push(Write::NoteAttempt { webhook: webhook.id.clone(), attempt: Attempt::Succeeded });
        }
        writes
    }

    fn missed(
        &mut self,
        room: &WebhookDelivery,
        webhook: &Webhook,
        delivery: Delivery,
        kind: String,
        reason: &Undelivered,
    ) -> Vec<Write> {
        let now = room.clock.now();
        metrics::counter!("baton_webhook_attempts_total", "outcome" => "failed").increment(1);
        let (id, run, seq) = (&self.webhook, &delivery.run, delivery.seq);
        tracing::debug!(webhook = %id, %run, seq, %reason, "a webhook delivery failed");
        let attempt = circuit::failed(now, reason.status());
        let note = Write::NoteAttempt { webhook: id.clone(), attempt };
        // As it will be if nobody else has called it since we looked.
        let mut then = webhook.clone();
        then.note(&attempt);
        if then.status == WebhookStatus::Failed {
            // Whatever waits for it becomes dead letters next, and so does this if it is still to be tried.
            tracing::warn!(webhook = %id, %reason, "giving up a webhook: too many failures in a week");
        }
        let closed = circuit::closed_until(&then, now);
        if let Some(until) = closed {
            tracing::warn!(webhook = %id, %reason, %until, "a webhook keeps failing; leaving it alone for a while");
        }
        let attempts = delivery.attempts.saturating_add(1);
        let mut writes = match circuit::retry_at(attempts, now) {
            Some(at) => {
                let due_at = closed.map_or(at, |until| until.max(at));
                self.held.insert(delivery.run.clone(), BlockedRun { seq, until: due_at });
                vec![Write::PutDelivery(Delivery { attempts, due_at, ..delivery })]
            }
            None => {
                tracing::warn!(webhook = %id, %run, seq, %reason, "a webhook delivery was given up; it is a dead letter now");
                self.held.remove(&delivery.run);
                let tried = Delivery { attempts, ..delivery };
                let dead = dead(&tried, kind, DeathReason::RetriesExhausted, reason.status(), now);
                bury(room, webhook, &tried, dead)
            }
        };
        writes.push(note);
        writes
    }
}

fn write_letter<'a>(
    webhook: &Webhook,
    delivery: &Delivery,
    record: Option<&'a StoredRecord>,
) -> Option<WebhookBody<'a>> {
    let record = record.filter(|record| record.seq == delivery.seq);
    let letter = record.and_then(|record| WebhookBody::new(&webhook.tenant, &delivery.run, record).ok());
    if letter.is_none() {
        tracing::error!(run = %delivery.run, seq = delivery.seq, "an event to be delivered does not read back");
    }
    letter
}

fn dead(delivery: &Delivery, kind: String, reason: DeathReason, status: Option<u16>, at: Timestamp) -> DeadLetter {
    let Delivery { webhook, run, seq, attempts, .. } = delivery.clone();
    DeadLetter { webhook, run, seq, kind, attempts, reason, status, at }
}

/// A letter in place of a delivery: both or neither.
fn bury(room: &WebhookDelivery, webhook: &Webhook, delivery: &Delivery, letter: DeadLetter) -> Vec<Write> {
    died(letter.reason, 1);
    room.webhooks.growth.add(&webhook.tenant, 1);
    vec![forget(delivery), Write::DeadLetters(DeadLetterWrite::Put(letter))]
}

fn forget(delivery: &Delivery) -> Write {
    Write::DeleteDelivery { webhook: delivery.webhook.clone(), run: delivery.run.clone(), seq: delivery.seq }
}

/// Behind the records that its deliveries follow from, and before its own deletion. What was deleted has nothing to come
/// before or after.
fn lane_of(webhook: Option<&Webhook>) -> Lane<'_> {
    webhook.map_or(Lane::Host, |webhook| Lane::Of(&webhook.tenant))
}

fn submit(room: &WebhookDelivery, writes: Vec<Write>) -> Result<CommitReceipt, Error> {
    let generation = room.storage.live()?.generation;
    Ok(room.storage.write(generation, Lane::Host, writes))
}
