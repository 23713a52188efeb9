//! Taking over what nobody drives any more. Nothing is recorded by it: whoever has a tree recovers its runs as after a
//! restart, and each finds out from its own log what is left.

use baton_model::RunId;
use baton_store::{Owner, RunFilter, RunRow};
use tokio::sync::RwLockReadGuard;
use tokio::task::JoinSet;

use crate::Error;
use crate::inner::{Inner, RETRY_MS};
use crate::services::timers::HORIZON_MS;

/// How many runs of a tree are read at a time.
const PAGE: usize = 500;
/// How many trees are woken side by side.
const WAKE_AT_ONCE: usize = 16;

impl Inner {
    pub(super) async fn keep_adopting(&self) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.company.orphans.notified() => {}
                () = self.stop.cancelled() => return,
            }
            if let Err(error) = self.adopt_orphans().await {
                tracing::warn!(%error, "could not take over runs; trying again shortly");
            }
        }
    }

    /// Takes over trees in which something is to be done, as long as there are any.
    pub(crate) async fn adopt_orphans(&self) -> Result<(), Error> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let mut taken = 0;
        loop {
            self.world()?;
            let until = self.clock.now().plus_millis(HORIZON_MS);
            let trees = shared.adopt(until, self.options.sharing.adopt_at_once).await?;
            if trees.is_empty() || self.stop.is_cancelled() {
                break;
            }
            taken += trees.len();
            self.judge_taken().await?;
            self.wake_trees(trees).await;
        }
        if taken > 0 {
            tracing::info!(trees = taken, "took over runs of hosts that are gone");
            self.company.letters.notify_one();
            self.webhooks.look();
        }
        Ok(())
    }

    /// Each in a task of its own: one tree's trouble keeps no other waiting.
    async fn wake_trees(&self, trees: Vec<RunId>) {
        let mut waking = JoinSet::new();
        for root in trees {
            if waking.len() >= WAKE_AT_ONCE {
                drop(waking.join_next().await);
            }
            let Some(inner) = self.me() else { return };
            waking.spawn(async move { inner.wake_tree(&root).await });
        }
        while let Some(ended) = waking.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a tree that was taken over could not be woken");
            }
        }
    }

    /// Makes sure that this host drives a run before it is loaded, taking its tree over if nobody does. What is returned
    /// is held until the run is in memory.
    pub(crate) async fn drive_here(&self, run: &RunId) -> Result<Option<RwLockReadGuard<'_, ()>>, Error> {
        let Some(shared) = self.shared() else { return Ok(None) };
        let loading = self.company.loads.read().await;
        match shared.adopt_tree(run).await? {
            Some(Owner::Me) => {}
            Some(Owner::Taken) => {
                // Before it is loaded: what its last owner died of is not tried like anything else.
                self.judge_taken().await?;
                self.taken(run);
            }
            Some(Owner::Other(_)) => return Err(Error::elsewhere()),
            None => return Err(Error::run_not_found()),
        }
        Ok(Some(loading))
    }

    /// Whether a run on its way into memory has to stay out, because its tree is being given away.
    pub(crate) fn is_leaving(&self, row: &RunRow) -> bool {
        self.company.leaving.contains(row.root.as_ref().unwrap_or(&row.id))
    }

    /// Somebody wanted one run of a tree, and all of it came along.
    pub(super) fn taken(&self, run: &RunId) {
        let run = run.clone();
        self.spawn(|inner| async move {
            match inner.store.run(&run).await {
                Ok(Some(row)) => inner.wake_tree(row.root.as_ref().unwrap_or(&row.id)).await,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%run, %error, "could not look at what was taken over; trying again shortly");
                    inner.timers.set(&run, inner.clock.now().plus_millis(RETRY_MS));
                }
            }
            inner.company.letters.notify_one();
            inner.webhooks.look();
        });
    }

    /// Lets the runs of a tree go on that have something to do, and sets the timers that have come near.
    pub(crate) async fn wake_tree(&self, root: &RunId) {
        // Counted anew: whoever drove it meanwhile may have added to it.
        self.trees.remove(root);
        let rows = match self.runs_of_tree(root).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%root, %error, "could not read what was taken over; trying again shortly");
                self.timers.set(root, self.clock.now().plus_millis(RETRY_MS));
                return;
            }
        };
        let soon = self.clock.now().plus_millis(HORIZON_MS);
        for row in rows.iter().filter(|row| !row.status.is_terminal()) {
            if let Some(at) = row.wake_at.filter(|at| *at <= soon) {
                self.timers.set(&row.id, at);
            }
        }
        // The youngest first, as they were made: a parent then finds its children as they stand.
        for row in rows.iter().filter(|row| row.busy) {
            self.wake(&row.id).await;
        }
    }

    /// The runs of a tree, its top last.
    pub(crate) async fn runs_of_tree(&self, root: &RunId) -> Result<Vec<RunRow>, Error> {
        let mut rows = Vec::new();
        let mut filter = RunFilter { root: Some(root.clone()), limit: PAGE, ..RunFilter::default() };
        loop {
            let page = self.store.runs(&filter).await?;
            rows.extend(page.items);
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => break,
            }
        }
        rows.extend(self.store.run(root).await?);
        Ok(rows)
    }
}
