//! What is asked about checkpoints.

use async_trait::async_trait;
use baton_model::RunId;

use crate::{Checkpoint, CheckpointChunk, CheckpointMark, Error, SpendingRow};

/// What is kept beside logs so that they need not be read again. It may be missing, and it may be older than the log; it is
/// never ahead of it. A store that keeps none answers that there is none.
#[async_trait]
pub trait CheckpointReads: Send + Sync {
    /// The newest checkpoint of a run under this key that has at least `from` and at most `until` records in it.
    async fn checkpoint(&self, run: &RunId, key: &str, from: u64, until: u64) -> Result<Option<Checkpoint>, Error> {
        let _ = (run, key, from, until);
        Ok(None)
    }

    /// Those of these chunks that are there, in any order.
    async fn checkpoint_chunks(&self, run: &RunId, names: &[String]) -> Result<Vec<CheckpointChunk>, Error> {
        let _ = (run, names);
        Ok(Vec::new())
    }

    /// All checkpoints of a run, whatever their keys, the oldest first.
    async fn checkpoint_marks(&self, run: &RunId) -> Result<Vec<CheckpointMark>, Error> {
        let _ = run;
        Ok(Vec::new())
    }

    /// What one run has spent, as far as it is noted.
    async fn run_spending(&self, run: &RunId) -> Result<Option<SpendingRow>, Error> {
        let _ = run;
        Ok(None)
    }

    /// What the runs of a tree have spent, as far as it is noted, by run: ids greater than `after` (`None` = from the
    /// start).
    async fn spending(&self, root: &RunId, after: Option<&RunId>, limit: usize) -> Result<Vec<SpendingRow>, Error> {
        let _ = (root, after, limit);
        Ok(Vec::new())
    }
}
