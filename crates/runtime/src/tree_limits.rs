//! How many trees of runs one tenant may have; see [`crate::services::tree_quotas`].

/// `None` means that there is no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Trees whose top-level run is at work, paused or about to begin.
    pub running: Option<u64>,
    /// Trees whose top-level run waits for an answer.
    pub waiting: Option<u64>,
}

impl Default for TreeLimits {
    fn default() -> Self {
        // Enough for anybody who means it: the first are some hundred megabytes in memory, the others a few on disk.
        Self { running: Some(100_000), waiting: Some(1_000_000) }
    }
}
