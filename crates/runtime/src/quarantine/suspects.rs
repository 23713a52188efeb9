//! Trees that a process may have died of. Each is stepped singly, so that a further death says which it was; one that has
//! made progress is acquitted, and one that was there at a second death is put in quarantine.
//!
//! A folder keeps the notes of [`crate::StepNotes`]; a store that hosts share keeps marks of its own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_model::RunId;
use baton_store::Suspect;
use dashmap::DashSet;
use futures_util::future::BoxFuture;

use super::{Cause, root_of};
use crate::Error;
use crate::inner::Inner;
use crate::run::world::{Generation, RunHandle};
use crate::steps::deaths;

/// At how many deaths of the process a run may have been the one that was stepped.
const DEATHS: usize = 2;
/// How long after the start suspects are stepped. Those that were there by chance wait a moment longer.
const BEFORE_TRIALS: Duration = Duration::from_secs(1);
/// For how many leases a tree is left alone before it is let go on once, on a store that hosts share.
const QUIET_LEASES: u64 = 10;

pub(crate) struct Suspects {
    /// Trees that were being stepped when a process died; [`crate::StepNotes`] knows at which deaths.
    noted: DashSet<RunId>,
    /// The same for a store that is shared: the store says which they are, and is told when one is stepped.
    marked: DashSet<RunId>,
    /// Nearly always none, which every step may then find out without a lock.
    count: AtomicUsize,
    /// Held by whoever steps a suspect: should the process die, it is clear of which.
    singly: tokio::sync::Mutex<()>,
    /// From when on suspects are stepped.
    trials_at: tokio::time::Instant,
}

impl Default for Suspects {
    fn default() -> Self {
        Self {
            noted: DashSet::new(),
            marked: DashSet::new(),
            count: AtomicUsize::new(0),
            singly: tokio::sync::Mutex::new(()),
            trials_at: tokio::time::Instant::now() + BEFORE_TRIALS,
        }
    }
}

impl Suspects {
    fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    fn contains(&self, root: &RunId) -> bool {
        self.any() && (self.noted.contains(root) || self.marked.contains(root))
    }

    fn note(&self, root: RunId) {
        self.count.fetch_add(usize::from(self.noted.insert(root)), Ordering::AcqRel);
    }

    pub(super) fn acquit(&self, root: &RunId) {
        self.count.fetch_sub(usize::from(self.noted.remove(root).is_some()), Ordering::AcqRel);
    }

    pub(super) fn mark(&self, root: RunId) {
        self.count.fetch_add(usize::from(self.marked.insert(root)), Ordering::AcqRel);
    }

    fn unmark(&self, root: &RunId) {
        self.count.fetch_sub(usize::from(self.marked.remove(root).is_some()), Ordering::AcqRel);
    }
}

/// Leave to step a suspect.
pub(crate) struct Singly<'a> {
    _alone: tokio::sync::MutexGuard<'a, ()>,
}

