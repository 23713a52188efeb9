//! The smallest value that fits a JSON Schema. Covers what schemas for models are made of; a schema beyond that gets a
//! value that may not fit, and whoever checks answers says so.

use serde_json::{Map, Value, json};

/// How deep a schema that refers to itself is followed.
const DEEPEST: u32 = 16;

pub(crate) fn sample(schema: &Value) -> Value {
    value(schema, schema, DEEPEST)
}

fn value(schema: &Value, root: &Value, left: u32) -> Value {
    let Some(map) = schema.as_object().filter(|_| left > 0) else { return Value::Null };
    if let Some(given) = map.get("const").or_else(|| map.get("default")) {
        return given.clone();
    }
    if let Some(given) = ["enum", "examples"].iter().find_map(|list| map.get(*list)?.get(0)) {
        return given.clone();
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#')) {
        return root.pointer(target).map_or(Value::Null, |target| value(target, root, left - 1));
    }
    if let Some(first) = ["anyOf", "oneOf"].iter().find_map(|list| map.get(*list)?.get(0)) {
        return value(first, root, left - 1);
    }
    if let Some(all) = map.get("allOf").and_then(Value::as_array) {
        return value(&merged(map, all), root, left - 1);
    }
    let kind = match map.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("null"),
        _ if map.contains_key("properties") || map.contains_key("required") => "object",
        _ if map.contains_key("items") => "array",
        _ => "null",
    };
    match kind {
        "object" => object(map, root, left),
        "array" => {
            let one = map.get("items").map_or(Value::Null, |items| value(items, root, left - 1));
            vec![one; count(map, "minItems")].into()
        }
        "string" => "mock".chars().chain(std::iter::repeat('x')).take(length(map)).collect::<String>().into(),
        "boolean" => true.into(),
        "integer" => json!(least(map).ceil() as i64),
        "number" => json!(least(map)),
        _ => Value::Null,
    }
}

fn object(map: &Map<String, Value>, root: &Value, left: u32) -> Value {
    let required = map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let field = |name: &str| {
        let schema = map.get("properties").and_then(|all| all.get(name));
        (name.to_owned(), schema.map_or(Value::Null, |schema| value(schema, root, left - 1)))
    };
    Value::Object(required.map(field).collect())
}

/// One schema that asks for what all of these ask for.
fn merged(map: &Map<String, Value>, all: &[Value]) -> Value {
    let mut whole = map.clone();
    whole.remove("allOf");
    for (key, part) in all.iter().filter_map(Value::as_object).flatten() {
        match (whole.get_mut(key), part) {
            (Some(Value::Object(have)), Value::Object(more)) => have.extend(more.clone()),
            (Some(Value::Array(have)), Value::Array(more)) => have.extend(more.iter().cloned()),
            _ => {
                whole.insert(key.clone(), part.clone());
            }
        }
    }
    Value::Object(whole)
}

fn count(map: &Map<String, Value>, key: &str) -> usize {
    map.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0).min(1000)
}

fn length(map: &Map<String, Value>) -> usize {
    let most = map.get("maxLength").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    4.max(count(map, "minLength")).min(most.unwrap_or(usize::MAX))
}

fn least(map: &Map<String, Value>) -> f64 {
    let bound = |key: &str| map.get(key).and_then(Value::as_f64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|n| n + 1.0)).unwrap_or(0.0);
    bound("maximum").or_else(|| bound("exclusiveMaximum").map(|n| n - 1.0)).map_or(low, |high| low.min(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_value_that_fits() {
        let cases = [
            (json!({"type": "boolean"}), json!(true)),
            (json!({"type": "integer", "minimum": 3}), json!(3)),
            (json!({"type": "number", "maximum": -2.5}), json!(-2.5)),
            (json!({"type": "string", "minLength": 6}), json!("mockxx")),
            (json!({"type": "string", "maxLength": 2}), json!("mo")),
            (json!({"enum": ["b", "a"]}), json!("b")),
            (json!({"type": ["string", "null"]}), json!("mock")),
            (json!({"type": "array", "items": {"type": "boolean"}, "minItems": 2}), json!([true, true])),
            (json!({"anyOf": [{"const": 1}, {"const": 2}]}), json!(1)),
            (json!({"$ref": "#/$defs/x", "$defs": {"x": {"const": 4}}}), json!(4)),
            (
                json!({"allOf": [
                    {"properties": {"a": {"type": "boolean"}}, "required": ["a"]},
                    {"properties": {"b": {"const": 2}}, "required": ["b"]},
                ]}),
                json!({"a": true, "b": 2}),
            ),
            (json!({"type": "object", "properties": {"a": {"type": "boolean"}}}), json!({})),
        ];
        for (schema, expected) in cases {
            assert_eq!(sample(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let endless = json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}});
        assert!(sample(&endless).is_object());
    }
}
