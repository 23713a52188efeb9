//! Trees of runs that are left alone because they broke something. A tree is a top-level run and everything below it,
//! and it is all that one bad run may take along.
//!
//! ```text
//!  a step panics, a log does not fold     twice ──┐
//!  the process died while stepping it     twice ──┼──► quarantine (durable) ──► release: goes on where it was
//!  a commit is refused for its data       twice ──┤                        └──► cancel: ends on its log
//!  a step does not end                    once  ──┘
//! ```
//!
//! Being in quarantine is no event: the log stays as it is until somebody decides.

mod suspects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_model::{QuarantineView, RunId, RunStatus, code};
use baton_store::{Commit, Quarantine, RunRow, Write};
use dashmap::DashMap;
use parking_lot::Mutex;

use self::suspects::Suspects;
use crate::inner::{Inner, RETRY_MS};
use crate::run::world::Generation;
use crate::{Error, Kind};

/// How often a tree may fail before it is left alone: once may have been the host's fault, and is tried again from what
/// is durable.
const STRIKES: u32 = 2;
/// How many trees with a first strike are remembered. More only means that one of them gets a further try.
const MOST_STRIKES: usize = 4096;
/// How long a reason may be.
const DETAIL_BYTES: usize = 1000;
/// How many trees are read at a time.
const PAGE: usize = 500;

/// What a tree did. The words are stored and shown, and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    ProcessDied,
    /// The same after it was let go on once.
    ProcessDiedAgain,
    StepFailed,
    DoesNotFold,
    CommitRefused,
    Stuck,
}

impl Cause {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ProcessDied => "process_died",
            Self::ProcessDiedAgain => "process_died_again",
            Self::StepFailed => "step_panicked",
            Self::DoesNotFold => "does_not_fold",
            Self::CommitRefused => "commit_refused",
            Self::Stuck => "stuck",
        }
    }
}

/// What this process knows of trees that misbehave.
#[derive(Default)]
pub(crate) struct Quarantines {
    trees: DashMap<RunId, Held>,
    /// Nearly always none, which every step may then find out without a lock.
    count: AtomicUsize,
    strikes: Mutex<BTreeMap<RunId, u32>>,
    /// Runs whose data the store refused, how often, and what it said last.
    refused: Mutex<BTreeMap<RunId, (u32, String)>>,
    pub(crate) suspects: Suspects,
}

#[derive(Clone)]
struct Held {
    quarantine: Arc<Quarantine>,
    /// The store knows of it too.
    durable: bool,
}

/// The top of the tree a run belongs to.
pub(crate) fn root_of(row: &RunRow) -> &RunId {
    row.root.as_ref().unwrap_or(&row.id)
}

impl Quarantines {
    pub(crate) fn of(&self, root: &RunId) -> Option<Arc<Quarantine>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.trees.get(root).map(|held| Arc::clone(&held.quarantine))
    }

    fn put(&self, quarantine: Quarantine, durable: bool) {
        let new = self.trees.insert(quarantine.root.clone(), Held { quarantine: Arc::new(quarantine), durable });
        self.count.fetch_add(usize::from(new.is_none()), Ordering::AcqRel);
    }

    pub(crate) fn remove(&self, root: &RunId) {
        let known = self.trees.remove(root);
        self.count.fetch_sub(usize::from(known.is_some()), Ordering::AcqRel);
        self.strikes.lock().remove(root);
        self.suspects.acquit(root);
    }

    /// The same for a tree that may go on, on a store that hosts share. One more death is one too many, so whoever drives it
    /// steps it singly.
    fn released(&self, root: &RunId) {
        self.suspects.mark(root.clone());
        self.remove(root);
    }

    /// How many trees this process leaves alone.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn held_for(&self, cause: Cause) -> Vec<RunId> {
        let held = self.trees.iter().filter(|held| held.quarantine.cause == cause.as_str());
        held.map(|held| held.key().clone()).collect()
    }

    fn not_durable(&self) -> Vec<Quarantine> {
        self.trees.iter().filter(|held| !held.durable).map(|held| held.quarantine.as_ref().clone()).collect()
    }

    /// Those that the store knew of, and that are not among these.
    fn durable_but(&self, found: &BTreeSet<RunId>) -> Vec<RunId> {
        let gone = self.trees.iter().filter(|held| held.durable && !found.contains(held.key()));
        gone.map(|held| held.key().clone()).collect()
    }

    /// Counts one more failure of a tree.
    fn strike(&self, root: &RunId) -> u32 {
        let mut strikes = self.strikes.lock();
        if strikes.len() >= MOST_STRIKES && !strikes.contains_key(root) {
            strikes.pop_first();
        }
        let count = strikes.entry(root.clone()).or_insert(0);
        *count += 1;
        *count
    }
}

