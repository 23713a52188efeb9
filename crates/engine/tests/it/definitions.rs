//! What registration refuses, and the place it points at.

use crate::support;

use baton_engine::{Features, Plan, Problem};
use serde_json::{Value, json};
use support::workflow;

const NONE: Value = Value::Null;
const BAD_CEL: &str = "1 +";

fn problems(definition: Value) -> Vec<Problem> {
    Plan::compile(definition, Features { conformance: true, ..Features::default() })
        .map(|_| ())
        .expect_err("the definition is refused")
}

/// The places of all problems, in the order they are reported.
fn places(definition: Value) -> Vec<String> {
    problems(definition).into_iter().map(|problem| problem.pointer).collect()
}

fn noops(edges: &[(&str, &str, Value)]) -> Value {
    let nodes = ["a", "b", "c"].map(|id| (id, "core.noop", json!({})));
    workflow(&nodes, edges)
}

/// The places of problems of one node with this type and configuration.
fn config(type_id: &str, config: Value) -> Vec<String> {
    places(workflow(&[("a", type_id, config)], &[]))
}

#[test]
fn a_definition_has_a_shape() {
    assert_eq!(places(json!([])), [""]);
    assert_eq!(places(json!({})), [""]);
    let broken = |pointer: &str, value: Value| {
        let mut definition = noops(&[("a", "b", NONE)]);
        *definition.pointer_mut(pointer).unwrap() = value;
        places(definition)
    };
    for pointer in ["/nodes/1/typeId", "/nodes/0/inputs", "/edges/0/id", "/settings", "/variables", "/name"] {
        assert_eq!(broken(pointer, json!(1.5)), [pointer]);
    }
    assert_eq!(
        broken("/edges/0", json!({"id": "e", "sourceNodeId": "a", "targetNodeId": "b", "triggerRule": "some"})),
        ["/edges/0/triggerRule"]
    );
    assert_eq!(broken("/nodes/0/inputs", json!({"x": {"type": "magic"}})), ["/nodes/0/inputs/x/type"]);
    let mut unknown = noops(&[]);
    unknown["nodes"][2]["typo"] = json!(1);
    assert_eq!(places(unknown), ["/nodes/2/typo"]);
}

#[test]
fn the_header_is_checked() {
    let with = |key: &str, value: Value| {
        let mut definition = noops(&[]);
        definition[key] = value;
        places(definition)
    };
    assert_eq!(with("id", json!("Not Good")), ["/id"]);
    assert_eq!(with("name", json!("")), ["/name"]);
    assert_eq!(with("name", json!("x".repeat(257))), ["/name"]);
    assert_eq!(with("nodes", json!([])), ["/nodes"]);
    assert_eq!(with("configurableSchema", json!({"type": 1})), ["/configurableSchema"]);
    assert_eq!(with("channels", json!({"a/b": {"ttlMs": 0}})), ["/channels/a~1b/ttlMs"]);
    assert_eq!(
        with("channels", json!({"c": {"maxSize": 0, "schemaVersion": 0}})),
        ["/channels/c/schemaVersion", "/channels/c/maxSize"]
    );
    let twice = json!([{"name": "v", "type": "string"}, {"name": "v", "type": "number"}]);
    assert_eq!(with("variables", twice), ["/variables/1/name"]);
    let mut shared = noops(&[]);
    shared["variables"] = json!([{"name": "v", "type": "string"}]);
    shared["channels"] = json!({"v": {}});
    assert_eq!(places(shared), ["/channels/v"]);
}

#[test]
fn ids_are_unique_and_edges_lead_somewhere() {
    let mut definition = noops(&[("a", "b", NONE), ("b", "c", NONE)]);
    definition["nodes"][2]["id"] = "a".into();
    definition["edges"][1] = json!({"id": "e0", "sourceNodeId": "x", "targetNodeId": "y"});
    assert_eq!(places(definition), ["/nodes/2/id", "/edges/1/id", "/edges/1/sourceNodeId", "/edges/1/targetNodeId"]);
    let mut empty = noops(&[]);
    empty["nodes"][1]["id"] = "".into();
    assert_eq!(places(empty), ["/nodes/1/id"]);
}

