//! Random nodes that call tools by themselves, once or for each item of a list.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::generate::set;
use super::tools::{AWAY, LOOK, MAIL, REMEMBER, TYPED};

fn tool() -> impl Strategy<Value = &'static str> {
    select(vec![LOOK, LOOK, MAIL, MAIL, TYPED, REMEMBER, AWAY, "mcp:t.nothing"])
}

fn policy() -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::of(select(vec!["retry", "ask", "fail"]))
}

fn into() -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::of(select(vec!["late", "found", "secret"]))
}

fn step() -> impl Strategy<Value = (&'static str, Value)> {
    let arguments = select(vec![
        None,
        Some("{'n': variables.n}"),
        Some("{'content': variables.secret}"),
        Some("{'content': 'sun', 'n': 1}"),
        Some("{'n': 'no number'}"),
        Some("variables.missing"),
        Some("inputs"),
    ]);
    let on_error = select(vec!["fail", "return"]);
    (tool(), arguments, policy(), into(), on_error, proptest::option::weighted(0.2, 1_u64..60)).prop_map(
        |(tool, arguments, policy, into, on_error, timeout)| {
            let config = json!({"tool": tool, "onToolError": on_error});
            let config = set(config, "argumentsExpression", arguments);
            let config = set(config, "outcomePolicy", policy);
            ("vendor.baton.tool", set(set(config, "into", into), "timeoutMs", timeout))
        },
    )
}

fn map() -> impl Strategy<Value = (&'static str, Value)> {
    let items = select(vec![
        ("items", json!([{"n": 1}, {"n": 2}, {"n": "three"}, {"n": 4}])),
        ("items", json!([])),
        ("items", json!([1, "x", null])),
        ("items", json!("list")),
        ("items", json!("unset")),
        ("itemsExpression", json!("[1, 2, variables.n]")),
        ("itemsExpression", json!("[variables.secret, 1]")),
        ("itemsExpression", json!("[{'content': 'sun'}, {'content': 'rain'}]")),
        ("itemsExpression", json!("variables.n")),
    ]);
    let given = select(vec![
        None,
        Some("{'n': index}"),
        Some("{'content': 'sun', 'item': item}"),
        Some("{'n': item.n}"),
        Some("{'note': variables.secret}"),
        Some("variables.missing"),
    ]);
    let work = prop_oneof![
        3 => (tool(), policy()).prop_map(|(tool, policy)| (set(json!({"tool": tool}), "outcomePolicy", policy), "argumentsExpression")),
        1 => Just((json!({"agent": "test.agents.any"}), "taskExpression")),
        2 => proptest::option::of(select(vec!["result", "nothing"]))
            .prop_map(|output| (set(json!({"workflow": "child"}), "output", output), "inputsExpression")),
    ];
    let collect = any::<bool>();
    let late = proptest::option::weighted(0.3, 1_u64..60);
    (items, given, work, collect, 1_u64..4, into(), late).prop_map(
        |((key, items), given, (mut config, giving), collect, most, into, late)| {
            config[key] = items;
            config["maxConcurrency"] = most.into();
            config["onItemError"] = if collect { "collect" } else { "fail" }.into();
            ("vendor.baton.map", set(set(set(config, giving, given), "into", into), "itemTimeoutMs", late))
        },
    )
}

pub fn shape() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![3 => step(), 5 => map()]
}