impl Inner {
    /// A run could not go on for a reason that is its own. The first time it is loaded and tried again; then its tree is
    /// left alone.
    pub(crate) fn broke(&self, world: &Generation, row: &RunRow, cause: Cause, detail: &str) {
        let root = root_of(row);
        world.budgets.forget(root);
        if self.quarantines.of(root).is_some() {
            if row.status == RunStatus::Cancelling {
                // It breaks at that too.
                let (root, detail) = (root.clone(), detail.to_owned());
                self.spawn(|inner| async move { inner.end_broken_tree(&root, &detail).await });
            }
            return;
        }
        // One that never became durable is gone, and whoever started it was told; a child is its tree's trouble.
        let durable = row.next_seq > 0 || row.root.is_some();
        if durable && self.quarantines.strike(root) >= STRIKES {
            self.quarantine(row, cause, detail);
        } else if durable {
            // Whoever told it something may not tell it again.
            let again = if row.next_seq > 0 { &row.id } else { root };
            self.timers.set(again, self.clock.now().plus_millis(RETRY_MS));
        }
    }

    /// A commit failed because of what this run wrote. The generation ends; see [`Inner::judge_refused`].
    pub(crate) fn note_refused(&self, run: &RunId, reason: &str) {
        let mut refused = self.quarantines.refused.lock();
        if refused.len() >= MOST_STRIKES && !refused.contains_key(run) {
            refused.pop_first();
        }
        let (count, last) = refused.entry(run.clone()).or_default();
        *count += 1;
        reason.clone_into(last);
    }

    /// Leaves alone whose data was refused again after everything had been loaded from what is durable.
    pub(crate) async fn judge_refused(&self, ended: &Generation) {
        let refused: Vec<(RunId, String)> = {
            let refused = self.quarantines.refused.lock();
            let again = refused.iter().filter(|(_, (count, _))| *count >= STRIKES);
            again.map(|(run, (_, reason))| (run.clone(), reason.clone())).collect()
        };
        for (run, reason) in refused {
            let in_memory = ended.slots.get(&run).map(|slot| slot.root.clone());
            let judged = async {
                let root = match in_memory {
                    Some(root) => Some(root),
                    None => self.store.run(&run).await?.map(|row| root_of(&row).clone()),
                };
                // A run that never became durable under a tree that did: the tree would only make it again.
                let Some(root) = root else { return Ok(()) };
                match self.store.run(&run).await? {
                    Some(row) => self.quarantine(&row, Cause::CommitRefused, &reason),
                    None if let Some(row) = self.store.run(&root).await? => {
                        self.quarantine(&row, Cause::CommitRefused, &format!("{run}: {reason}"));
                    }
                    None => {}
                }
                Ok::<(), Error>(())
            };
            match judged.await {
                Ok(()) => drop(self.quarantines.refused.lock().remove(&run)),
                Err(error) => tracing::warn!(%run, %error, "a run whose data was refused could not be looked at"),
            }
        }
    }

