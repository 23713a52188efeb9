//! What is asked about remarks and quarantine.

use std::collections::BTreeMap;

use async_trait::async_trait;
use baton_model::{RunId, TenantId};

use super::super::store::MemoryStore;
use crate::{AnnotationReads, AnnotationRow, Error, Quarantine};

#[async_trait]
impl AnnotationReads for MemoryStore {
    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let rows = disk.annotations.get(run).into_iter().flat_map(BTreeMap::values);
        Ok(rows.filter(|row| after.is_none_or(|after| row.id.as_str() > after)).take(limit).cloned().collect())
    }

    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().annotations.get(run).and_then(|rows| rows.get(id)).cloned())
    }

    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().annotations.get(run).map_or(0, |rows| rows.len() as u64))
    }

    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().quarantine.get(root).cloned())
    }

    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let later = disk.quarantine.values().filter(|row| after.as_ref().is_none_or(|after| row.root > *after));
        Ok(later.filter(|row| tenant.is_none_or(|tenant| row.tenant == *tenant)).take(limit).cloned().collect())
    }

    async fn count_quarantined(&self) -> Result<u64, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().quarantine.len() as u64)
    }
}
