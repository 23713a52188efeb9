//! Seams for conformance suites, mounted in conformance mode only. They drive the real engine and report what its log
//! says; they fake nothing. What a test only wants judged, without a run, is kept apart; see [`journal`].

mod agent_dispatch;
mod agent_loop;
mod attest;
mod budget;
mod cache_key;
mod claim;
mod effects;
mod emit;
mod envelope;
mod fan_out;
mod journal;
mod live_invoke;
mod log;
mod mock_ai;
mod model_gate;
mod node_catalog;
mod per_item;
mod prompt;
mod spans;
mod stage;
mod toggle;
mod tool_hooks;
mod transcript_window;
mod variables;
mod workflow;
mod workspace;

pub(crate) use journal::SeamState;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_conformance::Conformance;
use serde_json::json;

use super::undocumented::{Route, get, post, route};
use crate::app::App;
use crate::auth::AnyKey;
use crate::reply::Reply;

/// Seams are not part of the API and document nothing.
pub(crate) fn table() -> Vec<Route> {
    vec![
        route("/v1/host/sample/test/reset", post(reset)),
        route("/v1/host/sample/test/capability-toggle", post(toggle::post)),
        route("/v1/host/sample/test/runs/{runId}/events", get(log::get)),
        route("/v1/host/sample/test/idempotency/concurrent-claim", post(claim::post)),
        route("/v1/host/sample/test/otel/spans", get(spans::get)),
        route("/v1/host/sample/test/runs/{runId}/variables", post(variables::post)),
        route("/v1/host/sample/test/mock-ai/program", post(mock_ai::post)),
        route("/v1/host/sample/test/mock-ai/last-dispatch-budget", get(mock_ai::last_budget)),
        route("/v1/host/sample/test/emit-provider-usage", post(emit::usage)),
        route("/v1/host/sample/test/emit-envelope-reliability", post(emit::reliability)),
        route("/v1/host/sample/test/evaluate-model-capability-gate", post(model_gate::post)),
        route("/v1/host/sample/test/llm-prompt-wrap", post(prompt::wrapped)),
        route("/v1/host/sample/prompt/resolve", post(prompt::resolve)),
        route("/v1/host/sample/prompt/compose", post(prompt::compose)),
        route("/v1/host/sample/envelope/accept", post(envelope::accept)),
        route("/v1/host/sample/toolhooks/invoke", post(tool_hooks::post)),
        route("/v1/host/sample/agents/live-invoke", post(live_invoke::post)),
        route("/v1/host/sample/agents/{agentId}/dispatch", post(agent_dispatch::post)),
        route("/v1/host/sample/test/llm-cache-key", post(cache_key::post)),
        route("/v1/host/sample/replay/effect-count", get(effects::get)),
        route("/v1/host/sample/node-catalog", get(node_catalog::get)),
        route("/v1/host/sample/workflows", post(workflow::post)),
        route("/v1/host/sample/agentloop/run", post(agent_loop::post)),
        route("/v1/host/sample/workspace/op", post(workspace::post)),
        route("/v1/host/sample/budget/run", post(budget::post)),
        route("/v1/host/sample/subrun/attest", post(attest::post)),
        route("/v1/host/sample/agent/transcript-window", get(transcript_window::get)),
        route("/v1/host/sample/dispatch/fanout", post(fan_out::post)),
        route("/v1/host/sample/dispatch/per-item", post(per_item::post)),
    ]
}

/// Puts every capability back to what the host really offers, and lets the mock provider forget what it was told and
/// the seams what they were shown.
async fn reset(State(app): State<App>, _: AnyKey) -> Response {
    if let Ok(mode) = Conformance::of(&app.host) {
        mode.toggle_capability(None);
        mode.reset_mock();
    }
    app.seams.forget();
    Reply::ok(&json!({"ok": true})).into_response()
}
