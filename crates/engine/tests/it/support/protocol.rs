//! Judges public payloads by the protocol's own schemas, where a copy of them is at hand: point `OPENWOP_SCHEMAS` at a
//! folder that has `run-event-payloads.schema.json`. Without it there is nothing to compare with, and nothing is said.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "reading an optional folder is the point here; the engine itself does not"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use baton_model::Record;
use jsonschema::Validator;
use serde_json::{Value, json};

struct Protocol {
    payloads: BTreeMap<String, Validator>,
}

fn read(folder: &std::path::Path, file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(file)).expect("the file is there")).expect("it is JSON")
}

fn load() -> Option<Protocol> {
    let folder = PathBuf::from(std::env::var_os("OPENWOP_SCHEMAS")?);
    let payloads = read(&folder, "run-event-payloads.schema.json");
    let base = payloads["$id"].as_str().unwrap().to_owned();
    let files = ["channel-written-payload", "suspend-request", "orchestrator-decision", "prompt-kind"];
    let mut registry = jsonschema::Registry::new();
    registry = registry.add(base.clone(), payloads.clone()).unwrap();
    for file in files {
        let schema = read(&folder, &format!("{file}.schema.json"));
        registry = registry.add(format!("https://openwop.dev/spec/v1/{file}.schema.json"), schema).unwrap();
    }
    let registry = registry.prepare().unwrap();
    let index = payloads["$defs"]["_typeIndex"]["properties"].as_object().unwrap();
    let compiled = index.iter().map(|(kind, place)| {
        let schema = json!({"$ref": format!("{base}{}", place["$ref"].as_str().unwrap())});
        let validator = jsonschema::draft202012::options().with_registry(&registry).build(&schema).unwrap();
        (kind.clone(), validator)
    });
    Some(Protocol { payloads: compiled.collect() })
}

/// Types the contract defines and the schemas do not list yet.
const NEWER_TYPES: [&str; 2] = ["core.dispatch.fanOut", "core.dispatch.join"];

/// Where the record's payload differs from the protocol's schema. Vendor types are ours to define.
pub fn deviation(record: &Record) -> Option<String> {
    static PROTOCOL: OnceLock<Option<Protocol>> = OnceLock::new();
    let protocol = PROTOCOL.get_or_init(load).as_ref()?;
    let kind = record.event.type_name();
    if kind.starts_with("baton.") || NEWER_TYPES.contains(&kind) {
        return None;
    }
    let mut payload = serde_json::to_value(record.event.payload()).unwrap();
    to_known(&mut payload);
    if let ("interrupt.requested", Some(fields)) = (kind, payload.as_object_mut()) {
        // The schema is that of the request; the event has the names that the engine gave it as well.
        fields.remove("interruptId");
    }
    let Some(validator) = protocol.payloads.get(kind) else { return Some(format!("the protocol has no type {kind}")) };
    let first = validator.iter_errors(&payload).find(|error| !is_newer(kind, &payload, error.instance_path().as_str()));
    first.map(|error| format!("{kind}{}: {error} in {payload}", error.instance_path()))
}

/// Says in the schemas' words what the contract allows beside them: a host's own interrupt kind stands for an approval,
/// and a decision may carry inputs for its workers.
fn to_known(payload: &mut Value) {
    match payload {
        Value::Object(map) => {
            // What became of a call is a question of our own, for which the protocol has a form.
            if map.get("kind").is_some_and(|kind| kind == "x-host-baton-effect-unknown") {
                let kind = map.insert("kind".to_owned(), "custom".into());
                if let Some(data) = map.get_mut("data") {
                    *data = json!({"customKind": kind, "payload": data.take()});
                }
            }
            if map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("x-host-")) {
                map.insert("kind".to_owned(), "approval".into());
            }
            if map.get("kind").is_some_and(|kind| kind == "next-worker") {
                map.remove("nextWorkerInputs");
            }
            map.values_mut().for_each(to_known);
        }
        Value::Array(items) => items.iter_mut().for_each(to_known),
        _ => {}
    }
}

/// Words of known types that the contract has and the schemas lack: the `message` reducer, the cap on dispatches.
fn is_newer(kind: &str, payload: &Value, place: &str) -> bool {
    match kind {
        "channel.written" => place == "/reducer" && payload["reducer"] == "message",
        "cap.breached" => place == "/kind" && payload["kind"] == "dispatch-iterations",
        _ => false,
    }
}
