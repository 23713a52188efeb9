//! Runners on the disk in memory.

use super::disk::Disk;
use crate::{RunnerWrite, StepRow};

impl Disk {
    pub(super) fn apply_runners(&mut self, write: RunnerWrite) {
        match write {
            RunnerWrite::PutToken(row) => {
                self.tokens.insert(row.id.clone(), row);
            }
            RunnerWrite::DeleteToken { id } => {
                self.tokens.remove(&id);
            }
            RunnerWrite::PutRunner(row) => {
                if self.runners.get(&row.key).is_none_or(|there| there.version < row.version) {
                    self.runners.insert(row.key.clone(), row);
                }
            }
            RunnerWrite::DeleteRunner { key } => {
                self.runners.remove(&key);
            }
            RunnerWrite::PutStep(row) => {
                if self.steps.get(&row.key).is_none_or(|there| there.version < row.version) {
                    self.steps.insert(row.key.clone(), row);
                }
            }
            RunnerWrite::DeleteStep { key } => {
                self.steps.remove(&key);
            }
            RunnerWrite::ForgetSteps { before, state, limit } => {
                let fits = |row: &&StepRow| row.at < before && state.is_none_or(|state| row.state == state);
                let mut old: Vec<_> = self.steps.values().filter(fits).collect();
                old.sort_by_key(|row| (row.at, row.key.clone()));
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let old: Vec<String> = old.into_iter().take(limit).map(|row| row.key.clone()).collect();
                old.iter().for_each(|key| drop(self.steps.remove(key)));
            }
        }
    }
}
