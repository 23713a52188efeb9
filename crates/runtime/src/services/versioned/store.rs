//! One memory scope or workspace in memory: how far it has been written, and the changes that are not on disk yet.
//! Everything else is in the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use baton_model::{RunId, Timestamp};
use baton_store::{Change, CommitError, ReadView, VersionedStoreId, VersionedStoreKind, WriteChain};
use dashmap::DashMap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::RwLock;

use crate::Error;
use crate::journal::durable::Progress;
use crate::journal::ending::Ending;

/// The versioned stores that somebody holds. A versioned store nobody holds has everything on disk and is forgotten.
#[derive(Clone, Default)]
pub(crate) struct OpenStores {
    known: Arc<DashMap<VersionedStoreId, Weak<VersionedStore>>>,
    /// Other hosts may write to them.
    shared: bool,
}

pub(crate) struct VersionedStore {
    pub(crate) id: VersionedStoreId,
    head: Mutex<VersionedStoreHead>,
    /// The version including what is queued, readable without the lock.
    version: AtomicU64,
    /// The version on disk.
    progress: Progress,
    /// What the changes from here are links of. Once it is broken, this is forgotten and read again.
    pub(crate) chain: Arc<WriteChain>,
    others: OpenStores,
    /// Nobody but this host writes to it. Changed under the lock, with the gate shut.
    ours: AtomicBool,
    /// Open to those who write, one by one or together; shut while the right to write comes or goes.
    pub(crate) gate: Arc<RwLock<()>>,
}

pub(crate) struct VersionedStoreHead {
    pub(crate) version: u64,
    /// Queued, not yet known to be on disk, oldest first.
    pending: VecDeque<Change>,
    /// What a write has to know; none until it is first needed.
    pub(crate) index: Option<Index>,
}

/// What there is, as far as the next write must know it.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// How many entries have not been deleted; expired ones count until they are counted anew.
    Memory { entries: u64 },
    /// Version and etag of each file.
    Workspace { files: BTreeMap<String, (u64, String)> },
}

impl Index {
    pub(crate) fn empty(kind: VersionedStoreKind) -> Self {
        match kind {
            VersionedStoreKind::Memory => Self::Memory { entries: 0 },
            VersionedStoreKind::Workspace => Self::Workspace { files: BTreeMap::new() },
        }
    }

    /// Takes a change in.
    pub(super) fn add(&mut self, change: &Change) {
        match (self, change.file_meta()) {
            (Self::Memory { entries }, Some(_)) => *entries += 1,
            (Self::Memory { entries }, None) => *entries = entries.saturating_sub(1),
            (Self::Workspace { files }, Some(meta)) => {
                files.insert(meta.path, (meta.version, meta.etag));
            }
            (Self::Workspace { files }, None) => {
                files.remove(&change.key);
            }
        }
    }
}

impl OpenStores {
    pub(crate) fn new(shared: bool) -> Self {
        Self { known: Arc::default(), shared }
    }

    pub(crate) fn get(&self, id: &VersionedStoreId) -> Option<Arc<VersionedStore>> {
        self.known.get(id).and_then(|ledger| ledger.upgrade()).filter(|ledger| !ledger.chain.is_broken())
    }

    /// The versioned store as the store has it; somebody who was faster wins.
    pub(crate) fn adopt(&self, id: VersionedStoreId, version: u64) -> Arc<VersionedStore> {
        let fresh = Arc::new(VersionedStore {
            head: Mutex::new(VersionedStoreHead {
                version,
                pending: VecDeque::new(),
                index: (version == 0).then(|| Index::empty(id.kind)),
            }),
            id: id.clone(),
            version: AtomicU64::new(version),
            progress: Progress::new(version),
            chain: Arc::new(WriteChain::of_store()),
            others: self.clone(),
            ours: AtomicBool::new(!self.shared),
            gate: Arc::default(),
        });
        let mut entry = self.known.entry(id).or_default();
        let known = entry.upgrade().filter(|known| !known.chain.is_broken());
        if known.is_none() {
            *entry = Arc::downgrade(&fresh);
        }
        // Released before anything can be dropped: dropping a versioned store comes back to this map.
        drop(entry);
        known.unwrap_or(fresh)
    }

