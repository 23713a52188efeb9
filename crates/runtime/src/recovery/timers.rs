//! What the host does by itself: waking runs whose time has come, and forgetting what nobody may ask for any more.

use std::sync::Arc;

use baton_model::Timestamp;
use baton_store::Write;

use crate::clock::RETRY_MS;
use crate::journal::lane::Lane;
use crate::recovery::RunRecovery;
use crate::services::timers::{HORIZON_MS, REFILL_MS};

/// How often replies past their time are forgotten.
const PRUNE_MS: u64 = 60 * 60 * 1000;
/// How many due timers are fetched from the store at a time.
const DUE_PAGE: usize = 10_000;

impl RunRecovery {
    pub(crate) async fn keep_time(self: &Arc<Self>) {
        let mut prune_at = self.clock.now().plus_millis(PRUNE_MS);
        while !self.tasks.stop.is_cancelled() {
            let now = self.clock.now();
            for run in self.timers.take_due(now) {
                self.tasks.spawn_step(self, |room| async move {
                    room.wake(&run).await;
                });
            }
            if now >= prune_at {
                self.prune_replies(now);
                prune_at = now.plus_millis(PRUNE_MS);
            }
            let next = self.timers.earliest().map_or(prune_at, |at| at.min(prune_at));
            tokio::select! {
                biased;
                () = self.clock.until(next) => {}
                () = self.timers.changed() => {}
                () = self.tasks.stop.cancelled() => {}
            }
        }
    }

    /// Fetches timers that have come near, beside those that are due: however long the store takes, nobody who is in
    /// memory wakes late.
    pub(crate) async fn keep_refilling(&self) {
        let mut pause = REFILL_MS;
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.clock.until_housekeeping(self.clock.now().plus_millis(pause)) => {}
                () = self.tasks.stop.cancelled() => return,
            }
            let _watched = self.watch.work("reading timers");
            let more = tokio::select! {
                biased;
                more = self.refill_timers() => more,
                () = self.tasks.stop.cancelled() => return,
            };
            pause = if more { RETRY_MS } else { REFILL_MS };
        }
    }

    /// Forgets replies nobody may ask for any more.
    fn prune_replies(&self, now: Timestamp) {
        if let Ok(live) = self.storage.live() {
            drop(self.storage.write(live.generation, Lane::Host, vec![Write::PruneReplies { before: now }]));
        }
    }

    /// Brings timers that have come near into memory. Only those: waking is what the clock does.
    /// Says whether there may be more.
    pub(crate) async fn refill_timers(&self) -> bool {
        let until = self.clock.now().plus_millis(HORIZON_MS);
        match self.store.due(until, DUE_PAGE).await {
            Ok(due) => {
                due.iter().for_each(|(run, at)| self.timers.set(run, *at));
                due.len() == DUE_PAGE
            }
            Err(error) => {
                tracing::warn!(%error, "could not read timers from the store");
                true
            }
        }
    }
}
