use axum::Router;
use baton_server::endpoint::{App, get, post};

use super::{
    agent_dispatch, agent_loop, attest, budget, cache_key, claim, effects, emit, envelope, fan_out, live_invoke, log,
    mock_ai, model_gate, node_catalog, per_item, prompt, reset, runner, spans, toggle, tool_hooks, transcript_window,
    variables, workflow, workspace,
};

/// Where the test endpoints are. They are not part of the API and document nothing.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/host/sample/test/reset", post(reset::post))
        .route("/v1/host/sample/test/capability-toggle", post(toggle::post))
        .route("/v1/host/sample/test/runs/{runId}/events", get(log::get))
        .route("/v1/host/sample/test/idempotency/concurrent-claim", post(claim::post))
        .route("/v1/host/sample/test/otel/spans", get(spans::get))
        .route("/v1/host/sample/test/runs/{runId}/variables", post(variables::post))
        .route("/v1/host/sample/test/mock-ai/program", post(mock_ai::post))
        .route("/v1/host/sample/test/mock-ai/last-dispatch-budget", get(mock_ai::last_budget))
        .route("/v1/host/sample/test/emit-provider-usage", post(emit::usage))
        .route("/v1/host/sample/test/emit-envelope-reliability", post(emit::reliability))
        .route("/v1/host/sample/test/evaluate-model-capability-gate", post(model_gate::post))
        .route("/v1/host/sample/test/llm-prompt-wrap", post(prompt::wrapped))
        .route("/v1/host/sample/prompt/resolve", post(prompt::resolve))
        .route("/v1/host/sample/prompt/compose", post(prompt::compose))
        .route("/v1/host/sample/envelope/accept", post(envelope::accept))
        .route("/v1/host/sample/runner/register", post(runner::register))
        .route("/v1/host/sample/runner/dispatch", post(runner::dispatch))
        .route("/v1/host/sample/toolhooks/invoke", post(tool_hooks::post))
        .route("/v1/host/sample/agents/live-invoke", post(live_invoke::post))
        .route("/v1/host/sample/agents/{agentId}/dispatch", post(agent_dispatch::post))
        .route("/v1/host/sample/test/llm-cache-key", post(cache_key::post))
        .route("/v1/host/sample/replay/effect-count", get(effects::get))
        .route("/v1/host/sample/node-catalog", get(node_catalog::get))
        .route("/v1/host/sample/workflows", post(workflow::post))
        .route("/v1/host/sample/agentloop/run", post(agent_loop::post))
        .route("/v1/host/sample/workspace/op", post(workspace::post))
        .route("/v1/host/sample/budget/run", post(budget::post))
        .route("/v1/host/sample/subrun/attest", post(attest::post))
        .route("/v1/host/sample/agent/transcript-window", get(transcript_window::get))
        .route("/v1/host/sample/dispatch/fanout", post(fan_out::post))
        .route("/v1/host/sample/dispatch/per-item", post(per_item::post))
}
