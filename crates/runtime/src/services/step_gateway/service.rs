//! Who serves the programs that have steps in hand, and what it may use for that.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_engine::{RunState, StepWork};
use baton_model::{Digest, Record, Secret, Timestamp, code};
use baton_store::{RunRow, StepState, Store};

use super::dispatches::Dispatches;
use crate::clock::Clock;
use crate::cluster::forward::Forwarding;
use crate::history::log::RunLog;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::run::load::RunLoader;
use crate::run::reads::RunReads;
use crate::services::budgets::read::BudgetAccounts;
use crate::services::models::service::ModelCalls;
use crate::services::runners::board::{Board, LeaseOf};
use crate::services::runners::names::step_key;
use crate::services::runners::rows::{Step, StepBody};
use crate::services::runners::step_token::{self, StepClaims};
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Options};

/// Answers programs that have steps in hand.
pub(crate) struct StepGateway {
    pub(crate) runner_board: Arc<Board>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) budgets: Arc<BudgetAccounts>,
    pub(crate) forwarding: Arc<Forwarding>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) model_calls: Arc<ModelCalls>,
    pub(crate) reads: Arc<RunReads>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) dispatches: Arc<Dispatches>,
    /// One value of a step after the other.
    pub(crate) keeping: LoadLocks,
}

/// A step that a runner has, and its program's dispatch of it.
#[derive(Clone)]
pub(super) struct LeasedStep {
    pub(super) key: String,
    pub(super) step: Arc<Step>,
    pub(super) dispatch: Digest,
    pub(super) ends_at: Timestamp,
}

impl StepGateway {
    /// Which step a token is for. Whether a runner still has it is asked with every call.
    pub(crate) fn claims(&self, token: &str) -> Option<StepClaims> {
        step_token::verify(&self.options.link_secrets, token)
    }

    /// The models that are known by name. Others of the same providers can be asked, too.
    pub(crate) fn models(&self) -> BTreeSet<String> {
        let models = &self.model_calls.models;
        let chosen = self.options.model_table.choices().map(|choice| format!("{}/{}", choice.provider, choice.model));
        let priced = self.options.prices.names().map(str::to_owned);
        let known = |name: &String| name.split_once('/').is_some_and(|(provider, _)| models.get(provider).is_some());
        chosen.chain(priced).filter(known).collect()
    }

    /// The step of a token, if it is with its runner at this moment. Another host may have given it away: then its row
    /// counts.
    pub(super) async fn leased(&self, claims: &StepClaims) -> Result<LeasedStep, Error> {
        let (key, now) = (step_key(&claims.run_id, &claims.step_id), self.clock.now());
        let (step, ends_at) = match self.runner_board.lease_of(&key, &claims.runner, claims.seq, now) {
            LeaseOf::Leased(step, ends_at) => (step, ends_at),
            LeaseOf::Over => return Err(not_leased()),
            LeaseOf::NotHere if self.storage.shared().is_none() => return Err(not_leased()),
            LeaseOf::NotHere | LeaseOf::Elsewhere => {
                let row = self.store.step(&key).await?.filter(|row| row.state == StepState::Leased);
                let body = row.as_ref().and_then(StepBody::read).ok_or_else(not_leased)?;
                let has = |given: &crate::services::runners::rows::Given| {
                    given.runner == claims.runner && given.seq == claims.seq
                };
                if !body.given.last().is_some_and(has) {
                    return Err(not_leased());
                }
                let ends_at = now.plus_millis(body.step.timeout_ms);
                (Arc::new(body.step), ends_at)
            }
        };
        if step.node.as_str().is_empty() || step.tenant != claims.tenant {
            return Err(not_leased());
        }
        Ok(LeasedStep { key, step, dispatch: claims.dispatch(), ends_at })
    }

    /// The run as it is on disk.
    pub(super) async fn run_of(&self, leased: &LeasedStep) -> Result<(Arc<RunState>, RunRow), Error> {
        self.reads.committed_state(&leased.step.tenant, &leased.step.run).await
    }

    pub(super) async fn record(&self, row: &RunRow, seq: u64) -> Result<Record, Error> {
        let stored = self.log.log(row, seq, 1).await?.into_iter().next();
        let stored = stored.filter(|stored| stored.seq == seq).ok_or_else(not_leased)?;
        Ok(stored.decode(&row.id)?)
    }
}

/// What a run knows of the step's work, unless it has stopped waiting for the step.
pub(super) fn work_of<'a>(state: &'a RunState, leased: &LeasedStep) -> Result<&'a StepWork, Error> {
    state.step_work(&leased.step.node, &leased.step.step_id).ok_or_else(not_leased)
}

pub(super) fn not_leased() -> Error {
    let message = "The runner does not have this step any more. What is asked or kept now would belong to nobody.";
    Error::new(ErrorKind::Conflict, code::STEP_NOT_LEASED, message)
}
