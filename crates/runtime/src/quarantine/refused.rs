//! Trees whose writes the store refuses, though the disk is well.

use std::sync::Arc;

use baton_model::RunId;

use crate::clock::RETRY_MS;
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::{Cause, MOST_STRIKES};

/// How often a tree is tried again whose writes are refused. What stood in its way may be gone by then.
const TRIES: u32 = 3;

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
        let tries = {
            let mut refused = self.quarantined.refused.lock();
            if refused.len() >= MOST_STRIKES && !refused.contains_key(root) {
                refused.pop_first();
            }
            let tries = refused.entry(root.clone()).or_insert(0);
            *tries += 1;
            *tries
        };
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
}
