//! Going back to a record of a run's log: whether it is there, and what stood on it.

use std::sync::Arc;

use baton_engine::RunState;
use baton_model::{RunId, TenantId, code};
use baton_store::{RunRow, StoredRecord};

use crate::history::log::RunLog;
use crate::{Error, ErrorKind};

impl RunLog {
    pub(crate) async fn row_of(&self, tenant: &TenantId, run: &RunId) -> Result<RunRow, Error> {
        self.store.run(run).await?.filter(|row| row.tenant == *tenant).ok_or_else(Error::run_not_found)
    }

    pub(crate) async fn record_of(
        &self,
        tenant: &TenantId,
        run: &RunId,
        seq: u64,
    ) -> Result<(RunRow, StoredRecord), Error> {
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

    /// The run folded up to and including this record.
    pub(crate) async fn fold_to(self: &Arc<Self>, run: &RunId, seq: u64) -> Result<RunState, Error> {
        self.fold_before(run, seq + 1).await?.map(|(state, _)| state).ok_or_else(Error::run_not_found)
    }
}

pub(crate) fn unavailable(run: &RunId, seq: u64, reason: &str) -> Error {
    let message = match reason {
        "retention_expired" => {
            "What this run's memory and workspace looked like was pruned, so nobody can go back there."
        }
        _ => "This run's log was pruned, so nobody can go back there.",
    };
    Error::new(ErrorKind::Unprocessable, code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE, message)
        .with("fromSeq", seq)
        .with("sourceRunId", run.as_str())
        .with("reason", reason)
}

pub(crate) fn beyond(run: &RunId, seq: u64, most: u64) -> Error {
    let message = format!("This run's log does not reach {seq}; {most} is the furthest.");
    Error::new(ErrorKind::Unprocessable, code::INVALID_FROM_SEQ, message)
        .with("fromSeq", seq)
        .with("sourceRunId", run.as_str())
        .with("max", most)
}
