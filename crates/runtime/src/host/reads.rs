use std::collections::HashMap;

use baton_engine::snapshot;
use baton_model::{
    Annotation, Digest, ForkedFrom, Principal, Record, Retention, RunId, RunSnapshot, Scope, TenantId, WorkflowId, code,
};
use baton_store::{AnnotationRow, Page, ReadView, RunFilter, RunPlace, RunRow, VersionedStoreId};

use crate::history::log::as_row_says;
use crate::quarantine::trees::shown;
use crate::run::summary::summary_of;
use crate::run::tree::root_of;
use crate::services::annotations::NewAnnotation;
use crate::services::notifications::Activity;
use crate::services::workflows::shared::SHARED;
use crate::{Annotated, Error, ErrorKind, EventLine, EventPage, Host, Idempotent, LogPage};

/// What a page of a log weighs where a reader does not say: enough for a thousand small events, and little to hold.
const PAGE_BYTES: usize = 1024 * 1024;

impl Host {
    /// A run as this caller may see it. The signed link to its open question is a credential: whoever has it can
    /// answer. So it is made here, for callers that may answer anyway, and nowhere else.
    pub async fn snapshot_for(&self, who: &Principal, run: &RunId) -> Result<RunSnapshot, Error> {
        let mut view = self.snapshot(&who.tenant, run).await?;
        if let Some(interrupt) = view.interrupt.as_mut().filter(|_| who.scopes.allow(Scope::ApprovalsRespond)) {
            self.rooms.interrupts.add_link(run, interrupt);
        }
        if !who.scopes.allow(Scope::WorkspaceRead) {
            view.workspace.clear();
        }
        Ok(view)
    }

    /// A run as everybody of its tenant may see it, without a link.
    pub async fn snapshot(&self, tenant: &TenantId, run: &RunId) -> Result<RunSnapshot, Error> {
        let (state, row) = match self.rooms.reads.committed_state(tenant, run).await {
            Ok(found) => found,
            Err(error) => return self.rooms.reads.snapshot_without_log(tenant, run, error).await,
        };
        let mut view = snapshot(&state).ok_or_else(Error::run_not_found)?;
        as_row_says(&mut view, &row);
        if let Some(cost) = summary_of(&row).and_then(|summary| summary.usage_of_tree()) {
            view.metrics.get_or_insert_default().tree_cost = Some(cost.into());
        }
        let seen = state.seen();
        view.run_id = run.clone();
        view.quarantine = self.rooms.quarantined.of(root_of(&row)).map(|held| shown(&held));
        view.forked_from = row.origin.as_ref().map(ForkedFrom::from);
        view.retention = row.pruned.map(|pruned| Retention { pruned_at: pruned.at });
        if seen.workspace > 0 && row.pruned.is_none() {
            let ledger = VersionedStoreId::workspace(tenant, row.workspace_scope);
            let lens = ReadView { bare: true, ..ReadView::at(seen.workspace, self.rooms.clock.now()) };
            view.workspace = self.rooms.versioned.files_at(&ledger, &lens).await?;
        }
        Ok(view)
    }

    pub async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error> {
        Ok(self.rooms.store.runs(filter).await?)
    }

    /// Records from sequence `from` on, at most `limit` and no more than a page may weigh, with what never leaves the
    /// process: for whoever makes something of them that may. Only an empty page is behind the end.
    pub async fn log(&self, tenant: &TenantId, run: &RunId, from: u64, limit: usize) -> Result<LogPage, Error> {
        let row = self.rooms.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        let stored = self.rooms.log.log_within(&row, from, limit, PAGE_BYTES).await?;
        let records = stored.iter().map(|stored| Ok(stored.decode(run)?)).collect::<Result<Vec<Record>, Error>>()?;
        Ok(LogPage { origin: row.origin, records })
    }

