//! Random workflows that compile: mostly forward edges, loops as properly nested segments with one edge back.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::beside;

#[derive(Clone, Debug)]
struct NodeSeed {
    shape: (&'static str, Value),
    retries: u64,
    timeout: Option<u64>,
    input: Option<Value>,
    disabled: bool,
    /// How many nodes a loop would like to repeat.
    reach: usize,
}

#[derive(Clone, Debug)]
struct EdgeSeed {
    from: usize,
    to: usize,
    rule: &'static str,
    port: &'static str,
    condition: Option<Value>,
}

pub fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |n| n.is_finite().then(|| json!(n))),
        "[a-z\"é ]{0,4}".prop_map(Value::from),
        Just(json!({"a": [1, null, {"b": 0.1}]})),
        Just(json!([])),
    ]
}

fn expression() -> impl Strategy<Value = &'static str> {
    select(vec![
        "true",
        "variables.n < 3",
        "variables.n + 1",
        "variables.n / 7.0",
        "has(variables.late)",
        "variables.secret",
        "variables.secret + 1",
        "variables[variables.secret]",
        "[variables]",
        "inputs.value",
        "variables.hidden",
        "variables.missing.deep",
        "nodes",
        "[1, 2, variables.n]",
        "1 / 0",
    ])
}

fn condition() -> impl Strategy<Value = &'static str> {
    select(vec!["true", "false", "variables.n < 2", "variables.n % 2 == 0", "variables.missing > 1"])
}

fn timeout() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 1 => (1_u64..60).prop_map(Some)]
}

pub fn set(mut config: Value, key: &str, value: Option<impl Into<Value>>) -> Value {
    if let Some(value) = value {
        config[key] = value.into();
    }
    config
}

fn gate() -> impl Strategy<Value = (&'static str, Value)> {
    let actions = select(vec![
        json!(["accept", "reject"]),
        json!(["accept", "reject", "refine", "edit-accept", "ask"]),
        json!(["reject"]),
    ]);
    (actions, 1_u64..4, select(vec!["single-veto", "majority"]), timeout(), any::<bool>()).prop_map(
        |(actions, required, policy, timeout, generic)| {
            let config = json!({"actions": actions, "requiredApprovals": required, "rejectionPolicy": policy});
            if generic {
                ("core.interrupt", set(json!({"kind": "approval", "data": config}), "timeoutMs", timeout))
            } else {
                ("core.approvalGate", set(config, "timeoutMs", timeout))
            }
        },
    )
}

fn question() -> impl Strategy<Value = (&'static str, Value)> {
    (0..3, timeout()).prop_map(|(kind, timeout)| {
        let (type_id, config) = match kind {
            0 => (
                "core.clarificationGate",
                json!({"questions": [{"id": "q1", "question": "?"}, {"id": "q2", "question": "?"}]}),
            ),
            1 => (
                "core.interrupt",
                json!({"kind": "external-event", "data": {"eventType": "paid", "correlation": {"order": 7}}}),
            ),
            _ => (
                "core.interrupt",
                json!({"kind": "custom", "data": {"x": 1}, "resumeSchema": {"type": "object", "required": ["ok"]}}),
            ),
        };
        (type_id, set(config, "timeoutMs", timeout))
    })
}

fn channel_write() -> impl Strategy<Value = (&'static str, Value)> {
    let write = select(vec![
        ("list", "append", json!("x")),
        ("timed", "append", json!(1)),
        ("total", "counter", json!(2)),
        ("total", "counter", json!("not a number")),
        ("hidden", "replace", json!("channel-secret")),
        ("loose", "message", json!({"messageId": "m1"})),
        ("merged", "merge", json!({"k": 1})),
    ]);
    write.prop_map(|(name, reducer, value)| {
        ("core.channelWrite", json!({"channelName": name, "reducer": reducer, "value": value}))
    })
}

fn sub_workflow() -> impl Strategy<Value = (&'static str, Value)> {
    (any::<bool>(), any::<bool>(), proptest::bool::weighted(0.3)).prop_map(|(absorb, propagate, asks)| {
        let policy = if absorb { "absorb" } else { "fail-parent" };
        let mut config = json!({
            "workflowId": "child", "onChildFailure": policy, "propagateCancellation": propagate,
            "inputMapping": {"a": "n", "b": "unset"}, "outputMapping": {"late": "result"}
        });
        // An approver of a merge is shown what would be merged, so nothing sensitive goes that way.
        if asks {
            config["outputAttestation"] = json!({"checksum": true, "requireApproval": true});
        } else {
            config["outputMapping"]["secret"] = "deep".into();
        }
        ("core.subWorkflow", config)
    })
}

