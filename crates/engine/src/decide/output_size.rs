//! Whether what a finished visit leaves behind has room, and what the next expression sees of it.

use std::collections::BTreeMap;

use baton_model::{Fault, Timestamp, json};
use serde_json::Value;

use crate::channel::ChannelState;
use crate::nodes::{Done, written};
use crate::size::{Copies, one, together};
use crate::state::{RunState, size_of_all};

/// Judges everything that a finished visit of a node leaves behind.
pub(super) fn check_room(state: &RunState, node: usize, done: &Done, at: Timestamp) -> Result<(), Fault> {
    let bounds = state.bounds();
    let mut outputs = Copies::new("The node's outputs", bounds);
    for (name, value) in &done.outputs {
        let size = json::size(value);
        one(name, size, bounds)?;
        outputs.add(name, size)?;
    }
    let mut all = state.room_for(done.variables.iter().map(|(name, value)| (name.as_str(), value)))?;
    if let Some(write) = &done.write
        && let Ok(after) = written(state, write, at)
    {
        let size = after.size();
        // What was there before this bound may shrink, and does not stop a run that leaves it alone.
        let before = state.channels.get(&write.channel).map_or(0, ChannelState::size);
        if size > before {
            one(&write.channel, size, bounds)?;
            all = all.saturating_sub(before).saturating_add(size);
            together(all, bounds)?;
        }
    }
    let (before, after) = (size_of_all(&state.nodes[node].outputs), size_of_all(&done.outputs));
    if after > before {
        together(all.saturating_sub(before).saturating_add(after), bounds)?;
    }
    Ok(())
}

/// What the variables of this step will look like once its writes are recorded.
pub(super) fn overlay(state: &RunState, done: &Done, at: Timestamp) -> BTreeMap<String, Value> {
    let mut overlay: BTreeMap<String, Value> = done.variables.iter().cloned().collect();
    if let Some(write) = &done.write
        && let Ok(after) = written(state, write, at)
    {
        overlay.insert(write.channel.clone(), after.value());
    }
    overlay
}
