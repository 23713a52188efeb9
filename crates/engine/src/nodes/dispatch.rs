//! What workers are given, and what is taken over from them.

use baton_model::{Fault, ValueBounds, WorkflowId, json};
use serde_json::{Map, Value};

use crate::plan::Dispatch;
use crate::size::Copies;
use crate::state::RunState;

impl Dispatch {
    /// What a worker is given: child key ← parent variable. Unset variables are left out, never null.
    pub(crate) fn project(&self, state: &RunState, worker: &WorkflowId) -> Result<Map<String, Value>, Fault> {
        let mapping = self.input.of(worker).iter();
        let mapped = mapping.map(|(child, parent)| (child.as_str(), parent.as_str()));
        state.copy_all("What the worker is given would", mapped)
    }

    /// What is taken over from a completed worker: parent variable ← child variable, in mapping order.
    pub(crate) fn harvest(
        &self,
        worker: &WorkflowId,
        child: &Map<String, Value>,
        bounds: ValueBounds,
    ) -> Result<Harvest, Fault> {
        harvest(self.output.of(worker), child, bounds)
    }

    /// The part of a child's variables that a harvest could need.
    pub(crate) fn kept(
        &self,
        worker: &WorkflowId,
        child: &Map<String, Value>,
        bounds: ValueBounds,
    ) -> Result<Map<String, Value>, Fault> {
        kept(self.output.of(worker), child, bounds)
    }
}

/// Variables of the parent with the values they get, in mapping order.
pub(crate) type Harvest = Vec<(String, Value)>;

/// What a mapping of parent variable ← child variable takes over. It is added up before it is copied: one value of the
/// child may go to many variables.
pub(super) fn harvest(
    mapping: &[(String, String)],
    child: &Map<String, Value>,
    bounds: ValueBounds,
) -> Result<Harvest, Fault> {
    let mut copies = Copies::new("What is taken over from the child would", bounds);
    let found = mapping.iter().filter_map(|(parent, key)| Some((parent, child.get(key)?)));
    let copied = found.map(|(parent, value)| {
        copies.add(parent, json::size(value))?;
        Ok((parent.clone(), value.clone()))
    });
    copied.collect()
}

/// The part of a child's variables that such a mapping reads.
pub(super) fn kept(
    mapping: &[(String, String)],
    child: &Map<String, Value>,
    bounds: ValueBounds,
) -> Result<Map<String, Value>, Fault> {
    let mut copies = Copies::new("What is taken over from the child would", bounds);
    let mut kept = Map::new();
    for (_, key) in mapping {
        if let Some(value) = child.get(key).filter(|_| !kept.contains_key(key)) {
            copies.add(key, json::size(value))?;
            kept.insert(key.clone(), value.clone());
        }
    }
    Ok(kept)
}
