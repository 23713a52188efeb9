//! What is asked about definitions.

use async_trait::async_trait;
use baton_model::{Digest, TenantId, WorkflowId};
use baton_store::codec::Stored as _;
use baton_store::{DefinitionReads, Error, WorkflowVersion};

use crate::query::{list, list_whole, one};
use crate::rows;
use crate::store::SqliteStore;

#[async_trait]
impl DefinitionReads for SqliteStore {
    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let digest = digest.clone();
        let sql = "SELECT bytes FROM blobs WHERE digest = ?1";
        let asked = digest.clone();
        let found = self.readers().read(move |c| one(c, sql, [asked.as_str()], |row| row.get::<_, Vec<u8>>(0))).await?;
        match found {
            Some(bytes) if !baton_store::is_blob_of(&bytes, &digest) => {
                Err(Error::Corrupt { reason: format!("the blob {digest} does not hold what it is named after") })
            }
            found => Ok(found),
        }
    }

    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let columns = rows::columns::<WorkflowVersion>();
        let sql =
            format!("SELECT {columns} FROM workflows WHERE tenant = ?1 AND id = ?2 ORDER BY version DESC LIMIT 1");
        self.readers().read(move |c| one(c, &sql, [tenant.as_str(), id.as_str()], rows::stored)).await
    }

    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        let tenant = tenant.clone();
        // With max(), SQLite takes the other columns from the row that has it.
        let sql = "SELECT tenant, id, max(version), digest, name, created_at, sum FROM workflows
                   WHERE tenant = ?1 GROUP BY id ORDER BY id";
        self.readers().read(move |c| list_whole(c, WorkflowVersion::TABLE, sql, [tenant.as_str()], rows::stored)).await
    }

    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let columns = rows::columns::<WorkflowVersion>();
        let sql = format!("SELECT {columns} FROM workflows WHERE tenant = ?1 AND id = ?2 ORDER BY version DESC");
        self.readers().read(move |c| list(c, &sql, [tenant.as_str(), id.as_str()], rows::stored)).await
    }
}