    /// Events after sequence `after` (`None` = from the start), at most `limit`, and no more than a page may weigh.
    pub async fn events(
        &self,
        tenant: &TenantId,
        run: &RunId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<EventPage, Error> {
        self.events_within(tenant, run, after, limit, PAGE_BYTES).await
    }

    /// The same for a reader that says what it can hold. The first event always comes, so whoever goes on after the last
    /// one gets to the end: [`EventPage::reaches_end`] says when.
    pub async fn events_within(
        &self,
        tenant: &TenantId,
        run: &RunId,
        after: Option<u64>,
        limit: usize,
        bytes: usize,
    ) -> Result<EventPage, Error> {
        let row = self.rooms.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        if let Some(pruned) = row.pruned.filter(|pruned| pruned.log) {
            return Err(Error::run_pruned(pruned.at));
        }
        let from = after.map_or(0, |after| after.saturating_add(1));
        let records = match from < row.next_seq {
            true => self.rooms.log.log_within(&row, from, limit, bytes).await?,
            false => Vec::new(),
        };
        let events = records
            .into_iter()
            .map(|record| EventLine { seq: record.seq, kind: record.kind.into(), body: record.body })
            .collect();
        Ok(EventPage { events, status: row.status, next_seq: row.next_seq })
    }

    /// Says something about a run, be it over or not. The answer is what was stored, secrets taken out.
    pub async fn annotate(
        &self,
        who: &Principal,
        run: &RunId,
        new: NewAnnotation,
        idempotent: Option<Idempotent<Annotation>>,
    ) -> Result<Annotation, Error> {
        let (who, run) = (who.clone(), run.clone());
        self.rooms
            .tasks
            .see_through(
                &self.rooms,
                |rooms| async move { rooms.annotations.annotate(&who, run, new, idempotent).await },
            )
            .await
    }

    /// What was said about a run, oldest first: after the one with this id, if any. With where to go on, if there is more.
    pub async fn annotations(
        &self,
        tenant: &TenantId,
        run: &RunId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Annotation>, Option<String>), Error> {
        self.rooms.annotations.annotated_run(tenant, run).await?;
        // One more than asked for says whether there is another page.
        let mut rows = self.rooms.store.annotations(run, after, limit.saturating_add(1)).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| row.id.clone());
        Ok((rows.iter().map(read).collect::<Result<_, _>>()?, next))
    }

    pub async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<Annotation>, Error> {
        self.rooms.store.annotation(run, id).await?.as_ref().map(read).transpose()
    }

    /// Hears that something was said about this run from now on. A hint like any other: what is missed is in the list.
    pub fn annotated(&self, run: &RunId) -> Annotated {
        self.rooms.notifications.annotations(run)
    }

    /// Hears which runs change from now on, of all tenants. Costs nothing while nobody listens.
    pub fn activity(&self) -> Activity {
        self.rooms.notifications.activity()
    }

    /// Those of these runs that are the tenant's, as lists show them.
    pub async fn rows(&self, tenant: &TenantId, runs: Vec<RunId>) -> Result<Vec<RunRow>, Error> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let filter = RunFilter { tenant: Some(tenant.clone()), limit: runs.len(), ids: runs, ..RunFilter::default() };
        Ok(self.rooms.store.runs(&filter).await?.items)
    }

    pub async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        Ok(self.rooms.store.open_interrupts(tenant).await?)
    }

    /// How many runs of a tenant there are of each status.
    pub async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(baton_model::RunStatus, u64)>, Error> {
        Ok(self.rooms.store.run_counts(tenant).await?)
    }

    /// Which version of its workflow each run is pinned to, by digest. What was registered is remembered: versions are
    /// never taken back.
    pub async fn version_numbers(&self, tenant: &TenantId, rows: &[RunRow]) -> Result<HashMap<Digest, u32>, Error> {
        let mut found = HashMap::new();
        let mut asked: Vec<&WorkflowId> = Vec::new();
        for row in rows {
            if let Some(number) = self.rooms.plans.number(&row.digest, tenant) {
                found.insert(row.digest.clone(), number);
            } else if !asked.contains(&&row.workflow) {
                asked.push(&row.workflow);
                for owner in [TenantId::new(SHARED), tenant.clone()] {
                    for version in self.rooms.store.workflow_versions(&owner, &row.workflow).await? {
                        self.rooms.plans.note_number(&version.digest, tenant, version.version);
                    }
                }
                found.extend(self.rooms.plans.number(&row.digest, tenant).map(|number| (row.digest.clone(), number)));
            }
        }
        Ok(found)
    }
}

fn read(row: &AnnotationRow) -> Result<Annotation, Error> {
    serde_json::from_str(&row.body).map_err(|error| {
        Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "An annotation could not be read.").because(error)
    })
}
