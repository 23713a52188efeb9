//! How much of each dimension of a budget.

use baton_model::budget::Dimension;
use serde::{Deserialize, Serialize};

/// How much of each, in the units that are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts([u64; 4]);

impl Counts {
    pub(crate) fn get(&self, dimension: Dimension) -> u64 {
        self.0[dimension as usize]
    }

    pub(crate) fn add(&mut self, dimension: Dimension, units: u64) {
        let handle = &mut self.0[dimension as usize];
        *handle = handle.saturating_add(units);
    }

    pub(crate) fn take(&mut self, dimension: Dimension, units: u64) {
        let handle = &mut self.0[dimension as usize];
        *handle = handle.saturating_sub(units);
    }
}
