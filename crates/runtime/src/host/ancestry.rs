//! Where a run comes from, one step up. Walking further is asking the parent's host.

use baton_model::{Event, RunId, TenantId};

use crate::{Ancestry, Error, Host, Parent};

impl Host {
    /// The run's immediate parent. The source of a fork is no parent: a fork is a top-level run.
    pub async fn ancestry(&self, tenant: &TenantId, run: &RunId) -> Result<Ancestry, Error> {
        let row = self.inner.row_of(tenant, run).await?;
        let host_id = self.inner.options.host_id.clone();
        let Some(parent) = &row.parent else { return Ok(Ancestry { run_id: run.clone(), host_id, parent: None }) };
        let first = self.inner.log(&row, 0, 1).await?.pop();
        let first = first.map(|stored| stored.decode(run)).transpose()?;
        let cause = match first.map(|record| record.event) {
            Some(Event::RunStarted(started)) => started.private.parent.map(|link| link.cause),
            _ => None,
        };
        let cause = cause.unwrap_or_else(|| "core.subWorkflow".to_owned());
        let parent = Parent { run_id: parent.clone(), host_id: host_id.clone(), cause };
        Ok(Ancestry { run_id: run.clone(), host_id, parent: Some(parent) })
    }
}
