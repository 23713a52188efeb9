//! Giving trees of runs to another host. Only what is at rest moves: everything of it is durable and nobody is being
//! called on its behalf. Its heads are let go, its next load elsewhere asks everything anew, and whoever holds an old head
//! finds it gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_model::RunId;
use baton_store::{Address, Commit, Letter, Session, Write};

use super::messages::PeerRequest;
use crate::Error;
use crate::inner::Inner;
use crate::run::world::Generation;

/// A host is busy enough to be relieved when it drives this many runs more than twice as many as the one that asks.
const WORTH_IT: u64 = 16;
/// How many trees are asked for at most.
const AT_MOST: u64 = 32;
/// How long runs that are being loaded are waited for. Meanwhile nobody else may begin to load one.
const LOADS_PATIENCE: Duration = Duration::from_secs(1);

impl Inner {
    /// Asks the busiest host for some of its work, if this one has much less.
    pub(super) async fn balance(&self) {
        let Some(shared) = self.shared().filter(|_| self.options.sharing.steal) else { return };
        let Ok(sessions) = shared.sessions().await else { return };
        let me = shared.epoch();
        let Some(own) = sessions.iter().find(|session| session.epoch == me).map(|session| session.load) else { return };
        let others = sessions.iter().filter(|session| session.epoch != me && !session.lapsed);
        let Some(Session { epoch, load, .. }) = others.max_by_key(|session| session.load) else { return };
        if *load < 2 * own + WORTH_IT {
            return;
        }
        let trees = usize::try_from(((load - own) / 2).min(AT_MOST)).unwrap_or(1);
        let letter = Letter {
            id: format!("share:{me}:{}", self.ids.secret(16)),
            to: Address::Session(*epoch),
            body: serde_json::to_string(&PeerRequest::Share { trees, to: me }).unwrap_or_default(),
        };
        if let Err(error) = shared.send(letter).await {
            tracing::debug!(%error, "could not ask for work");
        }
    }

    /// Gives up to this many trees that are at rest to another session.
    pub(super) async fn give_away(&self, trees: usize, to: u64) {
        let Ok(world) = self.world() else { return };
        let mut roots = BTreeSet::new();
        for slot in &world.slots {
            if let Some(head) = slot.head_now()
                && !head.state.status().is_terminal()
            {
                roots.insert(slot.root.clone());
            }
        }
        let mut given = 0;
        for root in roots {
            if given == trees || self.stop.is_cancelled() {
                break;
            }
            match self.hand_over(&world, &root, to).await {
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
    async fn hand_over(&self, world: &Arc<Generation>, root: &RunId, to: u64) -> Result<bool, Error> {
        if !self.company.leaving.insert(root.clone()) {
            return Ok(false);
        }
        let moved = self.move_out(world, root, to).await;
        self.company.leaving.remove(root);
        moved
    }

    async fn move_out(&self, world: &Arc<Generation>, root: &RunId, to: u64) -> Result<bool, Error> {
        // Whoever was loading a run of the tree is done after this, and nobody begins.
        // A load that does not end keeps its tree here, and nobody else from loading.
        match tokio::time::timeout(LOADS_PATIENCE, self.company.loads.write()).await {
            Ok(none) => drop(none),
            Err(_elapsed) => return Ok(false),
        }
        let of_tree: Vec<_> = world
            .slots
            .iter()
            .filter(|slot| slot.root == *root)
            .map(|slot| (slot.key().clone(), Arc::clone(slot.value())))
            .collect();
        let mut moved = Vec::new();
        for (run, slot) in of_tree {
            let Some(mut head) = slot.head().await else { return Ok(false) };
            let busy = head.state.has_ready_work() || head.state.is_moving_children() || head.checking > 0;
            let called = self.calls.any(&run) || self.mandates.any(&run) || self.replaying.contains(&run);
            if busy || called || head.consulting.is_some() || slot.committed() < head.state.next_seq() {
                // Those that were let go before it come back from disk.
                moved.iter().for_each(|(run, at)| self.timers.set(run, *at));
                return Ok(false);
            }
            head.gone = true;
            world.slots.remove_if(&run, |_, current| Arc::ptr_eq(current, &slot));
            moved.extend(head.row.wake_at.map(|at| (run.clone(), at)));
            self.timers.clear(&run);
        }
        // What is on its way to a subscriber is on the list until it is noted, and the list moves with the tree.
        let soon = self.clock.now().plus_millis(crate::services::timers::HORIZON_MS);
        let sending = self.store.deliveries(soon, usize::MAX / 2).await?;
        let tree: BTreeSet<RunId> = self.runs_of_tree(root).await?.into_iter().map(|row| row.id).collect();
        if sending.iter().any(|delivery| tree.contains(&delivery.run)) {
            moved.iter().for_each(|(run, at)| self.timers.set(run, *at));
            return Ok(false);
        }
        world.budgets.forget(root);
        self.trees.remove(root);
        world.outbox.flush(self.store.as_ref(), world.generation);
        let hand_over = vec![Write::HandOver { root: root.clone(), to }];
        self.store.submit(Commit::alone(world.generation, hand_over)).await?;
        Ok(true)
    }

    /// Takes up what another host has handed over.
    pub(super) async fn pick_up(&self) {
        self.recover().await;
        self.company.letters.notify_one();
        self.webhooks.look();
    }
}
