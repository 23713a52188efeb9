//! Looking back: a run, its memory and its workspace as of any record of its log.

use baton_engine::{RunState, snapshot};
use baton_model::{RunId, TenantId, WorkspaceFile, code};
use baton_store::{Change, LedgerId, Lens, RunRow, StoredRecord};

use crate::history::log::as_row_says;
use crate::inner::Inner;
use crate::{Error, Host, Kind, StateAt, Surroundings};

impl Host {
    /// Memory and workspace as of a record, expiry judged at that record's instant. Two lookups, however long the log.
    pub async fn surroundings(&self, tenant: &TenantId, run: &RunId, seq: u64) -> Result<Surroundings, Error> {
        let (row, record) = self.inner.record_of(tenant, run, seq).await?;
        self.inner.surroundings(&row, &record).await
    }

    /// One file as the run had it at a record (`None` = the latest), a branch's own included.
    pub async fn file_at(
        &self,
        tenant: &TenantId,
        run: &RunId,
        seq: Option<u64>,
        path: &str,
    ) -> Result<Option<WorkspaceFile>, Error> {
        let row = self.inner.row_of(tenant, run).await?;
        let seq = seq.unwrap_or(row.next_seq.saturating_sub(1));
        let (row, record) = self.inner.record_of(tenant, run, seq).await?;
        let ledger = LedgerId::workspace(tenant, row.workspace_scope);
        let lens = Lens::at(record.versions.workspace, record.at);
        Ok(self.inner.item(&ledger, path, &lens).await?.as_ref().and_then(Change::file))
    }

    /// The whole run as of a record (`None` = the latest).
    pub async fn state_at(&self, tenant: &TenantId, run: &RunId, seq: Option<u64>) -> Result<StateAt, Error> {
        let row = self.inner.row_of(tenant, run).await?;
        let seq = seq.unwrap_or(row.next_seq.saturating_sub(1));
        let (row, record) = self.inner.record_of(tenant, run, seq).await?;
        let surroundings = self.inner.surroundings(&row, &record).await?;
        let state = self.inner.fold_to(run, seq).await?;
        let mut view = snapshot(&state).ok_or_else(Error::run_not_found)?;
        as_row_says(&mut view, &row);
        Ok(StateAt { seq, at: record.at, view, surroundings })
    }

    /// Whether a run can be forked from here. The order of the checks is the protocol's: bounds first, memory second.
    pub async fn check_fork_point(&self, tenant: &TenantId, run: &RunId, from_seq: u64) -> Result<(), Error> {
        let row = self.inner.row_of(tenant, run).await?;
        if from_seq > row.next_seq {
            return Err(beyond(run, from_seq, row.next_seq));
        }
        self.inner.check_kept(&row, from_seq, from_seq).await
    }
}

impl Inner {
    pub(super) async fn row_of(&self, tenant: &TenantId, run: &RunId) -> Result<RunRow, Error> {
        self.store.run(run).await?.filter(|row| row.tenant == *tenant).ok_or_else(Error::run_not_found)
    }

    async fn record_of(&self, tenant: &TenantId, run: &RunId, seq: u64) -> Result<(RunRow, StoredRecord), Error> {
        let row = self.row_of(tenant, run).await?;
        if seq >= row.next_seq {
            return Err(beyond(run, seq, row.next_seq.saturating_sub(1)));
        }
        self.check_kept(&row, seq, seq).await?;
        match self.log(&row, seq, 1).await?.pop() {
            Some(record) if record.seq == seq => Ok((row, record)),
            _ => Err(unavailable(run, seq, "event_log_unavailable")),
        }
    }

    /// Retention may have taken what is needed, be it from a run that this one was forked from. What is said of it names
    /// the sequence that was asked for.
    pub(crate) async fn check_kept(&self, row: &RunRow, seq: u64, asked: u64) -> Result<(), Error> {
        let mut owner = row.clone();
        loop {
            match owner.pruned {
                None => {}
                Some(pruned) if pruned.log => return Err(unavailable(&row.id, asked, "event_log_unavailable")),
                Some(_) => return Err(unavailable(&row.id, asked, "retention_expired")),
            }
            match owner.origin {
                Some(origin) if seq < origin.seq => {
                    owner = self.store.run(&origin.source).await?.ok_or_else(Error::run_not_found)?;
                }
                _ => return Ok(()),
            }
        }
    }

    async fn surroundings(&self, row: &RunRow, record: &StoredRecord) -> Result<Surroundings, Error> {
        let memory = LedgerId::memory(&row.tenant, row.memory_scope.clone());
        let workspace = LedgerId::workspace(&row.tenant, row.workspace_scope.clone());
        let entries = self.items(&memory, &Lens::at(record.versions.memory, record.at)).await?;
        let lens = Lens { bare: true, ..Lens::at(record.versions.workspace, record.at) };
        Ok(Surroundings {
            versions: record.versions,
            memory_scope: row.memory_scope.clone(),
            memory: entries.iter().filter_map(Change::entry).collect(),
            workspace: self.files_at(&workspace, &lens).await?,
        })
    }

    /// The run folded up to and including this record.
    async fn fold_to(&self, run: &RunId, seq: u64) -> Result<RunState, Error> {
        self.fold_before(run, seq + 1).await?.map(|(state, _)| state).ok_or_else(Error::run_not_found)
    }
}

fn unavailable(run: &RunId, seq: u64, reason: &str) -> Error {
    let message = match reason {
        "retention_expired" => {
            "What this run's memory and workspace looked like was pruned, so nobody can go back there."
        }
        _ => "This run's log was pruned, so nobody can go back there.",
    };
    Error::new(Kind::Unprocessable, code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE, message)
        .with("fromSeq", seq)
        .with("sourceRunId", run.as_str())
        .with("reason", reason)
}

fn beyond(run: &RunId, seq: u64, most: u64) -> Error {
    let message = format!("This run's log does not reach {seq}; {most} is the furthest.");
    Error::new(Kind::Unprocessable, code::INVALID_FROM_SEQ, message)
        .with("fromSeq", seq)
        .with("sourceRunId", run.as_str())
        .with("max", most)
}
