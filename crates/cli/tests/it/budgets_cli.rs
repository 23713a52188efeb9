//! Budgets as a person meets them: prices from the configuration, a run that stops, a question about more.

use crate::support;

use std::path::Path;

use serde_json::json;
use support::{Running, baton};

const MODELS: &str = "[providers.script]\nkind = \"scripted\"\nscript = \"script.json\"\n";
const PRICES: &str = "[prices.\"script/*\"]\ninput = 1.0\noutput = 2.0\n";

fn host(here: &Path, config: &str) -> Running {
    std::fs::write(here.join("script.json"), json!({"rules": [], "otherwise": {"json": {"ok": true}}}).to_string())
        .unwrap();
    std::fs::write(here.join("baton.toml"), config).unwrap();
    let ask = |id: &str| {
        json!({"id": id, "typeId": "core.ai.structuredOutput", "name": id, "position": {"x": 0, "y": 0},
            "config": {"provider": "script", "model": "m", "outputSchema": {"type": "object"}},
            "inputs": {"prompt": {"type": "static", "value": "Is it?"}}})
    };
    let flow = json!({"id": "asks", "name": "Asks", "version": "1", "nodes": [ask("a"), ask("b")],
        "edges": [{"id": "e", "sourceNodeId": "a", "targetNodeId": "b"}], "triggers": [], "variables": [],
        "metadata": {}, "settings": {}});
    std::fs::write(here.join("asks.json"), flow.to_string()).unwrap();
    let host = Running::start(here, &["dev", "--config", "baton.toml"], &[]);
    baton(here, &["workflow", "register", "asks.json"]).expect(0);
    host
}

fn start(budget: serde_json::Value) -> [String; 6] {
    let configurable = json!({"budget": budget}).to_string();
    ["run", "start", "asks", "--wait", "--configurable", &configurable].map(str::to_owned)
}

fn run(here: &Path, args: &[String]) -> support::Ended {
    baton(here, &args.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_run_stops_at_its_budget_and_a_human_may_extend_it() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = host(here, MODELS);
    let stopped = run(here, &start(json!({"maxTokens": 1}))).expect(8);
    assert!(
        stopped.stdout.contains("budget_exhausted: What is left of the budget of 1 token is too little."),
        "{stopped:?}"
    );

    let asked = run(here, &start(json!({"maxTokens": 1, "onExhaustion": "interrupt"}))).expect(6);
    assert!(asked.stderr.contains("The budget of 1 token is used up. Extend it?"), "{asked:?}");
    let id = asked.stdout.split_whitespace().nth(1).unwrap().to_owned();
    let answer = json!({"action": "accept", "budgetDelta": {"maxTokens": 100_000}}).to_string();
    baton(here, &["interrupt", "resolve", &id, "--value", &answer]).expect(0);
    baton(here, &["run", "watch", &id]).expect(0);
    let log = baton(here, &["run", "events", &id]).expect(0).stdout;
    for line in ["budget.reserved         -                 {\"maxTokens\":1}", "tokens: ", "{\"maxTokens\":100001}"] {
        assert!(log.contains(line), "{line}: {log}");
    }

    // Nobody knows what this model costs.
    let refused = run(here, &start(json!({"maxCostUsd": 1}))).expect(2);
    assert!(refused.stderr.contains("[prices.\"script/m\"]"), "{refused:?}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn prices_come_from_the_configuration() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = host(here, &format!("{MODELS}{PRICES}"));
    let stopped = run(here, &start(json!({"maxCostUsd": 0.000_000_001}))).expect(8);
    let id = stopped.stdout.split_whitespace().nth(1).unwrap().to_owned();
    let log = baton(here, &["run", "events", &id, "--json"]).expect(0).stdout;
    assert!(log.contains("budget-cost") && !log.contains("\"costEstimateUsd\":"), "nothing was asked: {log}");
    let paid = run(here, &start(json!({"maxCostUsd": 1}))).expect(0);
    let id = paid.stdout.split_whitespace().nth(1).unwrap().to_owned();
    let log = baton(here, &["run", "events", &id, "--json"]).expect(0).stdout;
    assert!(log.contains("\"costEstimateUsd\":"), "{log}");
    assert_eq!(host.stop(), 0);
}
