//! Whose call of a model provider comes next. A provider has so many calls open at the same time, and tenants that wait
//! take turns: one that asks for thousands of calls leaves room for another's.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::TenantId;
use baton_tool::{CallQueue, CallTurn};

use crate::Error;
use crate::services::models::providers::Models;

/// Calls of one provider that are open at the same time, unless the operator says otherwise: about what a vendor takes from
/// one customer, and some tens of megabytes of answers that are being read.
pub(crate) const MODEL_CALLS: usize = 1024;
/// Calls of one provider that wait for their turn. As many trees as one tenant may have at work, and each is a small task.
const WAITING_CALLS: usize = 200_000;

/// The open and waiting calls of every provider.
pub(crate) struct ModelTurns(BTreeMap<String, Arc<CallQueue>>);

impl ModelTurns {
    pub(crate) fn new(models: &Models, most_open: usize) -> Self {
        let queue = |name: &str| (name.to_owned(), Arc::new(CallQueue::new(most_open, WAITING_CALLS)));
        Self(models.names().map(queue).collect())
    }

    /// Leave for a call, when its turn comes. `None` for a provider that is not here: asking it fails by itself.
    pub(crate) async fn turn(&self, provider: &str, tenant: &TenantId) -> Result<Option<ModelTurn>, Error> {
        let Some(queue) = self.0.get(provider) else { return Ok(None) };
        let turn = queue.turn(tenant).await;
        let turn = ModelTurn { turn, queue: Arc::clone(queue), provider: provider.to_owned() };
        turn.show();
        match turn.turn {
            Some(_) => Ok(Some(turn)),
            None => Err(Error::unavailable("Too many calls wait for this model provider.")),
        }
    }
}

/// Leave to make one call. Given back when dropped.
pub(crate) struct ModelTurn {
    turn: Option<CallTurn>,
    queue: Arc<CallQueue>,
    provider: String,
}

impl ModelTurn {
    fn show(&self) {
        let (open, waiting) = self.queue.counts();
        metrics::gauge!("baton_model_calls_open", "provider" => self.provider.clone()).set(open as f64);
        metrics::gauge!("baton_model_calls_waiting", "provider" => self.provider.clone()).set(waiting as f64);
    }
}

impl Drop for ModelTurn {
    fn drop(&mut self) {
        drop(self.turn.take());
        self.show();
    }
}
