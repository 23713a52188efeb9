//! A step is paid for before it is folded. One that costs more than is left is decided again, knowing that.

use baton_engine::{Command, Unaffordable, decide};
use baton_model::{Draft, Timestamp, code};

use crate::run::batch::Batch;
use crate::run::live::LiveRun;
use crate::run::refused;
use crate::run::stepper::RunStepper;
use crate::services::budgets::account::Charged;
use crate::{Error, ErrorKind};

impl RunStepper {
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
                        return Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, message));
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
        self.budgets.tell_decided(decided);
        Ok(())
    }
}
