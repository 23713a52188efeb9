//! The workflows the bench registers for itself, so that it measures a host as it runs in production.

use serde_json::{Value, json};

pub(crate) fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({ "id": id, "typeId": type_id, "name": id, "position": { "x": 0, "y": 0 }, "config": config, "inputs": {} })
}

/// A workflow whose nodes follow each other.
pub(crate) fn chain(id: &str, nodes: &[Value], variables: Value) -> Value {
    let edges: Vec<Value> = nodes.windows(2).map(|pair| edge(&pair[0]["id"], &pair[1]["id"])).collect();
    json!({
        "id": id, "name": id, "version": "1", "nodes": nodes, "edges": edges, "variables": variables,
        "triggers": [{ "id": "manual", "type": "manual" }], "metadata": {}, "settings": {},
    })
}

/// A supervisor that sends `workers` in each of the first `turns` turns, and the dispatch that starts them.
pub(crate) fn supervised(id: &str, turns: usize, workers: &[&str], dispatch: Value) -> Value {
    supervised_while(id, &format!("iteration <= {turns}"), workers, dispatch)
}

/// A supervisor that sends `workers` in each turn as long as `condition` (CEL) holds.
pub(crate) fn supervised_while(id: &str, condition: &str, workers: &[&str], dispatch: Value) -> Value {
    let rules = json!([{
        "when": condition,
        "decide": { "kind": "next-worker", "nextWorkerIds": workers },
    }]);
    let config = json!({ "rules": rules, "otherwise": { "kind": "terminate" } });
    let nodes =
        [node("supervisor", "core.orchestrator.supervisor", config), node("dispatch", "core.dispatch", dispatch)];
    let mut workflow = chain(id, &nodes, json!([{ "name": "value", "type": "number", "defaultValue": 0 }]));
    if let Some(edges) = workflow["edges"].as_array_mut() {
        edges.push(edge(&nodes[1]["id"], &nodes[0]["id"]));
    }
    workflow
}

/// A loop that goes through `body` this many times.
pub(crate) fn repeated(id: &str, rounds: usize, body: &[Value]) -> Value {
    let head = node("each", "core.loop", json!({ "count": rounds, "maxIterations": rounds.max(1) }));
    let nodes: Vec<Value> = std::iter::once(head).chain(body.iter().cloned()).collect();
    let mut workflow = chain(id, &nodes, json!([]));
    if let Some(edges) = workflow["edges"].as_array_mut() {
        edges[0]["sourceOutput"] = json!("body");
        edges.push(edge(&nodes[nodes.len() - 1]["id"], &nodes[0]["id"]));
    }
    workflow
}

/// Ends at once.
pub(crate) fn noop(id: &str) -> Value {
    chain(id, &[node("noop", "core.noop", json!({}))], json!([]))
}

/// Waits for a human at the node `gate`.
pub(crate) fn approval(id: &str, gate: &str) -> Value {
    chain(
        id,
        &[node(gate, "core.approvalGate", json!({ "title": "Go on?", "actions": ["accept", "reject"] }))],
        json!([]),
    )
}

/// Waits for a fixed time.
pub(crate) fn delay(id: &str, milliseconds: u128) -> Value {
    chain(id, &[node("wait", "core.delay", json!({ "durationMs": milliseconds }))], json!([]))
}

fn edge(from: &Value, to: &Value) -> Value {
    let id = format!("{}-{}", from.as_str().unwrap_or_default(), to.as_str().unwrap_or_default());
    json!({ "id": id, "sourceNodeId": from, "targetNodeId": to })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_supervised_workflow_is_drawn_as_the_loop_it_is() {
        let workflow = supervised("loop", 10, &["worker"], json!({}));
        let edges: Vec<(&str, &str)> = workflow["edges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|edge| (edge["sourceNodeId"].as_str().unwrap(), edge["targetNodeId"].as_str().unwrap()))
            .collect();
        assert_eq!(edges, [("supervisor", "dispatch"), ("dispatch", "supervisor")]);
        assert_eq!(workflow["nodes"][0]["config"]["rules"][0]["when"], "iteration <= 10");
    }

    #[test]
    fn a_repeated_body_is_entered_by_its_port_and_comes_back() {
        let body = [node("a", "core.noop", json!({})), node("b", "core.noop", json!({}))];
        let workflow = repeated("loop", 3, &body);
        let edges = workflow["edges"].as_array().unwrap();
        let ends = |edge: &Value| [edge["sourceNodeId"].clone(), edge["targetNodeId"].clone()];
        assert_eq!(edges.iter().map(ends).collect::<Vec<_>>(), [["each", "a"], ["a", "b"], ["b", "each"]]);
        assert_eq!((&edges[0]["sourceOutput"], &edges[1]["sourceOutput"]), (&json!("body"), &Value::Null));
    }
}
