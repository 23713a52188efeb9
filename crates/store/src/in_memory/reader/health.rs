//! What is asked about the store itself.

use async_trait::async_trait;

use super::super::store::MemoryStore;
use crate::{Change, Error, HealthReads, Usage, UsageClass, VersionedStoreKind};

#[async_trait]
impl HealthReads for MemoryStore {
    async fn usage(&self) -> Result<Usage, Error> {
        let _turn = self.turn().await;
        let disk = self.disk.lock();
        let class = |class, count: usize, bytes: usize| UsageClass { class, bytes: bytes as u64, count: count as u64 };
        let records = || disk.runs.iter().flat_map(|log| &log.records);
        let changes = |kind: VersionedStoreKind| {
            disk.ledgers.iter().filter(move |(id, _)| id.kind == kind).flat_map(|(_, ledger)| &ledger.changes)
        };
        let size = |change: &Change| change.key.len() + change.item.as_ref().map_or(0, |item| item.content.len());
        let of_kind = |name, kind| class(name, changes(kind).count(), changes(kind).map(size).sum());
        let classes = vec![
            class("records", records().count(), records().map(|record| record.body.len()).sum()),
            of_kind("memory", VersionedStoreKind::Memory),
            of_kind("workspace", VersionedStoreKind::Workspace),
            class("blobs", disk.blobs.len(), disk.blobs.values().map(Vec::len).sum()),
        ];
        Ok(Usage { kind: "memory", bytes: Some(classes.iter().map(|class| class.bytes).sum()), classes })
    }

    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().probes.get(&self.epoch_now()).copied())
    }

    async fn ping(&self) -> Result<(), Error> {
        let _turn = self.turn().await;
        Ok(())
    }
}
