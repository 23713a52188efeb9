#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Dialect, Shape};

fn compatible(schema: &Value, dialect: Dialect) -> Option<Value> {
    Shape::read(schema).map(|shape| shape.render(dialect))
}

fn decision() -> Value {
    json!({
        "type": "object",
        "title": "Decision",
        "required": ["kind", "tags"],
        "properties": {
            "kind": {"enum": ["next", "end"]},
            "reasoning": {"type": "string", "maxLength": 200, "description": "Why."},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1},
            "rank": {"enum": [1, 2, null]},
        },
        "$defs": {"tag": {"type": "string", "pattern": "^a"}},
    })
}

#[test]
fn bounds_become_remarks_and_absent_becomes_null() {
    assert_eq!(
        compatible(&decision(), Dialect::JsonSchema).unwrap(),
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["confidence", "kind", "rank", "reasoning", "tags"],
            "properties": {
                "kind": {"type": "string", "enum": ["next", "end"]},
                "reasoning": {"type": ["string", "null"], "description": "Why. (maxLength: 200)"},
                "confidence": {"type": ["number", "null"], "description": "(minimum: 0, maximum: 1)"},
                "tags": {
                    "type": "array", "description": "(minItems: 1)",
                    "items": {"type": "string", "description": "(pattern: \"^a\")"},
                },
                "rank": {"type": ["integer", "null"], "enum": [1, 2, null]},
            },
        })
    );
    assert_eq!(
        compatible(&decision(), Dialect::OpenApi).unwrap(),
        json!({
            "type": "OBJECT",
            "required": ["reasoning", "confidence", "kind", "rank", "tags"],
            "propertyOrdering": ["reasoning", "confidence", "kind", "rank", "tags"],
            "properties": {
                "kind": {"type": "STRING", "enum": ["next", "end"]},
                "reasoning": {"type": "STRING", "nullable": true, "description": "Why. (maxLength: 200)"},
                "confidence": {"type": "NUMBER", "nullable": true, "description": "(minimum: 0, maximum: 1)"},
                "tags": {
                    "type": "ARRAY", "description": "(minItems: 1)",
                    "items": {"type": "STRING", "description": "(pattern: \"^a\")"},
                },
                "rank": {"type": "INTEGER", "nullable": true, "description": "(one of: 1, 2)"},
            },
        })
    );
}

#[test]
fn branches_need_a_field_that_tells_them_apart() {
    let branch = |kind: &str, field: &str| {
        json!({
            "type": "object", "required": ["type", field],
            "properties": {"type": {"const": kind}, field: {"type": "string"}},
        })
    };
    let with = |branches: Value| json!({"type": "object", "properties": {"x": {"oneOf": branches}}, "required": ["x"]});
    let schema = with(json!([branch("a", "one"), branch("b", "two"), {"type": "null"}]));
    let compatible = compatible(&schema, Dialect::JsonSchema).unwrap();
    let any = compatible.pointer("/properties/x/anyOf").unwrap().as_array().unwrap();
    assert_eq!(any.len(), 3);
    assert_eq!(any[0]["properties"]["type"], json!({"type": "string", "enum": ["a"]}));
    assert_eq!(any[2], json!({"type": "null"}));
    assert!(!compatible.to_string().contains("oneOf"));
    assert_eq!(Shape::read(&with(json!([branch("a", "one"), branch("a", "two")]))), None);
    let plain = with(json!([{"type": "string"}, {"type": "integer"}]));
    assert!(Shape::read(&plain).is_some(), "scalars need none");
}

#[test]
fn what_no_vendor_can_be_told_has_no_shape() {
    let deep = |levels: usize| {
        (0..levels).fold(json!({"type": "string"}), |inner, _| json!({"type": "object", "properties": {"a": inner}}))
    };
    let wide = |fields: usize| {
        let fields = (0..fields).map(|i| (format!("f{i}"), json!({"type": "string"})));
        json!({"type": "object", "properties": fields.collect::<serde_json::Map<_, _>>()})
    };
    assert!(Shape::read(&deep(5)).is_some() && Shape::read(&deep(6)).is_none());
    assert!(Shape::read(&wide(100)).is_some() && Shape::read(&wide(101)).is_none());
    let field = |schema: Value| json!({"type": "object", "properties": {"x": schema}});
    for schema in [
        json!(true),
        json!({}),
        json!({"type": "string"}),
        json!({"type": "object"}),
        json!({"type": ["object", "null"], "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        json!({"type": "object", "properties": {}, "required": ["a"], "additionalProperties": false}),
        field(json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true})),
        field(json!({"enum": [{"a": 1}]})),
        field(json!({"type": "array"})),
        field(json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}})),
        field(json!({"$ref": "https://example.com/x.json"})),
        field(json!({"$ref": "#/nowhere"})),
        field(json!({"allOf": [{"type": "string"}, {"type": "integer"}]})),
    ] {
        assert_eq!(Shape::read(&schema), None, "{schema}");
    }
}

