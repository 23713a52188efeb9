//! What is asked about definitions.

use async_trait::async_trait;
use baton_model::{Digest, TenantId, WorkflowId};

use crate::{Error, WorkflowVersion};

/// Workflow versions and the blobs that they name. A version is only there once its blob is.
#[async_trait]
pub trait DefinitionReads: Send + Sync {
    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error>;
    /// The newest version of a workflow in this tenant.
    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error>;
    /// The newest version of every workflow of this tenant, by id.
    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error>;
    /// Every version of a workflow that this tenant itself registered, newest first.
    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        Ok(self.workflow(tenant, id).await?.into_iter().collect())
    }
}
