//! The accounts of trees that are in memory.

use crate::services::budgets::account::Account;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use baton_model::RunId;
use baton_store::WriteChain;
use dashmap::{DashMap, Entry};
use parking_lot::Mutex;

use crate::keyed_locks::LoadLocks;

/// An account, and what the writes that were charged to it are links of. Should that break, some of them are lost, and
/// nobody goes on with the account.
struct OpenAccount {
    account: Weak<Account>,
    chain: Arc<WriteChain>,
}

/// The accounts of one generation, by the tree's first run. What was charged for records that are lost goes with them:
/// whoever comes back reads the account anew.
#[derive(Default)]
pub(crate) struct Budgets {
    accounts: DashMap<RunId, OpenAccount>,
    /// Those opened lately, oldest first: while a tree's runs come and go, its logs are not read again for each of them.
    kept: Mutex<VecDeque<Arc<Account>>>,
    /// How many there may be before those whose trees are gone are swept out.
    sweep_at: AtomicUsize,
    /// One at a time is read from disk.
    pub(crate) reading: LoadLocks,
}

impl Budgets {
    /// The account of a tree, as long as its writes are links of this chain.
    pub(crate) fn get(&self, root: &RunId, chain: &Arc<WriteChain>) -> Option<Arc<Account>> {
        self.accounts.get(root).filter(|open| Arc::ptr_eq(&open.chain, chain)).and_then(|open| open.account.upgrade())
    }

    /// Some of what was charged was lost. An account that was opened since goes by what is on disk, and stays.
    pub(crate) fn forget_lost(&self, root: &RunId) {
        let forgotten = self.accounts.remove_if(root, |_, open| open.chain.is_broken());
        if let Some(account) = forgotten.and_then(|(_, open)| open.account.upgrade()) {
            self.kept.lock().retain(|kept| !Arc::ptr_eq(kept, &account));
        }
    }

    /// The tree is another host's to drive, and to charge.
    pub(crate) fn forget(&self, root: &RunId) {
        self.kept.lock().retain(|account| account.root() != root);
        self.accounts.remove(root);
    }

    /// The account that runs of this chain go by. If the chain is broken by now, they are lost, and the account with them:
    /// nobody else finds it.
    pub(crate) fn open(&self, chain: &Arc<WriteChain>, account: Account) -> Arc<Account> {
        let account = Arc::new(account);
        if self.accounts.len() > self.sweep_at.load(Ordering::Relaxed).max(FEW) {
            self.accounts.retain(|_, open| open.account.strong_count() > 0);
            self.sweep_at.store(2 * self.accounts.len(), Ordering::Relaxed);
        }
        {
            let entry = self.accounts.entry(account.root().clone());
            if chain.is_broken() && matches!(entry, Entry::Occupied(_)) {
                return account;
            }
            entry.insert(OpenAccount { account: Arc::downgrade(&account), chain: Arc::clone(chain) });
        }
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

#[cfg(test)]
mod tests {
    use baton_model::Budget;
    use baton_store::CommitError;

    use super::*;

    fn account(root: &RunId) -> Account {
        Account::new(root.clone(), Budget::default(), Arc::default())
    }

    /// Between the moment when writes are lost and the one when that is looked after, a run of the tree may be loaded. It
    /// does not go by what was charged for lost writes, and its account is everybody's from then on.
    #[test]
    fn a_tree_that_lost_writes_has_one_account_from_then_on() {
        let (budgets, root) = (Budgets::default(), RunId::new("r"));
        let chain = || Arc::new(WriteChain::of_tree(root.clone()));
        let (before, after) = (chain(), chain());
        let lost = budgets.open(&before, account(&root));
        assert!(budgets.get(&root, &before).is_some_and(|known| Arc::ptr_eq(&known, &lost)));
        before.break_off(&CommitError::Stale);
        assert!(budgets.get(&root, &after).is_none(), "it has charges for what was lost");
        let next = budgets.open(&after, account(&root));
        // Somebody who began to read before, and is late.
        budgets.open(&before, account(&root));
        budgets.forget_lost(&root);
        let known = budgets.get(&root, &after);
        assert!(known.is_some_and(|known| Arc::ptr_eq(&known, &next)), "one account, and not a third");
        after.break_off(&CommitError::Stale);
        budgets.forget_lost(&root);
        assert!(budgets.get(&root, &after).is_none());
    }
}
