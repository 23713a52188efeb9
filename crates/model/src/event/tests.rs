#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

#[test]
fn every_type_has_a_schema_and_every_schema_a_type() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/events");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".json").unwrap_or(&name).to_owned())
        .collect();
    let types: BTreeSet<String> = Event::TYPE_NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files, types);
    for name in Event::TYPE_NAMES {
        let schema: Value = serde_json::from_str(schema(name).unwrap()).unwrap();
        assert_eq!(schema["title"], *name);
        assert_eq!(schema["$id"], format!("urn:baton:event:{name}"));
    }
    assert_eq!(schema("run.invented"), None);
}

#[test]
fn null_is_a_value_and_absence_is_not() {
    let hidden = VariableChanged {
        name: "token".to_owned(),
        previous: Some(Value::Null),
        next: REDACTED.into(),
        node_id: None,
        private: VariableChangedFacts { hidden: Some(Value::Null) },
    };
    let fresh = VariableChanged { previous: None, private: VariableChangedFacts { hidden: None }, ..hidden.clone() };
    for event in [Event::from(hidden), Event::from(fresh)] {
        let payload = serde_json::to_string(&event.payload()).unwrap();
        let back = Event::decode(event.type_name(), &payload, event.private_json().as_deref()).unwrap();
        assert_eq!(back, event);
    }
}

#[test]
fn an_unknown_type_is_kept_as_it_is() {
    let event = Event::decode("acme.thing.happened", r#"{"n":1}"#, None).unwrap();
    assert_eq!(event, Event::Other { kind: "acme.thing.happened".to_owned(), payload: json!({"n": 1}) });
    assert_eq!(serde_json::to_value(event.payload()).unwrap(), json!({"n": 1}));
}
