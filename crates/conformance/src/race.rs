//! Several executors of one run at once: what happens when a run is taken up again whose owner only seemed to be gone.

use std::sync::Arc;
use std::time::Duration;

use baton_model::{RunId, TenantId};
use baton_runtime::{Error, Host};
use futures_util::future::try_join_all;
use tokio::sync::Barrier;

use crate::mode::Conformance;

/// How long a run may take to get to its effect.
const STALLED_WITHIN: Duration = Duration::from_secs(10);

impl Conformance {
    /// How often a run has really reached outwards in this process: tools, HTTP, children on other hosts.
    pub async fn effect_count(&self, host: &Host, tenant: &TenantId, run: &RunId) -> Result<u64, Error> {
        host.owns(tenant, run).await?;
        Ok(self.calls.of(run))
    }

    /// Has several executors reach a run's next effect, and returns the key that each of them made for it. The first is the
    /// run's own, stalled just before the effect; `go` lets the run get there.
    pub async fn race_effect(
        &self,
        host: &Host,
        tenant: &TenantId,
        run: &RunId,
        executors: usize,
        go: impl Future<Output = Result<(), Error>>,
    ) -> Result<Vec<String>, Error> {
        host.owns(tenant, run).await?;
        let hold = self.calls.hold(run);
        go.await?;
        let reached = tokio::time::timeout(STALLED_WITHIN, hold.reached()).await;
        let first = reached.map_err(|_| Error::unavailable("The run did not come to its effect in time."))?;
        let mut keys = vec![first];
        keys.extend(race(host, run, executors.saturating_sub(1)).await?);
        Ok(keys)
    }
}

/// The keys that the executors made for the call that the run waits for. Nobody waits for anybody after the start.
async fn race(host: &Host, run: &RunId, executors: usize) -> Result<Vec<String>, Error> {
    let start = Arc::new(Barrier::new(executors.max(1)));
    let races = (0..executors).map(|_| {
        let (host, run, start) = (host.clone(), run.clone(), Arc::clone(&start));
        let executor = tokio::spawn(async move {
            let prepared = host.second_executor(&run).await;
            // Even one that could not read the log: the others wait for it.
            start.wait().await;
            Ok(prepared?.call())
        });
        async move { executor.await.map_err(|_| Error::unavailable("An executor ended early."))? }
    });
    try_join_all(races).await
}
