//! A second executor of a run, for tests: what happens when a run is taken up again whose owner only seemed to be gone.
//! It reads the log by itself and wants of the world what follows from it, the way a head does that comes back into
//! memory.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_model::RunId;

use crate::Error;
use crate::inner::Inner;
use crate::run::world::{Generation, LiveRun};

/// An executor that has come to the call its run waits for, and has not made it yet.
pub struct SecondExecutor {
    inner: Arc<Inner>,
    world: Arc<Generation>,
    head: LiveRun,
    key: String,
}

impl SecondExecutor {
    pub(crate) async fn new(inner: &Arc<Inner>, run: &RunId) -> Result<Self, Error> {
        let world = inner.world()?;
        let (state, row) = inner.fold_singly(run).await?.ok_or_else(Error::run_not_found)?;
        let key = state.wanted_tool_calls().into_iter().next().map(|call| call.key);
        let key = key.ok_or_else(|| Error::unavailable("The run waits for no call."))?;
        let head = inner.head_of(&world, state, row).await?;
        Ok(Self { inner: Arc::clone(inner), world, head, key })
    }

    /// Wants the call of the world, and returns the key that was made for it.
    pub fn call(self) -> String {
        let Self { inner, world, mut head, key } = self;
        inner.see_to_effects(world.generation, &mut head, &mut VecDeque::new(), inner.clock.now());
        key
    }
}
