//! A second executor of a run, for tests: what happens when a run is taken up again whose owner only seemed to be gone.
//! It reads the log by itself and wants of the world what follows from it, the way a live run does that comes back into
//! memory.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_model::RunId;

use crate::Error;
use crate::history::log::{Loaded, RunLog};
use crate::run::live::LiveRun;
use crate::run::stepper::RunStepper;
use crate::run::tree::root_of;

/// An executor that has come to the call its run waits for, and has not made it yet.
pub struct SecondExecutor {
    stepper: Arc<RunStepper>,
    head: LiveRun,
    key: String,
}

impl SecondExecutor {
    pub(crate) async fn new(stepper: &Arc<RunStepper>, log: &Arc<RunLog>, run: &RunId) -> Result<Self, Error> {
        let live = stepper.storage.live()?;
        let Loaded { state, row, .. } = log.fold_singly(run).await?.ok_or_else(Error::run_not_found)?;
        let key = state.wanted_tool_calls().into_iter().next().map(|call| call.key);
        let key = key.ok_or_else(|| Error::unavailable("The run waits for no call."))?;
        let head = stepper.loader.head_of(&live, live.chain(root_of(&row)), state, row).await?;
        Ok(Self { stepper: Arc::clone(stepper), head, key })
    }

    /// Wants the call of the world, and returns the key that was made for it.
    pub fn call(self) -> String {
        let Self { stepper, mut head, key } = self;
        stepper.see_to_effects(&mut head, &mut VecDeque::new(), stepper.clock.now());
        key
    }
}
