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

/// Stores an event and reads it back; gives its public payload.
fn stored(event: Event) -> Value {
    let payload = serde_json::to_string(&event.payload()).unwrap();
    let back = Event::decode(event.type_name(), &payload, event.private_json().as_deref()).unwrap();
    assert_eq!(back, event);
    serde_json::from_str(&payload).unwrap()
}

#[test]
fn writes_are_announced_without_what_was_written_and_without_the_versioned_stores_version() {
    let private = VersionedStoreFacts { version: 7, node_id: None };
    let written = MemoryWritten {
        memory_ref: "memory:s".to_owned(),
        memory_id: "mem_1".to_owned(),
        node_id: Some("put".into()),
        agent_id: None,
        tags: vec![],
        private: private.clone(),
    };
    let place = json!({"memoryRef": "memory:s", "memoryId": "mem_1", "nodeId": "put"});
    let (memory_ref, memory_id, node_id) =
        (written.memory_ref.clone(), written.memory_id.clone(), written.node_id.clone());
    assert_eq!(stored(written.into()), place);
    assert_eq!(stored(MemoryDeleted { memory_ref, memory_id, node_id, private }.into()), place);
    let private = VersionedStoreFacts { version: 7, node_id: Some("put".into()) };
    let updated = Event::from(WorkspaceUpdated { path: "a.md".to_owned(), version: 2, private });
    assert_eq!(updated.node_id().map(crate::NodeId::as_str), Some("put"));
    assert_eq!(stored(updated), json!({"path": "a.md", "version": 2}));
}

#[test]
fn a_turns_view_and_a_humans_wish_are_private_facts() {
    let frozen = crate::TurnSnapshot {
        versions: crate::Versions { memory: 4, workspace: 2 },
        at: crate::Timestamp::from_micros(1_000_001),
    };
    let private = NodeStartedFacts { visit: 1, frozen: Some(frozen), ..NodeStartedFacts::default() };
    let started = NodeStarted { node_id: "sup".into(), type_id: "t".to_owned(), attempt: 0, private };
    assert_eq!(stored(started.into()), json!({"nodeId": "sup", "typeId": "t", "attempt": 0}));
    let resolved = InterruptResolved {
        node_id: "sup".into(),
        kind: "approval".to_owned(),
        interrupt_id: "int:sup:1".to_owned(),
        resume_value: None,
        resolved_by: None,
        outcome: Outcome::Answered,
        reason: None,
        private: InterruptResolvedFacts { refine: Some(json!({"scope": "whole"})), untrusted: true },
    };
    assert_eq!(stored(resolved.into()).get("refine"), None);
}
