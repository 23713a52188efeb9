//! Memory scopes and workspaces on their way into the host's store. What is there already must be the beginning of what
//! comes, or the other way round: a version means the same change for ever.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_model::code;
use baton_store::reads::*;
use baton_store::{Change, VersionedStoreId, Write, WriteChain};
use parking_lot::MutexGuard;

use crate::cluster::Hold;
use crate::history::transfer::open::StagedStore;
use crate::history::transfer::service::Transfers;
use crate::history::transfer::staged::Staged;
use crate::history::transfer::staged_stores::filler;
use crate::journal::generation::Generation;
use crate::keyed_locks::{LoadGuard, LoadLocks};
use crate::services::versioned::{VersionedStore, VersionedStoreHead};
use crate::{Error, ErrorKind};

/// Changes that are compared at a time.
const PAGE: usize = 64;
/// What a change weighs beside its content.
const CHANGE_BYTES: usize = 200;

/// What a versioned store still lacks.
pub(crate) struct StoreWork {
    ledger: StagedStore,
    /// How far it has been written here.
    here: u64,
    /// The versioned store in memory; none for one that is forked off another and does not exist yet.
    head: Option<Arc<VersionedStore>>,
    /// Other hosts do not write to it meanwhile.
    _held: Hold,
    changes: Vec<Change>,
    writes: Vec<Write>,
}

/// A versioned store nobody else can write to until the commit is queued.
pub(crate) struct LockedStore<'a> {
    work: &'a StoreWork,
    ledger: &'a VersionedStore,
    head: MutexGuard<'a, VersionedStoreHead>,
}

impl Transfers {
    /// What has to be written so that a versioned store reaches as far as the file's; `None` if it does.
    pub(crate) async fn store_work(&self, staged: &Staged, ledger: &StagedStore) -> Result<Option<StoreWork>, Error> {
        let live = self.storage.live()?;
        let fresh = ledger.base.is_some() && self.store.versioned_head(&ledger.id).await? == 0;
        let head = match fresh {
            true => None,
            false => Some(self.versioned.ledger(&live, ledger.id.clone()).await?),
        };
        let mut held = None;
        let here = match &head {
            None => 0,
            Some(head) => {
                held = self.versioned.hold(&live, head).await?;
                let here = head.version();
                head.durable(&live.ending, here).await?;
                here
            }
        };
        if here > 0 {
            self.check_beginning(staged, ledger, here).await?;
        }
        let lacks = here < ledger.version;
        let (ledger, changes, writes) = (ledger.clone(), Vec::new(), Vec::new());
        let work = StoreWork { ledger, here, head, _held: held, changes, writes };
        Ok(lacks.then_some(work))
    }

    /// What both have is the same.
    async fn check_beginning(&self, staged: &Staged, ledger: &StagedStore, here: u64) -> Result<(), Error> {
        if self.store.versioned_base(&ledger.id).await? != ledger.base {
            return Err(other_content(&ledger.id));
        }
        let mut before = here.min(ledger.version) + 1;
        loop {
            let theirs = staged.store.versioned_changes(&ledger.id, None, Some(before), PAGE).await?;
            let Some(oldest) = theirs.last().map(|change| change.version) else { return Ok(()) };
            let mut ours = self.store.versioned_changes(&ledger.id, None, Some(before), PAGE).await?;
            // Something may have been forgotten there that is still known here.
            while ours.last().is_some_and(|change| change.version > oldest) {
                let last = ours.last().map(|change| change.version);
                let more = self.store.versioned_changes(&ledger.id, None, last, PAGE).await?;
                if more.is_empty() {
                    break;
                }
                ours.extend(more);
            }
            let known = |change: &Change| ours.iter().any(|own| own == change);
            if !theirs.iter().all(known) {
                return Err(other_content(&ledger.id));
            }
            before = oldest;
        }
    }

    /// Versioned stores that are forked off are made without being in memory, so nobody may load them meanwhile.
    pub(crate) async fn keep_unloaded<'a>(
        &'a self,
        live: &Generation,
        work: &[StoreWork],
    ) -> Result<Vec<LoadGuard<'a>>, Error> {
        let fresh = || work.iter().filter(|work| work.head.is_none()).map(|work| &work.ledger.id);
        // Several may share a lock, and whoever takes more than one takes them in the same order.
        let keys: BTreeSet<u64> = fresh().map(LoadLocks::key).collect();
        let mut held = Vec::new();
        for key in keys {
            held.push(self.loading_stores.lock_key(key).await);
        }
        for id in fresh() {
            if live.ledgers.get(id).is_some() || self.store.versioned_head(id).await? > 0 {
                return Err(other_content(id));
            }
        }
        Ok(held)
    }
}

impl StoreWork {
    /// What the versioned store in memory is written as.
    pub(crate) fn chain(&self) -> Option<Arc<WriteChain>> {
        self.head.as_ref().map(|head| Arc::clone(&head.chain))
    }

    /// Reads what is to be written, and says what it weighs.
    pub(crate) async fn load(&mut self, staged: &Staged) -> Result<usize, Error> {
        let StagedStore { id, version, base } = &self.ledger;
        let beginning = base.as_ref().map_or(0, |(_, version)| *version).max(self.here);
        let mut theirs = staged.store.versioned_changes(id, None, Some(version + 1), usize::MAX).await?;
        theirs.retain(|change| change.version > beginning);
        let mut gap = None;
        let mut theirs = theirs.into_iter().rev().peekable();
        for version in beginning + 1..=*version {
            let change = theirs.next_if(|change| change.version == version).unwrap_or_else(|| {
                gap = Some(version);
                filler(version)
            });
            self.changes.push(change);
        }
        if let (0, Some((base, version))) = (self.here, base) {
            self.writes.push(Write::ForkVersionedStore { ledger: id.clone(), base: base.clone(), version: *version });
        }
        let changes = self.changes.iter().cloned();
        self.writes.extend(changes.map(|change| Write::Change { ledger: id.clone(), change }));
        // Of a versioned store that others look back into, nothing may be forgotten; what stands for gaps stays.
        if let (0, Some(below)) = (self.here, gap) {
            self.writes.push(Write::ForgetHistory { ledger: id.clone(), below });
        }
        let weigh = |change: &Change| CHANGE_BYTES + change.item.as_ref().map_or(0, |item| item.content.len());
        Ok(self.changes.iter().map(weigh).sum())
    }

    pub(crate) fn take_writes(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.writes)
    }
}

/// Locks every versioned store that is in memory, provided that nobody has written to it since it was compared.
pub(crate) fn lock_all(work: &[StoreWork]) -> Result<Vec<LockedStore<'_>>, Error> {
    let mut locked = Vec::new();
    for work in work {
        let Some(ledger) = &work.head else { continue };
        let head = ledger.lock();
        if head.version != work.here {
            return Err(other_content(&work.ledger.id));
        }
        locked.push(LockedStore { work, ledger, head });
    }
    Ok(locked)
}

impl LockedStore<'_> {
    /// Takes in what is about to be queued.
    pub(crate) fn grow(&mut self) {
        for change in &self.work.changes {
            self.ledger.queued(&mut self.head, change.clone());
        }
        // Gaps would be counted as deletions; the next write counts anew.
        self.head.index = None;
    }
}

fn other_content(ledger: &VersionedStoreId) -> Error {
    let (kind, scope) = (ledger.kind.as_str(), &ledger.scope);
    let message = format!("The {kind} `{scope}` exists already and holds something else. Nothing was imported.");
    Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("ledger", kind).with("scope", scope.as_str())
}
