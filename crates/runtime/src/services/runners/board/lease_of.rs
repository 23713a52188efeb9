//! Whether a runner has a step now, under the very number that somebody names.

use std::sync::Arc;

use baton_model::Timestamp;

use super::{Board, Place, Step};

/// What is known here of a step that somebody says a runner has.
pub(crate) enum LeaseOf {
    /// It has it, until then at most.
    Leased(Arc<Step>, Timestamp),
    /// It does not, or nobody wants it any more.
    Over,
    /// Nobody has it, as far as this host has heard. Of another host it may not have heard yet.
    NotHere,
    /// Another host gave it away, or this one does not know it yet: the store says more.
    Elsewhere,
}

impl Board {
    pub(crate) fn lease_of(&self, key: &str, runner: &str, seq: u64, now: Timestamp) -> LeaseOf {
        let state = self.state.lock();
        let Some(entry) = state.steps.get(key) else { return LeaseOf::Elsewhere };
        match &entry.place {
            Place::Elsewhere { .. } => LeaseOf::Elsewhere,
            Place::With { runner: id, seq: number } if id == runner && *number == seq => {
                let lease = state.lease(&entry.step.owner(), id, seq);
                let lives = |lease: &&super::Lease| {
                    lease.shown && !lease.cancelled && !entry.abandoned && lease.until > now && lease.ends_at > now
                };
                match lease.filter(lives) {
                    Some(lease) => LeaseOf::Leased(Arc::clone(&entry.step), lease.ends_at),
                    None => LeaseOf::Over,
                }
            }
            Place::With { .. } => LeaseOf::Over,
            Place::Queued { .. } | Place::Lost { .. } => LeaseOf::NotHere,
        }
    }
}
