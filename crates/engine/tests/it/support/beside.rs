//! What is put beside a random graph: the loop of a supervisor, and readers that look at memory and workspace late.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::generate::set;

#[derive(Clone, Copy, Debug)]
enum Decider {
    Script,
    Rules,
    Agent,
}

/// What a supervisor decides, either turn by turn or by what it remembers and reads.
fn supervisor(decisions: Vec<Value>, decider: Decider) -> Value {
    match decider {
        Decider::Script => return json!({"mockDispatchPlan": decisions}),
        Decider::Agent => return json!({"agentId": super::agents::PLANNER, "maxToolRounds": 2}),
        Decider::Rules => {}
    }
    let looks =
        ["size(memory) > 2", "iteration == 1", "'plan.md' in workspace", "memory.exists(m, m.content == 'sun')"];
    let rule = |(when, decide): (&str, &Value)| json!({"when": when, "decide": decide});
    let rules: Vec<Value> = looks.into_iter().zip(&decisions).map(rule).collect();
    json!({"rules": rules, "otherwise": {"kind": "terminate"}})
}

/// A supervisor and its dispatch: what it decides, and how workers are run and joined.
pub fn orchestration() -> impl Strategy<Value = (Value, Value)> {
    let confidence = proptest::option::of(select(vec![0.2, 0.9]));
    let decision = (0..4, confidence).prop_map(|(kind, confidence)| {
        let decision = match kind {
            0 => json!({"kind": "next-worker", "nextWorkerIds": ["child"]}),
            1 => json!({"kind": "next-worker", "nextWorkerIds": ["child", "other", "child"]}),
            2 => json!({"kind": "ask-user", "prompt": "Which one?"}),
            _ => json!({"kind": "terminate", "reason": "enough"}),
        };
        set(decision, "confidence", confidence.filter(|_| kind != 2))
    });
    let dispatch = (
        select(vec!["sequential", "parallel"]),
        select(vec!["wait-all", "quorum", "first", "race"]),
        any::<Option<bool>>(),
    )
        .prop_map(|(policy, mode, attest)| {
            let mut dispatch = json!({"fanOutPolicy": policy, "outputMapping": {"late": "result"}});
            // An approver of a merge is shown what would be merged, so nothing sensitive goes that way.
            if attest != Some(true) {
                dispatch["outputMapping"]["secret"] = "deep".into();
            }
            if policy == "parallel" {
                dispatch["joinPolicy"] = set(json!({"mode": mode}), "quorum", (mode == "quorum").then_some(2));
            }
            if let Some(approval) = attest {
                dispatch["outputAttestation"] = json!({"checksum": true, "requireApproval": approval});
            }
            dispatch
        });
    let decider =
        (proptest::collection::vec(decision, 0..5), select(vec![Decider::Script, Decider::Rules, Decider::Agent]))
            .prop_map(|(all, decider)| supervisor(all, decider));
    (decider, dispatch)
}

fn add_node(definition: &mut Value, id: &str, type_id: &str, config: Value) {
    let node =
        json!({"id": id, "typeId": type_id, "name": "", "position": {"x": 0, "y": 0}, "config": config, "inputs": {}});
    definition["nodes"].as_array_mut().unwrap().push(node);
}

fn add_edge(definition: &mut Value, from: &str, to: &str) {
    let edge = json!({"id": format!("{from}-{to}"), "sourceNodeId": from, "targetNodeId": to});
    definition["edges"].as_array_mut().unwrap().push(edge);
}

/// Puts the loop of a supervisor beside everything else.
pub fn add_orchestration(definition: &mut Value, (supervisor, dispatch): (Value, Value)) {
    add_node(definition, "sup", "core.orchestrator.supervisor", supervisor);
    add_node(definition, "disp", "core.dispatch", dispatch);
    add_edge(definition, "sup", "disp");
    add_edge(definition, "disp", "sup");
}

/// Puts readers beside everything else that look at memory and workspace late: after a child, or after some time.
pub fn add_readers(definition: &mut Value, (type_id, config): (&'static str, Value)) {
    add_node(definition, "first", type_id, config);
    add_node(definition, "list", "vendor.baton.memory.list", json!({"into": "found"}));
    add_node(definition, "page", "vendor.baton.workspace.list", json!({"into": "files"}));
    add_edge(definition, "first", "list");
    add_edge(definition, "list", "page");
}
