//! Reading runs as they stand on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{EVENT_LOG_SCHEMA_VERSION, RunState};
use baton_model::{ForkedFrom, Owner, RunId, RunSnapshot, TenantId};
use baton_store::{RunRow, Store};
use serde_json::Map;

use crate::Error;
use crate::clock::Clock;
use crate::history::log::RunLog;
use crate::journal::generation::Generation;
use crate::journal::storage::Storage;
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::shown;
use crate::run::eviction_queue::EvictionQueue;
use crate::run::load::RunLoader;
use crate::run::tree::{is_replay, root_of};
use crate::services::notifications::Notifications;
use crate::services::retention::Retention;

/// Reads runs as they stand on disk.
pub(crate) struct RunReads {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) eviction_queue: Arc<EvictionQueue>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) storage: Arc<Storage>,
}

impl RunReads {
    /// Waits until a replay has ended, or is left alone. Other runs are not waited for.
    pub(crate) async fn outlast_replay(&self, run: &RunId) -> Result<(), Error> {
        // Before looking, so that an end in between is not missed.
        let mut grown = self.notifications.subscribe(run);
        let deadline = self.clock.now().plus_millis(TIMEOUT_MS);
        loop {
            let row = self.store.run(run).await?.ok_or_else(Error::run_not_found)?;
            if !is_replay(&row) || row.status.is_terminal() {
                return Ok(());
            }
            // One that is left alone does not end by itself.
            if self.quarantine.quarantine_of(root_of(&row)).await?.is_some() {
                return Ok(());
            }
            let now = self.clock.now();
            if now >= deadline {
                return Err(Error::unavailable("This replay is still under way. It ends by itself; look again later."));
            }
            tokio::select! {
                biased;
                () = grown.changed() => {}
                () = self.clock.until(now.plus_millis(LOOK_MS).min(deadline)) => {}
            }
        }
    }

    /// A foreign run looks exactly like an unknown one.
    pub(crate) async fn authorize(&self, tenant: &TenantId, run: &RunId) -> Result<(), Error> {
        let live = self.storage.current();
        let owner = match live.run(run) {
            Some(handle) => Some(handle.tenant.clone()),
            None => self.store.run(run).await?.map(|row| row.tenant),
        };
        if owner.as_ref() == Some(tenant) { Ok(()) } else { Err(Error::run_not_found()) }
    }

    /// The newest state of a run that is durable: a live run is shown once the disk has caught up with it.
    pub(crate) async fn committed_state(
        &self,
        tenant: &TenantId,
        run: &RunId,
    ) -> Result<(Arc<RunState>, RunRow), Error> {
        let live = self.storage.current();
        if !live.is_dead()
            && let Some(handle) = live.run(run)
        {
            if handle.tenant != *tenant {
                return Err(Error::run_not_found());
            }
            let head = handle.head_soon().await.filter(|head| !head.gone);
            let known = head.map(|head| (Arc::clone(&head.state), head.row.clone()));
            if let Some((state, row)) = known {
                // Another host may have pruned it since; it does not tell the others.
                let gone = row.status.is_terminal() && self.pruned_elsewhere(&live, &row).await?;
                if !gone && handle.durable(&live.ending, state.next_seq()).await.is_ok() {
                    return Ok((state, row));
                }
            }
        }
        let row = self.store.run(run).await?.filter(|row| row.tenant == *tenant).ok_or_else(Error::run_not_found)?;
        if row.status.is_terminal() && !live.is_dead() && self.storage.shared().is_none() {
            // It will not change any more, and whoever looks at an ended run often looks again.
            match self.loader.handle(&live, run).await {
                Ok(handle) => {
                    self.eviction_queue.visit([run.clone()]);
                    let state = handle.head_soon().await.map(|head| Arc::clone(&head.state));
                    if let Some(state) = state {
                        return Ok((state, row));
                    }
                }
                // The disk failed in this very moment: what is on it can be read all the same.
                Err(_) if live.is_dead() => {}
                Err(error) => return Err(error),
            }
        }
        let (state, _) = self.log.fold(run).await?.ok_or_else(Error::run_not_found)?;
        Ok((Arc::new(state), row))
    }

    /// A run in quarantine whose log does not read back, or must not be read: what its row says of it.
    pub(crate) async fn snapshot_without_log(
        &self,
        tenant: &TenantId,
        run: &RunId,
        error: Error,
    ) -> Result<RunSnapshot, Error> {
        let row = self.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        let Some(held) = self.quarantine.quarantine_of(root_of(&row)).await? else { return Err(error) };
        Ok(RunSnapshot { quarantine: Some(shown(&held)), ..snapshot_of_row(row) })
    }

    /// Whether a run that has ended lost something since it was loaded. What is in memory of it goes too.
    async fn pruned_elsewhere(&self, live: &Generation, known: &RunRow) -> Result<bool, Error> {
        if self.storage.shared().is_none()
            || self.store.run(&known.id).await?.is_none_or(|row| row.pruned == known.pruned)
        {
            return Ok(false);
        }
        self.retention.drop_pruned(live, &known.id).await;
        Ok(true)
    }
}

/// How long a replay is waited for, and how often it is looked for without being told.
const TIMEOUT_MS: u64 = 60_000;

const LOOK_MS: u64 = 500;

fn snapshot_of_row(row: RunRow) -> RunSnapshot {
    RunSnapshot {
        forked_from: row.origin.as_ref().map(ForkedFrom::from),
        retention: row.pruned.map(|pruned| baton_model::Retention { pruned_at: pruned.at }),
        run_id: row.id,
        workflow_id: row.workflow,
        status: row.status,
        current_node_id: row.current_node,
        started_at: Some(row.created_at),
        completed_at: None,
        at_seq: row.next_seq.saturating_sub(1),
        inputs: Map::new(),
        variables: Map::new(),
        channels: Map::new(),
        node_states: BTreeMap::new(),
        outputs: None,
        error: None,
        interrupt: None,
        quarantine: None,
        child_runs: Vec::new(),
        agent: None,
        run_orchestrator: None,
        metrics: None,
        workspace: Vec::new(),
        parent_run_id: row.parent,
        parent_node_id: None,
        owner: Owner { tenant: row.tenant, principal: None, subject: None },
        tags: row.tags,
        metadata: Map::new(),
        configurable: Map::new(),
        workflow_digest: row.digest.to_string(),
        event_log_schema_version: EVENT_LOG_SCHEMA_VERSION,
    }
}
