//! What the host does by itself: picking up runs after a restart, waking those whose time has come, and forgetting
//! what nobody may ask for any more.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::{RunId, Timestamp, code};
use baton_store::Write;
use futures_util::{StreamExt as _, stream};

use crate::Error;
use crate::inner::{Inner, RETRY_MS};
use crate::timers::{HORIZON_MS, REFILL_MS};
use crate::vitals::Recovery;

/// How many runs a restart picks up side by side.
const RECOVER_AT_ONCE: usize = 16;
/// How often replies past their time are forgotten.
const PRUNE_MS: u64 = 60 * 60 * 1000;
/// How many due timers are fetched from the store at a time.
const DUE_PAGE: usize = 10_000;

impl Inner {
    /// Picks up every run that a restart must look at. Each one finds out by itself what is left to do.
    pub(crate) async fn recover(&self) {
        if let Err(error) = self.adopt_orphans().await {
            tracing::warn!(%error, "could not take over runs; trying again shortly");
        }
        self.refill_timers().await;
        let mut after = None;
        let at = self.clock.now();
        let (mut found, resumed) = (0_usize, AtomicU64::new(0));
        loop {
            let page = match self.store.unfinished(after, 500).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!(%error, "recovery could not read the unfinished runs; trying again shortly");
                    tokio::select! {
                        () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => continue,
                        () = self.stop.cancelled() => return,
                    }
                }
            };
            let Some((position, _)) = page.last() else { break };
            after = Some(*position);
            found += page.len();
            if self.stop.is_cancelled() {
                return;
            }
            // Several at a time, so that one long run does not keep the others waiting.
            stream::iter(page)
                .for_each_concurrent(RECOVER_AT_ONCE, |(_, run)| {
                    let resumed = &resumed;
                    async move {
                        resumed.fetch_add(u64::from(self.wake(&run).await), Ordering::Relaxed);
                    }
                })
                .await;
        }
        self.vitals.recovered(Recovery { at, found: found as u64, resumed: resumed.into_inner() });
        if found > 0 {
            tracing::info!(runs = found, "recovered unfinished runs");
        }
    }

    /// A run that is in memory goes on; one that is not may be a fork that has hardly begun.
    async fn go_on(&self, run: &RunId) -> Result<(), Error> {
        if self.current_world().slots.contains_key(run) {
            return self.advance(run).await;
        }
        match self.store.run(run).await? {
            Some(row) if row.origin.is_some() && !row.status.is_terminal() => {
                // A replay has no head whose loading would ask.
                drop(self.drive_here(run).await?);
                self.set_going(run).await;
                Ok(())
            }
            _ => self.advance(run).await,
        }
    }

    /// Lets a run go on from where it is, and says whether it does.
    pub(crate) async fn wake(&self, run: &RunId) -> bool {
        match self.go_on(run).await {
            Ok(()) => return true,
            // It was lost with the commit that would have made it: there is nothing to wake.
            Err(error) if error.code == code::RUN_NOT_FOUND => {}
            // Another host drives it by now.
            Err(error) if error.is_elsewhere() => {}
            Err(error) => {
                tracing::warn!(%run, %error, "could not wake a run; trying again shortly");
                self.timers.set(run, self.clock.now().plus_millis(RETRY_MS));
            }
        }
        false
    }

    pub(crate) async fn keep_time(&self) {
        let mut refill_at = self.clock.now().plus_millis(REFILL_MS);
        let mut prune_at = self.clock.now().plus_millis(PRUNE_MS);
        while !self.stop.is_cancelled() {
            let now = self.clock.now();
            for run in self.timers.take_due(now) {
                self.spawn(|inner| async move {
                    inner.wake(&run).await;
                });
            }
            if now >= refill_at {
                let more = self.refill_timers().await;
                refill_at = now.plus_millis(if more { RETRY_MS } else { REFILL_MS });
            }
            if now >= prune_at {
                self.prune_replies(now);
                prune_at = now.plus_millis(PRUNE_MS);
            }
            let next = self.timers.earliest().map_or(refill_at, |at| at.min(refill_at));
            tokio::select! {
                () = self.clock.until(next) => {}
                () = self.timers.changed() => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Forgets replies nobody may ask for any more.
    fn prune_replies(&self, now: Timestamp) {
        if let Ok(world) = self.world() {
            world.outbox.push([Write::PruneReplies { before: now }]);
            world.outbox.flush(self.store.as_ref(), world.generation);
        }
    }

    /// Brings timers that have come near into memory. Only those: waking is what the clock does.
    /// Says whether there may be more.
    async fn refill_timers(&self) -> bool {
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
