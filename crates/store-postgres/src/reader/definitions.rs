//! What is asked about definitions.

use async_trait::async_trait;
use baton_model::{Digest, TenantId, WorkflowId};
use baton_store::codec::Stored as _;
use baton_store::{DefinitionReads, Error, WorkflowVersion};

use crate::text::{key, written};
use crate::{PostgresStore, rows};

#[async_trait]
impl DefinitionReads for PostgresStore {
    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT bytes FROM blobs WHERE digest = $1";
        let found: Option<Vec<u8>> = self.questions.one(sql, &[&digest.as_str()], rows::raw).await?;
        match found {
            Some(bytes) if !baton_store::is_blob_of(&bytes, digest) => {
                Err(Error::Corrupt { reason: format!("the blob {digest} does not hold what it is named after") })
            }
            found => Ok(found),
        }
    }

    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        self.lookups.workflow(tenant, id).await
    }

    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        let sql = format!(
            "SELECT {} FROM workflows
             WHERE tenant = $1 AND version = (SELECT max(newest.version) FROM workflows newest
                 WHERE newest.tenant = workflows.tenant AND newest.id = workflows.id)
             ORDER BY coalesce(long_id, id)",
            rows::columns::<WorkflowVersion>()
        );
        self.questions.list_whole(WorkflowVersion::TABLE, &sql, &[&written(tenant.as_str())], rows::stored).await
    }

    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        let sql = format!(
            "SELECT {} FROM workflows WHERE tenant = $1 AND id = $2 ORDER BY version DESC",
            rows::columns::<WorkflowVersion>()
        );
        self.questions.list(&sql, &[&written(tenant.as_str()), &key(id.as_str())], rows::stored).await
    }
}