#[test]
fn a_port_connects_to_a_node_that_exists() {
    let mut definition = noops(&[]);
    definition["nodes"][1]["inputs"] = json!({
        "far": {"type": "connection", "nodeId": "x", "outputKey": "o"},
        "w/~": {"type": "expression", "expression": BAD_CEL},
    });
    assert_eq!(places(definition), ["/nodes/1/inputs/far/nodeId", "/nodes/1/inputs/w~1~0/expression"]);
}

#[test]
fn conditions_are_checked() {
    let table = [
        (json!({"type": "expression"}), "expression"),
        (json!({"type": "expression", "expression": BAD_CEL}), "expression"),
        (json!({"type": "equals", "right": 1}), "left"),
        (json!({"type": "truthy", "left": ""}), "left"),
        (json!({"type": "regex", "left": "a"}), "right"),
        (json!({"type": "regex", "left": "a", "right": "("}), "right"),
    ];
    for (condition, key) in table {
        let found = places(noops(&[("a", "b", json!({"condition": condition}))]));
        assert_eq!(found, [format!("/edges/0/condition/{key}")], "{condition}");
    }
}

#[test]
fn each_node_type_checks_its_configuration() {
    let table = [
        ("core.delay", json!({"ms": -1}), "/ms"),
        ("core.delay", json!({"durationMs": "soon"}), "/durationMs"),
        ("core.fail", json!({"code": 1}), "/code"),
        ("core.fail", json!({"message": []}), "/message"),
        ("core.conditional", json!({}), "/expression"),
        ("core.conditional", json!({"expression": BAD_CEL}), "/expression"),
        ("core.conditional", json!({"condition": BAD_CEL}), "/condition"),
        ("core.setVariable", json!({}), "/variableName"),
        ("core.setVariable", json!({"name": "x", "expression": BAD_CEL}), "/expression"),
        ("core.setVariable", json!({"assign": []}), "/assign"),
        ("core.setVariable", json!({"assign": {"a/b": 1}}), "/assign/a~1b"),
        ("core.setVariable", json!({"assign": {"x": BAD_CEL}}), "/assign/x"),
        ("core.getVariable", json!({"name": 1}), "/name"),
        ("core.loop", json!({}), ""),
        ("core.loop", json!({"count": 1, "while": "true"}), ""),
        ("core.loop", json!({"count": 1.5}), "/count"),
        ("core.loop", json!({"while": BAD_CEL}), "/while"),
        ("core.loop", json!({"items": BAD_CEL}), "/items"),
        ("core.loop", json!({"count": 1, "maxIterations": 0}), "/maxIterations"),
        ("core.channelWrite", json!({}), "/channel"),
        ("core.channelWrite", json!({"channelName": "c", "reducer": "average"}), "/reducer"),
        ("core.channelWrite", json!({"channelName": "c", "ttlMs": 0}), "/ttlMs"),
        ("core.channelWrite", json!({"channelName": "c", "maxSize": "big"}), "/maxSize"),
        ("core.channelWrite", json!({"channelName": "c", "expression": BAD_CEL}), "/expression"),
        ("core.approvalGate", json!({"actions": []}), "/actions"),
        ("core.approvalGate", json!({"actions": ["approve"]}), "/actions"),
        ("core.approvalGate", json!({"requiredApprovals": 0}), "/requiredApprovals"),
        ("core.approvalGate", json!({"rejectionPolicy": "never"}), "/rejectionPolicy"),
        ("core.approvalGate", json!({"approversList": "ann"}), "/approversList"),
        ("core.approvalGate", json!({"timeoutMs": -5}), "/timeoutMs"),
        ("core.clarificationGate", json!({}), "/questions"),
        ("core.clarificationGate", json!({"questions": []}), "/questions"),
        ("core.clarificationGate", json!({"questions": [{"id": ""}]}), "/questions"),
        ("core.interrupt", json!({}), "/kind"),
        ("core.interrupt", json!({"kind": "conversation.start"}), "/kind"),
        ("core.interrupt", json!({"kind": "custom", "data": []}), "/data"),
        ("core.interrupt", json!({"kind": "custom", "resumeSchema": {"type": 1}}), "/resumeSchema"),
        ("core.interrupt", json!({"kind": "custom", "resumeSchema": true}), "/resumeSchema"),
        ("core.interrupt", json!({"kind": "external-event", "data": {}}), "/data"),
        ("core.interrupt", json!({"kind": "external-event", "data": {"eventType": "e", "correlation": 1}}), "/data"),
        ("core.interrupt", json!({"kind": "approval", "data": {"actions": 1}}), "/data/actions"),
        ("core.interrupt", json!({"kind": "clarification"}), "/data/questions"),
        ("core.subWorkflow", json!({}), "/workflowId"),
        ("core.subWorkflow", json!({"workflowId": "w", "inputMapping": {"a": 1}}), "/inputMapping"),
        ("core.subWorkflow", json!({"workflowId": "w", "outputMapping": []}), "/outputMapping"),
        ("core.subWorkflow", json!({"workflowId": "w", "onChildFailure": "retry"}), "/onChildFailure"),
        ("core.subWorkflow", json!({"workflowId": "w", "waitForCompletion": false}), "/waitForCompletion"),
        ("core.subWorkflow", json!({"workflowId": "w", "propagateCancellation": 1}), "/propagateCancellation"),
    ];
    for (type_id, value, place) in table {
        assert_eq!(config(type_id, value.clone()), [format!("/nodes/0/config{place}")], "{type_id} {value}");
    }
}

