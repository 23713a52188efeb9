//! What a run, and every run below it, may spend. A policy is what somebody asks for; a [`Budget`] is what holds once
//! everybody who has a say was heard, settled when the tree's first run starts and never afterwards.

mod ceilings;
mod glob;
mod policy;
mod resolved;

pub use ceilings::{Ceilings, Dimension, OnExhaustion, nanos};
pub use policy::BudgetPolicy;
pub use resolved::{Budget, BudgetScope};

#[cfg(test)]
mod tests;
