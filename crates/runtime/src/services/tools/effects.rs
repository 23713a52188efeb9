//! How often a run has reached outwards, for conformance suites: a log cannot tell a call that was made again from one
//! that was answered from the record. Counted where the call leaves, behind everything that may keep it back. There a call
//! can be held too, as if whoever makes it had stalled.

use std::sync::{Arc, OnceLock};

use baton_model::tool::{ToolOutcome, ToolRequest};
use baton_model::{RunId, native};
use baton_tool::Called;
use dashmap::DashMap;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::inner::Inner;

/// Calls that left, by run. Nothing is counted outside conformance mode.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    counts: DashMap<RunId, u64>,
    holds: DashMap<RunId, Arc<Gate>>,
}

#[derive(Debug, Default)]
struct Gate {
    /// The key of the call that stands here.
    key: OnceLock<String>,
    reached: CancellationToken,
    open: CancellationToken,
}

/// Holds a run's next conformance effect until it is dropped.
pub(crate) struct Hold {
    inner: Arc<Inner>,
    run: RunId,
    gate: Arc<Gate>,
}

impl Hold {
    pub(crate) fn new(inner: &Arc<Inner>, run: &RunId) -> Self {
        let gate = Arc::<Gate>::default();
        inner.effects.holds.insert(run.clone(), Arc::clone(&gate));
        Self { inner: Arc::clone(inner), run: run.clone(), gate }
    }

    /// The key of the call, once it stands here.
    pub(crate) async fn reached(&self) -> String {
        self.gate.reached.cancelled().await;
        self.gate.key.get().cloned().unwrap_or_default()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.inner.effects.holds.remove_if(&self.run, |_, gate| Arc::ptr_eq(gate, &self.gate));
        self.gate.open.cancel();
    }
}

impl Inner {
    /// Something is on its way out on behalf of this run; whether it arrives does not matter.
    pub(crate) fn reaches_out(&self, run: &RunId) {
        if self.options.conformance {
            *self.effects.counts.entry(run.clone()).or_default() += 1;
        }
    }

    pub(crate) fn effects_of(&self, run: &RunId) -> u64 {
        self.effects.counts.get(run).map_or(0, |count| *count)
    }

    /// The one tool that conformance mode has beside the toolbox. What it does to the world is a line for the operator.
    pub(super) async fn really_call(&self, run: &RunId, request: &ToolRequest) -> Called {
        self.reaches_out(run);
        if self.options.conformance && request.tool == native::CONFORMANCE_EFFECT {
            let gate = self.effects.holds.get(run).map(|gate| Arc::clone(&gate));
            if let Some(gate) = gate {
                // Whoever came first stays the one that is asked about.
                let _ = gate.key.set(request.key.clone());
                gate.reached.cancel();
                gate.open.cancelled().await;
            }
            tracing::info!(%run, key = request.key, "a conformance workflow has its effect");
            return Called::Done(ToolOutcome::ok(json!({"emitted": true})));
        }
        self.options.tools.call(request).await
    }
}
