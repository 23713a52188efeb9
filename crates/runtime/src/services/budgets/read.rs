//! Adding an account up: from what is noted of the runs of its tree, and from the records behind the notes.

use std::collections::HashMap;
use std::sync::Arc;

use baton_engine::{Command, RunState};
use baton_model::{Budget, NodeId, RunId, code};
use baton_store::{RunFilter, RunRow, SpendingRow, Store, WriteChain};

use super::Account;
use super::account::BudgetTotals;
use super::spending::{LiveSpending, RunSpending};
use crate::clock::{Clock, RETRY_MS};
use crate::history::log::{PAGE_BYTES, RunLog};
use crate::journal::generation::Generation;
use crate::ports::{Port, TellRuns};
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::Cause;
use crate::run::tree::root_of;
use crate::services::budgets::AllInFlight;
use crate::steps::{StepPool, Stepping, WorkKind};
use crate::tasks::Tasks;
use crate::{Error, ErrorKind};

/// Records that are read in one turn.
const PAGE: usize = 1000;

/// Reads back what trees have spent, and tells runs what was decided about it.
pub(crate) struct BudgetAccounts {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) in_flight: Arc<AllInFlight>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) runs: Port<dyn TellRuns>,
}

impl BudgetAccounts {
    /// The account of the tree that a run on disk belongs to. Called before the run is in memory: as long as none of its
    /// tree is, nothing can be spent that is not on disk.
    pub(crate) async fn account_of(
        self: &Arc<Self>,
        live: &Generation,
        chain: &Arc<WriteChain>,
        state: &RunState,
        row: &RunRow,
    ) -> Result<Option<Arc<Account>>, Error> {
        let Some(budget) = state.budget().filter(|_| !state.status().is_terminal()) else { return Ok(None) };
        let root = root_of(row);
        if let Some(account) = live.budgets.get(root, chain) {
            return Ok(Some(account));
        }
        let _one_at_a_time = live.budgets.reading.lock(root).await;
        if let Some(account) = live.budgets.get(root, chain) {
            return Ok(Some(account));
        }
        let book = self.added_up(live, budget, row).await?;
        let account = Account::with(root.clone(), budget.clone(), book, self.in_flight.of(root));
        let account = live.budgets.open(chain, account);
        // Somebody may have been answered, and died before telling the others.
        self.tell_decided(account.take_decided());
        Ok(Some(account))
    }

    /// The account of a tree that another host drives, as far as its logs say. Nothing is charged to it here.
    pub(crate) async fn account_elsewhere(
        &self,
        live: &Generation,
        state: &RunState,
        row: &RunRow,
    ) -> Result<Option<Arc<Account>>, Error> {
        let Some(budget) = state.budget().filter(|_| !state.status().is_terminal()) else { return Ok(None) };
        let root = root_of(row);
        let book = self.added_up(live, budget, row).await?;
        Ok(Some(Arc::new(Account::with(root.clone(), budget.clone(), book, self.in_flight.of(root)))))
    }

