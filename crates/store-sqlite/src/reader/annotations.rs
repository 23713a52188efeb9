//! What is asked about remarks and quarantine.

use async_trait::async_trait;
use baton_model::{RunId, TenantId};
use baton_store::codec::Stored as _;
use baton_store::{AnnotationReads, AnnotationRow, Error, Quarantine};
use rusqlite::{Connection, params};

use crate::query::{bound, list_whole, one};
use crate::rows;
use crate::store::SqliteStore;

#[async_trait]
impl AnnotationReads for SqliteStore {
    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        // No id is empty, so the empty one comes before all.
        let (run, after, limit) = (run.clone(), after.unwrap_or_default().to_owned(), bound(limit));
        let sql = format!(
            "SELECT {} FROM annotations WHERE run = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            rows::columns::<AnnotationRow>()
        );
        self.readers()
            .read(move |c| list_whole(c, AnnotationRow::TABLE, &sql, params![run.as_str(), after, limit], rows::stored))
            .await
    }

    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        let (run, id) = (run.clone(), id.to_owned());
        let sql = format!("SELECT {} FROM annotations WHERE run = ?1 AND id = ?2", rows::columns::<AnnotationRow>());
        self.readers().read(move |c| one(c, &sql, [run.as_str(), &id], rows::stored)).await
    }

    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        let run = run.clone();
        let sql = "SELECT count(*) FROM annotations WHERE run = ?1";
        Ok(self.readers().read(move |c| one(c, sql, [run.as_str()], rows::count)).await?.unwrap_or(0))
    }

    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        let root = root.clone();
        let sql = format!("SELECT {} FROM quarantine WHERE root = ?1", rows::columns::<Quarantine>());
        self.readers().read(move |c| one(c, &sql, [root.as_str()], rows::stored)).await
    }

    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        let (tenant, columns) = (tenant.cloned(), rows::columns::<Quarantine>());
        let query = move |c: &Connection| {
            let (after, limit) = (after.as_ref().map(RunId::as_str), bound(limit));
            // Only what is asked for, or no index would be used. No id is empty, so the empty one comes before all.
            let (sql, tenant) = match &tenant {
                Some(tenant) => (" AND tenant = ?3", Some(tenant.as_str())),
                None => ("", None),
            };
            let sql = format!("SELECT {columns} FROM quarantine WHERE root > ?1{sql} ORDER BY root LIMIT ?2");
            match tenant {
                Some(tenant) => list_whole(
                    c,
                    Quarantine::TABLE,
                    &sql,
                    params![after.unwrap_or_default(), limit, tenant],
                    rows::stored,
                ),
                None => list_whole(c, Quarantine::TABLE, &sql, params![after.unwrap_or_default(), limit], rows::stored),
            }
        };
        self.readers().read(query).await
    }

    async fn count_quarantined(&self) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM quarantine";
        Ok(self.readers().read(move |c| one(c, sql, [], rows::count)).await?.unwrap_or(0))
    }
}
