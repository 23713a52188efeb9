//! Records of a map that both it and its items write, and what it fails of.

use baton_model::event::{MapStopping, REDACTED};
use baton_model::{Draft, Event, Fault, code};
use serde_json::json;

use super::node_records::spoken;
use crate::state::RunState;

/// No further item begins.
pub(super) fn stopping(state: &RunState, node: usize, error: Fault) -> Draft {
    let event = MapStopping { node_id: state.plan.nodes[node].id.clone(), error, private: spoken(state, node) };
    Event::from(event).into()
}

/// What a map fails of when one of its items has.
pub(super) fn failed_at(state: &RunState, node: usize, index: u32, error: &Fault) -> Fault {
    let message = match state.plan.nodes[node].sensitive {
        true => REDACTED.to_owned(),
        false => error.message.clone(),
    };
    let told = Fault::new(error.code.clone(), message.clone());
    Fault::new(code::MAP_ITEM_FAILED, format!("Item {index} failed: {message} ({})", error.code))
        .with("index", index)
        .with("itemError", json!(told))
}
