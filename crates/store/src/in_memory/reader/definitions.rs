//! What is asked about definitions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use baton_model::{Digest, TenantId, WorkflowId};

use super::super::store::MemoryStore;
use crate::{DefinitionReads, Error, WorkflowVersion};

#[async_trait]
impl DefinitionReads for MemoryStore {
    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let _turn = self.turn().await;
        match self.disk.lock().blobs.get(digest).cloned() {
            Some(bytes) if !crate::is_blob_of(&bytes, digest) => {
                Err(Error::Corrupt { reason: format!("the blob {digest} does not hold what it is named after") })
            }
            found => Ok(found),
        }
    }

    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        let _turn = self.turn().await;
        let versions = (tenant.clone(), id.clone(), 0)..=(tenant.clone(), id.clone(), u32::MAX);
        Ok(self.disk.lock().workflows.range(versions).next_back().map(|(_, version)| version.clone()))
    }

    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        // Versions come in rising order, so the newest is the one that stays.
        let newest: BTreeMap<_, _> =
            disk.workflows.values().filter(|version| version.tenant == *tenant).map(|v| (&v.id, v)).collect();
        Ok(newest.into_values().cloned().collect())
    }

    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        let _turn = self.turn().await;
        let versions = (tenant.clone(), id.clone(), 0)..=(tenant.clone(), id.clone(), u32::MAX);
        Ok(self.disk.lock().workflows.range(versions).rev().map(|(_, version)| version.clone()).collect())
    }
}
