//! Judges public events by the schemas the model publishes.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::OnceLock;

use baton_model::{Event, Record, RunId, event};
use jsonschema::Validator;
use serde_json::Value;

fn compiled(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("a schema follows its own draft");
    jsonschema::draft202012::options().should_validate_formats(true).build(&schema).expect("a schema compiles")
}

struct Schemas {
    envelope: Validator,
    payloads: BTreeMap<&'static str, Validator>,
}

fn schemas() -> &'static Schemas {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    SCHEMAS.get_or_init(|| Schemas {
        envelope: compiled(event::ENVELOPE_SCHEMA),
        payloads: Event::TYPE_NAMES.iter().map(|name| (*name, compiled(event::schema(name).unwrap()))).collect(),
    })
}

/// The first reason this record's public face is not what it promises to be.
pub fn violation(record: &Record, run: &RunId) -> Option<String> {
    let public: Value = serde_json::from_str(&record.public_json(run)).expect("a public event is JSON");
    first(&schemas().envelope, &public)
        .or_else(|| payload_violation(record.event.type_name(), &public["payload"]))
        .map(|reason| format!("{reason} in {public}"))
}

/// The first reason this is not a payload of that type.
pub fn payload_violation(kind: &str, payload: &Value) -> Option<String> {
    match schemas().payloads.get(kind) {
        Some(validator) => first(validator, payload),
        None => Some(format!("no schema for {kind}")),
    }
}

fn first(validator: &Validator, value: &Value) -> Option<String> {
    validator.iter_errors(value).next().map(|error| format!("{}: {error}", error.instance_path()))
}