fn shape() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        4 => select(vec!["core.noop", "core.identity", "core.merge", "core.end", "core.parallel"])
            .prop_map(|type_id| (type_id, json!({}))),
        3 => (0_u64..50).prop_map(|ms| ("core.delay", json!({"ms": ms}))),
        1 => Just(("core.fail", json!({"code": "boom"}))),
        3 => condition().prop_map(|source| ("core.conditional", json!({"expression": source}))),
        2 => value().prop_map(|value| ("core.setVariable", json!({"name": "n", "value": value}))),
        1 => value().prop_map(|value| ("core.setVariable", json!({"name": "secret", "value": value}))),
        2 => expression().prop_map(|source| ("core.setVariable", json!({"assign": {"n": "variables.n + 1", "late": source}}))),
        1 => select(vec!["n", "secret", "unset"]).prop_map(|name| ("core.getVariable", json!({"name": name}))),
        3 => (0_u64..4).prop_map(|count| ("core.loop", json!({"count": count, "into": "n"}))),
        1 => Just(("core.loop", json!({"while": "variables.n < 3", "maxIterations": 4}))),
        1 => Just(("core.loop", json!({"items": "['a', 'b']"}))),
        2 => channel_write(),
        4 => gate(),
        3 => question(),
        4 => sub_workflow(),
        1 => Just(("core.ai.callPrompt", json!({}))),
        1 => Just(("conformance.requiresMissing", json!({}))),
        12 => super::versioned_nodes::shape(),
        8 => super::agent_nodes::shape(),
        8 => super::list_nodes::shape(),
    ]
}

fn port(from: usize) -> impl Strategy<Value = Value> {
    prop_oneof![
        value().prop_map(|value| json!({"type": "static", "value": value})),
        expression().prop_map(|source| json!({"type": "expression", "expression": source})),
        (0..=from, any::<bool>()).prop_map(|(node, optional)| {
            json!({"type": "connection", "nodeId": format!("n{node}"), "outputKey": "value", "optional": optional})
        }),
        (select(vec!["n", "secret", "list", "unset"]), any::<bool>())
            .prop_map(|(name, optional)| json!({"type": "variable", "variableName": name, "optional": optional})),
    ]
}

fn node() -> impl Strategy<Value = NodeSeed> {
    (
        shape(),
        prop_oneof![3 => Just(0_u64), 1 => 1_u64..3],
        timeout(),
        proptest::option::weighted(0.2, port(0)),
        proptest::bool::weighted(0.05),
        1_usize..4,
    )
        .prop_map(|(shape, retries, timeout, input, disabled, reach)| NodeSeed {
            shape,
            retries,
            timeout,
            input,
            disabled,
            reach,
        })
}

fn edge() -> impl Strategy<Value = EdgeSeed> {
    let rule = prop_oneof![
        3 => Just("all_success"),
        2 => select(vec!["any_success", "all_complete", "none_failed", "any_failed"]),
    ];
    let port = prop_oneof![
        3 => Just("output"),
        2 => select(vec!["true", "false", "accept", "reject", "refine", "other"]),
    ];
    let condition = proptest::option::weighted(
        0.2,
        prop_oneof![
            condition().prop_map(|source| json!({"type": "expression", "expression": source})),
            select(vec!["equals", "notEquals", "contains", "truthy", "falsy"])
                .prop_map(|kind| json!({"type": kind, "left": "variables.n", "right": 1})),
            Just(json!({"type": "regex", "left": "late", "right": "^a"})),
        ],
    );
    (0_usize..12, 0_usize..12, rule, port, condition).prop_map(|(from, to, rule, port, condition)| EdgeSeed {
        from,
        to,
        rule,
        port,
        condition,
    })
}

fn arrow(id: usize, from: usize, to: usize, port: &str) -> Value {
    json!({"id": format!("e{id}"), "sourceNodeId": format!("n{from}"), "targetNodeId": format!("n{to}"), "sourceOutput": port})
}

/// A loop as a segment: the head, and the last node of its body.
type Segment = (usize, usize);

/// Lays loops over the sequence of nodes: a loop repeats the nodes right after it and ends strictly inside the loop
/// around it. A loop with no room for a body becomes a `core.noop`.
fn segments(nodes: &mut [NodeSeed]) -> Vec<Segment> {
    let mut found: Vec<Segment> = Vec::new();
    for head in 0..nodes.len() {
        if nodes[head].shape.0 != "core.loop" {
            continue;
        }
        let around = found.iter().filter(|(_, end)| *end >= head).map(|(_, end)| *end).min();
        let end = (head + nodes[head].reach).min(around.unwrap_or(nodes.len()) - 1);
        if end > head {
            found.push((head, end));
        } else {
            nodes[head].shape = ("core.noop", json!({}));
        }
    }
    found
}