    /// Leaves a tree alone from now on. Binding at once in this process, and durable shortly.
    pub(crate) fn quarantine(&self, row: &RunRow, cause: Cause, detail: &str) {
        let quarantine = Quarantine {
            root: root_of(row).clone(),
            tenant: row.tenant.clone(),
            run: row.id.clone(),
            seq: row.next_seq,
            cause: cause.as_str().to_owned(),
            detail: detail[..detail.floor_char_boundary(DETAIL_BYTES)].to_owned(),
            at: self.clock.now(),
        };
        let (root, run) = (&quarantine.root, &quarantine.run);
        tracing::error!(%root, %run, cause = cause.as_str(), detail, "a tree of runs is put in quarantine");
        metrics::counter!("baton_quarantines_total", "cause" => cause.as_str()).increment(1);
        self.quarantines.put(quarantine.clone(), false);
        self.spawn(|inner| async move { inner.keep_quarantine(quarantine).await });
    }

    /// Writes down that a tree is left alone and lets go of its runs in memory. If that fails, the generation ends, and
    /// [`Inner::keep_quarantines`] writes it in the next.
    async fn keep_quarantine(&self, quarantine: Quarantine) {
        let world = self.current_world();
        let root = quarantine.root.clone();
        self.abandon(&world, &root);
        world.outbox.flush(self.store.as_ref(), world.generation);
        let commit = Commit::new(world.generation, vec![Write::Quarantine(quarantine)]);
        // Behind everything that the tree had queued: whoever loads a run of it afterwards reads all of that.
        match self.store.submit(commit).await {
            Ok(()) => drop(self.quarantines.trees.get_mut(&root).map(|mut held| held.durable = true)),
            Err(error) => tracing::warn!(%error, "a quarantine is not on disk yet"),
        }
        self.janitor().visit(self.abandon(&world, &root));
    }

    /// Writes down again what is not on disk, after a generation ended.
    pub(crate) fn keep_quarantines(&self, world: &Generation) {
        let all: Vec<Write> = self.quarantines.not_durable().into_iter().map(Write::Quarantine).collect();
        if !all.is_empty() {
            drop(self.store.submit(Commit::new(world.generation, all)));
        }
    }

    /// Nobody waits any more for the runs of a tree. One that is being stepped at this moment is let go of when that ends,
    /// if it does. Says which runs they are.
    pub(crate) fn abandon(&self, world: &Generation, root: &RunId) -> Vec<RunId> {
        let of_tree = world.slots.iter().filter(|slot| slot.root == *root);
        let of_tree: Vec<_> = of_tree.map(|slot| (slot.key().clone(), Arc::clone(&slot))).collect();
        for (run, slot) in &of_tree {
            slot.abandon();
            if let Some(mut head) = slot.head_now() {
                head.gone = true;
            }
            self.timers.clear(run);
        }
        of_tree.into_iter().map(|(run, _)| run).collect()
    }

    /// What earlier processes found, before anything is stepped.
    pub(crate) async fn read_quarantines(&self) -> Result<(), Error> {
        drop(self.read_quarantined().await?);
        self.judge_suspects().await
    }

    /// Reads which trees the store says are left alone.
    async fn read_quarantined(&self) -> Result<BTreeSet<RunId>, Error> {
        let (mut after, mut found) = (None, BTreeSet::new());
        loop {
            let page = self.store.quarantined(None, after, PAGE).await?;
            let full = page.len() == PAGE;
            after = page.last().map(|held| held.root.clone());
            for held in page {
                found.insert(held.root.clone());
                self.quarantines.put(held, true);
            }
            if !full {
                break;
            }
        }
        Ok(found)
    }

    /// The row of a run, or of its tree if it is not durable.
    pub(crate) async fn row_or_root(&self, run: &RunId, root: &RunId) -> Result<Option<RunRow>, Error> {
        match self.store.run(run).await? {
            Some(row) => Ok(Some(row)),
            None => Ok(self.store.run(root).await?),
        }
    }

