//! What is asked about open questions and replies.

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId};

use super::super::store::MemoryStore;
use crate::{Error, InterruptFilter, InterruptReads, InterruptRow, Reply};

#[async_trait]
impl InterruptReads for MemoryStore {
    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let mut open: Vec<_> = disk
            .interrupts
            .values()
            .filter(|row| filter.tenant.as_ref().is_none_or(|tenant| row.tenant == *tenant))
            .filter(|row| filter.run.as_ref().is_none_or(|run| row.run == *run))
            .filter(|row| filter.kind.as_ref().is_none_or(|kind| row.kind == *kind))
            .cloned()
            .collect();
        open.sort_by_key(|row| row.requested_at);
        open.truncate(filter.limit);
        Ok(open)
    }

    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().interrupts.values().filter(|row| row.tenant == *tenant).count() as u64)
    }

    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().interrupts.get(&(run.clone(), node.clone())).cloned())
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        let _turn = self.turn().await;
        Ok(self.disk.lock().replies.get(key).cloned())
    }
}
