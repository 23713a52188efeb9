//! The console's types of the API, generated from the OpenAPI document. `BATON_BLESS=1` writes `console/api.d.ts` again.

use crate::support;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};
use support::Site;

const HEAD: &str = "// Generated from the OpenAPI document by crates/server/tests/it/console_types.rs. Do not edit.\n";

#[tokio::test]
async fn the_consoles_types_are_those_of_the_document() {
    let document = Site::open().await.get("/v1/openapi.json").await.json();
    let mut text = HEAD.to_owned();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let _ = write!(text, "\n{}export type {name} = {};\n", comment(schema, 0), shape(schema, 0));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/api.d.ts");
    if std::env::var_os("BATON_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (line, (found, expected)) in text.lines().zip(kept.lines()).enumerate() {
        assert_eq!(found, expected, "console/api.d.ts, line {}", line + 1);
    }
    assert_eq!(text.len(), kept.len(), "console/api.d.ts");
}

/// A schema as a TypeScript type. What the document leaves open is `any`.
fn shape(schema: &Value, depth: usize) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap().to_owned();
    }
    if let Some(values) = schema["enum"].as_array() {
        return joined(values, " | ", Value::to_string);
    }
    for (word, between) in [("oneOf", " | "), ("anyOf", " | "), ("allOf", " & ")] {
        if let Some(parts) = schema[word].as_array() {
            return joined(parts, between, |part| shape(part, depth));
        }
    }
    match &schema["type"] {
        Value::Array(kinds) => joined(kinds, " | ", |kind| of_kind(kind.as_str().unwrap(), schema, depth)),
        Value::String(kind) => of_kind(kind, schema, depth),
        _ => "any".to_owned(),
    }
}

fn of_kind(kind: &str, schema: &Value, depth: usize) -> String {
    match (kind, schema["properties"].as_object()) {
        ("array", _) => {
            let item = shape(&schema["items"], depth);
            if item.contains(' ') && !item.starts_with('{') { format!("({item})[]") } else { format!("{item}[]") }
        }
        ("integer" | "number", _) => "number".to_owned(),
        ("string" | "boolean" | "null", _) => kind.to_owned(),
        (_, Some(members)) => object(members, &schema["required"], depth),
        _ if schema["additionalProperties"].is_object() => {
            format!("Record<string, {}>", shape(&schema["additionalProperties"], depth))
        }
        _ => "any".to_owned(),
    }
}

fn object(members: &Map<String, Value>, required: &Value, depth: usize) -> String {
    let mut text = "{\n".to_owned();
    for (name, schema) in members {
        let always = required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
        let shape = shape(schema, depth + 1);
        // The host leaves out what it has not got; it does not send null for it.
        let (mark, shape) = if always { ("", &*shape) } else { ("?", shape.strip_suffix(" | null").unwrap_or(&shape)) };
        let _ = writeln!(text, "{}{}{name}{mark}: {shape};", comment(schema, depth + 1), indent(depth + 1));
    }
    text + &indent(depth) + "}"
}

fn comment(schema: &Value, depth: usize) -> String {
    let about = schema["description"].as_str();
    about.map_or_else(String::new, |about| format!("{}/** {} */\n", indent(depth), about.replace('\n', " ")))
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

fn joined(parts: &[Value], between: &str, each: impl Fn(&Value) -> String) -> String {
    parts.iter().map(each).collect::<Vec<_>>().join(between)
}
