//! What is asked about remarks and quarantine.

use async_trait::async_trait;
use baton_model::{RunId, TenantId};

use crate::{AnnotationRow, Error, Quarantine};

/// What is said about runs beside their logs: remarks, and trees that nobody may step. Durable before anybody is told.
#[async_trait]
pub trait AnnotationReads: Send + Sync {
    /// Remarks about a run by id: ids greater than `after` (`None` = from the start), at most `limit`.
    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error>;
    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error>;
    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error>;
    /// What is said of a tree that nobody may step.
    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error>;
    /// Trees that nobody may step, of one tenant or of all, by root: ids greater than `after` (`None` = from the start).
    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error>;
    /// How many trees of all tenants nobody may step.
    async fn count_quarantined(&self) -> Result<u64, Error>;
}
