//! Picking up runs after a start, or after a generation has ended. Each run is picked up by a task of its own, and counts
//! as picked up after its first step: one that panics, sticks, cannot be read or goes on for hours keeps nobody else
//! waiting. Runs of one tenant wait for each other, not for those of others.

pub(crate) mod timers;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::{RunId, TenantId, code};
use baton_store::Store;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::clock::{Clock, RETRY_MS};
use crate::cluster::ownership::Ownership;
use crate::cluster::state::ClusterState;
use crate::health::{HealthState, Recovery};
use crate::history::fork::service::Forks;
use crate::journal::storage::Storage;
use crate::quarantine::service::Quarantines;
use crate::run::commands::RunCommands;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::timers::Timers;
use crate::services::webhooks::Webhooks;
use crate::tasks::Tasks;
use crate::watch::Watch;
use crate::{Error, Options};

/// How many runs of one tenant a restart picks up side by side.
const AT_ONCE_PER_TENANT: usize = 16;
/// How many may be on their way, waiting ones included: each is a small task. Far more than one tenant has stuck.
const MOST_WAKING: usize = 4096;
/// How many unfinished runs are fetched from the store at a time.
const PAGE: usize = 500;

/// Picks up runs after a start, a failed commit or a takeover, and wakes those whose time has come.
pub(crate) struct RunRecovery {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) health_state: Arc<HealthState>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) forks: Arc<Forks>,
    pub(crate) ownership: Arc<Ownership>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) trees: Arc<TreeSizes>,
}

impl RunRecovery {
    /// Picks up every run that a restart must look at. Each one finds out by itself what is left to do.
    pub(crate) async fn recover(self: &Arc<Self>) {
        if let Err(error) = self.adopt_orphans().await {
            tracing::warn!(%error, "could not take over runs; trying again shortly");
        }
        self.refill_timers().await;
        let mut after = None;
        let at = self.clock.now();
        let (mut found, mut resumed) = (0_u64, 0_u64);
        let mut waking: JoinSet<bool> = JoinSet::new();
        let lanes = Arc::new(Lanes::default());
        loop {
            let page = match self.store.unfinished(after, PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!(%error, "recovery could not read the unfinished runs; trying again shortly");
                    tokio::select! {
                        biased;
                        () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => continue,
                        () = self.tasks.stop.cancelled() => return,
                    }
                }
            };
            let Some((position, _)) = page.last() else { break };
            after = Some(*position);
            found += page.len() as u64;
            for (_, run) in page {
                if self.tasks.stop.is_cancelled() {
                    return;
                }
                while waking.len() >= MOST_WAKING {
                    resumed += u64::from(woken(waking.join_next().await));
                }
                self.wake_in(&mut waking, &lanes, run);
            }
        }
        while !waking.is_empty() {
            resumed += u64::from(woken(waking.join_next().await));
        }
        self.health_state.recovered(Recovery { at, found, resumed });
        if found > 0 {
            tracing::info!(runs = found, "recovered unfinished runs");
        }
    }

    /// Wakes a run in a task of its own, where runs are stepped.
    fn wake_in(self: &Arc<Self>, waking: &mut JoinSet<bool>, lanes: &Arc<Lanes>, run: RunId) {
        let room = Arc::clone(self);
        let lanes = Arc::clone(lanes);
        let work = async move {
            let in_memory = room.storage.current().run(&run).map(|handle| handle.tenant.clone());
            let tenant = match in_memory {
                Some(tenant) => Some(tenant),
                None => room.store.run(&run).await.ok().flatten().map(|row| row.tenant),
            };
            let lane = tenant.map(|tenant| lanes.of(tenant));
            let _place = match &lane {
                Some(lane) => lane.acquire().await.ok(),
                None => None,
            };
            room.wake(&run).await
        };
        match &self.options.step_threads {
            Some(threads) => drop(waking.spawn_on(work, threads.handle())),
            None => drop(waking.spawn(work)),
        }
    }

    /// A run that is in memory goes on; one that is not may be a fork that has hardly begun.
    async fn go_on(&self, run: &RunId) -> Result<(), Error> {
        if self.storage.current().run(run).is_some() {
            return self.commands.advance_once(run).await;
        }
        match self.store.run(run).await? {
            Some(row) if row.origin.is_some() && !row.status.is_terminal() => {
                // A replay has no live run whose loading would ask.
                drop(self.ownership.drive_here(run).await?);
                self.forks.set_going(run).await;
                Ok(())
            }
            _ => self.commands.advance_once(run).await,
        }
    }

    /// Lets a run go on from where it is, and says whether it does. It is under way then, not at its end.
    pub(crate) async fn wake(&self, run: &RunId) -> bool {
        match self.go_on(run).await {
            Ok(()) => return true,
            // It was lost with the commit that would have made it: there is nothing to wake.
            Err(error) if error.code == code::RUN_NOT_FOUND => {}
            // Another host drives it by now, or nobody may until it is released.
            Err(error) if error.is_elsewhere() || error.is_quarantined() => {}
            // Its row does not read back. Nobody can go on with it, and whoever asks for it is told.
            Err(error) if error.is_damage() => {
                tracing::error!(%run, %error, cause = ?error.source, "a run cannot be woken: what is stored of it is damaged");
            }
            Err(error) => {
                tracing::warn!(%run, %error, "could not wake a run; trying again shortly");
                self.timers.set(run, self.clock.now().plus_millis(RETRY_MS));
            }
        }
        false
    }
}

/// Who may pick up runs of which tenant.
#[derive(Default)]
struct Lanes(Mutex<BTreeMap<TenantId, Arc<Semaphore>>>);

impl Lanes {
    fn of(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut lanes = self.0.lock();
        Arc::clone(lanes.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE_PER_TENANT))))
    }
}

/// Whether a run that was woken goes on. One whose task panicked does not, and is nobody else's trouble.
fn woken(ended: Option<Result<bool, tokio::task::JoinError>>) -> bool {
    match ended {
        Some(Ok(going)) => going,
        Some(Err(error)) => {
            tracing::error!(%error, "a run could not be picked up");
            false
        }
        None => false,
    }
}
