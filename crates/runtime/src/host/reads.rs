use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{EVENT_LOG_SCHEMA_VERSION, RunState, snapshot};
use baton_model::{ForkedFrom, Owner, Principal, Record, Retention, RunId, RunSnapshot, Scope, TenantId};
use baton_store::{LedgerId, Lens, Page, RunFilter, RunRow};
use serde_json::Map;

use crate::history::log::as_row_says;
use crate::inner::Inner;
use crate::quarantine::{root_of, shown};
use crate::run::summary::summary_of;
use crate::run::world::Generation;
use crate::{Error, EventLine, EventPage, Host, LogPage};

impl Inner {
    /// A foreign run looks exactly like an unknown one.
    pub(crate) async fn authorize(&self, tenant: &TenantId, run: &RunId) -> Result<(), Error> {
        let world = self.current_world();
        let owner = match world.slots.get(run).map(|slot| Arc::clone(&slot)) {
            Some(slot) => Some(slot.tenant.clone()),
            None => self.store.run(run).await?.map(|row| row.tenant),
        };
        if owner.as_ref() == Some(tenant) { Ok(()) } else { Err(Error::run_not_found()) }
    }

    /// The newest state of a run that is durable: a head is shown once the disk has caught up with it.
    async fn committed_state(&self, tenant: &TenantId, run: &RunId) -> Result<(Arc<RunState>, RunRow), Error> {
        let world = self.current_world();
        if !world.is_dead()
            && let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot))
        {
            if slot.tenant != *tenant {
                return Err(Error::run_not_found());
            }
            let head = slot.head_soon().await.filter(|head| !head.gone);
            let known = head.map(|head| (Arc::clone(&head.state), head.row.clone()));
            if let Some((state, row)) = known {
                // Another host may have pruned it since; it does not tell the others.
                let gone = row.status.is_terminal() && self.pruned_elsewhere(&world, &row).await?;
                if !gone && slot.durable(&world, state.next_seq()).await.is_ok() {
                    return Ok((state, row));
                }
            }
        }
        let row = self.store.run(run).await?.filter(|row| row.tenant == *tenant).ok_or_else(Error::run_not_found)?;
        if row.status.is_terminal() && !world.is_dead() && self.shared().is_none() {
            // It will not change any more, and whoever looks at an ended run often looks again.
            let slot = self.slot(&world, run).await?;
            self.janitor().visit([run.clone()]);
            let state = slot.head_soon().await.map(|head| Arc::clone(&head.state));
            if let Some(state) = state {
                return Ok((state, row));
            }
        }
        let (state, _) = self.fold(run).await?.ok_or_else(Error::run_not_found)?;
        Ok((Arc::new(state), row))
    }
}

impl Inner {
    /// A run in quarantine whose log does not read back, or must not be read: what its row says of it.
    async fn snapshot_without_log(&self, tenant: &TenantId, run: &RunId, error: Error) -> Result<RunSnapshot, Error> {
        let row = self.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        let Some(held) = self.quarantine_of(root_of(&row)).await? else { return Err(error) };
        Ok(RunSnapshot { quarantine: Some(shown(&held)), ..snapshot_of_row(row) })
    }

    /// Whether a run that has ended lost something since it was loaded. What is in memory of it goes too.
    async fn pruned_elsewhere(&self, world: &Generation, known: &RunRow) -> Result<bool, Error> {
        if self.shared().is_none() || self.store.run(&known.id).await?.is_none_or(|row| row.pruned == known.pruned) {
            return Ok(false);
        }
        self.drop_pruned(world, &known.id).await;
        Ok(true)
    }
}

impl Host {
    /// A run as this caller may see it. The signed link to its open question is a credential: whoever has it can
    /// answer. So it is made here, for callers that may answer anyway, and nowhere else.
    pub async fn snapshot_for(&self, who: &Principal, run: &RunId) -> Result<RunSnapshot, Error> {
        let mut view = self.snapshot(&who.tenant, run).await?;
        if let Some(interrupt) = view.interrupt.as_mut().filter(|_| who.scopes.allow(Scope::ApprovalsRespond)) {
            self.inner.add_link(run, interrupt);
        }
        if !who.scopes.allow(Scope::WorkspaceRead) {
            view.workspace.clear();
        }
        Ok(view)
    }

    /// A run as everybody of its tenant may see it, without a link.
    pub async fn snapshot(&self, tenant: &TenantId, run: &RunId) -> Result<RunSnapshot, Error> {
        let (state, row) = match self.inner.committed_state(tenant, run).await {
            Ok(found) => found,
            Err(error) => return self.inner.snapshot_without_log(tenant, run, error).await,
        };
        let mut view = snapshot(&state).ok_or_else(Error::run_not_found)?;
        as_row_says(&mut view, &row);
        if let Some(cost) = summary_of(&row).and_then(|summary| summary.usage_of_tree()) {
            view.metrics.get_or_insert_default().tree_cost = Some(cost.into());
        }
        let seen = state.seen();
        view.run_id = run.clone();
        view.quarantine = self.inner.quarantines.of(root_of(&row)).map(|held| shown(&held));
        view.forked_from = row.origin.as_ref().map(ForkedFrom::from);
        view.retention = row.pruned.map(|pruned| Retention { pruned_at: pruned.at });
        if seen.workspace > 0 && row.pruned.is_none() {
            let ledger = LedgerId::workspace(tenant, row.workspace_scope);
            let lens = Lens { bare: true, ..Lens::at(seen.workspace, self.inner.clock.now()) };
            view.workspace = self.inner.files_at(&ledger, &lens).await?;
        }
        Ok(view)
    }

    pub async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        Ok(self.inner.store.runs(filter).await?)
    }

    /// Records from sequence `from` on, at most `limit`, with what never leaves the process: for whoever makes something
    /// of them that may.
    pub async fn log(&self, tenant: &TenantId, run: &RunId, from: u64, limit: usize) -> Result<LogPage, Error> {
        let row = self.inner.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        let stored = self.inner.log(&row, from, limit).await?;
        let records = stored.iter().map(|stored| Ok(stored.decode(run)?)).collect::<Result<Vec<Record>, Error>>()?;
        Ok(LogPage { origin: row.origin, records })
    }

    /// Events after sequence `after` (`None` = from the start), at most `limit`.
    pub async fn events(
        &self,
        tenant: &TenantId,
        run: &RunId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<EventPage, Error> {
        let row = self.inner.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        if let Some(pruned) = row.pruned.filter(|pruned| pruned.log) {
            return Err(Error::run_pruned(pruned.at));
        }
        let from = after.map_or(0, |after| after.saturating_add(1));
        let records = if from < row.next_seq { self.inner.log(&row, from, limit).await? } else { Vec::new() };
        let events = records
            .into_iter()
            .map(|record| EventLine { seq: record.seq, kind: record.kind.into(), body: record.body })
            .collect();
        Ok(EventPage { events, status: row.status, next_seq: row.next_seq })
    }
}

fn snapshot_of_row(row: RunRow) -> RunSnapshot {
    RunSnapshot {
        forked_from: row.origin.as_ref().map(ForkedFrom::from),
        retention: row.pruned.map(|pruned| Retention { pruned_at: pruned.at }),
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
        owner: Owner { tenant: row.tenant, principal: None },
        tags: row.tags,
        metadata: Map::new(),
        configurable: Map::new(),
        workflow_digest: row.digest.to_string(),
        event_log_schema_version: EVENT_LOG_SCHEMA_VERSION,
    }
}
