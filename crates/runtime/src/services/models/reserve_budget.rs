//! Setting aside what a model call may cost, before it is made.

use std::sync::Arc;

use baton_engine::{Command, Unaffordable};
use baton_model::{Fault, ModelRequest, RunId, code};

use crate::Error;
use crate::services::budgets::account::Answer;
use crate::services::budgets::{Account, Reservation, estimate};
use crate::services::models::service::ModelCalls;

impl ModelCalls {
    /// Sets aside what a call may use at most. Waits while calls in flight may leave more than is there now; nobody is
    /// refused, or cut short, for what somebody else may yet leave over.
    pub(crate) async fn reserve_budget(
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
        let live = self.storage.live()?;
        let handle = self.loader.handle(&live, run).await?;
        let head = handle.head().await.ok_or_else(Error::stepping)?;
        Ok(head.account.clone())
    }

    /// The rule about models, and that money can be counted where it is bounded.
    pub(crate) fn permitted(&self, account: &Account, request: &ModelRequest) -> Result<(), Fault> {
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

/// Whether a model may be called.
pub(crate) enum CallPermission {
    /// It may; what was set aside for it comes back when this is dropped.
    Granted(Option<Reservation>),
    /// It may not, and this is what the run is told.
    Refused(Box<Command>),
}
