//! Registering a workflow in the short form test suites write: nodes only, or nodes and edges; or a whole one under
//! `definition`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_server::endpoint::scope::WorkflowsWrite;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::{Body, definition};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sketch {
    workflow_id: String,
    nodes: Vec<Node>,
    edges: Option<Vec<Edge>>,
    #[serde(default)]
    variables: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    node_id: String,
    type_id: String,
    #[serde(default)]
    config: Map<String, Value>,
    agent: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Edge {
    source_node_id: String,
    target_node_id: String,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<WorkflowsWrite>,
    Body(given): Body<Value>,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let definition = complete(given)?;
    let registered = app.host.register_test_workflow(tenant, definition).await?;
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Reply::json(status, &json!({"workflowId": registered.id, "version": registered.version})).into_response())
}

fn complete(mut given: Value) -> Result<Value, ApiError> {
    match given.get_mut("definition").map(Value::take) {
        Some(definition) => Ok(definition),
        None => match Sketch::deserialize(given) {
            Ok(sketch) => Ok(sketch.complete()),
            Err(error) => Err(ApiError::invalid(format!(
                "Send `definition` with a whole workflow, or `workflowId` and `nodes`: {error}."
            ))),
        },
    }
}

impl Node {
    /// A supervisor and its dispatch find each other without an edge.
    fn is_loop_part(&self) -> bool {
        matches!(self.type_id.as_str(), "core.orchestrator.supervisor" | "core.dispatch")
    }
}

impl Sketch {
    fn complete(self) -> Value {
        let pairs: Vec<(String, String)> = match self.edges {
            Some(edges) => edges.into_iter().map(|edge| (edge.source_node_id, edge.target_node_id)).collect(),
            None => self
                .nodes
                .windows(2)
                .filter(|pair| !(pair[0].is_loop_part() && pair[1].is_loop_part()))
                .map(|pair| (pair[0].node_id.clone(), pair[1].node_id.clone()))
                .collect(),
        };
        let nodes = self
            .nodes
            .into_iter()
            .map(|node| {
                let mut full = json!({
                    "id": node.node_id, "typeId": node.type_id, "name": node.node_id,
                    "position": {"x": 0, "y": 0}, "config": node.config, "inputs": {},
                });
                if let Some(agent) = node.agent {
                    full["agent"] = agent;
                }
                full
            })
            .collect();
        definition(&self.workflow_id, nodes, &pairs, self.variables)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn edges(sketch: Value) -> Vec<(String, String)> {
        let full = serde_json::from_value::<Sketch>(sketch).unwrap().complete();
        let end = |edge: &Value, key: &str| edge[key].as_str().unwrap().to_owned();
        let edges = full["edges"].as_array().unwrap();
        edges.iter().map(|edge| (end(edge, "sourceNodeId"), end(edge, "targetNodeId"))).collect()
    }

    #[test]
    fn a_whole_definition_may_come_wrapped() {
        let whole = json!({"id": "w", "nodes": [{"id": "a"}]});
        assert_eq!(complete(json!({ "definition": whole })).unwrap(), whole);
        assert_eq!(complete(json!({"workflowId": "w", "nodes": []})).unwrap()["id"], "w");
        for neither in [json!({}), json!([]), json!({"nodes": []}), json!("w")] {
            assert_eq!(complete(neither).unwrap_err().status, StatusCode::BAD_REQUEST);
        }
    }

    #[test]
    fn nodes_without_edges_follow_each_other_except_inside_a_loop() {
        let node = |id: &str, kind: &str| json!({"nodeId": id, "typeId": kind});
        let nodes = [
            node("a", "core.noop"),
            node("b", "core.noop"),
            node("s", "core.orchestrator.supervisor"),
            node("d", "core.dispatch"),
        ];
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(edges(json!({"workflowId": "w", "nodes": nodes})), [pair("a", "b"), pair("b", "s")]);
        let drawn = json!([{"edgeId": "e", "sourceNodeId": "b", "targetNodeId": "a"}]);
        assert_eq!(edges(json!({"workflowId": "w", "nodes": &nodes[..2], "edges": drawn})), [pair("b", "a")]);
    }
}
