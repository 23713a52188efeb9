//! This host's lease on the store, and the end of those who lost theirs.

use std::sync::atomic::Ordering;

use baton_store::Commit;

use crate::inner::Inner;

impl Inner {
    /// Renews the lease three times within its duration, and does nothing else: whatever else takes long, a host that is
    /// alive says so.
    pub(super) async fn keep_lease(&self) {
        while !self.stop.is_cancelled() {
            let watched = self.watch.work("renewing the lease");
            tokio::select! {
                () = self.renew() => {}
                () = self.stop.cancelled() => return,
            }
            drop(watched);
            if self.a_third_of_the_lease().await.is_none() {
                return;
            }
        }
    }

    /// Ends sessions whose lease is over, and takes work off the busiest host.
    pub(super) async fn keep_session(&self) {
        let Some(shared) = self.shared() else { return };
        while !self.stop.is_cancelled() {
            let look = async {
                match shared.end_lapsed().await {
                    Ok(ended) if !ended.is_empty() => {
                        tracing::warn!(sessions = ?ended, "hosts fell silent; taking over what they were at");
                        self.company.orphans.notify_one();
                        self.company.bells.ring_all();
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "could not look after the other hosts"),
                }
                self.balance().await;
            };
            let watched = self.watch.work("looking after other hosts");
            tokio::select! {
                () = look => {}
                () = self.stop.cancelled() => return,
            }
            drop(watched);
            if self.a_third_of_the_lease().await.is_none() {
                return;
            }
        }
    }

    /// Lets claims go that nobody here uses any more.
    pub(super) async fn keep_claims(&self) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.sweep_claims() => {}
                () = self.stop.cancelled() => return,
            }
            if self.a_third_of_the_lease().await.is_none() {
                return;
            }
        }
    }

    /// `None` if the host stops meanwhile.
    async fn a_third_of_the_lease(&self) -> Option<()> {
        let third = (self.shared()?.lease().as_millis() as u64 / 3).max(1);
        tokio::select! {
            () = self.clock.until(self.clock.now().plus_millis(third)) => Some(()),
            () = self.stop.cancelled() => None,
        }
    }

    async fn renew(&self) {
        let Some(shared) = self.shared() else { return };
        let (asked_at, epoch) = (self.clock.now(), shared.epoch());
        match shared.renew(self.load()).await {
            Ok(true) => {
                self.company.renewed_at.store(asked_at.as_micros(), Ordering::Release);
                *self.company.unheard.lock() = None;
            }
            Ok(false) if epoch == shared.epoch() => {
                // Nothing of this generation can become durable. A commit is what finds that out, and starts over.
                tracing::warn!(epoch, "this host's lease is over");
                drop(self.store.submit(Commit::new(self.current_world().generation, Vec::new())));
            }
            // The generation has ended meanwhile, and a new session begun.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "the lease could not be renewed");
                *self.company.unheard.lock() = Some(error.to_string());
            }
        }
    }

    pub(crate) fn renewed_now(&self) {
        self.company.renewed_at.store(self.clock.now().as_micros(), Ordering::Release);
        *self.company.unheard.lock() = None;
    }

    /// Why this host has not heard from a store that it shares, if it has not.
    pub(crate) fn unheard(&self) -> Option<String> {
        self.company.unheard.lock().clone()
    }

    /// Whether this host may still speak for its runs where no commit comes first. Judged by its own clock, from when it
    /// asked for the lease; a host that slept through it is quiet until it has heard from the store.
    pub(crate) fn may_speak(&self) -> bool {
        let Some(shared) = self.shared() else { return true };
        let since = self.clock.now().as_micros() - self.company.renewed_at.load(Ordering::Acquire);
        u128::try_from(since).unwrap_or(0) < shared.lease().as_micros()
    }

    /// How many runs this host has to see to before long: those in memory, and those whose time is near. The latter may
    /// have been handed over a moment ago and not be in memory yet.
    fn load(&self) -> u64 {
        let world = self.current_world();
        let at_work = world.slots.iter().filter(|slot| {
            let ended = slot.head_now().is_some_and(|head| head.state.status().is_terminal());
            !ended && !self.timers.has(slot.key())
        });
        (at_work.count() + self.timers.len()) as u64
    }
}
