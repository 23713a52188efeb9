//! What a fold begins with.

use baton_engine::RunState;
use baton_model::TenantId;
use baton_store::Checkpoint;

/// A state in the middle of a log.
pub(crate) struct Beginning {
    pub(crate) state: RunState,
    /// How many of the branch points it has passed.
    pub(crate) crossed: usize,
    pub(crate) used: UsedCheckpoint,
}

/// What was found; a fork may have found one of its source's.
pub(crate) struct UsedCheckpoint {
    pub(super) found: Checkpoint,
    pub(super) tenant: TenantId,
}
