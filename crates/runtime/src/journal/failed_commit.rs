//! What happens after writes are lost.
//!
//! The disk failed: everything that was derived since the last commit is worthless. The generation ends, the store is asked
//! until it takes writes again, and the next generation begins from what is durable.
//!
//! Some writes were refused while others were taken: only the trees that they belong to, or that build on them, are loaded
//! again. The tree whose write it was is tried a few times, further and further apart, and then left alone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use baton_model::RunId;
use baton_store::{CommitError, LostPart, Store};
use parking_lot::Mutex;

use crate::canary::CanaryWatch;
use crate::clock::Clock;
use crate::cluster::membership::Membership;
use crate::journal::generation::Generation;
use crate::journal::storage::Storage;
use crate::quarantine::refused::LostWrite;
use crate::quarantine::service::Quarantines;
use crate::recovery::RunRecovery;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::models::Calls;
use crate::services::webhooks::Webhooks;
use crate::services::webhooks::register::WebhookRegistry;
use crate::tasks::Tasks;
use crate::watch::{Trouble, Watch};
use crate::{Error, Readiness};

/// A generation that ends before this has hardly lived, and the next one waits.
const HARDLY_LIVED_US: i64 = 1_000_000;
/// How far apart generations are that hardly live.
const SHORTEST_PAUSE_MS: u64 = 100;
const LONGEST_PAUSE_MS: u64 = 5000;

/// What the host is at after a start, by the name that readiness gives it.
pub(crate) const PICKING_UP: &str = "picking up runs";

/// Sees to it that the host goes on after a failed commit, and says whether it is ready.
pub(crate) struct Outage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) canary_watch: Arc<CanaryWatch>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) recovery: Arc<RunRecovery>,
    pub(crate) subscriptions: Arc<WebhookRegistry>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) trees: Arc<TreeSizes>,
    pub(crate) state: OutageState,
}

#[derive(Default)]
pub(crate) struct OutageState {
    /// Why the store takes no writes.
    trouble: Mutex<Option<CommitError>>,
    /// How long the next generation waits if this one hardly lives.
    next_pause_ms: Mutex<u64>,
}

impl Outage {
    pub(crate) fn readiness(&self) -> Readiness {
        // A host that writes nothing finds out by its lease.
        let lost = self.state.trouble.lock().clone().map(|error| Trouble {
            reason: if error.names_nobody() {
                error.to_string()
            } else {
                "a write was refused; starting over".to_owned()
            },
            detail: error.to_string(),
        });
        // Whoever is told that the host is ready can write: the next generation has begun by then.
        let lost = lost.or_else(|| {
            let over = self.storage.current().is_dead();
            over.then(|| Trouble::from("starting over after a failed commit".to_owned()))
        });
        let trouble = lost.or_else(|| self.membership.unheard().map(Trouble::from));
        let trouble = trouble.or_else(|| self.watch.trouble());
        let trouble = trouble.or_else(|| self.canary_watch.canary_trouble().map(Trouble::from));
        let (reason, detail) = trouble.map(|trouble| (trouble.reason, trouble.detail)).unzip();
        Readiness { ready: reason.is_none(), reason, detail }
    }

    /// Parts of commits were lost. Told by the writer, whose thread waits for nothing.
    pub(crate) fn lost_parts(self: &Arc<Self>, parts: &[LostPart]) {
        let live = self.storage.current();
        let mut trees: BTreeMap<RunId, Option<LostWrite>> = BTreeMap::new();
        for part in parts {
            for root in part.chains.iter().filter_map(|chain| chain.root()) {
                // The charges of what was lost go with it, before anybody loads the tree again.
                live.budgets.forget_lost(root);
                self.trees.forget(root);
                let blamed = trees.entry(root.clone()).or_default();
                if blamed.is_none() && part.error.blames() && !part.asked {
                    let run = part.run.clone().unwrap_or_else(|| root.clone());
                    *blamed = Some(LostWrite { run, reason: part.error.to_string() });
                }
            }
        }
        for (run, root) in live.break_lost(parts) {
            self.webhooks.forget_queued(&run);
            if let Entry::Vacant(tree) = trees.entry(root) {
                live.budgets.forget_lost(tree.key());
                self.trees.forget(tree.key());
                tree.insert(None);
            }
        }
        if !trees.is_empty() {
            metrics::counter!("baton_trees_reloaded_total").increment(trees.len() as u64);
        }
        for (root, blamed) in trees {
            self.tasks.spawn(self, |outage| async move { outage.load_again(root, blamed).await });
        }
    }

