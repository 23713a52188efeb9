//! Several executors of one run at once, for conformance suites: what happens when a run is taken up again whose owner
//! only seemed to be gone. Each of them reads the log by itself and wants of the world what follows from it, the way a
//! head does that comes back into memory.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_model::RunId;
use futures_util::future::try_join_all;
use tokio::sync::Barrier;

use crate::Error;
use crate::inner::Inner;
use crate::run::world::{Generation, LiveRun};

impl Inner {
    /// The keys that the executors made for the call that the run waits for. Nobody waits for anybody after the start.
    pub(crate) async fn race(self: &Arc<Self>, run: &RunId, executors: usize) -> Result<Vec<String>, Error> {
        let start = Arc::new(Barrier::new(executors.max(1)));
        let races = (0..executors).map(|_| {
            let (inner, run, start) = (Arc::clone(self), run.clone(), Arc::clone(&start));
            let executor = tokio::spawn(async move { inner.execute(&run, &start).await });
            async move { executor.await.map_err(|_| Error::unavailable("An executor ended early."))? }
        });
        try_join_all(races).await
    }

    async fn execute(&self, run: &RunId, start: &Barrier) -> Result<String, Error> {
        let prepared = self.come_to_call(run).await;
        // Even one that could not read the log: the others wait for it.
        start.wait().await;
        let (world, mut head, key) = prepared?;
        self.see_to_effects(world.generation, &mut head, &mut VecDeque::new(), self.clock.now());
        Ok(key)
    }

    async fn come_to_call(&self, run: &RunId) -> Result<(Arc<Generation>, LiveRun, String), Error> {
        let world = self.world()?;
        let (state, row) = self.fold_singly(run).await?.ok_or_else(Error::run_not_found)?;
        let key = state.wanted_tool_calls().into_iter().next().map(|call| call.key);
        let key = key.ok_or_else(|| Error::unavailable("The run waits for no call."))?;
        let head = self.head_of(&world, state, row).await?;
        Ok((world, head, key))
    }
}