#[test]
fn references_and_all_of_are_followed() {
    let schema = json!({
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}],
        "$defs": {"base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    });
    let compatible = compatible(&schema, Dialect::JsonSchema).unwrap();
    assert_eq!(compatible["required"], json!(["a", "b"]));
    assert_eq!(compatible["properties"]["a"], json!({"type": "string"}));
}

#[test]
fn nulls_of_ours_are_taken_out_of_the_answer_again() {
    let schema = json!({
        "type": "object", "required": ["kept"],
        "properties": {
            "kept": {"type": ["string", "null"]},
            "own": {"type": ["string", "null"]},
            "gone": {"type": "string"},
            "list": {"type": "array", "items": {"anyOf": [
                {"type": "object", "required": ["k"], "properties": {"k": {"const": "a"}, "o": {"type": "string"}}},
                {"type": "object", "required": ["k"], "properties": {"k": {"const": "b"}, "o": {"type": ["string", "null"]}}},
            ]}},
        },
    });
    let shape = Shape::read(&schema).unwrap();
    let answer = r#"{"kept":null,"own":null,"gone":null,"list":[{"k":"a","o":null},{"k":"b","o":null}]}"#;
    let restored: Value = serde_json::from_str(&shape.without_added_nulls(answer.to_owned())).unwrap();
    assert_eq!(restored, json!({"kept": null, "own": null, "list": [{"k": "a"}, {"k": "b", "o": null}]}));
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&restored) && !validator.is_valid(&serde_json::from_str(answer).unwrap()));
    for same in ["{ \"kept\": \"x\" }", "no JSON", ""] {
        assert_eq!(shape.without_added_nulls(same.to_owned()), same);
    }
}

/// Schemas of every kind, most of them with something that no vendor takes.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "minLength": 1})),
        Just(json!({"type": ["integer", "null"], "minimum": -3})),
        Just(json!({"const": "a"})),
        Just(json!({"enum": ["a", "b", null]})),
        Just(json!({"type": "boolean", "description": "D"})),
        Just(json!({"$ref": "#/$defs/x"})),
        Just(json!({})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let fields = prop::collection::btree_map("[a-d]", inner.clone(), 0..4);
        let object = (fields, any::<bool>()).prop_map(|(fields, all)| {
            let required: Vec<&String> = fields.keys().filter(|name| all || *name == "a").collect();
            json!({"type": "object", "properties": fields, "required": required, "maxProperties": 9})
        });
        prop_oneof![
            4 => object,
            1 => inner.clone().prop_map(|items| json!({"type": "array", "items": items, "uniqueItems": true})),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({"anyOf": all})),
            1 => prop::collection::vec(inner, 1..3).prop_map(|all| json!({"allOf": all})),
        ]
    })
}

/// Every object of a schema that says how values look; not the maps of fields in it.
fn schemas<'a>(schema: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(schema);
    let below = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|fields| fields.values());
    let below = below.chain(schema.get("items"));
    for inner in below.chain(schema.get("anyOf").and_then(Value::as_array).into_iter().flatten()) {
        schemas(inner, found);
    }
}

proptest! {
    #[test]
    fn a_compatible_schema_keeps_to_what_vendors_take(root in schema()) {
        let mut root = root;
        root["$defs"] = json!({"x": {"type": "object", "properties": {"deep": {"type": "number"}}}});
        let Some(shape) = Shape::read(&root) else { return Ok(()) };
        let compatible = shape.render(Dialect::JsonSchema);
        let mut all = Vec::new();
        schemas(&compatible, &mut all);
        let known = ["type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "description"];
        for schema in all {
            let words = schema.as_object().unwrap();
            prop_assert!(words.keys().all(|word| known.contains(&word.as_str())), "{schema}");
            if let Some(fields) = words.get("properties") {
                let names: Vec<&String> = fields.as_object().unwrap().keys().collect();
                prop_assert_eq!(&words["required"], &json!(names));
                prop_assert_eq!(&words["additionalProperties"], &json!(false));
            }
        }
        // What fits the compatible schema fits the author's once it is restored; the bounds here are ones that every sample keeps.
        let answer = crate::sample::sample(&compatible);
        prop_assert!(jsonschema::is_valid(&compatible, &answer), "{answer} {compatible}");
        let restored: Value = serde_json::from_str(&shape.without_added_nulls(answer.to_string())).unwrap();
        prop_assert!(jsonschema::is_valid(&root, &restored), "{restored} {root}");
        prop_assert!(shape.render(Dialect::OpenApi).is_object());
    }
}
