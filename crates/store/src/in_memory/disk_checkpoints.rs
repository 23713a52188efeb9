//! Checkpoints on a disk: how they are written, and what tests do to them.

use std::collections::BTreeMap;

use baton_model::RunId;

use super::checkpoints::Checkpoints;
use super::disk::Disk;
use crate::{Checkpoint, CheckpointWrite, SpendingRow};

impl Disk {
    pub(super) fn keeps_log(&self, run: &RunId) -> bool {
        self.log(run).is_some_and(|log| log.row.pruned.is_none_or(|pruned| !pruned.log))
    }

    pub(super) fn write_checkpoint(&mut self, write: CheckpointWrite) {
        if !self.keeps_log(write.run()) {
            return;
        }
        self.checkpoints.written += write.bytes() as u64;
        match write {
            CheckpointWrite::Put { checkpoint, chunks } => {
                let known = self.checkpoints.chunks.entry(checkpoint.run.clone()).or_default();
                for chunk in chunks {
                    known.entry(chunk.name).or_insert(chunk.bytes);
                }
                let states = self.checkpoints.states.entry(checkpoint.run.clone()).or_default();
                states.insert(checkpoint.seq, checkpoint);
            }
            CheckpointWrite::Drop { run, seqs, chunks } => {
                if let Some(states) = self.checkpoints.states.get_mut(&run) {
                    seqs.iter().for_each(|seq| drop(states.remove(seq)));
                }
                if let Some(known) = self.checkpoints.chunks.get_mut(&run) {
                    chunks.iter().for_each(|name| drop(known.remove(name)));
                }
            }
        }
    }

    pub(super) fn write_spending(&mut self, row: SpendingRow) {
        if self.keeps_log(&row.run) {
            self.checkpoints.spending.insert(row.run.clone(), row);
        }
    }

    /// Forgets all checkpoints, and what is noted of what was spent. For tests.
    pub fn forget_checkpoints(&mut self) {
        self.checkpoints = Checkpoints::default();
    }

    /// How many bytes of checkpoints were ever written, those included that are gone. For tests.
    pub fn checkpoint_bytes_written(&self) -> u64 {
        self.checkpoints.written
    }

    /// The checkpoints of a run: how many records are in each. For tests.
    pub fn checkpoints_of(&self, run: &RunId) -> Vec<u64> {
        self.checkpoints.states.get(run).into_iter().flat_map(BTreeMap::keys).copied().collect()
    }

    /// Changes the checkpoints of a run behind everybody's back, as a failing disk would. For tests.
    pub fn change_checkpoints(&mut self, run: &RunId, change: impl FnMut(&mut Checkpoint)) {
        if let Some(states) = self.checkpoints.states.get_mut(run) {
            let mut all: Vec<Checkpoint> = std::mem::take(states).into_values().collect();
            all.iter_mut().for_each(change);
            states.extend(all.into_iter().map(|one| (one.seq, one)));
        }
    }

    /// Loses all chunks of a run's checkpoints. For tests.
    pub fn lose_chunks(&mut self, run: &RunId) {
        self.checkpoints.chunks.remove(run);
    }

    /// Loses the newest records of a run with what its row says of them, as no disk should. For tests.
    pub fn cut_log(&mut self, run: &RunId, seq: u64) {
        if let Some(log) = self.log_mut(run) {
            log.records.retain(|record| record.seq < seq);
            log.row.next_seq = seq;
            log.row.chain.head = log.records.last().and_then(|record| record.sum);
        }
    }
}
