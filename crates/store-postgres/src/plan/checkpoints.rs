//! Checkpoints, and what belongs to them.

use baton_store::CheckpointWrite;
use baton_store::codec::{Existing, integer};

use super::Plan;
use super::left::split;
use crate::insert;
use crate::statement::Statement;

/// After the runs: logs that are dropped with this are marked by then, and this drops what was kept beside them.
impl<'a> Plan<'a> {
    pub(super) fn checkpoint(&mut self, write: &'a CheckpointWrite) {
        match write {
            CheckpointWrite::Put { checkpoint, chunks } => {
                self.checkpoints.insert((&checkpoint.run, checkpoint.seq), Some(checkpoint));
                for chunk in chunks {
                    self.chunks.insert((&chunk.run, &chunk.name), Some(chunk));
                }
            }
            CheckpointWrite::Drop { run, seqs, chunks } => {
                for seq in seqs {
                    self.checkpoints.insert((run, *seq), None);
                }
                for name in chunks {
                    self.chunks.insert((run, name), None);
                }
            }
        }
    }

    pub(super) fn checkpoints(&self, all: &mut Vec<Statement<'a>>) {
        let (gone, put) = split(&self.checkpoints);
        if !gone.is_empty() {
            let runs = gone.iter().map(|(run, _)| run.as_str());
            all.push(Statement::new(DROP_STATES).texts(runs).list(gone.iter().map(|(_, seq)| integer(*seq))));
        }
        let (gone, chunks) = split(&self.chunks);
        if !gone.is_empty() {
            let runs = gone.iter().map(|(run, _)| run.as_str());
            all.push(Statement::new(DROP_CHUNKS).texts(runs).texts(gone.iter().map(|(_, name)| *name)));
        }
        if !put.is_empty() {
            let mut runs: Vec<&str> = put.iter().map(|row| row.run.as_str()).collect();
            runs.dedup();
            // Whoever drops one of these logs waits, and then finds what is put here; or has dropped it, and it is found.
            all.push(Statement::new(super::runs::HOLD_SOURCES).texts(runs.iter().copied()));
            if !chunks.is_empty() {
                all.push(insert::rows(Existing::Keep, chunks));
            }
            all.push(insert::rows(Existing::Replace, put));
            all.push(Statement::new(DROP_LOST_STATES).texts(runs.iter().copied()));
            all.push(Statement::new(DROP_LOST_CHUNKS).texts(runs));
        }
        if !self.spending.is_empty() {
            all.push(insert::rows(Existing::Replace, self.spending.values().copied()));
            let runs = self.spending.keys().map(|run| run.as_str());
            all.push(Statement::new(DROP_LOST_SPENDING).texts(runs));
        }
        if !self.dropped_logs.is_empty() {
            for sql in [FORGET_STATES, FORGET_CHUNKS, FORGET_SPENDING] {
                all.push(Statement::new(sql).texts(self.dropped_logs.iter().map(|run| run.as_str())));
            }
        }
    }
}

pub(super) const DROP_STATES: &str = "DELETE FROM checkpoints USING unnest($1::TEXT[], $2::BIGINT[]) AS gone (run, seq)
    WHERE checkpoints.run = gone.run AND checkpoints.seq = gone.seq";
pub(super) const DROP_CHUNKS: &str = "DELETE FROM checkpoint_chunks
    USING unnest($1::TEXT[], $2::TEXT[]) AS gone (run, name)
    WHERE checkpoint_chunks.run = gone.run AND checkpoint_chunks.name = gone.name";
pub(super) const DROP_LOST_STATES: &str = "DELETE FROM checkpoints WHERE run = ANY($1)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = checkpoints.run AND NOT pruned_log)";
pub(super) const DROP_LOST_CHUNKS: &str = "DELETE FROM checkpoint_chunks WHERE run = ANY($1)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = checkpoint_chunks.run AND NOT pruned_log)";
pub(super) const DROP_LOST_SPENDING: &str = "DELETE FROM spending WHERE run = ANY($1)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = spending.run AND NOT pruned_log)";
pub(super) const FORGET_STATES: &str = "DELETE FROM checkpoints WHERE run = ANY($1)";
pub(super) const FORGET_CHUNKS: &str = "DELETE FROM checkpoint_chunks WHERE run = ANY($1)";
pub(super) const FORGET_SPENDING: &str = "DELETE FROM spending WHERE run = ANY($1)";