/// The edges that make a loop: into the body, along it (past the bodies of inner loops) and back.
fn loop_edges(nodes: &[NodeSeed], loops: &[Segment], edges: &mut Vec<Value>) {
    for &(head, end) in loops {
        let mut at = head;
        let mut next = head + 1;
        while next <= end {
            let port = match nodes[at].shape.0 {
                _ if at == head => "body",
                "core.conditional" => "true",
                _ => "output",
            };
            edges.push(arrow(edges.len(), at, next, port));
            at = next;
            next = loops.iter().find(|(inner, _)| *inner == at).map_or(at, |(_, end)| *end) + 1;
        }
        edges.push(arrow(edges.len(), at, head, "output"));
    }
}

/// Whether an edge jumps out of an inner loop, which makes loops cross.
fn leaves_inner_loop(loops: &[Segment], from: usize, to: usize) -> bool {
    loops.iter().any(|&(head, end)| {
        let leaves = head < from && from <= end && to > end;
        leaves && loops.iter().any(|&(outer, last)| outer < head && end <= last)
    })
}

fn build(mut nodes: Vec<NodeSeed>, seeds: Vec<EdgeSeed>) -> Value {
    let mut edges = Vec::new();
    let loops = segments(&mut nodes);
    loop_edges(&nodes, &loops, &mut edges);
    for seed in seeds {
        let (from, to) = (seed.from % nodes.len(), seed.to % nodes.len());
        let (from, to) = (from.min(to), from.max(to));
        if from == to || leaves_inner_loop(&loops, from, to) {
            continue;
        }
        let mut edge = arrow(edges.len(), from, to, seed.port);
        edge["triggerRule"] = seed.rule.into();
        if let Some(condition) = seed.condition {
            edge["condition"] = condition;
        }
        edges.push(edge);
    }
    let nodes: Vec<Value> = nodes
        .into_iter()
        .enumerate()
        .map(|(i, seed)| {
            let (type_id, config) = seed.shape;
            let mut inputs: Map<String, Value> =
                seed.input.into_iter().map(|port| ("value".to_owned(), port)).collect();
            if type_id == super::models::CALL {
                inputs = [("prompt".to_owned(), json!({"type": "static", "value": "Is it?"}))].into_iter().collect();
            }
            let mut settings = json!({"maxRetries": seed.retries, "retryDelayMs": 10});
            if let Some(timeout) = seed.timeout {
                settings["timeout"] = timeout.into();
            }
            json!({
                "id": format!("n{i}"), "typeId": type_id, "name": "", "position": {"x": 0, "y": 0},
                "config": config, "inputs": inputs, "settings": settings, "disabled": seed.disabled
            })
        })
        .collect();
    json!({
        "id": "conformance-random", "name": "Random", "version": "1", "nodes": nodes, "edges": edges, "triggers": [],
        "metadata": {}, "settings": {},
        "variables": [
            {"name": "n", "type": "object", "defaultValue": 0},
            {"name": "secret", "type": "object", "sensitive": true, "defaultValue": "first-secret"}
        ],
        "channels": {
            "list": {"reducer": "append", "maxSize": 2},
            "timed": {"reducer": "append", "ttlMs": 30},
            "total": {"reducer": "counter", "default": 0.5},
            "hidden": {"reducer": "replace", "sensitive": true},
            "merged": {"reducer": "merge", "maxSize": 3}
        }
    })
}

/// A generated definition; a failing case prints it as the JSON it is.
#[derive(Clone)]
pub struct Definition(pub Value);

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

pub fn workflow() -> impl Strategy<Value = Definition> {
    let nodes = proptest::collection::vec(node(), 1..=12);
    let edges = proptest::collection::vec(edge(), 0..16);
    let late = prop_oneof![sub_workflow(), (1_u64..60).prop_map(|ms| ("core.delay", json!({"ms": ms})))];
    let loop_ = proptest::option::weighted(0.3, beside::orchestration());
    (nodes, edges, loop_, proptest::option::weighted(0.5, late)).prop_map(|(nodes, edges, loop_, late)| {
        let mut definition = build(nodes, edges);
        if let Some(first) = late {
            beside::add_readers(&mut definition, first);
        }
        if let Some(parts) = loop_ {
            beside::add_orchestration(&mut definition, parts);
        }
        Definition(definition)
    })
}
