use serde_json::{Value, json};

/// Builds workflow definitions without the noise. Mistakes show when the definition is registered.
#[derive(Clone, Debug)]
pub struct Flow {
    definition: Value,
}

impl Flow {
    pub fn new(id: &str) -> Self {
        Self {
            definition: json!({
                "id": id, "name": id, "version": "1", "nodes": [], "edges": [], "triggers": [], "variables": [],
                "metadata": {}, "settings": {}
            }),
        }
    }

    /// Nodes `(id, typeId, config)` that follow each other.
    pub fn chain(id: &str, nodes: &[(&str, &str, Value)]) -> Self {
        let flow = nodes.iter().fold(Self::new(id), |flow, (id, kind, config)| flow.node(id, kind, config.clone()));
        nodes.windows(2).fold(flow, |flow, pair| flow.edge(pair[0].0, pair[1].0))
    }

    #[must_use]
    pub fn node(self, id: &str, type_id: &str, config: Value) -> Self {
        self.node_with(id, type_id, config, json!({}))
    }

    /// A node with more fields, such as `inputs` or `settings`.
    #[must_use]
    pub fn node_with(self, id: &str, type_id: &str, config: Value, more: Value) -> Self {
        let mut node = json!({
            "id": id, "typeId": type_id, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}
        });
        merge(&mut node, more);
        self.push("nodes", node)
    }

    #[must_use]
    pub fn edge(self, source: &str, target: &str) -> Self {
        self.edge_with(source, target, json!({}))
    }

    /// An edge with more fields, such as `sourceOutput` or `triggerRule`.
    #[must_use]
    pub fn edge_with(self, source: &str, target: &str, more: Value) -> Self {
        let count = self.definition["edges"].as_array().map_or(0, Vec::len);
        let mut edge = json!({"id": format!("e{count}"), "sourceNodeId": source, "targetNodeId": target});
        merge(&mut edge, more);
        self.push("edges", edge)
    }

    #[must_use]
    pub fn variable(self, name: &str, kind: &str, default: Value) -> Self {
        self.push("variables", json!({"name": name, "type": kind, "defaultValue": default}))
    }

    /// Sets a top-level field, such as `settings` or `configurableSchema`.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.definition[field] = value;
        self
    }

    pub fn build(self) -> Value {
        self.definition
    }

    fn push(mut self, list: &str, item: Value) -> Self {
        if let Some(list) = self.definition[list].as_array_mut() {
            list.push(item);
        }
        self
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
