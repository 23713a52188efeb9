//! Random nodes that read and write memory and workspace, and a reader who checks afterwards what they saw.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use baton_engine::{Plan, ReadVersion};
use baton_model::event::{NodeCompleted, REDACTED};
use baton_model::{Event, NodeId, Record, RunId, memory_ref};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::deeds::{PATHS, WORDS};
use super::versioned::VersionedStores;

/// Texts, plain and computed; some of them try to carry a secret out.
fn content() -> impl Strategy<Value = (&'static str, &'static str)> {
    select(vec![
        ("content", "sun"),
        ("content", ""),
        ("contentExpression", "'rain'"),
        ("contentExpression", "variables.n"),
        ("contentExpression", "variables.secret"),
        ("contentExpression", "[variables, inputs, nodes]"),
        ("contentExpression", "variables.late"),
        ("contentExpression", "variables.hidden"),
        ("contentExpression", "variables.missing"),
    ])
}

fn id() -> impl Strategy<Value = (&'static str, &'static str)> {
    select(vec![("id", "mem_1"), ("id", "mem_2"), ("idExpression", "variables.found[0].id")])
}

fn put() -> impl Strategy<Value = (&'static str, Value)> {
    let tags = select(vec![json!([]), json!(["sun"]), json!(["sun", "rain"])]);
    (content(), tags, proptest::option::weighted(0.4, 1_u64..60)).prop_map(|((key, text), tags, ttl)| {
        let mut config = json!({key: text, "tags": tags});
        ttl.inspect(|ms| config["ttlSeconds"] = json!(*ms as f64 / 1000.0));
        ("vendor.baton.memory.put", config)
    })
}

pub fn shape() -> impl Strategy<Value = (&'static str, Value)> {
    let path = || select(PATHS.to_vec());
    let variable = || select(vec!["found", "late", "secret"]);
    let list = (proptest::option::of(select(WORDS.to_vec())), proptest::option::of(0_u64..3), variable());
    prop_oneof![
        4 => put(),
        2 => (id(), variable()).prop_map(|((key, id), into)| ("vendor.baton.memory.get", json!({key: id, "into": into}))),
        4 => list.prop_map(|(tag, limit, into)| {
            let mut config = json!({"into": into});
            tag.inspect(|tag| config["tag"] = json!(tag));
            limit.inspect(|limit| config["limit"] = json!(limit));
            ("vendor.baton.memory.list", config)
        }),
        2 => id().prop_map(|(key, id)| ("vendor.baton.memory.delete", json!({key: id}))),
        2 => (path(), content()).prop_map(|(path, (key, text))| ("vendor.baton.workspace.put", json!({"path": path, key: text}))),
        2 => (path(), variable()).prop_map(|(path, into)| ("vendor.baton.workspace.get", json!({"path": path, "into": into}))),
        1 => variable().prop_map(|into| ("vendor.baton.workspace.list", json!({"prefix": "notes/", "into": into}))),
        1 => select(vec!["write-then-read", "ttl-probe"])
            .prop_map(|action| ("core.identity", json!({"memoryAction": action}))),
    ]
}

/// Reads a whole log beside the versioned stores' history: what was announced was written, and what a node saw is what was in
/// its sight. The sight is worked out here from the log alone.
pub struct Reader<'a> {
    pub plan: &'a Plan,
    pub run: &'a RunId,
    pub ledgers: &'a VersionedStores,
    /// How far each child had written when its parent heard of its end.
    pub told: &'a BTreeMap<RunId, u64>,
}

impl Reader<'_> {
    pub fn check(&self, log: &[Record]) {
        let mut read_version = ReadVersion::default();
        let mut workspace = 0;
        for record in log {
            match &record.event {
                Event::RunStarted(event) => {
                    read_version.version = event.private.versions.memory;
                    workspace = event.private.versions.workspace;
                }
                Event::NodeStarted(event) => {
                    if let Some(frozen) = event.private.frozen {
                        read_version.version = read_version.version.max(frozen.versions.memory);
                        workspace = workspace.max(frozen.versions.workspace);
                    }
                }
                Event::NodeSuspended(event) if event.reason.as_deref() == Some("merge-approval") => {
                    read_version.version = read_version.version.max(self.told[event.child_run_id.as_ref().unwrap()]);
                }
                Event::MemoryWritten(event) => {
                    assert_eq!(event.memory_ref, memory_ref(self.run.as_str()));
                    read_version.own = event.private.version;
                    let (writer, entry) = self.ledgers.change(read_version.own);
                    assert_eq!(
                        (writer, entry.map(|e| (&e.id, &e.tags))),
                        (self.run.as_str(), Some((&event.memory_id, &event.tags)))
                    );
                }
                Event::MemoryDeleted(event) => {
                    read_version.own = event.private.version;
                    assert_eq!(self.ledgers.change(read_version.own), (self.run.as_str(), None));
                }
                Event::WorkspaceUpdated(event) => {
                    let files = self.ledgers.files(event.private.version);
                    assert_eq!(files[&event.path].meta.version, event.version);
                }
                Event::NodeCompleted(event) => {
                    self.check_node(record, event, read_version, workspace);
                    if event.outputs.get("childStatus") == Some(&json!("completed"))
                        && !event.outputs.contains_key("attestation")
                    {
                        let child = event.outputs["childRunId"].as_str().unwrap();
                        // A merge that was not approved says so too; its child was heard of when the question was asked.
                        read_version.version = read_version.version.max(self.told[&RunId::new(child)]);
                    }
                }
                _ => {}
            }
        }
    }

    fn check_node(&self, record: &Record, event: &NodeCompleted, read_version: ReadVersion, workspace: u64) {
        let node = self.node(&event.node_id);
        let config = &node.config;
        let seen = self.ledgers.seen_by(self.run.as_str(), read_version, record.at);
        let expected = match node.type_id.as_str() {
            "vendor.baton.memory.list" => {
                let tag = config.get("tag").and_then(Value::as_str);
                let limit = config.get("limit").and_then(Value::as_u64).filter(|limit| *limit > 0).unwrap_or(u64::MAX);
                let mut found = seen;
                found.retain(|entry| tag.is_none_or(|tag| entry.tags.iter().any(|t| t == tag)));
                found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                json!({"entries": found})
            }
            "vendor.baton.memory.get" => match config.get("id") {
                Some(id) => json!({"entry": seen.iter().find(|entry| *id == entry.id)}),
                None => return,
            },
            "vendor.baton.memory.put" => json!({"entry": self.ledgers.change(read_version.own).1}),
            "vendor.baton.workspace.get" => {
                json!({"file": self.ledgers.files(workspace).get(config["path"].as_str().unwrap())})
            }
            "vendor.baton.workspace.list" => {
                let prefix = config.get("prefix").and_then(Value::as_str).unwrap_or("");
                let files = self.ledgers.files(workspace).into_values().map(|file| file.meta);
                json!({"files": files.filter(|meta| meta.path.starts_with(prefix)).collect::<Vec<_>>()})
            }
            _ => return,
        };
        if config.get("into") == Some(&json!("secret")) {
            assert!(event.outputs.values().all(|shown| shown == REDACTED), "a sensitive variable shows: {event:?}");
        } else {
            let masked = event.outputs.values().any(|shown| shown == REDACTED);
            assert!(masked || Value::Object(event.outputs.clone()) == expected, "{event:?} instead of {expected}");
        }
    }

    fn node(&self, id: &NodeId) -> &baton_model::workflow::Node {
        self.plan.definition().nodes.iter().find(|node| node.id == *id).unwrap()
    }
}