    pub(crate) fn kill(&self) {
        for ledger in &self.all() {
            ledger.chain.break_off(&CommitError::Stale);
        }
    }

    /// In the order of their names: who is woken first must not depend on how a map hashes.
    fn all(&self) -> Vec<Arc<VersionedStore>> {
        let mut all: Vec<Arc<VersionedStore>> = self.known.iter().filter_map(|entry| entry.upgrade()).collect();
        all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        all
    }
}

impl Drop for VersionedStore {
    fn drop(&mut self) {
        self.others.known.remove_if(&self.id, |_, ledger| ledger.strong_count() == 0);
    }
}

impl VersionedStore {
    pub(crate) fn lock(&self) -> MutexGuard<'_, VersionedStoreHead> {
        self.head.lock()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn committed(&self) -> u64 {
        self.progress.committed()
    }

    /// Whether this host may write without asking others.
    pub(crate) fn is_ours(&self) -> bool {
        self.ours.load(Ordering::Acquire)
    }

    /// Only this host writes from here on. The gate is shut, and what others have written is known.
    pub(crate) fn take(&self) {
        let _head = self.head.lock();
        self.ours.store(true, Ordering::Release);
    }

    /// Others may write. The gate is shut, so nobody here is about to.
    pub(crate) fn give_up(&self) {
        let mut head = self.head.lock();
        self.ours.store(false, Ordering::Release);
        head.index = None;
    }

    /// Others have written up to this version. What was known of the content is not known any more.
    pub(crate) fn catch_up(&self, version: u64) {
        let mut head = self.head.lock();
        if !self.is_ours() && version > head.version {
            head.version = version;
            head.index = None;
            self.version.store(version, Ordering::Release);
            self.progress.reached(version);
        }
    }

    /// Takes a change in that has just been queued.
    pub(crate) fn queued(&self, head: &mut VersionedStoreHead, change: Change) {
        head.version = change.version;
        if let Some(index) = &mut head.index {
            index.add(&change);
        }
        head.trim(self.committed());
        head.pending.push_back(change);
        self.version.store(head.version, Ordering::Release);
    }

    /// The store has everything up to this version.
    pub(crate) fn on_disk(&self, version: u64) {
        // Told by the writer, which must not wait for a lock: what is no longer pending is dropped by the next look.
        self.progress.reached(version);
    }

    /// The changes that are not on disk yet, and the version that is.
    pub(crate) fn ahead(&self) -> (u64, Vec<Change>) {
        let mut head = self.head.lock();
        let committed = self.committed();
        head.trim(committed);
        (committed, head.pending.iter().cloned().collect())
    }

    /// Waits until this version is on disk.
    pub(crate) async fn durable(&self, ending: &Ending, version: u64) -> Result<(), Error> {
        Ok(self.progress.durable(ending, &self.chain, version).await?)
    }
}

impl VersionedStoreHead {
    /// The change that takes an item away.
    pub(crate) fn forget(&self, key: &str, run: Option<&RunId>, at: Timestamp) -> Change {
        Change { version: self.version + 1, key: key.to_owned(), at, run: run.cloned(), item: None }
    }

    fn trim(&mut self, committed: u64) {
        while self.pending.front().is_some_and(|change| change.version <= committed) {
            self.pending.pop_front();
        }
    }

    /// What a view shows, if all of it is here: nothing of this versioned store has reached the disk yet.
    pub(crate) fn view_without_store(&self, committed: u64, lens: &ReadView) -> Option<Vec<Change>> {
        (committed == 0).then(|| lens.view(&self.pending))
    }

    /// Whether nobody has touched an item since this version. False also when that cannot be told any more: what has
    /// reached the disk meanwhile is no longer here.
    pub(crate) fn untouched_since(&self, version: u64, key: &str) -> bool {
        let complete = || self.pending.front().is_some_and(|oldest| oldest.version <= version + 1);
        self.version == version || (complete() && !self.after(version).any(|change| change.key == key))
    }

