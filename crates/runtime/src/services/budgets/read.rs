//! Reading an account back from the logs of its tree.

use std::sync::Arc;

use baton_engine::{Command, RunState};
use baton_model::budget::{Dimension, nanos};
use baton_model::{Amount, Event, NodeId, RunId, code};
use baton_store::{RunFilter, RunRow, Store};

use super::Account;
use super::account::BudgetTotals;
use crate::clock::{Clock, RETRY_MS};
use crate::history::log::RunLog;
use crate::journal::generation::Generation;
use crate::ports::{Port, TellRuns};
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::Cause;
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
        state: &RunState,
        row: &RunRow,
    ) -> Result<Option<Arc<Account>>, Error> {
        let Some(budget) = state.budget().filter(|_| !state.status().is_terminal()) else { return Ok(None) };
        let root = row.root.as_ref().unwrap_or(&row.id);
        if let Some(account) = live.budgets.get(root) {
            return Ok(Some(account));
        }
        let _one_at_a_time = live.budgets.reading.lock(root).await;
        if let Some(account) = live.budgets.get(root) {
            return Ok(Some(account));
        }
        let mut book = BudgetTotals::new(budget.ceilings);
        if let Some(first) = self.store.run(root).await? {
            self.read_into(&mut book, &first, live, row).await?;
        }
        let mut filter = RunFilter { root: Some(root.clone()), limit: PAGE, ..RunFilter::default() };
        loop {
            let page = self.store.runs(&filter).await?;
            for below in &page.items {
                self.read_into(&mut book, below, live, row).await?;
            }
            match page.next {
                Some(next) => filter.cursor = Some(next),
                None => break,
            }
        }
        let account = live.budgets.open(Account::with(root.clone(), budget.clone(), book, self.in_flight.of(root)));
        // Somebody may have been answered, and died before telling the others.
        self.tell_decided(account.take_decided());
        Ok(Some(account))
    }

    /// `whom` is the run that is being loaded: what it cannot be loaded for is its failure.
    async fn read_into(
        &self,
        book: &mut BudgetTotals,
        row: &RunRow,
        live: &Generation,
        whom: &RunRow,
    ) -> Result<(), Error> {
        let inherited = row.origin.as_ref().map_or(0, |origin| origin.seq);
        let own_budget = row.origin.as_ref().is_some_and(|origin| origin.overlay.budget.is_some());
        let mut next = 0;
        while next < row.next_seq {
            let page = self.log.log(row, next, PAGE).await?;
            if page.is_empty() {
                break;
            }
            let turn = self.pool.turn(&whom.tenant).await;
            let read = self.pool.guarded(&turn, Stepping::of(whom, WorkKind::Account), || {
                for stored in &page {
                    let event = stored.decode(&row.id)?.event;
                    match &event {
                        // A branch that was given a budget has that one.
                        Event::BudgetReserved(_) if own_budget && stored.seq < inherited => {}
                        // What the runs below its source had used counts too, as far as the source knew.
                        Event::BudgetConsumed(said) if stored.seq < inherited => {
                            book.at_least(said.dimension, units(said.dimension, said.consumed));
                        }
                        event => book.read(&row.id, event),
                    }
                }
                Ok::<(), Error>(())
            });
            drop(turn);
            match read {
                Ok(read) => read?,
                Err(panic) => {
                    self.quarantine.broke(live, whom, Cause::StepFailed, &panic);
                    let message = "What this run has spent could not be read back.";
                    return Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, message));
                }
            }
            next += page.len() as u64;
        }
        if row.status.is_terminal() {
            book.forget_questions(&row.id);
        }
        Ok(())
    }
}

fn units(dimension: Dimension, amount: Amount) -> u64 {
    match (dimension, amount) {
        (Dimension::Cost, amount) => nanos(amount.as_f64()),
        (_, Amount::Whole(n)) => n,
        (_, Amount::Part(n)) => n as u64,
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
                () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => {}
                () = self.tasks.stop.cancelled() => return,
            }
        }
    }
}
