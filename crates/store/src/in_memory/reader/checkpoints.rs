//! What is asked about checkpoints.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use baton_model::RunId;

use super::super::store::MemoryStore;
use crate::{Checkpoint, CheckpointChunk, CheckpointMark, CheckpointReads, Error, SpendingRow};

#[async_trait]
impl CheckpointReads for MemoryStore {
    async fn checkpoint(&self, run: &RunId, key: &str, from: u64, until: u64) -> Result<Option<Checkpoint>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let Some(states) = disk.checkpoints.states.get(run).filter(|_| from <= until) else { return Ok(None) };
        Ok(states.range(from..=until).rev().map(|(_, state)| state).find(|state| state.key == key).cloned())
    }

    async fn checkpoint_chunks(&self, run: &RunId, names: &[String]) -> Result<Vec<CheckpointChunk>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let Some(chunks) = disk.checkpoints.chunks.get(run) else { return Ok(Vec::new()) };
        let found = names.iter().filter_map(|name| {
            Some(CheckpointChunk { run: run.clone(), name: name.clone(), bytes: chunks.get(name)?.clone() })
        });
        Ok(found.collect())
    }

    async fn checkpoint_marks(&self, run: &RunId) -> Result<Vec<CheckpointMark>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let states = disk.checkpoints.states.get(run).into_iter().flat_map(BTreeMap::values);
        let mark = |state: &Checkpoint| CheckpointMark {
            seq: state.seq,
            key: state.key.clone(),
            chunks: state.chunks.clone(),
            bytes: state.body.len() as u64,
        };
        Ok(states.map(mark).collect())
    }

    async fn run_spending(&self, run: &RunId) -> Result<Option<SpendingRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().checkpoints.spending.get(run).cloned())
    }

    async fn spending(&self, root: &RunId, after: Option<&RunId>, limit: usize) -> Result<Vec<SpendingRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = disk.checkpoints.spending.range::<RunId, _>((from, Bound::Unbounded)).map(|(_, row)| row);
        Ok(rows.filter(|row| row.root == *root).take(limit).cloned().collect())
    }
}
