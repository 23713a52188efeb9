//! A step is paid for before it is folded. One that costs more than is left is decided again, knowing that.

use baton_engine::{Command, Unaffordable, decide};
use baton_model::{Draft, NodeId, RunId, Timestamp, code};

use super::account::Charged;
use crate::inner::{Inner, RETRY_MS};
use crate::run::world::LiveRun;
use crate::run::{Batch, refused};
use crate::{Error, Kind};

impl Inner {
    /// Folds a step that costs something, and what is to be said about that.
    pub(crate) fn pay_and_fold(
        &self,
        head: &mut LiveRun,
        drafts: Vec<Draft>,
        at: Timestamp,
        batch: &mut Batch,
        outside: bool,
    ) -> Result<(), Error> {
        let Some(account) = head.account.clone() else { return self.fold_paid(head, drafts, at, batch, outside) };
        let (mut drafts, mut outside) = (drafts, outside);
        let charged = loop {
            match account.charge(&head.row.id, &drafts) {
                Ok(charged) => break charged,
                // Somebody else may take what is left in the meantime; there is always less of it.
                Err(short) => {
                    metrics::counter!("baton_budget_refusals_total", "dimension" => short.dimension.as_str())
                        .increment(1);
                    let what = Box::new(Unaffordable::Step { drafts });
                    let command = Command::OutOfBudget { what, short: Box::new(short) };
                    drafts = decide(&head.state, &command, at).map_err(refused)?;
                    // What was left is not this run's to find out again.
                    outside = true;
                    if drafts.is_empty() {
                        head.gone = true;
                        let message = "The run could not go on.";
                        return Err(Error::new(Kind::Internal, code::INTERNAL_ERROR, message));
                    }
                }
            }
        };
        if let Err(error) = self.fold_paid(head, drafts, at, batch, outside) {
            account.refund(&charged);
            return Err(error);
        }
        let Charged { spent, node, decided, .. } = charged;
        if let Some(node) = node.filter(|_| !spent.is_empty()) {
            let said = decide(&head.state, &Command::Spent { node, spent }, at).map_err(refused)?;
            if !said.is_empty() {
                self.fold_paid(head, said, at, batch, true)?;
            }
        }
        self.tell_decided(decided);
        Ok(())
    }

    /// One answer decides every question about the budget in the tree.
    pub(super) fn tell_decided(&self, decided: Vec<(RunId, NodeId, bool)>) {
        for (run, node, extended) in decided {
            self.spawn(|inner| async move { inner.tell_one(&run, node, extended).await });
        }
    }

    async fn tell_one(&self, run: &RunId, node: NodeId, extended: bool) {
        loop {
            let told = async {
                let world = self.world()?;
                let command = Command::BudgetDecided { node: node.clone(), extended };
                self.command(&world, run, command, None).await.map(|_| ())
            };
            match told.await {
                Err(error) if error.kind == Kind::Unavailable => {}
                Err(error) => {
                    tracing::warn!(%run, %node, %error, "a run could not be told about its budget");
                    return;
                }
                Ok(()) => return,
            }
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }
}
