//! What a node sees while it runs, and what an expression in it may name.

use baton_model::{NodeId, Timestamp};
use serde_json::{Map, Value, json};

use crate::consult::Frame;
use crate::expr::Scope;
use crate::state::RunState;

/// A node's view while it runs: the state, its own inputs, and what it has written so far in this very step.
pub(crate) struct Scene<'a> {
    pub(crate) state: &'a RunState,
    pub(crate) node: usize,
    pub(crate) visit: u32,
    pub(crate) attempt: u32,
    pub(crate) at: Timestamp,
    pub(crate) inputs: Map<String, Value>,
    /// A loop head whose body did not come back.
    pub(crate) broken: bool,
    pub(crate) written: Vec<(String, Value)>,
    pub(crate) outputs: Option<Map<String, Value>>,
    /// For a supervisor: the turn it is in, and what a human wants changed.
    pub(crate) turn: Option<u64>,
    pub(crate) feedback: Option<Value>,
    pub(crate) frame: Option<&'a Frame>,
}

impl Scene<'_> {
    pub(crate) fn node_id(&self) -> &NodeId {
        &self.state.plan.nodes[self.node].id
    }

    /// The id of the n-th memory entry this visit writes.
    pub(crate) fn entry_id(&self, n: u32) -> String {
        baton_model::id::memory_id(&self.state.run, self.node_id(), self.visit, n)
    }
}

impl Scope for Scene<'_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        Some(match name {
            "variables" => {
                let mut all = self.state.variables.clone();
                // To a node that is not its reader, a channel does not exist.
                let readable = |name: &String| self.state.plan.check_read(self.node, name).is_ok();
                let channels = self.state.channels.iter().filter(|(name, _)| readable(name));
                all.extend(channels.map(|(name, channel)| (name.clone(), channel.value())));
                all.extend(self.written.iter().cloned());
                Value::Object(all)
            }
            "inputs" => {
                let mut all = self.state.start.as_ref().map(|start| start.event.full_inputs()).unwrap_or_default();
                all.extend(self.inputs.clone());
                Value::Object(all)
            }
            "nodes" => {
                let mut all = Map::new();
                for (run, node) in self.state.nodes.iter().zip(&self.state.plan.nodes) {
                    if !run.outputs.is_empty() {
                        all.insert(node.id.to_string(), Value::Object(run.outputs.clone()));
                    }
                }
                if let Some(outputs) = &self.outputs {
                    all.insert(self.node_id().to_string(), Value::Object(outputs.clone()));
                }
                Value::Object(all)
            }
            "iteration" => json!(self.turn?),
            // Null until a human asks for something else, so that a rule can test for it.
            "feedback" => {
                self.turn?;
                self.feedback.clone().unwrap_or(Value::Null)
            }
            "children" => {
                self.turn?;
                let told = self.state.children.iter().filter(|child| child.dispatched);
                told.map(|child| {
                    json!({
                        "workflowId": child.plan.workflow,
                        "runId": child.plan.run,
                        "status": child.status,
                        "iteration": child.iteration,
                    })
                })
                .collect()
            }
            "memory" => json!(self.frame?.memory),
            "workspace" => {
                let file = |(path, file): (&String, &baton_model::WorkspaceFile)| {
                    (path.clone(), json!({"content": file.content, "version": file.meta.version}))
                };
                Value::Object(self.frame?.workspace.iter().map(file).collect())
            }
            _ => return None,
        })
    }
}
