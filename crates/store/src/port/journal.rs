//! How things become durable.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Commit, CommitReceipt, Error, Observer, Shared};

/// The write side.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Queues a commit and returns at once. When the ticket resolves to `Ok`, everything in it survives power loss. Commits
    /// of one tenant become durable in the order they were queued, and so do those of no tenant, among all others. Never
    /// blocks and may be called under a lock.
    fn submit(&self, commit: Commit) -> CommitReceipt;

    /// Installs the observer. Called once, before the first submit.
    fn observe(&self, observer: Arc<dyn Observer>);

    /// The generation commits must carry now. It starts at 1.
    fn generation(&self) -> u64;

    /// After a failure: proves that the disk takes writes again and opens the next generation, which it returns.
    /// With no failure pending, returns the current one.
    async fn recover(&self) -> Result<u64, Error>;

    /// Waits until everything queued so far is durable, then stops accepting work. On a shared store, ends the session.
    async fn close(&self);

    /// What several hosts on this store need of it. `None`: it has a single owner.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}
