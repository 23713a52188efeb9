//! What is asked about remarks and quarantine.

use async_trait::async_trait;
use baton_model::{RunId, TenantId};
use baton_store::codec::Stored as _;
use baton_store::{AnnotationReads, AnnotationRow, Error, Quarantine};

use crate::questions::bound;
use crate::text::written;
use crate::{PostgresStore, rows};

#[async_trait]
impl AnnotationReads for PostgresStore {
    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        let sql = format!(
            "SELECT {} FROM annotations WHERE run = $1 AND id > $2 ORDER BY id LIMIT $3",
            rows::columns::<AnnotationRow>()
        );
        let (run, after, limit) = (written(run.as_str()), written(after.unwrap_or_default()), bound(limit));
        self.questions.list_whole(AnnotationRow::TABLE, &sql, &[&run, &after, &limit], rows::stored).await
    }

    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        let sql = format!("SELECT {} FROM annotations WHERE run = $1 AND id = $2", rows::columns::<AnnotationRow>());
        self.questions.one(&sql, &[&written(run.as_str()), &written(id)], rows::stored).await
    }

    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM annotations WHERE run = $1";
        let counted = self.questions.one(sql, &[&written(run.as_str())], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }

    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        let sql = format!("SELECT {} FROM quarantine WHERE root = $1", rows::columns::<Quarantine>());
        self.questions.one(&sql, &[&written(root.as_str())], rows::stored).await
    }

    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        // No id is empty, so the empty one comes before all.
        let after = after.map_or_else(String::new, |after| written(after.as_str()).into_owned());
        let (limit, mut sql) =
            (bound(limit), format!("SELECT {} FROM quarantine WHERE root > $1", rows::columns::<Quarantine>()));
        match tenant.map(|tenant| written(tenant.as_str())) {
            Some(tenant) => {
                sql.push_str(" AND tenant = $3 ORDER BY root LIMIT $2");
                self.questions.list_whole(Quarantine::TABLE, &sql, &[&after, &limit, &tenant], rows::stored).await
            }
            None => {
                sql.push_str(" ORDER BY root LIMIT $2");
                self.questions.list_whole(Quarantine::TABLE, &sql, &[&after, &limit], rows::stored).await
            }
        }
    }

    async fn count_quarantined(&self) -> Result<u64, Error> {
        let counted = self.questions.one("SELECT count(*) FROM quarantine", &[], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }
}
