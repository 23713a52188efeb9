//! Bounds for what subscribers did not take: how much of it there is, and how long.
//!
//! A dead letter is a small row, and so is a delivery that waits, whatever the event is; so counts bound the disk. When a
//! tenant has too many, those of its subscribers that have most give way, oldest first: one that is dead for long does not
//! take the letters of another. What waits too long a queue becomes a letter; a letter that goes is counted for its
//! owner and for the operator.

use crate::journal::lane::Lane;
use crate::services::webhooks::bounds::HOUR;
use std::sync::Arc;

use baton_model::{TenantId, Timestamp};
use baton_store::{DeadLetterWrite, DeathReason, Store, WebhookLoad, Write};

use super::died;
use crate::clock::Clock;
use crate::cluster::membership::Membership;
use crate::history::log::RunLog;
use crate::journal::storage::Storage;
use crate::services::observers::ObserverFeed;
use crate::services::webhooks::Webhooks;
use crate::services::webhooks::register::WebhookRegistry;
use crate::tasks::Tasks;
use crate::watch::Watch;
use crate::{Error, Options};

/// How far apart looks at everybody are: bounds may have been passed before a restart, and letters grow old.
const SWEEP_MS: u64 = HOUR;
/// How long it is left when storage did not answer.
const PAUSE_MS: u64 = 1000;
/// How many letters one commit forgets: others write meanwhile.
const AT_ONCE: u64 = 5_000;
/// How many subscribers one commit trims.
const TRIMMED_AT_ONCE: usize = 64;
/// How many events may wait for one subscriber. An hour of a busy tenant while a circuit is open, and some megabytes.
const WAITING_PER_WEBHOOK: u64 = 100_000;
/// How many may wait for all subscribers of a tenant: some ten megabytes.
const WAITING_PER_TENANT: u64 = 500_000;

pub(crate) async fn keep(room: Arc<WebhookDelivery>) {
    tokio::select! {
        biased;
        () = keep_bounds(&room) => {}
        () = room.tasks.stop.cancelled() => {}
    }
}

async fn keep_bounds(room: &WebhookDelivery) {
    let mut sweep_at = room.clock.now();
    loop {
        tokio::select! {
            biased;
            () = room.webhooks.growth.news.notified() => {}
            () = room.clock.until_housekeeping(sweep_at) => {}
        }
        let now = room.clock.now();
        let swept = now >= sweep_at;
        let done = if swept { room.sweep_letters(now).await } else { room.count_grown(now).await };
        match done {
            Ok(()) if swept => sweep_at = now.plus_millis(SWEEP_MS),
            Ok(()) => {}
            Err(error) => {
                tracing::debug!(%error, "dead letters could not be counted");
                // Whoever was to be counted is found again by looking at everybody.
                sweep_at = now.plus_millis(PAUSE_MS);
            }
        }
    }
}

/// Sends what webhooks are owed, and bounds what they did not take.
pub(crate) struct WebhookDelivery {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) observers: Arc<ObserverFeed>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) subscriptions: Arc<WebhookRegistry>,
    pub(crate) tasks: Arc<Tasks>,
}

impl WebhookDelivery {
    async fn count_grown(&self, now: Timestamp) -> Result<(), Error> {
        for tenant in self.webhooks.growth.take() {
            self.bound_letters(&tenant, now).await?;
        }
        Ok(())
    }

    async fn sweep_letters(&self, now: Timestamp) -> Result<(), Error> {
        let before = self.options.dead_letters.oldest(now);
        while self.store.oldest_dead_letter().await?.is_some_and(|oldest| oldest < before) {
            let expire = DeadLetterWrite::Expire { before, limit: AT_ONCE };
            self.write_letters(Lane::Host, vec![Write::DeadLetters(expire)]).await?;
        }
        let tenants: Vec<TenantId> = self.webhooks.subscriptions.read().tenants().cloned().collect();
        for tenant in tenants {
            self.bound_letters(&tenant, now).await?;
        }
        Ok(())
    }

