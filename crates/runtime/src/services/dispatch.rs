//! What runs want of the world goes to the room that sees to it.

use std::sync::Arc;

use baton_engine::RemoteChildTask;
use baton_model::RunId;
use baton_store::WriteChain;

use crate::ports::EffectSink;
use crate::services::children::remote::service::RemoteChildren;
use crate::services::models::Wanted;
use crate::services::models::service::ModelCalls;

/// Passes on what runs want of the world.
pub(crate) struct EffectDispatch {
    pub(crate) model_calls: Arc<ModelCalls>,
    pub(crate) remotes: Arc<RemoteChildren>,
}

impl EffectSink for EffectDispatch {
    fn see_to_calls(&self, chain: &Arc<WriteChain>, run: &RunId, count: u64, wanted: Vec<Wanted>) {
        self.model_calls.see_to_calls(chain, run, count, wanted);
    }

    fn see_to_remote_children(
        &self,
        chain: &Arc<WriteChain>,
        run: &RunId,
        count: u64,
        paused: bool,
        wanted: Vec<RemoteChildTask>,
    ) {
        self.remotes.see_to_remote_children(chain, run, count, paused, wanted);
    }
}
