//! The accounts of trees that are in memory.

use crate::services::budgets::account::Account;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use baton_model::RunId;
use dashmap::DashMap;
use parking_lot::Mutex;

use crate::keyed_locks::LoadLocks;

/// The accounts of one generation, by the tree's first run. What was charged for records that are lost goes with them:
/// whoever comes back reads the account anew.
#[derive(Default)]
pub(crate) struct Budgets {
    accounts: DashMap<RunId, Weak<Account>>,
    /// Those opened lately, oldest first: while a tree's runs come and go, its logs are not read again for each of them.
    kept: Mutex<VecDeque<Arc<Account>>>,
    /// How many there may be before those whose trees are gone are swept out.
    sweep_at: AtomicUsize,
    /// One at a time is read from disk.
    pub(crate) reading: LoadLocks,
}

impl Budgets {
    pub(crate) fn get(&self, root: &RunId) -> Option<Arc<Account>> {
        self.accounts.get(root).and_then(|account| account.upgrade())
    }

    /// The tree is another host's to drive, and to charge.
    pub(crate) fn forget(&self, root: &RunId) {
        self.kept.lock().retain(|account| account.root() != root);
        self.accounts.remove(root);
    }

    pub(crate) fn open(&self, account: Account) -> Arc<Account> {
        let account = Arc::new(account);
        if self.accounts.len() > self.sweep_at.load(Ordering::Relaxed).max(FEW) {
            self.accounts.retain(|_, one| one.strong_count() > 0);
            self.sweep_at.store(2 * self.accounts.len(), Ordering::Relaxed);
        }
        self.accounts.insert(account.root().clone(), Arc::downgrade(&account));
        let mut kept = self.kept.lock();
        kept.push_back(Arc::clone(&account));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        account
    }
}

/// Sweeping fewer is not worth it.
pub(crate) const FEW: usize = 64;

/// How many accounts stay in memory though no run of their tree does.
pub(crate) const KEPT: usize = 256;
