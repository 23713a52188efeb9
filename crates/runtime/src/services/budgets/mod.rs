//! What trees of runs spend. One account for each tree that is in memory; every head of the tree holds it, so where one
//! run of a tree is, the account is, and where none is, everything is on disk and the account can be read from there.
//!
//! ```text
//!  model call ──► reserve prompt and room ──► call, held to the room ──► usage on the log: charged ──► given back
//!                    │ calls in flight may leave more: wait                 │ says how much is gone
//!                    └ too little left: the run is told
//!  tool calls, retries: charged when they are decided, before they are on the log
//! ```

mod account;
mod estimate;
mod in_flight;
mod pay;
mod read;
mod resolve;

pub(crate) use account::Account;
pub(crate) use estimate::{cost, has_price};
pub(crate) use in_flight::{AllInFlight, Reservation};

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use baton_engine::{Command, Unaffordable};
use baton_model::{Fault, ModelRequest, RunId, code};
use dashmap::DashMap;
use parking_lot::Mutex;

use self::account::Answer;
use crate::Error;
use crate::inner::Inner;
use crate::run::load::LoadLocks;

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
    reading: LoadLocks,
}

/// Sweeping fewer is not worth it.
const FEW: usize = 64;
/// How many accounts stay in memory though no run of their tree does.
const KEPT: usize = 256;

impl Budgets {
    fn get(&self, root: &RunId) -> Option<Arc<Account>> {
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

/// Whether a model may be called.
pub(crate) enum CallPermission {
    /// It may; what was set aside for it comes back when this is dropped.
    Granted(Option<Reservation>),
    /// It may not, and this is what the run is told.
    Refused(Box<Command>),
}

impl Inner {
    /// Sets aside what a call may use at most. Waits while calls in flight may leave more than is there now; nobody is
    /// refused, or cut short, for what somebody else may yet leave over.
    pub(crate) async fn afford(
        &self,
        run: &RunId,
        request: &ModelRequest,
        (visit, attempt, call): (u32, u32, u32),
    ) -> Result<CallPermission, Error> {
        let Some(account) = self.account_now(run).await? else { return Ok(CallPermission::Granted(None)) };
        let node = request.node.clone();
        if let Err(fault) = self.permitted(&account, request) {
            metrics::counter!("baton_budget_refusals_total", "dimension" => "model").increment(1);
            let reply = Err(fault);
            return Ok(CallPermission::Refused(Box::new(Command::ModelReplied {
                node,
                visit,
                attempt,
                call,
                reply,
                cost_usd: None,
                made: Box::default(),
            })));
        }
        let provider = self.models.get(&request.semantic.provider);
        let room = provider.and_then(|provider| provider.room(request)).or(request.semantic.max_output_tokens);
        let estimate = estimate::of(request, room, &self.options.prices);
        loop {
            // Anew each time: a failed commit ends accounts, and this wait outlives it.
            let Some(account) = self.account_now(run).await? else { return Ok(CallPermission::Granted(None)) };
            // Listening before looking: what changes in between is not missed.
            let changed = account.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match account.reserve(&estimate) {
                Answer::Granted(hold) => return Ok(CallPermission::Granted(Some(hold))),
                Answer::Short(short) => {
                    metrics::counter!("baton_budget_refusals_total", "dimension" => short.dimension.as_str())
                        .increment(1);
                    let what = Box::new(Unaffordable::Call { node, visit, attempt, call });
                    return Ok(CallPermission::Refused(Box::new(Command::OutOfBudget {
                        what,
                        short: Box::new(short),
                    })));
                }
                Answer::Wait => {
                    metrics::counter!("baton_budget_waits_total").increment(1);
                    changed.await;
                }
            }
        }
    }

    async fn account_now(&self, run: &RunId) -> Result<Option<Arc<Account>>, Error> {
        let world = self.world()?;
        let slot = self.slot(&world, run).await?;
        let head = slot.head().await.ok_or_else(Error::stepping)?;
        Ok(head.account.clone())
    }

    /// The rule about models, and that money can be counted where it is bounded.
    fn permitted(&self, account: &Account, request: &ModelRequest) -> Result<(), Fault> {
        let (provider, model) = (request.semantic.provider.as_str(), request.semantic.model.as_str());
        let why = if !account.budget().allows(provider, model) {
            format!("The run's budget does not allow the model `{model}`.")
        } else if account.bounds_money() && !estimate::has_price(&self.options.prices, provider, model) {
            format!("The run's budget bounds what it costs, and the model `{model}` has no price here.")
        } else {
            return Ok(());
        };
        Err(Fault::new(code::BUDGET_MODEL_DENIED, why).with("provider", provider).with("model", model))
    }
}
