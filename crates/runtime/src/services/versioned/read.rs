//! Reading a versioned store as a run sees it: what is on disk, and on top of it what is still on its way there. A run may
//! look ahead of the disk because nothing it does with what it saw is shown before both are durable.

use baton_model::{Origin, RunId, Timestamp};
use baton_store::{Change, ReadView, VersionedStoreId};

use super::store::VersionedStore;
use crate::Error;
use crate::services::versioned::service::VersionedStores;

impl VersionedStores {
    /// What a view shows, newest first.
    pub(crate) async fn view(&self, ledger: &VersionedStore, lens: &ReadView) -> Result<Vec<Change>, Error> {
        let (committed, ahead) = ledger.ahead();
        // What is ahead may take things away, so as many more have to be fetched.
        let stored =
            ReadView { limit: lens.limit.map(|limit| limit.saturating_add(ahead.len())), ..up_to(lens, committed) };
        let mut shown = if committed == 0 { Vec::new() } else { self.items(&ledger.id, &stored).await? };
        if ahead.iter().any(|change| lens.counts(change)) {
            shown = lens.view(shown.iter().chain(&ahead));
        } else {
            shown.truncate(lens.limit.unwrap_or(usize::MAX));
        }
        Ok(shown)
    }

    pub(crate) async fn view_one(
        &self,
        ledger: &VersionedStore,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error> {
        let (committed, ahead) = ledger.ahead();
        match ahead.into_iter().rev().find(|change| change.key == key && lens.counts(change)) {
            Some(change) => Ok(Some(change).filter(|change| lens.wants(change))),
            None if committed == 0 => Ok(None),
            None => self.item(&ledger.id, key, &up_to(lens, committed)).await,
        }
    }

    /// What a view shows of what is durable, newest first. A versioned store that was forked from another one shows that one
    /// where it has nothing of its own.
    pub(crate) async fn items(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error> {
        let Some(base) = self.base(ledger, lens).await? else {
            return Ok(self.store.versioned_items(ledger, lens).await?);
        };
        let own = self.store.versioned_changes(ledger, None, None, usize::MAX).await?;
        // What is taken away up here may be among the first there.
        let below = ReadView { limit: lens.limit.map(|limit| limit.saturating_add(own.len())), ..base.below(lens) };
        let inherited = Box::pin(self.items(&base.ledger, &below)).await?;
        let inherited: Vec<Change> = inherited.into_iter().map(|change| base.later(change)).collect();
        Ok(lens.view(own.iter().chain(&inherited)))
    }

    pub(crate) async fn item(
        &self,
        ledger: &VersionedStoreId,
        key: &str,
        lens: &ReadView,
    ) -> Result<Option<Change>, Error> {
        let Some(base) = self.base(ledger, lens).await? else {
            return Ok(self.store.versioned_item(ledger, key, lens).await?);
        };
        let own = self.store.versioned_changes(ledger, Some(key), None, usize::MAX).await?;
        match own.into_iter().find(|change| lens.counts(change)) {
            Some(change) => Ok(Some(change).filter(|change| lens.wants(change))),
            None => {
                let inherited = Box::pin(self.item(&base.ledger, key, &base.below(lens))).await?;
                Ok(inherited.map(|change| base.later(change)))
            }
        }
    }

    pub(crate) async fn count(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error> {
        match self.store.versioned_base(ledger).await? {
            None => Ok(self.store.versioned_count(ledger, lens).await?),
            Some(_) => {
                let all = ReadView { limit: None, bare: true, ..lens.clone() };
                Ok(self.items(ledger, &all).await?.len() as u64)
            }
        }
    }
}

/// What a versioned store was forked from.
struct Base {
    ledger: VersionedStoreId,
    /// Up to where it is seen.
    upto: u64,
    /// How long ago it looked that way when the fork was made: what had an hour left then has an hour left in the fork.
    passed: i64,
}

impl Base {
    /// The same question to the versioned store below.
    fn below(&self, lens: &ReadView) -> ReadView {
        let at = lens.at.map(|at| Timestamp::from_micros(at.as_micros().saturating_sub(self.passed)));
        ReadView { version: lens.version.min(self.upto), own: None, at, ..lens.clone() }
    }

    fn later(&self, mut change: Change) -> Change {
        if let Some(end) = change.item.as_mut().and_then(|item| item.expires_at.as_mut()) {
            *end = Timestamp::from_micros(end.as_micros().saturating_add(self.passed));
        }
        change
    }
}

impl VersionedStores {
    async fn base(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Option<Base>, Error> {
        let Some((base, upto)) = self.store.versioned_base(ledger).await? else { return Ok(None) };
        // What a branch remembers is named after it.
        let fork = self.store.run(&RunId::new(&ledger.scope)).await?.and_then(|row| row.origin);
        let passed = match (fork, lens.at) {
            // Whoever looks at a moment before the fork looks at the time of the source.
            (Some(Origin { at, moment: Some(moment), .. }), Some(looked)) if looked >= at => {
                at.as_micros().saturating_sub(moment.as_micros()).max(0)
            }
            _ => 0,
        };
        Ok(Some(Base { ledger: base, upto, passed }))
    }
}

/// Everything there is by now.
pub(crate) fn latest(at: Timestamp) -> ReadView {
    // The store counts in signed integers.
    ReadView::at(i64::MAX.unsigned_abs(), at)
}

/// The part of a view that the store can answer. Changes that are on disk by the time it is asked but were not when
/// `ahead` was taken must not show up twice or early.
fn up_to(lens: &ReadView, committed: u64) -> ReadView {
    let own = lens.own.as_ref().map(|(run, upto)| (run.clone(), (*upto).min(committed)));
    ReadView { version: lens.version.min(committed), own, ..lens.clone() }
}
