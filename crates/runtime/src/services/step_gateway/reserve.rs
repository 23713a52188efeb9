//! Setting aside what a step's call of a model may cost, before it is made. A step whose budget is used up is told so: a
//! program in the middle of its work can wait for nobody, whatever the budget says about asking people.

use std::sync::Arc;

use baton_engine::{RunState, Shortage};
use baton_model::{ModelRequest, code};
use baton_store::RunRow;
use serde_json::json;

use super::service::{LeasedStep, StepGateway};
use crate::services::budgets::account::Answer;
use crate::services::budgets::{Account, Reservation, estimate};
use crate::{Error, ErrorKind};

impl StepGateway {
    /// Waits while calls in flight may leave more than is there now; the caller bounds the wait.
    pub(super) async fn reserve(
        &self,
        leased: &LeasedStep,
        request: &ModelRequest,
        run: (&RunState, &RunRow),
    ) -> Result<Option<Reservation>, Error> {
        let provider = self.model_calls.models.get(&request.semantic.provider);
        let room = provider.and_then(|provider| provider.room(request)).or(request.semantic.max_output_tokens);
        let estimate = estimate::of(request, room, &self.options.prices);
        loop {
            // Anew each time: a failed commit ends accounts, and this wait outlives it.
            let Some(account) = self.account(leased, run).await? else { return Ok(None) };
            if let Err(fault) = self.model_calls.permitted(&account, request) {
                metrics::counter!("baton_budget_refusals_total", "dimension" => "model").increment(1);
                let details = fault.details.unwrap_or_default();
                let error = Error::new(ErrorKind::Forbidden, code::BUDGET_MODEL_DENIED, fault.message);
                return Err(Error { details, ..error });
            }
            // Listening before looking: what changes in between is not missed.
            let changed = account.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match account.reserve(&estimate) {
                Answer::Granted(hold) => return Ok(Some(hold)),
                Answer::Short(short) => return Err(exceeded(&short)),
                Answer::Wait => {
                    metrics::counter!("baton_budget_waits_total").increment(1);
                    changed.await;
                }
            }
        }
    }

    /// The account of the run's tree. Where another host drives it, what is on the logs is added up, and what that host has
    /// in flight is not known: it is charged there, with the answer.
    async fn account(
        &self,
        leased: &LeasedStep,
        (state, row): (&RunState, &RunRow),
    ) -> Result<Option<Arc<Account>>, Error> {
        if state.budget().is_none() {
            return Ok(None);
        }
        let live = self.storage.live()?;
        match self.loader.handle(&live, &leased.step.run).await {
            Ok(handle) => Ok(handle.head().await.ok_or_else(Error::stepping)?.account.clone()),
            Err(error) if error.is_elsewhere() => self.budgets.account_elsewhere(&live, state, row).await,
            Err(error) => Err(error),
        }
    }
}

fn exceeded(short: &Shortage) -> Error {
    let dimension = short.dimension;
    metrics::counter!("baton_budget_refusals_total", "dimension" => dimension.as_str()).increment(1);
    let [limit, consumed] = [short.limit, short.consumed].map(|units| json!(dimension.shown(units)));
    let message = format!("The run's budget has not enough left for this call ({}).", dimension.as_str());
    Error::new(ErrorKind::TooMany, code::BUDGET_EXCEEDED, message)
        .with("dimension", dimension.as_str())
        .with("limit", limit)
        .with("consumed", consumed)
}
