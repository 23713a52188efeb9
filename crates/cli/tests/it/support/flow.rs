//! Workflows made by the tests themselves.

use serde_json::{Value, json};

pub fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}})
}

/// A workflow whose nodes follow each other.
pub fn chain(id: &str, nodes: Vec<Value>) -> Value {
    let edges: Vec<Value> = nodes
        .windows(2)
        .enumerate()
        .map(|(at, pair)| json!({"id": format!("e{at}"), "sourceNodeId": pair[0]["id"], "targetNodeId": pair[1]["id"]}))
        .collect();
    json!({
        "id": id, "name": id, "version": "1", "nodes": nodes, "edges": edges, "triggers": [], "variables": [],
        "metadata": {}, "settings": {}
    })
}

/// A supervisor over these rules, and the node that hands its work over, round and round.
pub fn team(id: &str, rules: Value, otherwise: Value, dispatch: Value) -> Value {
    let config = json!({"agentId": "lead", "rules": rules, "otherwise": otherwise});
    let nodes =
        vec![node("lead", "core.orchestrator.supervisor", config), node("hand-over", "core.dispatch", dispatch)];
    let mut team = chain(id, nodes);
    let back = json!({"id": "back", "sourceNodeId": "hand-over", "targetNodeId": "lead"});
    team["edges"].as_array_mut().unwrap().push(back);
    team
}

/// The decision to have a worker go on.
pub fn hand_to(worker: &str) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": [worker]})
}
