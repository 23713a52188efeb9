#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::judge::*;
use super::weight::Weight;
use crate::expr::Strictness;
use serde_json::{Map, Value, json};

fn compile(schema: &Value) -> Result<Schema, String> {
    Schema::compile(schema, Strictness::New)
}

/// `count` parts, each made from a reference to the next; the last takes everything.
fn ladder(count: usize, prefix: &str, step: impl Fn(Value) -> Value) -> Map<String, Value> {
    let rung = |n: usize| step(json!({"$ref": format!("#/$defs/{prefix}{}", n + 1)}));
    (0..count).map(|n| (format!("{prefix}{n}"), rung(n))).chain([(format!("{prefix}{count}"), json!({}))]).collect()
}

fn doubling() -> Map<String, Value> {
    ladder(32, "l", |next| json!({"anyOf": [next, next]}))
}

/// Schemas that somebody wrote to stop the host.
fn hostile() -> Vec<(&'static str, Value)> {
    let plain: Map<String, Value> = (0..=32).map(|n| (format!("l{n}"), json!({}))).collect();
    let mut hidden = plain.clone();
    hidden.insert("b".to_owned(), json!({"$id": "b.json", "$ref": "#/$defs/l0", "$defs": doubling()}));
    let mut twins = plain.clone();
    let bomb = json!({"$id": "https://a.example/b.json", "$ref": "#/$defs/l0", "$defs": doubling()});
    twins.insert("b".to_owned(), json!({"$id": "https://b.example/b.json"}));
    twins.insert("c".to_owned(), json!({"contentSchema": bomb}));
    let outside = json!({"x-defs": doubling(), "$ref": "#/x-defs/l0", "$defs": {"b": {"$id": "b", "$ref": "#"}}});
    let below = ladder(40, "l", |next| json!({"anyOf": [next], "unevaluatedProperties": {"type": "integer"}}));
    let items = ladder(40, "l", |next| json!({"oneOf": [next], "unevaluatedItems": false}));
    let inline = (0..20).fold(json!({}), |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}));
    let beside: Vec<Value> = (0..12).map(|_| json!({"$ref": "#/$defs/l0"})).collect();
    let wide = ladder(3, "l", |next| json!({"anyOf": vec![next; 16], "unevaluatedProperties": false}));
    let long = ladder(2000, "l", |next| json!({"anyOf": [next]}));
    let names: Map<String, Value> = (0..5000).map(|n| (format!("n{n}"), json!([]))).collect();
    let path = "p".repeat(100_000);
    let many: Map<String, Value> = (0..4000).map(|n| (format!("{n}"), json!({"$ref": "#/nowhere"}))).collect();
    vec![
        ("an id that moves a reference", json!({"$defs": hidden, "$ref": "b.json"})),
        ("the same by a path", json!({"$defs": hidden, "$ref": "#/$defs/b"})),
        ("two ids with one name", json!({"$defs": twins, "$ref": "https://a.example/b.json"})),
        ("a place that is no schema", outside),
        ("an id with steps", json!({"$defs": {"b": {"$id": "x/../b.json"}}, "$ref": "b.json"})),
        (
            "many ids",
            json!({"$defs": (0..100).map(|n| (format!("d{n}"), json!({"$id": format!("d{n}")})))
            .collect::<Map<_, _>>()}),
        ),
        ("another dialect below", json!({"$defs": {"a": {"$schema": "http://json-schema.org/draft-04/schema#"}}})),
        ("an unknown dialect below", json!({"properties": {"a": {"$schema": "https://example.com/mine"}}})),
        (
            "what only the way tells",
            json!({"$dynamicAnchor": "meta", "anyOf": [
            {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            {"$ref": "https://json-schema.org/draft/2020-12/schema"}]}),
        ),
        ("a recursive reference", json!({"$recursiveRef": "#"})),
        ("members that nothing judged", json!({"$ref": "#/$defs/l0", "$defs": below})),
        ("items that nothing judged", json!({"$ref": "#/$defs/l0", "$defs": items})),
        ("the same without references", inline),
        ("a wide one", json!({"allOf": beside, "unevaluatedProperties": false, "$defs": wide})),
        ("a long chain", json!({"$ref": "#/$defs/l0", "$defs": long})),
        ("lists of names", json!({"dependentRequired": names})),
        ("a long name", json!({"$defs": {path: {"$defs": many}}})),
        ("a long pattern", json!({"pattern": "a".repeat(100_000)})),
        ("open braces", json!({"pattern": "{".repeat(200_000)})),
        ("open classes", json!({"pattern": "\\p{".repeat(60_000)})),
        ("control letters", json!({"pattern": "\\cA".repeat(1000)})),
        ("all letters in both cases", json!({"pattern": "(?i)\\p{any}".repeat(20)})),
    ]
}

