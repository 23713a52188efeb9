//! The workflows of conformance mode: small, each showing one behaviour, driven by the ordinary engine.

mod agents;
mod memory;
mod models;
mod orchestration;
mod prompts;

pub(crate) use agents::equipped;
pub use agents::{CONFORMANCE_AGENT, CONFORMANCE_STRICT_AGENT};

use serde_json::{Value, json};

struct Draft {
    id: &'static str,
    nodes: Vec<Value>,
    edges: Vec<Value>,
    variables: Vec<Value>,
    settings: Value,
}

fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}})
}

fn fed(mut node: Value, port: &str, variable: &str) -> Value {
    node["inputs"][port] = json!({"type": "variable", "variableName": variable});
    node
}

/// A workflow whose nodes follow each other.
fn chain(id: &'static str, nodes: Vec<Value>) -> Draft {
    let edges = nodes
        .windows(2)
        .enumerate()
        .map(|(i, pair)| json!({"id": format!("e{i}"), "sourceNodeId": pair[0]["id"], "targetNodeId": pair[1]["id"]}))
        .collect();
    Draft { id, nodes, edges, variables: Vec::new(), settings: json!({}) }
}

impl Draft {
    fn variable(mut self, name: &str, kind: &str, default: Option<Value>) -> Self {
        let mut variable = json!({"name": name, "type": kind});
        match default {
            Some(value) => variable["defaultValue"] = value,
            None => variable["required"] = json!(name == "payload"),
        }
        self.variables.push(variable);
        self
    }