    /// Makes a tenant's subscribers keep to their bounds.
    async fn bound_letters(&self, tenant: &TenantId, at: Timestamp) -> Result<(), Error> {
        // What waits too long is a letter first, and then one of them.
        let (each, all) = (WAITING_PER_WEBHOOK, WAITING_PER_TENANT);
        let over = self.over_bounds(tenant, each, all, |load| load.waiting).await?;
        let bury = |(load, keep): &(WebhookLoad, u64)| {
            let (webhook, reason) = (load.webhook.clone(), DeathReason::BacklogFull);
            died(reason, load.waiting - keep);
            Write::DeadLetters(DeadLetterWrite::Bury { webhook, keep: *keep, reason, at })
        };
        self.write_in_parts(tenant, over.iter().map(bury).collect()).await?;
        let bounds = self.options.dead_letters;
        let over = self.over_bounds(tenant, bounds.per_webhook, bounds.per_tenant, |load| load.letters).await?;
        let dropped: u64 = over.iter().map(|(load, keep)| load.letters - keep).sum();
        if dropped > 0 {
            tracing::warn!(%tenant, dropped, "there are too many dead letters; the oldest go");
            metrics::counter!("baton_webhook_dead_letters_dropped_total").increment(dropped);
        }
        let trim = |(load, keep): (WebhookLoad, u64)| {
            Write::DeadLetters(DeadLetterWrite::Trim { webhook: load.webhook, keep })
        };
        self.write_in_parts(tenant, over.into_iter().map(trim).collect()).await
    }

    /// Who has too many, and how many each of them may have.
    async fn over_bounds(
        &self,
        tenant: &TenantId,
        each: u64,
        all: u64,
        count: impl Fn(&WebhookLoad) -> u64,
    ) -> Result<Vec<(WebhookLoad, u64)>, Error> {
        let loads = self.store.webhook_loads(tenant, None).await?;
        let keep = level(loads.iter().map(&count).collect(), each, all);
        Ok(loads.into_iter().filter(|load| count(load) > keep).map(|load| (load, keep)).collect())
    }

    async fn write_in_parts(&self, tenant: &TenantId, writes: Vec<Write>) -> Result<(), Error> {
        for part in writes.chunks(TRIMMED_AT_ONCE) {
            self.write_letters(Lane::Of(tenant), part.to_vec()).await?;
        }
        Ok(())
    }

    async fn write_letters(&self, lane: Lane<'_>, writes: Vec<Write>) -> Result<(), Error> {
        Ok(self.storage.write(self.storage.live()?.generation, lane, writes).await?)
    }
}

/// How many each may have, so that nobody has more than `each` and all of them together no more than `all`. Whoever has
/// few keeps them.
fn level(mut counts: Vec<u64>, each: u64, all: u64) -> u64 {
    counts.sort_unstable();
    let (mut left, mut others) = (all, counts.len() as u64);
    for count in counts {
        let share = left / others;
        if count.min(each) > share {
            return share.min(each);
        }
        left -= count.min(each);
        others -= 1;
    }
    each
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_most_gives_way() {
        assert_eq!(level(vec![], 10, 100), 10);
        assert_eq!(level(vec![3, 4, 5], 10, 100), 10, "nobody has too many");
        assert_eq!(level(vec![3, 40, 5], 10, 100), 10, "one has");
        assert_eq!(level(vec![1, 30, 40, 2], 100, 53), 25, "the two that have most share what the others leave");
        assert_eq!(level(vec![7; 10], 10, 50), 5);
        assert_eq!(level(vec![9; 10], 10, 5), 0, "more subscribers than there may be letters");
        for all in 0..60 {
            let counts = [0, 1, 1, 5, 9, 30];
            let kept: u64 = counts.iter().map(|count| (*count).min(level(counts.to_vec(), 8, all))).sum();
            assert!(kept <= all, "{kept} of {all}");
        }
    }
}