    /// Lets a tree go on from what is durable. One that is to blame for what it lost waits a little longer each time, and
    /// is left alone in the end.
    async fn load_again(&self, root: RunId, blamed: Option<LostWrite>) {
        let pause = match blamed {
            None => SHORTEST_PAUSE_MS,
            Some(lost) => {
                tracing::warn!(%root, run = %lost.run, reason = %lost.reason, "writes of a tree were refused");
                match self.quarantine.refused(&root, &lost).await {
                    Some(pause) => pause,
                    None => return,
                }
            }
        };
        tokio::select! {
            biased;
            () = self.clock.until(self.clock.now().plus_millis(pause)) => {}
            () = self.tasks.stop.cancelled() => return,
        }
        self.recovery.wake_tree(&root).await;
    }

    /// The disk failed: the live runs of that generation are worthless.
    pub(crate) fn lost(self: &Arc<Self>, generation: u64, error: &CommitError) {
        let live = self.storage.current();
        if live.generation != generation || live.is_dead() {
            return;
        }
        *self.state.trouble.lock() = Some(error.clone());
        // First of all: whoever waits for these runs is woken, whatever comes of the rest.
        live.kill();
        tracing::error!(reason = %error, generation, "a commit failed; reloading from what is durable");
        self.tasks.spawn(self, |outage| async move {
            outage.tasks.until_done("starting over", || outage.start_over(&live)).await;
            outage.tasks.until_done(PICKING_UP, || outage.begin_again(&live)).await;
        });
    }

    /// Tries until the disk takes writes again, then starts over from what is durable. Generations that end soon after
    /// they began are further and further apart.
    async fn start_over(&self, ended: &Generation) {
        let mut pause = self.pause_after(ended);
        while self.storage.current().generation == ended.generation {
            tokio::select! {
                biased;
                () = self.clock.until(self.clock.now().plus_millis(pause)) => {}
                () = self.tasks.stop.cancelled() => return,
            }
            match self.started_over().await {
                Ok(generation) => {
                    // Children that were lost count no longer.
                    self.trees.clear();
                    if self.storage.shared().is_some() {
                        // A new session has a lease of its own, and others may have been at what the old one had begun.
                        self.membership.renewed_now();
                        self.calls.forget_intentions();
                    }
                    // Before anybody can lose the new one.
                    *self.state.trouble.lock() = None;
                    self.storage.begin(generation, self.clock.now());
                    tracing::info!(generation, "storage takes writes again");
                    return;
                }
                Err(error) => tracing::warn!(%error, "storage still cannot be written"),
            }
            pause = (pause * 2).clamp(SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS);
        }
    }

    /// What a new generation begins with. Should that end in turn, the one after it does all of this.
    async fn begin_again(&self, ended: &Generation) {
        let live = self.storage.current();
        if self.tasks.stop.is_cancelled() || live.is_dead() || live.generation == ended.generation {
            return;
        }
        self.webhooks.started_over();
        self.quarantine.keep_quarantines(&live);
        self.recovery.recover().await;
    }

    /// How long to wait before the next generation begins: not at all, unless this one has hardly lived.
    fn pause_after(&self, ended: &Generation) -> u64 {
        let lived = self.clock.now().as_micros() - ended.began.as_micros();
        let mut pause = self.state.next_pause_ms.lock();
        let now = if lived > HARDLY_LIVED_US { 0 } else { *pause };
        *pause = if now == 0 { SHORTEST_PAUSE_MS } else { (now * 2).min(LONGEST_PAUSE_MS) };
        now
    }

    /// What a host goes by that shares its store is read again before anything is written: nobody waits for a session
    /// that has ended to hear of what changed.
    async fn started_over(&self) -> Result<u64, Error> {
        let generation = self.store.recover().await?;
        if self.storage.shared().is_some() {
            self.subscriptions.reload_webhooks().await?;
        }
        Ok(generation)
    }
}
