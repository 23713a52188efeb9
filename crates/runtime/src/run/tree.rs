//! What a run's row says of its place: the top of its tree, and whether it is a replay.

use baton_model::{ForkMode, RunId};
use baton_store::RunRow;

/// The top of the tree a run belongs to.
pub(crate) fn root_of(row: &RunRow) -> &RunId {
    row.root.as_ref().unwrap_or(&row.id)
}

pub(crate) fn is_replay(row: &RunRow) -> bool {
    row.origin.as_ref().is_some_and(|origin| origin.mode == ForkMode::Replay)
}
