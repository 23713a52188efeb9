//! Trees whose writes the store refuses, though the disk is well.

use std::sync::Arc;

use baton_model::RunId;

use crate::clock::RETRY_MS;
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::{Cause, MOST_STRIKES, Refusals};

/// How often a tree is tried again whose writes are refused. What stood in its way may be gone by then.
const TRIES: u32 = 3;

/// A tree that is refused again after this has worked in between: one that is stuck is tried again within seconds.
const FORGIVEN_MS: u64 = 60 * 60 * 1000;

/// A write that the store refused.
#[derive(Clone, Debug)]
pub(crate) struct LostWrite {
    pub(crate) run: RunId,
    pub(crate) reason: String,
}

impl Quarantines {
    /// How many milliseconds a tree waits before it is tried again; `None` if it is left alone, or if nothing of it is
    /// durable.
    pub(crate) async fn refused(self: &Arc<Self>, root: &RunId, lost: &LostWrite) -> Option<u64> {
        let durable = self.store.run(&lost.run).await.ok().map(|row| row.map_or(0, |row| row.next_seq));
        let tries = self.count_refusal(root, &lost.run, durable);
        if tries < TRIES {
            return Some(RETRY_MS << (tries - 1));
        }
        // The run may never have become durable, under a tree that did: the tree would only make it again.
        let row = match self.storage.row_or_root(&lost.run, root).await {
            Ok(row) => row,
            Err(error) => {
                tracing::warn!(%root, %error, "a tree whose writes are refused could not be looked at");
                return Some(RETRY_MS << tries.min(6));
            }
        };
        self.quarantined.refused.lock().remove(root);
        let row = row?;
        let detail = if row.id == lost.run { lost.reason.clone() } else { format!("{}: {}", lost.run, lost.reason) };
        self.quarantine(&row, Cause::CommitRefused, &detail);
        None
    }

    /// How many refusals came one after the other. A run that has written since went on from where it was refused, and a
    /// tree that was not refused for long had another reason then: both begin anew.
    fn count_refusal(&self, root: &RunId, run: &RunId, durable: Option<u64>) -> u32 {
        let at = self.clock.now();
        let mut refused = self.quarantined.refused.lock();
        if refused.len() >= MOST_STRIKES && !refused.contains_key(root) {
            refused.pop_first();
        }
        let before = refused.get(root).filter(|last| {
            let went_on = last.run == *run && durable.is_some_and(|durable| durable > last.durable);
            !went_on && at.millis_since(last.at) < FORGIVEN_MS
        });
        let times = before.map_or(0, |last| last.times).saturating_add(1);
        // If that cannot be read, nothing counts as more.
        let durable = durable.unwrap_or(u64::MAX);
        refused.insert(root.clone(), Refusals { times, run: run.clone(), durable, at });
        times
    }
}
