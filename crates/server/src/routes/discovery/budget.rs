//! What a run's spending is bounded by. The test that shows each claim is named beside it; those are in
//! `tests/it/http_budgets.rs`.

use baton_runtime::Options;
use serde_json::{Map, Value, json};

use super::object::object;

pub(super) fn families(host: &Options) -> Map<String, Value> {
    // `tokens_are_bounded`, `tool_calls_are_bounded`, `retries_are_bounded`, `models_are_bounded`
    let mut dimensions = vec!["tokens", "toolCalls", "retries", "model"];
    if !host.prices.is_empty() {
        // `money_is_bounded_where_prices_are_known`
        dimensions.insert(1, "cost");
    }
    // `a_run_over_budget_is_stopped`, `the_workflow_has_a_say`
    object(json!({"budget": {
        "supported": true,
        "dimensions": dimensions,
        "enforce": "hard",
        "scopes": ["run", "workflow"],
    }}))
}

/// The host's own ceilings, where it has some: `the_host_has_the_last_word`.
pub(super) fn limits(host: &Options) -> Map<String, Value> {
    let limits = &host.limits;
    let mut ceilings = Map::new();
    if limits.max_budget_tokens > 0 {
        ceilings.insert("maxBudgetTokens".to_owned(), limits.max_budget_tokens.into());
    }
    if limits.max_budget_cost_cents > 0 {
        ceilings.insert("maxBudgetCostUsd".to_owned(), json!(limits.max_budget_cost_cents as f64 / 100.0));
    }
    ceilings
}
