//! Looking back: a run, its memory and its workspace as of any record of its log.

use crate::{Export, Import};
use baton_engine::snapshot;
use baton_model::{Event, Principal, RunId, TenantId, WorkspaceFile};
use baton_store::{Change, ReadView, VersionedStoreId};

use crate::history::log::as_row_says;
use crate::history::point_in_time::beyond;
use crate::{
    Ancestry, Error, ErrorKind, ForkRun, ForkedRun, Host, Idempotent, Parent, RunDiff, StateAt, Surroundings, Verified,
};

impl Host {
    /// A run that has ended, with its tree and everything needed to read, fork and replay it elsewhere. What comes out
    /// holds what is private to the host, and is not for everybody.
    pub async fn export(&self, tenant: &TenantId, run: &RunId) -> Result<Export, Error> {
        self.rooms.transfers.export(tenant, run).await
    }

    /// Begins to take a file in. The runs in it will belong to the caller's tenant.
    pub fn import(&self, who: &Principal) -> Result<Import, Error> {
        self.rooms.stored_bytes.admit(&who.tenant)?;
        self.rooms.transfers.import(who)
    }

    /// Memory and workspace as of a record, expiry judged at that record's instant. Two lookups, however long the log.
    pub async fn surroundings(&self, tenant: &TenantId, run: &RunId, seq: u64) -> Result<Surroundings, Error> {
        let (row, record) = self.rooms.log.record_of(tenant, run, seq).await?;
        self.rooms.compare.surroundings(&row, &record).await
    }

    /// One file as the run had it at a record (`None` = the latest), a branch's own included.
    pub async fn file_at(
        &self,
        tenant: &TenantId,
        run: &RunId,
        seq: Option<u64>,
        path: &str,
    ) -> Result<Option<WorkspaceFile>, Error> {
        let row = self.rooms.log.row_of(tenant, run).await?;
        let seq = seq.unwrap_or(row.next_seq.saturating_sub(1));
        let (row, record) = self.rooms.log.record_of(tenant, run, seq).await?;
        let ledger = VersionedStoreId::workspace(tenant, row.workspace_scope);
        let lens = ReadView::at(record.versions.workspace, record.at);
        Ok(self.rooms.versioned.item(&ledger, path, &lens).await?.as_ref().and_then(Change::file))
    }

    /// The whole run as of a record (`None` = the latest).
    pub async fn state_at(&self, tenant: &TenantId, run: &RunId, seq: Option<u64>) -> Result<StateAt, Error> {
        let row = self.rooms.log.row_of(tenant, run).await?;
        let seq = seq.unwrap_or(row.next_seq.saturating_sub(1));
        let (row, record) = self.rooms.log.record_of(tenant, run, seq).await?;
        let surroundings = self.rooms.compare.surroundings(&row, &record).await?;
        let state = self.rooms.log.fold_to(run, seq).await?;
        let mut view = snapshot(&state).ok_or_else(Error::run_not_found)?;
        as_row_says(&mut view, &row);
        Ok(StateAt { seq, at: record.at, view, surroundings })
    }

    /// Whether a run can be forked from here. The order of the checks is the protocol's: bounds first, memory second.
    pub async fn check_fork_point(&self, tenant: &TenantId, run: &RunId, from_seq: u64) -> Result<(), Error> {
        let row = self.rooms.log.row_of(tenant, run).await?;
        if from_seq > row.next_seq {
            return Err(beyond(run, from_seq, row.next_seq));
        }
        self.rooms.log.check_kept(&row, from_seq, from_seq).await
    }

    /// Compares two runs of a tenant from a sequence on. Where one has not ended, only what both have recorded counts.
    pub async fn diff(&self, tenant: &TenantId, a: &RunId, b: &RunId, from: u64) -> Result<RunDiff, Error> {
        let (row_a, row_b) = (self.rooms.log.row_of(tenant, a).await?, self.rooms.log.row_of(tenant, b).await?);
        self.rooms
            .pool
            .on_step_threads_while_wanted(
                &self.rooms,
                |rooms| async move { rooms.compare.diff(row_a, row_b, from).await },
            )
            .await
    }

    /// The run's immediate parent, here or on another host. The source of a fork is no parent: a fork is a top-level run.
    pub async fn ancestry(&self, tenant: &TenantId, run: &RunId) -> Result<Ancestry, Error> {
        let row = self.rooms.log.row_of(tenant, run).await?;
        let host_id = self.rooms.options.host_id.clone();
        let top = |host_id: String| Ancestry { run_id: run.clone(), host_id, parent: None };
        if row.origin.is_some() {
            return Ok(top(host_id));
        }
        let first = self.rooms.log.log(&row, 0, 1).await?.pop();
        let facts = match first.map(|stored| stored.decode(run)).transpose()?.map(|record| record.event) {
            Some(Event::RunStarted(started)) => Some(started.private),
            _ => None,
        };
        let (link, foreign) = facts.map(|facts| (facts.parent, facts.cause)).unwrap_or_default();
        let parent = match (&row.parent, foreign) {
            (Some(parent), _) => Parent {
                run_id: parent.clone(),
                host_id: host_id.clone(),
                cause: link.map_or_else(|| "core.subWorkflow".to_owned(), |link| link.cause),
                well_known_url: None,
            },
            (None, Some(cause)) => Parent {
                run_id: cause.run_id,
                host_id: cause.host_id,
                cause: cause.cause,
                well_known_url: Some(cause.well_known_url),
            },
            (None, None) => return Ok(top(host_id)),
        };
        Ok(Ancestry { run_id: run.clone(), host_id, parent: Some(parent) })
    }

    /// Forks a run at a point of its log. A replay goes on by itself until it has ended; a branch goes its own way.
    pub async fn fork(
        &self,
        who: &Principal,
        source: &RunId,
        request: ForkRun,
        idempotent: Option<Idempotent<ForkedRun>>,
    ) -> Result<ForkedRun, Error> {
        self.check_fork_point(&who.tenant, source, request.from_seq).await?;
        let (caller, run, from_seq) = (who.clone(), source.clone(), request.from_seq);
        let making = self.rooms.tasks.see_through_steps(&self.rooms, |rooms| async move {
            rooms.forks.fork_run(&caller, &run, request, idempotent).await
        });
        let made = making.await;
        if made.as_ref().is_err_and(|error| error.kind == ErrorKind::Gone) {
            // Pruned since it was looked at: what is said of that is the same as if it had been before.
            self.check_fork_point(&who.tenant, source, from_seq).await?;
        }
        made
    }

    /// Goes through a run's log again without writing anything down.
    pub async fn verify(&self, tenant: &TenantId, run: &RunId) -> Result<Verified, Error> {
        let row = self.rooms.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        self.rooms
            .pool
            .on_step_threads_while_wanted(&self.rooms, |rooms| async move { rooms.replays.verify(row).await })
            .await
    }
}
