#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::{Amount, Limits};

fn policy(value: serde_json::Value) -> BudgetPolicy {
    BudgetPolicy::read(&value).unwrap()
}

#[test]
fn a_policy_is_refused_with_its_place() {
    for (value, place) in [
        (json!([]), ""),
        (json!({"maxTokens": 0}), "/maxTokens"),
        (json!({"maxTokens": 1.5}), "/maxTokens"),
        (json!({"maxCostUsd": -1}), "/maxCostUsd"),
        (json!({"maxToolCalls": 0}), "/maxToolCalls"),
        (json!({"maxRetries": -1}), "/maxRetries"),
        (json!({"modelAllow": "a"}), "/modelAllow"),
        (json!({"modelDeny": ["a", 1]}), "/modelDeny/1"),
        (json!({"modelDeny": ["a", "a"]}), "/modelDeny/1"),
        (json!({"thresholdPercent": 101}), "/thresholdPercent"),
        (json!({"onExhaustion": "stop"}), "/onExhaustion"),
        (json!({"runTimeoutMs": 5}), "/runTimeoutMs"),
    ] {
        assert_eq!(BudgetPolicy::read(&value).unwrap_err().0, place, "{value}");
    }
    assert_eq!(policy(json!({})), BudgetPolicy::default());
    assert_eq!(policy(json!({"maxRetries": 0, "maxCostUsd": 0})).ceilings.max_retries, Some(0));
}

#[test]
fn the_smallest_word_counts_in_each_dimension() {
    let limits = Limits { max_budget_tokens: 500, max_budget_cost_cents: 150, ..Limits::default() };
    let run = policy(json!({"maxTokens": 1000, "maxToolCalls": 9, "thresholdPercent": 80}));
    let workflow = policy(json!({"maxToolCalls": 3, "maxRetries": 2, "thresholdPercent": 50}));
    let both = Budget::resolve(Some(&run), Some(&workflow), &limits).unwrap();
    let expected = json!({"maxTokens": 500, "maxCostUsd": 1.5, "maxToolCalls": 3, "maxRetries": 2});
    assert_eq!(json!(both.ceilings), expected);
    assert_eq!((both.scope, both.threshold_percent), (BudgetScope::Workflow, Some(50.0)));
    let own = Budget::resolve(Some(&run), None, &Limits::default()).unwrap();
    assert_eq!((json!(own.ceilings), own.scope), (json!({"maxTokens": 1000, "maxToolCalls": 9}), BudgetScope::Run));
    assert_eq!(Budget::resolve(None, None, &Limits::default()), None);
    assert_eq!(Budget::resolve(None, None, &limits).unwrap().ceilings.max_tokens, Some(500), "nobody escapes the host");
}

#[test]
fn a_human_is_asked_only_if_nobody_wants_it_to_fail() {
    let of = |run: serde_json::Value, workflow: serde_json::Value| {
        let (run, workflow) = (policy(run), policy(workflow));
        Budget::resolve(Some(&run), Some(&workflow), &Limits::default()).unwrap().on_exhaustion
    };
    let (ask, fail) = (json!({"onExhaustion": "interrupt"}), json!({"onExhaustion": "fail"}));
    assert_eq!(of(ask.clone(), json!({})), OnExhaustion::Interrupt);
    assert_eq!(of(json!({}), ask.clone()), OnExhaustion::Interrupt);
    assert_eq!(of(ask, fail), OnExhaustion::Fail);
    assert_eq!(of(json!({}), json!({})), OnExhaustion::Fail);
}

#[test]
fn models_are_named_by_patterns_and_a_refusal_wins() {
    let budget = |run: serde_json::Value, workflow: serde_json::Value| {
        Budget::resolve(Some(&policy(run)), Some(&policy(workflow)), &Limits::default()).unwrap()
    };
    let rules = budget(
        json!({"modelAllow": ["claude-*", "openai/gpt-?"], "modelDeny": ["*-opus-*"]}),
        json!({"modelDeny": ["slow/*"]}),
    );
    for (provider, model, allowed) in [
        ("anthropic", "claude-small", true),
        ("anthropic", "Claude-Small", true),
        ("anthropic", "claude-opus-9", false),
        ("openai", "gpt-5", true),
        ("openai", "gpt-55", false),
        ("other", "gpt-5", false),
        ("slow", "claude-small", false),
        ("x", "y", false),
    ] {
        assert_eq!(rules.allows(provider, model), allowed, "{provider}/{model}");
    }
    // Both have to allow it, and a list without names allows nothing.
    assert!(!budget(json!({"modelAllow": ["a*"]}), json!({"modelAllow": ["*b"]})).allows("p", "ac"));
    assert!(budget(json!({"modelAllow": ["a*"]}), json!({"modelAllow": ["*b"]})).allows("p", "ab"));
    assert!(!budget(json!({"modelAllow": []}), json!({})).allows("p", "a"));
    assert!(budget(json!({}), json!({})).allows("p", "a"));
}

#[test]
fn a_long_pattern_takes_no_time() {
    let rules = policy(json!({"modelDeny": [format!("{}b", "*a".repeat(50))]}));
    let budget = Budget::resolve(Some(&rules), None, &Limits::default()).unwrap();
    assert!(budget.allows("p", &"a".repeat(10_000)));
}

#[test]
fn money_is_counted_exactly() {
    let mut ceilings = Ceilings::default();
    ceilings.set(Dimension::Cost, nanos(0.1) + nanos(0.2));
    assert_eq!(json!(ceilings), json!({"maxCostUsd": 0.3}));
    assert_eq!(Dimension::Cost.shown(nanos(2.0)), Amount::Whole(2));
    assert_eq!(nanos(f64::MAX), u64::MAX);
}
