use super::hostile::MAX_UNITS;
use super::*;
use serde_json::{Map, json};

#[test]
fn reads_names_and_computes() {
    let names = json!({"variables": {"n": 2, "f": 2.5, "whole": 3.0, "list": [1, 2, 3]}});
    assert_eq!(eval("variables.n + 1", names.clone()), Ok(json!(3)));
    assert_eq!(eval("variables.whole + 1", names.clone()), Ok(json!(4)));
    assert_eq!(eval("variables.f * 2.0", names.clone()), Ok(json!(5.0)));
    assert_eq!(eval("variables.list.map(x, x * 2)", names.clone()), Ok(json!([2, 4, 6])));
    assert_eq!(eval("{'a': variables.n}", names), Ok(json!({"a": 2})));
}

#[test]
fn maps_are_gone_through_in_the_order_of_their_keys() {
    let names: Vec<String> = (0..40).map(|n| format!("k{n:02}")).collect();
    let map: Map<String, Value> = names.iter().rev().map(|name| (name.clone(), json!(1))).collect();
    assert_eq!(eval("m.map(k, k)", json!({"m": map})), Ok(json!(names)));
    assert_eq!(eval("m.filter(k, m[k] == 1)[0]", json!({"m": map})), Ok(json!("k00")));
    assert_eq!(eval("[m].map(x, x.map(k, k))[0][39]", json!({"m": map})), Ok(json!("k39")));
    assert_eq!(eval("{3: 'c', 1: 'a', 2: 'b'}.map(k, k)", json!({})), Ok(json!([1, 2, 3])));
    // The crate takes the keys in the order of its hash table here.
    assert_eq!(eval("['z'] + m", json!({"m": {"b": 1, "a": 2}})), Ok(json!(["z", "a", "b"])));
}

#[test]
fn errors_are_sentences_not_panics() {
    assert!(eval("variables.missing", json!({"variables": {}})).is_err());
    assert!(eval("1 +", json!({})).is_err());
    assert!(eval("", json!({})).is_err());
    assert!(eval("unknown", json!({})).is_err());
    assert!(eval("1 / 0", json!({})).is_err());
    assert!(compile(&"(".repeat(5000)).is_err());
}

#[test]
fn no_message_gives_a_value_away() {
    let names = || json!({"variables": {"key": "sk-secret", "n": 1}});
    for source in [
        "variables[variables.key]",
        "variables.key + 1",
        "int(variables.key)",
        "variables.key.foo",
        "[1][variables.key]",
    ] {
        let why = eval(source, names()).unwrap_err();
        assert!(!why.contains("sk-secret"), "{source}: {why}");
    }
}

#[test]
fn only_what_is_looked_at_is_paid_for() {
    let big: Vec<String> = (0..10_000).map(|n| format!("a text of some length, number {n}")).collect();
    let names = Names::new(json!({"variables": {"big": big, "n": 1}}));
    assert_eq!(compile("variables.n + size(variables.big)").unwrap().evaluate(&names), Ok(json!(10_001)));
    assert!(names.meter.used() < 16, "{}", names.meter.used());
    let item = compile("variables.big").unwrap().evaluate_item(&names, 9_999);
    assert_eq!(item, Ok(Some(json!("a text of some length, number 9999"))));
    assert!(names.meter.used() < 32, "{}", names.meter.used());
}

#[test]
fn the_expressions_of_one_step_share_a_budget() {
    let list: Vec<u32> = (0..10_000).collect();
    let names = Names::new(json!({"l": list}));
    let expression = compile("l.all(x, x >= 0)").unwrap();
    let mut times = 0;
    let failure = loop {
        match expression.evaluate_bool(&names) {
            Ok(held) => assert!(held),
            Err(failure) => break failure,
        }
        times += 1;
    };
    assert!((2..20).contains(&times), "{times}");
    assert!(too_costly(&failure), "{failure:?}");
    assert_eq!(names.meter.used(), MAX_UNITS);
    names.meter.restart();
    assert_eq!(expression.evaluate_bool(&names), Ok(true));
}

#[test]
fn a_message_names_the_expression_its_place_and_the_bound() {
    let source = "l.all(a, l.all(b, l.all(c, true)))";
    let list: Vec<u32> = (0..200).collect();
    let names = Names::new(json!({"l": list}));
    let expression = Expression::compile(source, "node `n`, rules/0/when", Strictness::New).unwrap();
    let fault = expression.fault(&expression.evaluate(&names).unwrap_err());
    assert_eq!(fault.code, "expression_too_costly");
    for part in [source, "node `n`, rules/0/when", "200000 units"] {
        assert!(fault.message.contains(part), "{}", fault.message);
    }
}

#[test]
fn the_same_data_costs_the_same_each_time() {
    let data = json!({"m": {"b": [1, 2, {"x": "y"}], "a": "text"}, "s": "some text"});
    let source = "m.map(k, string(size(k)) + s).filter(t, t.matches('^1.*t$')) == ['1some text', '1some text']";
    let used = || {
        let names = Names::new(data.clone());
        assert_eq!(compile(source).unwrap().evaluate(&names), Ok(json!(true)));
        names.meter.used()
    };
    let first = used();
    assert!(first > 0);
    assert!((0..8).all(|_| used() == first));
}

#[test]
fn a_recorded_expression_over_a_bound_is_read_and_fails_when_it_is_used() {
    for source in ["1+".repeat(2047) + "1", "x".repeat(5000), "(".repeat(60) + "1" + &")".repeat(60)] {
        assert!(compile(&source).is_err());
        let read = Expression::compile(&source, "here", Strictness::Recorded).unwrap();
        assert_eq!(read.source(), source);
        assert!(!read.reads("memory"));
        let failure = read.evaluate(&Names::new(json!({}))).unwrap_err();
        assert!(too_costly(&failure), "{failure:?}");
    }
    // What never was an expression is none now.
    assert!(Expression::compile("1 +", "here", Strictness::Recorded).is_err());
}