    /// What the store does not have at this version.
    pub(crate) fn after(&self, version: u64) -> impl Iterator<Item = &Change> {
        self.pending.iter().filter(move |change| change.version > version)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_model::TenantId;
    use baton_store::{Item, Meta};

    use super::*;

    fn id() -> VersionedStoreId {
        VersionedStoreId::memory(&TenantId::new("acme"), "team")
    }

    fn change(version: u64, key: &str, gone: bool) -> Change {
        let item = Item { content: key.to_owned(), expires_at: None, meta: Meta::default() };
        Change { version, key: key.to_owned(), at: Timestamp::from_millis(0), run: None, item: (!gone).then_some(item) }
    }

    fn queue(ledger: &VersionedStore, change: Change) {
        let mut head = ledger.lock();
        ledger.queued(&mut head, change);
    }

    #[test]
    fn a_versioned_store_is_shared_while_somebody_holds_it_and_forgotten_after() {
        let ledgers = OpenStores::default();
        let one = ledgers.adopt(id(), 3);
        let other = ledgers.adopt(id(), 0);
        assert!(Arc::ptr_eq(&one, &other), "whoever was faster wins");
        assert!(Arc::ptr_eq(&one, &ledgers.get(&id()).unwrap()));
        drop((one, other));
        assert!(ledgers.get(&id()).is_none());
        assert!(ledgers.known.is_empty(), "nothing is left of it");
        assert_eq!(ledgers.adopt(id(), 7).version(), 7);
    }

    /// A versioned store that is on its way out must not take the one that replaced it along.
    #[test]
    fn the_last_holder_leaves_while_others_come() {
        let ledgers = OpenStores::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let held = ledgers.get(&id()).unwrap_or_else(|| ledgers.adopt(id(), 0));
                        assert!(Arc::ptr_eq(&held, &ledgers.get(&id()).unwrap()), "two ledgers of one name");
                    }
                });
            }
        });
        assert!(ledgers.known.is_empty());
    }

    #[test]
    fn what_is_on_disk_is_no_longer_ahead() {
        let ledger = OpenStores::default().adopt(id(), 0);
        for (version, key) in [(1, "a"), (2, "b"), (3, "c")] {
            queue(&ledger, change(version, key, false));
        }
        let lens = ReadView::at(u64::MAX, Timestamp::from_millis(0));
        assert_eq!(ledger.lock().view_without_store(ledger.committed(), &lens).unwrap().len(), 3);
        ledger.on_disk(2);
        ledger.on_disk(1);
        let (committed, ahead) = ledger.ahead();
        assert_eq!((committed, ahead.iter().map(|change| change.version).collect::<Vec<_>>()), (2, vec![3]));
        assert!(ledger.lock().view_without_store(ledger.committed(), &lens).is_none(), "the store knows the rest");
    }

    #[test]
    fn whether_an_item_was_touched_is_told_as_long_as_it_is_known() {
        let ledger = OpenStores::default().adopt(id(), 4);
        assert!(ledger.lock().untouched_since(4, "a"));
        assert!(!ledger.lock().untouched_since(3, "a"), "version 4 is on disk, and may be anything");
        queue(&ledger, change(5, "b", false));
        queue(&ledger, change(6, "a", true));
        assert!(ledger.lock().untouched_since(5, "b") && !ledger.lock().untouched_since(5, "a"));
        assert!(!ledger.lock().untouched_since(4, "b"));
        assert!(ledger.lock().untouched_since(4, "c"));
        ledger.on_disk(5);
        ledger.ahead();
        assert!(!ledger.lock().untouched_since(4, "c"), "not known any more");
        assert!(ledger.lock().untouched_since(5, "c"));
    }

    #[test]
    fn an_index_counts_what_is_there() {
        let mut index = Index::empty(VersionedStoreKind::Memory);
        for change in [change(1, "a", false), change(2, "b", false), change(3, "a", true)] {
            index.add(&change);
        }
        assert!(matches!(index, Index::Memory { entries: 1 }));
        let mut index = Index::empty(VersionedStoreKind::Workspace);
        for change in [change(1, "a", false), change(2, "a", false), change(3, "b", true)] {
            index.add(&change);
        }
        let Index::Workspace { files } = index else { return };
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a"]);
    }
}
