//! Which host drives a run. A run is loaded only where its tree is driven.

use std::sync::Arc;

use baton_model::RunId;
use baton_store::{Owner, RunRow, Store};
use tokio::sync::RwLockReadGuard;

use crate::Error;
use crate::clock::{Clock, RETRY_MS};
use crate::cluster::state::ClusterState;
use crate::journal::storage::Storage;
use crate::ports::{Port, WakeTrees};
use crate::quarantine::service::Quarantines;
use crate::services::timers::Timers;
use crate::services::webhooks::Webhooks;
use crate::tasks::Tasks;

/// Knows whether this host drives a run, and takes its tree over if nobody does.
pub(crate) struct Ownership {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) waker: Port<dyn WakeTrees>,
}

impl Ownership {
    /// Makes sure that this host drives a run before it is loaded, taking its tree over if nobody does. What is returned
    /// is held until the run is in memory.
    pub(crate) async fn drive_here(self: &Arc<Self>, run: &RunId) -> Result<Option<RwLockReadGuard<'_, ()>>, Error> {
        let Some(shared) = self.storage.shared() else { return Ok(None) };
        let loading = self.cluster.loads.read().await;
        match shared.adopt_tree(run).await? {
            Some(Owner::Me) => {}
            Some(Owner::Taken) => {
                // Before it is loaded: what its last owner died of is not tried like anything else.
                self.quarantine.judge_taken().await?;
                self.taken(run);
            }
            Some(Owner::Other(_)) => return Err(Error::elsewhere()),
            None => return Err(Error::run_not_found()),
        }
        Ok(Some(loading))
    }

    /// Whether a run on its way into memory has to stay out, because its tree is being given away.
    pub(crate) fn is_leaving(&self, row: &RunRow) -> bool {
        self.cluster.leaving.contains(row.root.as_ref().unwrap_or(&row.id))
    }

    /// Somebody wanted one run of a tree, and all of it came along.
    pub(crate) fn taken(self: &Arc<Self>, run: &RunId) {
        let run = run.clone();
        self.tasks.spawn(self, |room| async move {
            match room.store.run(&run).await {
                Ok(Some(row)) => room.waker.wake_tree(row.root.as_ref().unwrap_or(&row.id)).await,
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%run, %error, "could not look at what was taken over; trying again shortly");
                    room.timers.set(&run, room.clock.now().plus_millis(RETRY_MS));
                }
            }
            room.cluster.forwarded_commands.notify_one();
            room.webhooks.look();
        });
    }
}
