//! Giving trees of runs to another host. Only what is at rest moves: everything of it is durable and nobody is being
//! called on its behalf. Its live runs are let go, its next load elsewhere asks everything anew, and whoever holds an old head
//! finds it gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_model::RunId;
use baton_store::{ForwardedCommand, Recipient, Session, Store, Write};
use dashmap::DashSet;

use super::messages::PeerRequest;
use crate::clock::{Clock, Ids};
use crate::cluster::state::ClusterState;
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::recovery::RunRecovery;
use crate::services::children::remote::RemoteActions;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::models::Calls;
use crate::services::timers::Timers;
use crate::services::webhooks::Webhooks;
use crate::tasks::Tasks;
use crate::{Error, Options};

/// A host is busy enough to be relieved when it drives this many runs more than twice as many as the one that asks.
const WORTH_IT: u64 = 16;
/// How many trees are asked for at most.
const AT_MOST: u64 = 32;
/// How long runs that are being loaded are waited for. Meanwhile nobody else may begin to load one.
const LOADS_TIMEOUT: Duration = Duration::from_secs(1);

/// Moves trees between hosts.
pub(crate) struct Balance {
    pub(crate) calls: Arc<Calls>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) remote_actions: Arc<RemoteActions>,
    pub(crate) options: Arc<Options>,
    pub(crate) replaying: Arc<DashSet<RunId>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) recovery: Arc<RunRecovery>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) trees: Arc<TreeSizes>,
}

impl Balance {
    /// Asks the busiest host for some of its work, if this one has much less.
    pub(super) async fn balance(&self) {
        let Some(shared) = self.storage.shared().filter(|_| self.options.sharing.steal) else { return };
        let Ok(sessions) = shared.sessions().await else { return };
        let me = shared.epoch();
        let Some(own) = sessions.iter().find(|session| session.epoch == me).map(|session| session.load) else { return };
        let others = sessions.iter().filter(|session| session.epoch != me && !session.lapsed);
        let Some(Session { epoch, load, .. }) = others.max_by_key(|session| session.load) else { return };
        if *load < 2 * own + WORTH_IT {
            return;
        }
        let trees = usize::try_from(((load - own) / 2).min(AT_MOST)).unwrap_or(1);
        let forwarded = ForwardedCommand {
            id: format!("share:{me}:{}", self.ids.secret(16)),
            to: Recipient::Session(*epoch),
            body: serde_json::to_string(&PeerRequest::Share { trees, to: me }).unwrap_or_default(),
        };
        if let Err(error) = shared.send(forwarded).await {
            tracing::debug!(%error, "could not ask for work");
        }
    }

    /// Gives up to this many trees that are at rest to another session.
    pub(super) async fn give_away(&self, trees: usize, to: u64) {
        let Ok(live) = self.storage.live() else { return };
        let mut roots = BTreeSet::new();
        for handle in live.runs.iter() {
            if let Some(head) = handle.head_now()
                && !head.state.status().is_terminal()
            {
                roots.insert(handle.root.clone());
            }
        }
        let mut given = 0;
        for root in roots {
            if given == trees || self.tasks.stop.is_cancelled() {
                break;
            }
            match self.hand_over(&live, &root, to).await {
                Ok(true) => given += 1,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%root, %error, "a run could not be handed over");
                    return;
                }
            }
        }
        if given > 0 {
            tracing::info!(trees = given, to, "handed runs over");
        }
    }

    /// Gives one tree away. False if it is not at rest, and then it stays.
    async fn hand_over(&self, live: &Arc<Generation>, root: &RunId, to: u64) -> Result<bool, Error> {
        if !self.cluster.leaving.insert(root.clone()) {
            return Ok(false);
        }
        let moved = self.move_out(live, root, to).await;
        self.cluster.leaving.remove(root);
        moved
    }

    async fn move_out(&self, live: &Arc<Generation>, root: &RunId, to: u64) -> Result<bool, Error> {
        // Whoever was loading a run of the tree is done after this, and nobody begins.
        // A load that does not end keeps its tree here, and nobody else from loading.
        match tokio::time::timeout(LOADS_TIMEOUT, self.cluster.loads.write()).await {
            Ok(none) => drop(none),
            Err(_elapsed) => return Ok(false),
        }
        let of_tree: Vec<_> = live
            .runs
            .iter()
            .filter(|handle| handle.root == *root)
            .map(|handle| (handle.key().clone(), Arc::clone(handle.value())))
            .collect();
        let mut moved = Vec::new();
        for (run, handle) in of_tree {
            let Some(mut head) = handle.head().await else { return Ok(false) };
            let busy = head.state.has_ready_work() || head.state.is_moving_children() || head.checking > 0;
            let called = self.calls.any(&run) || self.remote_actions.any(&run) || self.replaying.contains(&run);
            if busy || called || head.requesting.is_some() || handle.committed() < head.state.next_seq() {
                // Those that were let go before it come back from disk.
                moved.iter().for_each(|(run, at)| self.timers.set(run, *at));
                return Ok(false);
            }
            head.gone = true;
            live.drop_run(&run, &handle);
            moved.extend(head.row.wake_at.map(|at| (run.clone(), at)));
            self.timers.clear(&run);
        }
        // What is on its way to a subscriber is on the list until it is noted, and the list moves with the tree.
        let soon = self.clock.now().plus_millis(crate::services::timers::HORIZON_MS);
        let sending = self.store.deliveries(soon, usize::MAX / 2).await?;
        let rows = self.storage.runs_of_tree(root).await?;
        let Some(tenant) = rows.last().map(|row| row.tenant.clone()) else { return Ok(false) };
        let tree: BTreeSet<RunId> = rows.into_iter().map(|row| row.id).collect();
        if sending.iter().any(|delivery| tree.contains(&delivery.run)) {
            moved.iter().for_each(|(run, at)| self.timers.set(run, *at));
            return Ok(false);
        }
        live.budgets.forget(root);
        self.trees.forget(root);
        live.outbox.flush(self.store.as_ref(), live.generation);
        let hand_over = vec![Write::HandOver { root: root.clone(), to }];
        self.storage.write(live.generation, Lane::Of(&tenant), hand_over).await?;
        Ok(true)
    }

    /// Takes up what another host has handed over.
    pub(super) async fn pick_up(&self) {
        self.recovery.recover().await;
        self.cluster.forwarded_commands.notify_one();
        self.webhooks.look();
    }
}
