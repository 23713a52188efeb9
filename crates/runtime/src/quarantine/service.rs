//! Putting trees in quarantine, keeping that on disk, and letting them go on.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_model::{RunId, RunStatus, code};
use baton_store::{Quarantine, RunRow, Store, Write};

use crate::clock::{Clock, RETRY_MS};
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::ports::{Port, WakeTrees};
use crate::quarantine::trees::{Cause, DETAIL_BYTES, QuarantineEntry, QuarantinedTrees, STRIKES};
use crate::run::eviction_queue::EvictionQueue;
use crate::run::tree::root_of;
use crate::services::timers::Timers;
use crate::services::webhooks::Webhooks;
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Options};

/// How many trees are read at a time.
const PAGE: usize = 500;

/// Puts trees in quarantine and lets them out.
pub(crate) struct Quarantines {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) eviction_queue: Arc<EvictionQueue>,
    pub(crate) loading: Arc<LoadLocks>,
    pub(crate) options: Arc<Options>,
    pub(crate) quarantined: Arc<QuarantinedTrees>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) waker: Port<dyn WakeTrees>,
}

impl Quarantines {
    /// A run could not go on for a reason that is its own. The first time it is loaded and tried again; then its tree is
    /// left alone.
    pub(crate) fn broke(self: &Arc<Self>, live: &Generation, row: &RunRow, cause: Cause, detail: &str) {
        let root = root_of(row);
        if live.is_alone(root) {
            // What it was charged for may not have been written. Where others of its tree are in memory, the account stays
            // theirs: two of them would let the tree spend twice.
            live.budgets.forget(root);
        }
        if self.quarantined.of(root).is_some() {
            if row.status == RunStatus::Cancelling {
                // It breaks at that too.
                let (root, detail) = (root.clone(), detail.to_owned());
                self.tasks.spawn(self, |room| async move { room.end_broken_tree(&root, &detail).await });
            }
            return;
        }
        // One that never became durable is gone, and whoever started it was told; a child is its tree's trouble.
        let durable = row.next_seq > 0 || row.root.is_some();
        if durable && self.quarantined.strike(root) >= STRIKES {
            self.quarantine(row, cause, detail);
        } else if durable {
            // Whoever told it something may not tell it again.
            let again = if row.next_seq > 0 { &row.id } else { root };
            self.timers.set(again, self.clock.now().plus_millis(RETRY_MS));
        }
    }

    /// Leaves a tree alone from now on. Binding at once in this process, and durable shortly.
    pub(crate) fn quarantine(self: &Arc<Self>, row: &RunRow, cause: Cause, detail: &str) {
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
        self.quarantined.put(quarantine.clone(), false);
        self.tasks.spawn(self, |room| async move { room.keep_quarantine(quarantine).await });
    }

    /// Writes down that a tree is left alone and lets go of its runs in memory. If that fails, the generation ends, and
    /// [`Quarantines::keep_quarantines`] writes it in the next.
    async fn keep_quarantine(&self, quarantine: Quarantine) {
        let live = self.storage.current();
        let root = quarantine.root.clone();
        self.abandon(&live, &root);
        live.outbox.flush(self.store.as_ref(), live.generation);
        let tenant = quarantine.tenant.clone();
        let written = vec![Write::Quarantine(quarantine)];
        // Behind everything that the tree had queued: whoever loads a run of it afterwards reads all of that.
        match self.storage.write(live.generation, Lane::Of(&tenant), written).await {
            Ok(()) => drop(self.quarantined.trees.get_mut(&root).map(|mut held| held.durable = true)),
            Err(error) => tracing::warn!(%error, "a quarantine is not on disk yet"),
        }
        self.eviction_queue.visit(self.abandon(&live, &root));
    }

    /// Writes down again what is not on disk, after a generation ended.
    pub(crate) fn keep_quarantines(&self, live: &Generation) {
        for held in self.quarantined.not_durable() {
            let tenant = held.tenant.clone();
            drop(self.storage.write(live.generation, Lane::Of(&tenant), vec![Write::Quarantine(held)]));
        }
    }

    /// Nobody waits any more for the runs of a tree. One that is being stepped at this moment is let go of when that ends,
    /// if it does. Says which runs they are.
    pub(crate) fn abandon(&self, live: &Generation, root: &RunId) -> Vec<RunId> {
        let of_tree = live.runs.iter().filter(|handle| handle.root == *root);
        let mut of_tree: Vec<_> = of_tree.map(|handle| (handle.key().clone(), Arc::clone(&handle))).collect();
        of_tree.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (run, handle) in &of_tree {
            handle.abandon();
            if let Some(mut head) = handle.head_now() {
                head.gone = true;
            }
            self.timers.clear(run);
        }
        of_tree.into_iter().map(|(run, _)| run).collect()
    }

