//! How a test workflow is written down: its nodes in a row, and what little each of them has beyond that.

use serde_json::{Value, json};

pub(super) struct Draft {
    pub(super) id: &'static str,
    pub(super) nodes: Vec<Value>,
    pub(super) edges: Vec<Value>,
    pub(super) variables: Vec<Value>,
    pub(super) settings: Value,
}

pub(super) fn node(id: &str, type_id: &str, config: Value) -> Value {
    json!({"id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}})
}

pub(super) fn fed(mut node: Value, port: &str, variable: &str) -> Value {
    node["inputs"][port] = json!({"type": "variable", "variableName": variable});
    node
}

/// A workflow whose nodes follow each other.
pub(super) fn chain(id: &'static str, nodes: Vec<Value>) -> Draft {
    let edges = nodes
        .windows(2)
        .enumerate()
        .map(|(i, pair)| json!({"id": format!("e{i}"), "sourceNodeId": pair[0]["id"], "targetNodeId": pair[1]["id"]}))
        .collect();
    Draft { id, nodes, edges, variables: Vec::new(), settings: json!({}) }
}

impl Draft {
    pub(super) fn variable(mut self, name: &str, kind: &str, default: Option<Value>) -> Self {
        let mut variable = json!({"name": name, "type": kind});
        match default {
            Some(value) => variable["defaultValue"] = value,
            None => variable["required"] = json!(name == "payload"),
        }
        self.variables.push(variable);
        self
    }

    pub(super) fn settings(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    pub(super) fn build(self) -> Value {
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
