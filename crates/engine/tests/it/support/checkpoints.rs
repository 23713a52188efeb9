//! States that are written down and read back.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{Checkpoint, RunState};

/// The state as a checkpoint gives it back, which must be the same.
pub fn again(state: &RunState) -> RunState {
    let written = Checkpoint::of(state);
    let chunks: BTreeMap<_, _> = written.chunks.iter().map(|chunk| (chunk.name.clone(), chunk.bytes())).collect();
    let read = Checkpoint::restore(&written.body, Arc::clone(state.plan()), |name| chunks.get(name).cloned());
    let read = read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&written.body)));
    assert_eq!(written.body, Checkpoint::of(&read).body, "the same state is written the same way");
    read
}
