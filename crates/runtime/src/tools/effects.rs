//! How often a run has reached outwards, for conformance suites: a log cannot tell a call that was made again from one
//! that was answered from the record. Counted where the call leaves, behind everything that may keep it back.

use baton_model::tool::{ToolOutcome, ToolRequest};
use baton_model::{RunId, native};
use baton_tool::Called;
use dashmap::DashMap;
use serde_json::json;

use crate::inner::Inner;

/// Calls that left, by run. Nothing is counted outside conformance mode.
#[derive(Debug, Default)]
pub(crate) struct Effects(DashMap<RunId, u64>);

impl Inner {
    /// Something is on its way out on behalf of this run; whether it arrives does not matter.
    pub(crate) fn reaches_out(&self, run: &RunId) {
        if self.options.conformance {
            *self.effects.0.entry(run.clone()).or_default() += 1;
        }
    }

    pub(crate) fn effects_of(&self, run: &RunId) -> u64 {
        self.effects.0.get(run).map_or(0, |count| *count)
    }

    /// The one tool that conformance mode has beside the toolbox. What it does to the world is a line for the operator.
    pub(super) async fn really_call(&self, run: &RunId, request: &ToolRequest) -> Called {
        self.reaches_out(run);
        if self.options.conformance && request.tool == native::CONFORMANCE_EFFECT {
            tracing::info!(%run, key = request.key, "a conformance workflow has its effect");
            return Called::Done(ToolOutcome::ok(json!({"emitted": true})));
        }
        self.options.tools.call(request).await
    }
}