#[test]
fn channels_and_variables_are_written_by_their_own_nodes() {
    let mut variable = workflow(&[("a", "core.channelWrite", json!({"channelName": "v"}))], &[]);
    variable["variables"] = json!([{"name": "v", "type": "string"}]);
    assert_eq!(places(variable), ["/nodes/0/config/channelName"]);
    let mut channel = workflow(&[("a", "core.setVariable", json!({"name": "c", "value": 1}))], &[]);
    channel["channels"] = json!({"c": {}});
    assert_eq!(places(channel), ["/nodes/0/config"]);
    let mut schema = workflow(&[("a", "core.channelWrite", json!({"channelName": "c"}))], &[]);
    schema["channels"] = json!({"c": {"schema": {"type": 1}}});
    assert_eq!(places(schema), ["/nodes/0/config/channelName"]);
}

#[test]
fn unknown_and_test_only_types_are_refused() {
    assert_eq!(config("core.teleport", json!({})), ["/nodes/0/typeId"]);
    for type_id in ["core.ai.callPrompt", "conformance.requiresMissing"] {
        let definition = workflow(&[("a", type_id, json!({}))], &[]);
        assert!(Plan::compile(definition.clone(), Features { conformance: true, ..Features::default() }).is_ok());
        let found = Plan::compile(definition.clone(), Features::default()).unwrap_err();
        assert_eq!(found[0].pointer, "/nodes/0/typeId");
        let mut production = definition;
        production["id"] = "orders".into();
        assert_eq!(places(production), ["/nodes/0/typeId"]);
    }
}

#[test]
fn a_type_behind_a_capability_names_the_capability() {
    let found = problems(workflow(&[("a", "core.noop", json!({})), ("talk", "core.conversationGate", json!({}))], &[]));
    assert_eq!((found[0].pointer.as_str(), found[0].code), ("/nodes/1/typeId", "capability_required"));
    let details = json!({"requiredCapability": "conversationPrimitive", "offendingTypeId": "core.conversationGate", "nodeId": "talk"});
    assert_eq!(Value::Object(found[0].details.clone()), details);
}

