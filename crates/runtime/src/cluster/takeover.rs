//! Taking over what nobody drives any more. Nothing is recorded by it: whoever has a tree recovers its runs as after a
//! restart, and each finds out from its own log what is left.

use crate::ports::WakeTrees;
use baton_model::RunId;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::task::JoinSet;

use crate::Error;
use crate::clock::RETRY_MS;
use crate::recovery::RunRecovery;
use crate::services::timers::HORIZON_MS;

/// How many trees are woken side by side.
const WAKE_AT_ONCE: usize = 16;

impl RunRecovery {
    pub(crate) async fn keep_adopting(self: &Arc<Self>) {
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.cluster.orphans.notified() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            if let Err(error) = self.adopt_orphans().await {
                tracing::warn!(%error, "could not take over runs; trying again shortly");
            }
        }
    }

    /// Takes over trees in which something is to be done, as long as there are any.
    pub(crate) async fn adopt_orphans(self: &Arc<Self>) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        let mut taken = 0;
        loop {
            self.storage.live()?;
            let until = self.clock.now().plus_millis(HORIZON_MS);
            let trees = shared.adopt(until, self.options.sharing.adopt_at_once).await?;
            if trees.is_empty() || self.tasks.stop.is_cancelled() {
                break;
            }
            taken += trees.len();
            self.quarantine.judge_taken().await?;
            self.wake_trees(trees).await;
        }
        if taken > 0 {
            tracing::info!(trees = taken, "took over runs of hosts that are gone");
            self.cluster.forwarded_commands.notify_one();
            self.webhooks.look();
        }
        Ok(())
    }

    /// Each in a task of its own: one tree's trouble keeps no other waiting.
    async fn wake_trees(self: &Arc<Self>, trees: Vec<RunId>) {
        let mut waking = JoinSet::new();
        for root in trees {
            if waking.len() >= WAKE_AT_ONCE {
                drop(waking.join_next().await);
            }
            let room = Arc::clone(self);
            waking.spawn(async move { room.wake_tree(&root).await });
        }
        while let Some(ended) = waking.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a tree that was taken over could not be woken");
            }
        }
    }

    /// Lets the runs of a tree go on that have something to do, and sets the timers that have come near.
    pub(crate) async fn wake_tree(&self, root: &RunId) {
        // Counted anew: whoever drove it meanwhile may have added to it.
        self.trees.forget(root);
        let rows = match self.storage.runs_of_tree(root).await {
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
}

impl WakeTrees for RunRecovery {
    fn wake_runs_of(self: Arc<Self>, root: RunId) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.wake_tree(&root).await })
    }
}