    fn settings(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    fn build(self) -> Value {
        json!({
            "id": self.id,
            "name": self.id,
            "version": "1.0",
            "nodes": self.nodes,
            "edges": self.edges,
            "triggers": [{"id": "manual", "type": "manual", "enabled": true}],
            "variables": self.variables,
            "metadata": {"tags": ["conformance"]},
            "settings": self.settings,
        })
    }
}

pub(crate) fn workflows() -> Vec<Value> {
    let mut all: Vec<Value> = {
        let drafts = plain().into_iter().chain(interrupts()).chain(children());
        let drafts = drafts.chain(orchestration::workflows()).chain(memory::workflows()).chain(models::workflows());
        let drafts = drafts.chain(agents::workflows());
        drafts.map(Draft::build).collect()
    };
    all.push(configurable_schema());
    all.push(message_reducer());
    all
}

fn plain() -> Vec<Draft> {
    let noop = |id: &str| node(id, "core.noop", json!({}));
    let write = |id: &str, value: &str| {
        let config = json!({"channelName": "events", "reducer": "append", "ttlMs": 200, "value": value});
        node(id, "core.channelWrite", config)
    };
    vec![
        chain("conformance-noop", vec![noop("noop")]),
        chain("conformance-version-fold", vec![noop("noop")]),
        chain("conformance-idempotent", vec![noop("noop")]).variable("nonce", "string", None),
        chain("conformance-identity", vec![fed(node("echo", "core.identity", json!({})), "payload", "payload")])
            .variable("payload", "object", None),
        chain("conformance-delay", vec![fed(node("wait", "core.delay", json!({})), "delayMs", "delayMs")]).variable(
            "delayMs",
            "number",
            Some(json!(1000)),
        ),
        chain("conformance-cancellable", vec![fed(node("wait", "core.delay", json!({})), "delayMs", "delayMs")])
            .variable("delayMs", "number", Some(json!(30_000))),
        chain("conformance-run-duration-breach", vec![node("wait", "core.delay", json!({"ms": 30_000}))]),
        chain("conformance-failure", vec![node("fail", "core.fail", json!({}))]),
        chain("conformance-multi-node", vec![noop("a"), noop("b"), noop("c")]),
        chain("conformance-cap-breach", ["n1", "n2", "n3", "n4", "n5", "n6"].into_iter().map(noop).collect()),
        chain(
            "conformance-channel-ttl",
            vec![
                write("write-a", "a"),
                write("write-b", "b"),
                write("write-c", "c"),
                node("ttl-wait", "core.delay", json!({"ms": 300})),
                write("write-d", "d"),
            ],
        ),
        chain("conformance-capability-missing", vec![node("n1", "conformance.requiresMissing", json!({}))]),
        // A replay has the effect from the record; the seam `replay/effect-count` tells whether it really happened.
        chain("conformance-replay-effect", vec![noop("before"), node("effect", "conformance.effect.emit", json!({}))]),
        // Cancelled while it waits, the effect is recorded nowhere: a replay fails there.
        chain(
            "conformance-replay-side-effect",
            vec![
                fed(node("wait", "core.conformance.hold", json!({})), "delayMs", "delayMs"),
                node("effect", "core.conformance.side-effect", json!({})),
            ],
        )
        .variable("delayMs", "number", Some(json!(30_000))),
        chain("conformance-stream-text", vec![node("ai", "core.ai.callPrompt", json!({"expectsStreaming": true}))]),
    ]
}

fn interrupts() -> Vec<Draft> {
    let gate = |id: &str, config: Value| node(id, "core.approvalGate", config);
    let approve = |title: &str| json!({"title": title, "actions": ["accept", "reject"]});
    let quorum = json!({
        "title": "Three of you, please", "actions": ["accept", "reject"],
        "requiredApprovals": 3, "rejectionPolicy": "majority", "approversList": []
    });
    let bearer = json!({
        "title": "Keys only", "actions": ["accept", "reject"], "profile": "openwop-interrupt-auth-required"
    });
    let external = json!({
        "kind": "external-event",
        "data": {
            "eventType": "conformance.external.completed",
            "correlation": {"orderId": "fixture-order-1", "status": "completed"}
        },
        "timeoutMs": 60_000
    });
    let questions = json!({"questions": [{"id": "q1", "question": "Which way?"}]});
    vec![
        chain("conformance-approval", vec![gate("gate", approve("Go on?"))]),
        chain("conformance-clarification", vec![node("ask", "core.clarificationGate", questions)]),
        chain("conformance-interrupt-quorum", vec![gate("gate", quorum)]),
        chain("conformance-interrupt-auth-required", vec![gate("gate", bearer)]),
        chain("conformance-interrupt-external-event", vec![node("wait-for-external", "core.interrupt", external)]),
        chain("conformance-interrupt-parent-child-cancel-child", vec![gate("child-gate", approve("Child, go on?"))]),
        chain(
            "conformance-interrupt-parent-child-cancel",
            vec![node(
                "spawn-child",
                "core.subWorkflow",
                json!({
                    "workflowId": "conformance-interrupt-parent-child-cancel-child",
                    "waitForCompletion": true,
                    "propagateCancellation": true
                }),
            )],
        ),
    ]
}

fn children() -> Vec<Draft> {
    let noop = |id: &str| node(id, "core.noop", json!({}));
    let call = |id: &str, config: Value| node(id, "core.subWorkflow", config);
    let mapped = |child: &str| json!({"workflowId": child, "inputMapping": {"receivedPrdId": "currentPrdId"}});
    vec![
        chain("conformance-subworkflow-child", vec![noop("child-noop")]).variable(
            "childResult",
            "string",
            Some(json!("child-completed")),
        ),
        chain(
            "conformance-subworkflow-parent",
            vec![
                noop("parent-start"),
                call(
                    "subwf-call",
                    json!({
                        "workflowId": "conformance-subworkflow-child",
                        "waitForCompletion": true,
                        "onChildFailure": "fail-parent",
                        "outputMapping": {"childOutcome": "childResult"}
                    }),
                ),
                noop("parent-end"),
            ],
        )
        .settings(json!({"timeout": 60_000, "maxRetries": 0})),
        chain("conformance-subworkflow-input-mapping-child", vec![noop("child-noop")]).variable(
            "receivedPrdId",
            "string",
            Some(json!("baked-in")),
        ),
        chain(
            "conformance-subworkflow-input-mapping",
            vec![call("subwf-call", mapped("conformance-subworkflow-input-mapping-child"))],
        )
        .variable("currentPrdId", "string", Some(json!("prd-1"))),
        chain(
            "conformance-subworkflow-input-mapping-no-default",
            vec![call("subwf-call", mapped("conformance-subworkflow-input-mapping-child"))],
        )
        .variable("currentPrdId", "string", None),
        chain(
            "conformance-subworkflow-mid-run-mutation-child",
            vec![node(
                "child-gate",
                "core.approvalGate",
                json!({"title": "Hold the child", "actions": ["accept", "reject"]}),
            )],
        )
        .variable("receivedPrdId", "string", Some(json!("baked-in"))),
        chain(
            "conformance-subworkflow-mid-run-mutation",
            vec![call("subwf-call", mapped("conformance-subworkflow-mid-run-mutation-child"))],
        )
        .variable("currentPrdId", "string", Some(json!("seeded-id"))),
    ]
}

fn configurable_schema() -> Value {
    let mut workflow = chain("conformance-configurable-schema", vec![node("noop", "core.noop", json!({}))]).build();
    workflow["configurableSchema"] = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "recursionLimit": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}}
        }
    });
    workflow
}

fn message_reducer() -> Value {
    let write = |id: &str| {
        let config = json!({"channelName": "messages", "value": {"messageId": "m-1", "text": "once"}});
        node(id, "core.channelWrite", config)
    };
    let mut workflow = chain("conformance-message-reducer", vec![write("first"), write("again")]).build();
    workflow["channels"] = json!({"messages": {"reducer": "message", "schema": {"type": "array"}}});
    workflow
}