#[test]
fn cycles_need_a_loop_to_control_them() {
    assert_eq!(places(noops(&[("a", "b", NONE), ("b", "c", NONE), ("c", "b", NONE)])), ["/nodes/1"]);
    assert_eq!(places(noops(&[("c", "c", NONE)])), ["/nodes/2"]);
    let bare = workflow(&[("a", "core.noop", json!({})), ("l", "core.loop", json!({"count": 1}))], &[("a", "l", NONE)]);
    assert_eq!(places(bare), ["/nodes/1"]);
    let no_return = workflow(
        &[("l", "core.loop", json!({"count": 1})), ("a", "core.noop", json!({}))],
        &[("l", "a", json!({"sourceOutput": "body"}))],
    );
    assert_eq!(places(no_return), ["/nodes/0"]);
}

#[test]
fn loops_do_not_cross() {
    let definition = workflow(
        &[
            ("outer", "core.loop", json!({"count": 2})),
            ("inner", "core.loop", json!({"count": 2})),
            ("work", "core.noop", json!({})),
        ],
        &[
            ("outer", "inner", json!({"sourceOutput": "body"})),
            ("inner", "work", json!({"sourceOutput": "body"})),
            ("work", "inner", NONE),
            ("work", "outer", NONE),
        ],
    );
    let found = problems(definition);
    assert_eq!(found[0].pointer, "/nodes/1");
    assert!(found[0].message.contains("`outer` and `inner` cross"), "{}", found[0].message);
}

#[test]
fn everything_wrong_is_said_at_once() {
    let mut definition = noops(&[("a", "nowhere", NONE)]);
    definition["id"] = "Bad".into();
    definition["nodes"][0]["typeId"] = "core.teleport".into();
    definition["nodes"][1]["inputs"] = json!({"x": {"type": "expression", "expression": ""}});
    let found = problems(definition);
    let pointers: Vec<&str> = found.iter().map(|problem| problem.pointer.as_str()).collect();
    assert_eq!(pointers, ["/id", "/edges/0/targetNodeId", "/nodes/0/typeId", "/nodes/1/inputs/x/expression"]);
    assert!(found.iter().all(|problem| problem.message.ends_with('.') || problem.message.contains(": ")));
}

/// A quorum that a rule's workers can never reach would fail every run that follows the rule.
#[test]
fn a_quorum_has_enough_workers_wherever_they_are_spelt_out() {
    let led = |quorum: u64, first: &[&str], otherwise: Value| {
        let next = |ids: &[&str]| json!({"kind": "next-worker", "nextWorkerIds": ids});
        let rules = json!({
            "rules": [
                {"when": "iteration == 1", "decide": next(first)},
                {"when": "iteration == 2", "decide": {"kind": "ask-user", "prompt": "Which way?"}},
                {"when": "iteration == 3", "decide": next(&["a", "b", "c"])}
            ],
            "otherwise": otherwise
        });
        let join = json!({"mode": "quorum", "quorum": quorum});
        let dispatch = json!({"fanOutPolicy": "parallel", "joinPolicy": join});
        let nodes = [("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)];
        workflow(&nodes, &[("lead", "dispatch", NONE)])
    };
    let (end, one) = (json!({"kind": "terminate"}), json!({"kind": "next-worker", "nextWorkerIds": ["a"]}));
    let fits = Plan::compile(led(2, &["a", "b"], end.clone()), Features::default());
    assert!(fits.is_ok(), "{fits:?}");
    let rule = "/nodes/0/config/rules/0/decide/nextWorkerIds";
    assert_eq!(places(led(3, &["a", "b"], end)), [rule]);
    let both = led(2, &["a"], one);
    assert_eq!(places(both.clone()), [rule, "/nodes/0/config/otherwise/nextWorkerIds"]);
    assert!(problems(both.clone())[0].message.contains("1 of the 2 workers"), "{:?}", problems(both.clone()));
    // What was registered before goes on to be read.
    assert!(Plan::compile(both, Features { recorded: true, ..Features::default() }).is_ok());
}
