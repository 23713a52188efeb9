//! A lock for each name, made when it is wanted.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Loading is serialised per run or versioned store: between reading the log and publishing the live run, nobody else may load,
/// change, commit and drop the same one, or the live run would be stale. One lock for each, made when it is wanted: whoever
/// waits long for one run keeps nobody from another.
#[derive(Default)]
pub(crate) struct LoadLocks {
    /// By the hash of the name. Two of one hash wait for each other, which is only slow.
    locks: DashMap<u64, Arc<Mutex<()>>>,
}

impl LoadLocks {
    pub(crate) fn key(what: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) async fn lock(&self, what: &impl Hash) -> LoadGuard<'_> {
        self.lock_key(Self::key(what)).await
    }

    /// For whoever takes several: smaller keys first.
    pub(crate) async fn lock_key(&self, key: u64) -> LoadGuard<'_> {
        let lock = Arc::clone(&self.locks.entry(key).or_default());
        // Made before the wait: whoever gives up waiting tidies up as well.
        let mut guard = LoadGuard { locks: self, key, held: None };
        guard.held = Some(lock.lock_owned().await);
        guard
    }
}

pub(crate) struct LoadGuard<'a> {
    locks: &'a LoadLocks,
    key: u64,
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        self.held = None;
        // The map's own is the last: nobody holds it or waits for it.
        self.locks.locks.remove_if(&self.key, |_, lock| Arc::strong_count(lock) == 1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_run_waits_for_itself_only_and_nothing_is_left_behind() {
        let locks = LoadLocks::default();
        let first = locks.lock(&"a").now_or_never().unwrap();
        assert!(locks.lock(&"a").now_or_never().is_none());
        for other in 0..1000 {
            assert!(locks.lock(&format!("run {other}")).now_or_never().is_some());
        }
        drop(first);
        assert!(locks.lock(&"a").now_or_never().is_some());
        assert!(locks.locks.is_empty());
    }
}
