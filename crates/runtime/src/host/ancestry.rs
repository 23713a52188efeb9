//! Where a run comes from, one step up. Walking further is asking the parent's host.

use baton_model::{Event, RunId, TenantId};

use crate::{Ancestry, Error, Host, Parent};

impl Host {
    /// The run's immediate parent, here or on another host. The source of a fork is no parent: a fork is a top-level run.
    pub async fn ancestry(&self, tenant: &TenantId, run: &RunId) -> Result<Ancestry, Error> {
        let row = self.inner.row_of(tenant, run).await?;
        let host_id = self.inner.options.host_id.clone();
        let top = |host_id: String| Ancestry { run_id: run.clone(), host_id, parent: None };
        if row.origin.is_some() {
            return Ok(top(host_id));
        }
        let first = self.inner.log(&row, 0, 1).await?.pop();
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
}