    /// What all runs of a tree have spent. `row` is one of them.
    async fn added_up(&self, live: &Generation, budget: &Budget, row: &RunRow) -> Result<BudgetTotals, Error> {
        let root = root_of(row);
        let mut book = BudgetTotals::new(budget.ceilings);
        // Before the rows, so that none is ahead of its run's.
        let mut notes = self.notes_of(root).await?;
        if let Some(first) = self.store.run(root).await? {
            let spent = self.spending_of(&first, notes.remove(root), live, row).await?;
            book.add(&first, &spent.total);
        }
        let mut filter = RunFilter { root: Some(root.clone()), limit: PAGE, ..RunFilter::default() };
        loop {
            let page = self.store.runs(&filter).await?;
            for below in &page.items {
                let spent = self.spending_of(below, notes.remove(&below.id), live, row).await?;
                book.add(below, &spent.total);
            }
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => break,
            }
        }
        Ok(book)
    }

    /// What a run that is being loaded has spent so far, if its tree has an account.
    pub(crate) async fn own_spending(&self, live: &Generation, row: &RunRow) -> Result<LiveSpending, Error> {
        let note = self.store.run_spending(&row.id).await?;
        self.spending_of(row, note, live, row).await
    }

    async fn notes_of(&self, root: &RunId) -> Result<HashMap<RunId, SpendingRow>, Error> {
        let mut notes = HashMap::new();
        let mut after: Option<RunId> = None;
        loop {
            let page = self.store.spending(root, after.as_ref(), PAGE).await?;
            after = page.last().map(|last| last.run.clone());
            let last = page.len() < PAGE;
            notes.extend(page.into_iter().map(|note| (note.run.clone(), note)));
            if last {
                return Ok(notes);
            }
        }
    }

    /// What is noted of a run, and the records behind it. `whom` is the run that is being loaded: what it cannot be loaded
    /// for is its failure.
    async fn spending_of(
        &self,
        row: &RunRow,
        note: Option<SpendingRow>,
        live: &Generation,
        whom: &RunRow,
    ) -> Result<LiveSpending, Error> {
        let inherited = row.origin.as_ref().map_or(0, |origin| origin.seq);
        let own_budget = row.origin.as_ref().is_some_and(|origin| origin.overlay.budget.is_some());
        let (mut spent, noted) = note.and_then(|note| RunSpending::of_note(&note, row)).unwrap_or_default();
        let mut next = noted;
        while next < row.next_seq {
            let page = self.log.log_within(row, next, PAGE, PAGE_BYTES).await?;
            if page.is_empty() {
                break;
            }
            let (whom_now, run) = (whom.clone(), row.id.clone());
            // Also for whoever loads a run from elsewhere: what a log holds is its tenant's.
            let read = move |pool: Arc<StepPool>| async move {
                let turn = pool.turn(&whom_now.tenant).await;
                Ok(pool.guarded(&turn, Stepping::of(&whom_now, WorkKind::Account), || {
                    for stored in &page {
                        let event = stored.decode(&run)?.event;
                        if stored.seq < inherited {
                            spent.read_inherited(&event, own_budget);
                        } else {
                            spent.read(&event);
                        }
                    }
                    Ok::<_, Error>((spent, page.len() as u64))
                }))
            };
            let read = self.pool.on_step_threads(&self.pool, read).await?;
            match read {
                Ok(read) => {
                    let (sum, records) = read?;
                    spent = sum;
                    next += records;
                }
                Err(panic) => {
                    self.quarantine.broke(live, whom, Cause::StepFailed, &panic);
                    let message = "What this run has spent could not be read back.";
                    return Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, message));
                }
            }
        }
        Ok(LiveSpending::new(spent, noted))
    }
}

impl BudgetAccounts {
    /// One answer decides every question about the budget in the tree.
    pub(crate) fn tell_decided(self: &Arc<Self>, decided: Vec<(RunId, NodeId, bool)>) {
        for (run, node, extended) in decided {
            self.tasks.spawn(self, |room| async move { room.tell_one(&run, node, extended).await });
        }
    }

    async fn tell_one(&self, run: &RunId, node: NodeId, extended: bool) {
        loop {
            let told = async {
                let command = Command::BudgetDecided { node: node.clone(), extended };
                match self.runs.get() {
                    Some(runs) => runs.tell(run.clone(), command).await,
                    None => Ok(()),
                }
            };
            match told.await {
                Err(error) if error.kind == ErrorKind::Unavailable => {}
                Err(error) => {
                    tracing::warn!(%run, %node, %error, "a run could not be told about its budget");
                    return;
                }
                Ok(()) => return,
            }
            tokio::select! {
                biased;
                () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => {}
                () = self.tasks.stop.cancelled() => return,
            }
        }
    }
}
