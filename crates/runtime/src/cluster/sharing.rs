//! How hosts that share a store live together.

/// How hosts that share a store live together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// How often a host looks for itself, in case it was not told.
    pub poll_ms: u64,
    /// How long a caller waits for a host that drives a run, or holds a claim, before being told to try again.
    pub timeout_ms: u64,
    /// How many trees of runs are taken over at a time: several hosts share what a dead one leaves.
    pub adopt_at_once: usize,
    /// Whether an idle host asks a busy one for work.
    pub steal: bool,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { poll_ms: 1000, timeout_ms: 30_000, adopt_at_once: 32, steal: true }
    }
}