#[test]
fn hostile_schemas_are_refused_before_the_validator_sees_them() {
    for (name, schema) in hostile() {
        let refused = Weight::of(&schema).err();
        assert!(refused.is_some(), "{name}");
        assert!(refused.is_some_and(|why| why.len() < 300), "{name}");
        let read = Schema::compile(&schema, Strictness::Recorded).unwrap();
        assert!(read.check(&json!({})).is_err_and(|(_, why)| why.contains("not used")), "{name}");
    }
}

#[test]
fn usual_schemas_pass() {
    let person = json!({"properties": {"name": {"type": "string"}}, "required": ["name"]});
    for schema in [
        json!({"allOf": [{"$ref": "#/$defs/p"}], "properties": {"age": {}}, "unevaluatedProperties": false, "$defs": {"p": person}}),
        json!({"$ref": "#/$defs/p", "unevaluatedProperties": false, "$defs": {"p": {"anyOf": [person, {"oneOf": [person]}]}}}),
        json!({"$ref": "#/$defs/t", "unevaluatedProperties": false, "$defs": {"t": {"properties": {"kids": {"items": {"$ref": "#"}}, "name": {}}}}}),
        json!({"$id": "https://example.com/root?version=1", "$anchor": "top", "properties": {"kids": {"items": {"$ref": "#top"}}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"p": person}, "$ref": "#/definitions/p"}),
        json!({"$ref": "p.json", "$defs": {"p": {"$id": "p.json", "$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/q", "$defs": {"q": person}}}}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema", "properties": {"name": {"pattern": "^\\p{L}{1,64}$"}}}),
        json!({"properties": {"name": {"pattern": "^\\w{1,64}$"}, "mail": {"pattern": "^(?=.{3,99}$)[^@\\s]+@[^@\\s]+$"}}}),
        json!({"dependentRequired": {"name": ["name"]}, "dependentSchemas": {"name": person}, "if": person, "then": {"minProperties": 1}}),
    ] {
        let compiled = compile(&schema);
        assert!(compiled.is_ok(), "{schema}: {:?}", compiled.err());
        assert_eq!(compiled.unwrap().check(&json!({"name": "Ada"})).err(), None, "{schema}");
    }
}

#[test]
fn what_nothing_judged_is_asked_for_once_more_on_each_level() {
    let weight = |levels: usize| {
        let rungs = ladder(levels, "l", |next| json!({"anyOf": [next], "unevaluatedProperties": {"type": "integer"}}));
        Weight::of(&json!({"$ref": "#/$defs/l0", "$defs": rungs}))
    };
    assert!(weight(3).is_ok());
    let refused = (4..20).find(|levels| weight(*levels).is_err());
    assert!(refused.is_some_and(|levels| levels <= 10), "{refused:?}");
}

#[test]
fn the_deepest_that_is_allowed_needs_little_stack() {
    let work = || {
        let mut allowed = 0;
        for rungs in [3, 6, 12, 30, 60] {
            let mut defs = ladder(rungs, "l", |next| json!({"anyOf": [next]}));
            defs.insert(format!("l{rungs}"), json!({"items": {"$ref": "#/$defs/l0"}, "type": "array"}));
            let Ok(schema) = compile(&json!({"$ref": "#/$defs/l0", "$defs": defs})) else { continue };
            for depth in [1, 4, 16, 60] {
                let value = (0..depth).fold(json!([]), |inner, _| json!([inner]));
                allowed += usize::from(schema.check(&value).is_ok());
                let wrong = (0..depth).fold(json!(1), |inner, _| json!([inner]));
                assert!(schema.check(&wrong).is_err());
            }
        }
        allowed
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap();
    assert!(thread.join().unwrap() >= 6);
}

#[test]
fn a_pattern_that_looks_around_is_not_tried_on_a_long_text() {
    for pattern in ["(?=a*b)", "(?:a{1,9}+)b", "(?>a+)b", "\\Ga*b", "(a)?(?(1)b|c)", "a*\\Kb", "(?P<x>a)(?P=x)"] {
        let Ok(schema) = compile(&json!({"properties": {"x": {"pattern": pattern}}})) else { continue };
        let (_, why) = schema.check(&json!({"x": "a".repeat(100_000)})).unwrap_err();
        assert!(why.contains("looks"), "{pattern}: {why}");
    }
    // One that matches from left to right is.
    let schema = compile(&json!({"properties": {"x": {"pattern": "^a*$"}}})).unwrap();
    assert_eq!(schema.check(&json!({"x": "a".repeat(100_000)})), Ok(()));
}

#[test]
fn an_error_does_not_repeat_a_large_value() {
    let schema = compile(&json!({"type": "integer"})).unwrap();
    let (_, why) = schema.check(&json!("x".repeat(500_000))).unwrap_err();
    assert!(why.len() < 600, "{}", why.len());
}

#[test]
fn names_the_place_of_a_violation() {
    let schema = compile(&json!({"properties": {"n": {"type": "integer"}}})).unwrap();
    assert_eq!(schema.check(&json!({"n": 1})), Ok(()));
    assert_eq!(schema.check(&json!({"n": "x"})).unwrap_err().0, "/n");
}

#[test]
fn a_reference_to_the_outside_is_refused() {
    for place in ["http://127.0.0.1:9/x.json", "https://example.com/x.json", "file:///etc/passwd"] {
        assert!(compile(&json!({"$ref": place})).is_err(), "{place}");
    }
}

#[test]
fn what_an_agent_brings_is_compiled_once() {
    let schemas = SchemaCache::default();
    let first = schemas.of(&json!({"type": "object", "required": ["a"]})).unwrap();
    let again = schemas.of(&json!({"required": ["a"], "type": "object"})).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    // A run that was copied shares them.
    assert!(Arc::ptr_eq(&first, &schemas.clone().of(&json!({"type": "object", "required": ["a"]})).unwrap()));
    for n in 0..2 * MAX_KEPT {
        schemas.of(&json!({"const": n})).unwrap();
    }
    assert!(schemas.0.lock().unwrap().len() <= MAX_KEPT);
    assert!(schemas.of(&json!({"$recursiveRef": "#"})).is_err());
}

/// The validator copies a value into the error of each alternative that does not hold.
#[test]
fn what_is_wrong_with_a_large_value_takes_little_memory_to_say() {
    let alternatives: Vec<Value> = (0..1000).map(|n| json!({"type": "string", "minLength": n})).collect();
    let flat = json!({"properties": {"x": {"anyOf": alternatives}}});
    let tree = (0..10).fold(
        json!({"type": "string"}),
        |below, n| json!({"oneOf": [below.clone(), {"minLength": n, "allOf": [below]}]}),
    );
    let deep = json!({"items": {"items": {"anyOf": [{"type": "string"}, {"anyOf": [{"type": "boolean"}, {"type": "null"}]}]}}});
    let list: Vec<u32> = (0..20_000).collect();
    for (schema, value) in [
        (flat, json!({"x": list})),
        (json!({"properties": {"x": tree}}), json!({"x": list})),
        (deep, json!([[(0..60_000).collect::<Vec<u32>>()]])),
    ] {
        let (_, told) = compile(&schema).unwrap().check(&value).unwrap_err();
        assert!(told.contains("it would take") || told.contains("looks"), "{told}");
    }
    // What fits is taken however large it is, and what is small is told as ever.
    let schema = compile(&json!({"anyOf": [{"type": "string"}, {"type": "array", "maxItems": 30_000}]})).unwrap();
    assert_eq!(schema.check(&json!((0..30_000).collect::<Vec<u32>>())), Ok(()));
    let either = compile(&json!({"anyOf": [{"type": "string"}, {"type": "null"}]})).unwrap();
    assert_eq!(either.broken(&json!([1])).unwrap().rule, "/anyOf");
}
