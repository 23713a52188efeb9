//! This host's lease on the store, and the end of those who lost theirs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::clock::Clock;
use crate::cluster::state::ClusterState;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::services::timers::Timers;
use crate::tasks::Tasks;
use crate::watch::Watch;

/// Keeps this host's lease.
pub(crate) struct Membership {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Membership {
    /// Renews the lease three times within its duration, and does nothing else: whatever else takes long, a host that is
    /// alive says so.
    pub(crate) async fn keep_lease(&self) {
        while !self.tasks.stop.is_cancelled() {
            let watched = self.watch.work("renewing the lease");
            tokio::select! {
                biased;
                () = self.renew() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            drop(watched);
            if self.a_third_of_the_lease().await.is_none() {
                return;
            }
        }
    }

    /// `None` if the host stops meanwhile.
    pub(crate) async fn a_third_of_the_lease(&self) -> Option<()> {
        let third = (self.storage.shared()?.lease().as_millis() as u64 / 3).max(1);
        tokio::select! {
            biased;
            () = self.clock.until(self.clock.now().plus_millis(third)) => Some(()),
            () = self.tasks.stop.cancelled() => None,
        }
    }

    async fn renew(&self) {
        let Some(shared) = self.storage.shared() else { return };
        let (asked_at, epoch) = (self.clock.now(), shared.epoch());
        match shared.renew(self.load()).await {
            Ok(true) => {
                self.cluster.renewed_at.store(asked_at.as_micros(), Ordering::Release);
                *self.cluster.unheard.lock() = None;
            }
            Ok(false) if epoch == shared.epoch() => {
                // Nothing of this generation can become durable. A commit is what finds that out, and starts over.
                tracing::warn!(epoch, "this host's lease is over");
                drop(self.storage.write(self.storage.current().generation, Lane::Host, Vec::new()));
            }
            // The generation has ended meanwhile, and a new session begun.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "the lease could not be renewed");
                *self.cluster.unheard.lock() = Some(error.to_string());
            }
        }
    }

    pub(crate) fn renewed_now(&self) {
        self.cluster.renewed_at.store(self.clock.now().as_micros(), Ordering::Release);
        *self.cluster.unheard.lock() = None;
    }

    /// Why this host has not heard from a store that it shares, if it has not.
    pub(crate) fn unheard(&self) -> Option<String> {
        self.cluster.unheard.lock().clone()
    }

    /// Whether this host may still speak for its runs where no commit comes first. Judged by its own clock, from when it
    /// asked for the lease; a host that slept through it is quiet until it has heard from the store.
    pub(crate) fn may_speak(&self) -> bool {
        let Some(shared) = self.storage.shared() else { return true };
        let since = self.clock.now().as_micros() - self.cluster.renewed_at.load(Ordering::Acquire);
        u128::try_from(since).unwrap_or(0) < shared.lease().as_micros()
    }

    /// How many runs this host has to see to before long: those in memory, and those whose time is near. The latter may
    /// have been handed over a moment ago and not be in memory yet.
    fn load(&self) -> u64 {
        let live = self.storage.current();
        let at_work = live.runs.iter().filter(|handle| {
            let ended = handle.head_now().is_some_and(|head| head.state.status().is_terminal());
            !ended && !self.timers.has(handle.key())
        });
        (at_work.count() + self.timers.len()) as u64
    }
}