impl Inner {
    /// Waits until no other suspect is being stepped or loaded, if this run belongs to one.
    pub(crate) async fn singly(&self, world: &Generation, run: &RunId) -> Result<Option<Singly<'_>>, Error> {
        if !self.quarantines.suspects.any() {
            return Ok(None);
        }
        let in_memory = world.slots.get(run).map(|slot| slot.root.clone());
        let root = match in_memory {
            Some(root) => root,
            None => match self.store.run(run).await? {
                Some(row) => root_of(&row).clone(),
                None => return Ok(None),
            },
        };
        self.singly_of(&root).await
    }

    /// The same, by the top of the tree.
    pub(crate) async fn singly_of(&self, root: &RunId) -> Result<Option<Singly<'_>>, Error> {
        let known = &self.quarantines.suspects;
        if !known.contains(root) {
            return Ok(None);
        }
        let alone = known.singly.lock().await;
        if !known.contains(root) {
            return Ok(None);
        }
        if known.noted.contains(root) {
            // Whoever kills processes one after the other kills it before this, and makes nobody look guilty.
            tokio::time::sleep_until(known.trials_at).await;
        }
        if known.marked.contains(root)
            && let Some(shared) = self.shared()
        {
            // Durable before the step: whoever takes over from a host that died then knows what it died of.
            if let Err(error) = shared.mark_suspect(root).await {
                if shared.owner(root).await? == Some(shared.epoch()) {
                    return Err(error.into());
                }
                // Another host drives it, and has its own mark. Whoever only reads it here is alone all the same.
                known.unmark(root);
            }
        }
        Ok(Some(Singly { _alone: alone }))
    }

    /// A suspect was stepped, and the process lives. What it has queued clears it once that is durable; if it made nothing,
    /// it stays a suspect and is only no longer the one being stepped.
    pub(crate) async fn stepped_singly(&self, run: &RunId, slot: &Arc<RunHandle>, queued: u64) {
        let shared = self.shared().filter(|_| self.quarantines.suspects.marked.contains(&slot.root));
        if let Some(shared) = shared
            && let Err(error) = shared.unmark_suspect(&slot.root).await
        {
            tracing::warn!(root = %slot.root, %error, "could not say that a suspect is no longer being stepped");
        }
        if queued <= slot.committed() {
            self.progressed(&slot.root, run, queued);
            return;
        }
        let (world, slot, run) = (self.current_world(), Arc::clone(slot), run.clone());
        if !world.slots.get(&run).is_some_and(|known| Arc::ptr_eq(&known, &slot)) {
            // It went with its generation, and so did what it made.
            return;
        }
        self.spawn(|inner| async move {
            world.outbox.flush(inner.store.as_ref(), world.generation);
            let durable = tokio::select! {
                durable = slot.durable(&world, queued) => durable,
                // A session that ends in good order is no death: nothing more is held against the tree.
                () = inner.stop.cancelled() => return,
            };
            if durable.is_ok() {
                inner.progressed(&slot.root, &run, queued);
                inner.clear_mark(&slot.root).await;
            }
        });
    }

    /// A replay that is a suspect went a page further, and the process lives. Its records are durable.
    pub(crate) async fn replayed_singly(
        &self,
        singly: Singly<'_>,
        root: &RunId,
        run: &RunId,
        durable: u64,
        wrote: bool,
    ) {
        let shared = self.shared().filter(|_| self.quarantines.suspects.marked.contains(root));
        if let Some(shared) = shared
            && let Err(error) = shared.unmark_suspect(root).await
        {
            tracing::warn!(%root, %error, "could not say that a suspect is no longer being stepped");
        }
        drop(singly);
        self.progressed(root, run, durable);
        if wrote {
            self.clear_mark(root).await;
        }
    }

    /// So many records of a suspect are durable. If they are more than when the process died, it is cleared.
    fn progressed(&self, root: &RunId, run: &RunId, durable: u64) {
        if let Some(notes) = &self.options.step_notes
            && self.quarantines.suspects.noted.contains(root)
            && !notes.progressed(root, run, durable)
        {
            self.quarantines.suspects.acquit(root);
        }
    }

    /// The same on a store that is shared.
    async fn clear_mark(&self, root: &RunId) {
        let Some(shared) = self.shared() else { return };
        // While no suspect is being stepped, so that nobody's mark is lost.
        let _nobody = self.quarantines.suspects.singly.lock().await;
        match shared.clear_suspect(root).await {
            Ok(()) => self.quarantines.suspects.unmark(root),
            Err(error) => tracing::warn!(%root, %error, "could not clear a tree of suspicion"),
        }
    }

    /// Those that were being stepped when the process died: twice is enough.
    pub(super) async fn judge_suspects(&self) -> Result<(), Error> {
        let Some(notes) = self.options.step_notes.clone() else { return Ok(()) };
        for held in self.quarantines.held_for(Cause::ProcessDied) {
            // It was left alone and the process died all the same: somebody kills it, or something else does.
            if notes.died_without(&held) && notes.pardon(&held) {
                tracing::warn!(root = %held, "the process died without this tree too, so it may go on once more");
                self.end_quarantine_of(&held).await?;
            }
        }
        for (root, all) in notes.suspects() {
            let row = self.store.run(&root).await?.filter(|row| !row.status.is_terminal());
            let Some(mut row) = row else {
                notes.forget(&root);
                continue;
            };
            let mut guilty = Vec::new();
            for noted in all {
                let now = self.store.run(&noted.run).await?;
                let ended = now.as_ref().is_some_and(|row| row.status.is_terminal());
                let durable = now.as_ref().map_or(0, |row| row.next_seq);
                if ended || durable > noted.durable {
                    notes.progressed(&root, &noted.run, durable.max(noted.durable + 1));
                    continue;
                }
                // The one that was being made is known by its tree alone.
                row = now.unwrap_or(row);
                guilty.push(noted);
            }
            let Some(last) = guilty.last() else { continue };
            if deaths(&guilty) >= DEATHS && self.quarantines.of(&root).is_none() {
                let detail = format!("the process died {} times while it stepped {}", deaths(&guilty), last.run);
                let again = notes.is_pardoned(&root);
                let cause = if again { Cause::ProcessDiedAgain } else { Cause::ProcessDied };
                self.quarantine(&row, cause, &detail);
            }
            self.quarantines.suspects.note(root);
        }
        Ok(())
    }

    /// Trees that were taken over from hosts that died, and were to be stepped. One that a host died of while it stepped it
    /// singly is left alone; the others are stepped singly until they have made progress.
    pub(crate) async fn judge_taken(&self) -> Result<(), Error> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let mut suspects = shared.suspects().await?;
        let mut new = BTreeSet::new();
        for Suspect { root, .. } in &suspects {
            // What is left alone already did not die with anybody.
            if !self.quarantines.suspects.marked.contains(root) && self.quarantine_of(root).await?.is_none() {
                new.insert(root.clone());
            }
        }
        if !new.is_empty() {
            self.pardon_taken(new, shared.lease()).await?;
            // Whoever was let go on has a cleaner record now.
            suspects = shared.suspects().await?;
        }
        for suspect in suspects {
            // Two deaths in all, and the tree was being stepped at the last of them.
            if suspect.deaths == 0 || suspect.takeovers < DEATHS as u64 {
                self.quarantines.suspects.mark(suspect.root);
            } else if self.quarantine_of(&suspect.root).await?.is_none()
                && let Some(row) = self.store.run(&suspect.root).await?
            {
                let hosts = suspect.takeovers;
                // Once released, one death is left of its record; see [`baton_store::Suspect`].
                let cause = if suspect.deaths > 1 { Cause::ProcessDiedAgain } else { Cause::ProcessDied };
                self.quarantine(&row, cause, &format!("{hosts} hosts died while they drove this run"));
            }
        }
        Ok(())
    }

    /// A host has just died with these trees. Those that were left alone by then are not what it died of, and may go on,
    /// once.
    fn pardon_taken(&self, died_with: BTreeSet<RunId>, lease: Duration) -> BoxFuture<'_, Result<(), Error>> {
        // A death is noticed when the lease is over: what was put in quarantine since may have been the cause.
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        Box::pin(async move {
            for root in self.quarantines.held_for(Cause::ProcessDied) {
                let Some(held) = self.quarantine_of(&root).await? else { continue };
                let before = held.at.plus_millis(lease.saturating_mul(2)) < self.clock.now();
                if before && !died_with.contains(&root) {
                    tracing::warn!(%root, "a host died without this tree too, so it may go on once more");
                    self.release(&root).await?;
                }
            }
            Ok(())
        })
    }

    /// A tree may have been marked by chance when somebody killed the host that had taken it over. So it may go on once
    /// more, after a while without deaths, and only while there is another host that would outlive this one.
    pub(super) async fn pardon_in_quiet_times(&self) -> Result<(), Error> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let held = self.quarantines.held_for(Cause::ProcessDied);
        if held.is_empty() {
            return Ok(());
        }
        let sessions = shared.sessions().await?;
        let live: Vec<u64> = sessions.iter().filter(|session| !session.lapsed).map(|session| session.epoch).collect();
        // One of them sees to it.
        if live.len() < 2 || live.iter().min() != Some(&shared.epoch()) {
            return Ok(());
        }
        let lease = u64::try_from(shared.lease().as_millis()).unwrap_or(u64::MAX);
        for root in held {
            let Some(held) = self.quarantine_of(&root).await? else { continue };
            if held.at.plus_millis(lease.saturating_mul(QUIET_LEASES)) < self.clock.now() {
                tracing::warn!(%root, "no host has died for a while, so this tree may go on once more");
                self.release(&root).await?;
            }
        }
        Ok(())
    }
}
