//! Spending. What a tree of runs has left is not one run's to know, so the shell keeps the account: it tells a run what
//! it has used, and what it could not have. Both are facts from outside; nothing here is decided again by a replay.

use baton_model::budget::{Ceilings, Dimension};
use baton_model::{Amount, Draft, NodeId};

/// What the tree had used by then, in the units that are counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    pub dimension: Dimension,
    pub consumed: u64,
    pub limit: u64,
    /// Set when this crossed the threshold: the percentage that was to be watched.
    pub crossed: Option<f64>,
}

impl Spent {
    pub(crate) fn shown(&self) -> [Amount; 3] {
        let left = self.limit.saturating_sub(self.consumed);
        [self.consumed, self.limit, left].map(|units| self.dimension.shown(units))
    }
}

/// What could not be paid for.
#[derive(Clone, Debug)]
pub enum Unaffordable {
    /// This call of a model.
    Call { node: NodeId, visit: u32, attempt: u32, call: u32 },
    /// What was decided: it calls more tools, or tries more often, than is left.
    Step { drafts: Vec<Draft> },
}

/// How much is missing, in the units that are counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    pub dimension: Dimension,
    pub consumed: u64,
    pub limit: u64,
    /// What was wanted on top; at least one more than was left.
    pub wanted: u64,
    /// All the ceilings that hold for the tree at this moment.
    pub ceilings: Ceilings,
    /// Whether a human may still extend it.
    pub asks: bool,
}

impl Shortage {
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.consumed)
    }

    /// How much must be there before it can be done: of a call of a model, what is asked and room to say something.
    pub(crate) fn needed(&self) -> u64 {
        self.wanted
    }
}