    /// What earlier processes found, before anything is stepped.
    pub(crate) async fn read_quarantines(self: &Arc<Self>) -> Result<(), Error> {
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
                self.quarantined.put(held, true);
            }
            if !full {
                break;
            }
        }
        Ok(found)
    }

    /// Whether a tree is left alone, asked of the store where another host may have said so, or ended it.
    pub(crate) async fn quarantine_of(&self, root: &RunId) -> Result<Option<Arc<Quarantine>>, Error> {
        let known = self.quarantined.trees.get(root).map(|held| held.clone());
        if self.storage.shared().is_none() {
            return Ok(known.map(|held| held.quarantine));
        }
        match (known, self.store.quarantine(root).await?) {
            (_, Some(found)) => self.quarantined.put(found, true),
            // It was released elsewhere. One that this host has just found is on its way to the store.
            (Some(QuarantineEntry { durable: true, .. }), None) => self.quarantined.released(root),
            _ => {}
        }
        Ok(self.quarantined.of(root))
    }

    /// Hears which trees other hosts have put in quarantine, and wakes those that were released there.
    pub(crate) async fn keep_up_with_quarantines(self: &Arc<Self>) {
        while !self.tasks.stop.is_cancelled() {
            match self.read_quarantined().await {
                Ok(found) => {
                    for root in self.quarantined.durable_but(&found) {
                        // Released elsewhere.
                        self.quarantined.released(&root);
                        self.tasks.spawn_step(self, |room| async move { room.waker.wake_tree(&root).await });
                    }
                }
                Err(error) => tracing::debug!(%error, "could not see which trees are in quarantine"),
            }
            if let Err(error) = self.pardon_in_quiet_times().await {
                tracing::debug!(%error, "could not look whether trees may go on");
            }
            tokio::select! {
                biased;
                () = self.clock.until(self.clock.now().plus_millis(RELEASES_MS)) => {}
                () = self.tasks.stop.cancelled() => {}
            }
        }
    }

    /// Lets a tree go on from where it was.
    pub(crate) async fn release(self: &Arc<Self>, root: &RunId) -> Result<(), Error> {
        self.end_quarantine(root).await?;
        tracing::info!(%root, "a tree of runs was released from quarantine");
        if self.storage.shared().is_some() {
            self.quarantined.released(root);
        }
        let root = root.clone();
        self.tasks.spawn_step(self, |room| async move { room.waker.wake_tree(&root).await });
        Ok(())
    }

    pub(crate) async fn end_quarantine(&self, root: &RunId) -> Result<(), Error> {
        self.end_quarantine_of(root).await?;
        self.quarantine_ended(root);
        Ok(())
    }

    /// The same without forgetting what is known of the tree.
    pub(crate) async fn end_quarantine_of(&self, root: &RunId) -> Result<(), Error> {
        let generation = self.storage.live()?.generation;
        let held = self.quarantined.of(root);
        // One that this host has not heard of was found by another.
        let lane = held.as_ref().map_or(Lane::All, |held| Lane::Of(&held.tenant));
        self.storage.write(generation, lane, vec![Write::EndQuarantine { root: root.clone() }]).await?;
        self.quarantined.remove(root);
        Ok(())
    }

    /// Nothing is held against the tree any more, now or after a restart.
    pub(crate) fn quarantine_ended(&self, root: &RunId) {
        self.quarantined.remove(root);
        if let Some(notes) = &self.options.step_notes {
            notes.forget(root);
        }
    }
}

/// How often a host that shares its store looks whether a tree it leaves alone was released.
const RELEASES_MS: u64 = 5000;

impl Error {
    pub(crate) fn quarantined(quarantine: &Quarantine) -> Self {
        let message = "This run is in quarantine: it broke off the host's work too often. Release it with `baton run \
                       release` to let it try again, or cancel it.";
        Self::new(ErrorKind::Conflict, code::RUN_QUARANTINED, message)
            .with("rootRunId", quarantine.root.as_str())
            .with("cause", quarantine.cause.as_str())
            .with("since", quarantine.at.to_string())
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.code == code::RUN_QUARANTINED
    }
}