    /// Whether a tree is left alone, asked of the store where another host may have said so, or ended it.
    pub(crate) async fn quarantine_of(&self, root: &RunId) -> Result<Option<Arc<Quarantine>>, Error> {
        let known = self.quarantines.trees.get(root).map(|held| held.clone());
        if self.shared().is_none() {
            return Ok(known.map(|held| held.quarantine));
        }
        match (known, self.store.quarantine(root).await?) {
            (_, Some(found)) => self.quarantines.put(found, true),
            // It was released elsewhere. One that this host has just found is on its way to the store.
            (Some(Held { durable: true, .. }), None) => self.quarantines.released(root),
            _ => {}
        }
        Ok(self.quarantines.of(root))
    }

    /// Hears which trees other hosts have put in quarantine, and wakes those that were released there.
    pub(crate) async fn keep_up_with_quarantines(&self) {
        while !self.stop.is_cancelled() {
            match self.read_quarantined().await {
                Ok(found) => {
                    for root in self.quarantines.durable_but(&found) {
                        // Released elsewhere.
                        self.quarantines.released(&root);
                        self.spawn_step(|inner| async move { inner.wake_tree(&root).await });
                    }
                }
                Err(error) => tracing::debug!(%error, "could not see which trees are in quarantine"),
            }
            if let Err(error) = self.pardon_in_quiet_times().await {
                tracing::debug!(%error, "could not look whether trees may go on");
            }
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(RELEASES_MS)) => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Lets a tree go on from where it was.
    pub(crate) async fn release(&self, root: &RunId) -> Result<(), Error> {
        self.end_quarantine(root).await?;
        tracing::info!(%root, "a tree of runs was released from quarantine");
        if self.shared().is_some() {
            self.quarantines.released(root);
        }
        let root = root.clone();
        self.spawn_step(|inner| async move { inner.wake_tree(&root).await });
        Ok(())
    }

    pub(crate) async fn end_quarantine(&self, root: &RunId) -> Result<(), Error> {
        self.end_quarantine_of(root).await?;
        self.quarantine_ended(root);
        Ok(())
    }

    /// The same without forgetting what is known of the tree.
    async fn end_quarantine_of(&self, root: &RunId) -> Result<(), Error> {
        let generation = self.world()?.generation;
        self.store.submit(Commit::new(generation, vec![Write::EndQuarantine { root: root.clone() }])).await?;
        self.quarantines.remove(root);
        Ok(())
    }

    /// Nothing is held against the tree any more, now or after a restart.
    pub(crate) fn quarantine_ended(&self, root: &RunId) {
        self.quarantines.remove(root);
        if let Some(notes) = &self.options.step_notes {
            notes.forget(root);
        }
    }
}

/// How often a host that shares its store looks whether a tree it leaves alone was released.
const RELEASES_MS: u64 = 5000;

/// Whether the log of a tree in quarantine may be folded. If that is what the process died of, or what never ended,
/// whoever looks at the run must not make it happen again.
pub(crate) fn may_be_loaded(held: &Quarantine) -> bool {
    held.cause == Cause::StepFailed.as_str() || held.cause == Cause::CommitRefused.as_str()
}

/// As clients see it.
pub(crate) fn shown(held: &Quarantine) -> QuarantineView {
    QuarantineView {
        root_run_id: held.root.clone(),
        run_id: held.run.clone(),
        seq: held.seq,
        cause: held.cause.clone(),
        detail: held.detail.clone(),
        since: held.at,
    }
}

impl Error {
    pub(crate) fn quarantined(quarantine: &Quarantine) -> Self {
        let message = "This run is in quarantine: it broke off the host's work too often. Release it with `baton run \
                       release` to let it try again, or cancel it.";
        Self::new(Kind::Conflict, code::RUN_QUARANTINED, message)
            .with("rootRunId", quarantine.root.as_str())
            .with("cause", quarantine.cause.as_str())
            .with("since", quarantine.at.to_string())
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.code == code::RUN_QUARANTINED
    }
}
