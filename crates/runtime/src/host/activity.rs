use std::collections::HashMap;

use baton_model::{Digest, RunId, TenantId, WorkflowId};
use baton_store::{RunFilter, RunRow};

use crate::services::notifications::Activity;
use crate::services::workflows::SHARED;
use crate::{Error, Host};

impl Host {
    /// Hears which runs change from now on, of all tenants. Costs nothing while nobody listens.
    pub fn activity(&self) -> Activity {
        self.inner.hub.activity()
    }

    /// Those of these runs that are the tenant's, as lists show them.
    pub async fn rows(&self, tenant: &TenantId, runs: Vec<RunId>) -> Result<Vec<RunRow>, Error> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let filter = RunFilter { tenant: Some(tenant.clone()), limit: runs.len(), ids: runs, ..RunFilter::default() };
        Ok(self.inner.store.runs(&filter).await?.items)
    }

    pub async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        Ok(self.inner.store.open_interrupts(tenant).await?)
    }

    /// How many runs of a tenant there are of each status.
    pub async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(baton_model::RunStatus, u64)>, Error> {
        Ok(self.inner.store.run_counts(tenant).await?)
    }

    /// Which version of its workflow each run is pinned to, by digest. What was registered is remembered: versions are
    /// never taken back.
    pub async fn version_numbers(&self, tenant: &TenantId, rows: &[RunRow]) -> Result<HashMap<Digest, u32>, Error> {
        let mut found = HashMap::new();
        let mut asked: Vec<&WorkflowId> = Vec::new();
        for row in rows {
            if let Some(number) = self.inner.plans.number(&row.digest, tenant) {
                found.insert(row.digest.clone(), number);
            } else if !asked.contains(&&row.workflow) {
                asked.push(&row.workflow);
                for owner in [TenantId::new(SHARED), tenant.clone()] {
                    for version in self.inner.store.workflow_versions(&owner, &row.workflow).await? {
                        self.inner.plans.note_number(&version.digest, tenant, version.version);
                    }
                }
                found.extend(self.inner.plans.number(&row.digest, tenant).map(|number| (row.digest.clone(), number)));
            }
        }
        Ok(found)
    }
}
