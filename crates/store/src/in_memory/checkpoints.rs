//! The checkpoints that a disk holds.

use std::collections::{BTreeMap, HashMap};

use baton_model::RunId;

use crate::{Checkpoint, SpendingRow};

#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoints {
    pub(super) states: HashMap<RunId, BTreeMap<u64, Checkpoint>>,
    pub(super) chunks: HashMap<RunId, BTreeMap<String, Vec<u8>>>,
    pub(super) spending: BTreeMap<RunId, SpendingRow>,
    /// How many bytes of checkpoints were ever written.
    pub(super) written: u64,
}

impl Checkpoints {
    pub(super) fn forget(&mut self, run: &RunId) {
        self.states.remove(run);
        self.chunks.remove(run);
        self.spending.remove(run);
    }
}
