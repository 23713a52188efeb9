//! A write to a channel.

use baton_model::Timestamp;
use baton_model::event::ChannelWritten;

use crate::channel::{ChannelState, reduce};
use crate::state::RunState;

pub(super) fn written(state: &mut RunState, event: &ChannelWritten, at: Timestamp) {
    let value = event.private.hidden.as_ref().unwrap_or(&event.value);
    let facts = &event.private;
    let before = state.channels.get(&event.channel);
    // A write that does not reduce was never recorded by this engine; folding stays best-effort all the same.
    if let Ok(after) = reduce(before, value, event.reducer, facts.ttl_ms, facts.max_size, at) {
        state.note_size(before.map_or(0, ChannelState::size), after.size());
        state.channels.insert(event.channel.clone(), after);
    }
}
