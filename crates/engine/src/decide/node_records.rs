//! Records about a node that many decisions begin or end with, and where an event says it happened.

use baton_model::event::{
    MemoryDeleted, MemoryWritten, NodePlace, NodeSkipped, NodeStarted, NodeStartedFacts, VersionedStoreFacts,
    WorkspaceUpdated,
};
use baton_model::{Draft, Event, NodeId};

use crate::node_request::Written;
use crate::state::RunState;

pub(crate) fn place(state: &RunState, node: usize) -> NodePlace {
    NodePlace::at(state.plan.nodes[node].id.clone())
}

/// The same for an event that holds what a model or a tool said.
pub(crate) fn spoken(state: &RunState, node: usize) -> NodePlace {
    NodePlace { untrusted: state.rule() >= 4, ..place(state, node) }
}

pub(crate) fn visit_of(state: &RunState, node: usize, attempt: u32) -> u32 {
    if attempt == 0 { state.nodes[node].visit + 1 } else { state.nodes[node].visit }
}

pub(crate) fn started(state: &RunState, node: usize, visit: u32, attempt: u32) -> Draft {
    let plan = &state.plan.nodes[node];
    let private = NodeStartedFacts { visit, ..NodeStartedFacts::default() };
    Event::from(NodeStarted { node_id: plan.id.clone(), type_id: plan.type_id.clone(), attempt, private }).into()
}

pub(crate) fn skipped(state: &RunState, node: usize, reason: &str) -> Draft {
    let node_id = state.plan.nodes[node].id.clone();
    Event::from(NodeSkipped { node_id, reason: Some(reason.to_owned()) }).into()
}

pub(crate) fn recorded(node: &NodeId, agent: Option<&str>, written: &Written) -> Draft {
    let node_id = Some(node.clone());
    let event: Event = match written {
        Written::Entry { memory_ref, id, tags, version } => MemoryWritten {
            memory_ref: memory_ref.clone(),
            memory_id: id.clone(),
            node_id,
            agent_id: agent.map(str::to_owned),
            tags: tags.clone(),
            private: VersionedStoreFacts { version: *version, node_id: None },
        }
        .into(),
        Written::Forgotten { memory_ref, id, version } => MemoryDeleted {
            memory_ref: memory_ref.clone(),
            memory_id: id.clone(),
            node_id,
            private: VersionedStoreFacts { version: *version, node_id: None },
        }
        .into(),
        Written::File { path, file_version, version } => WorkspaceUpdated {
            path: path.clone(),
            version: *file_version,
            private: VersionedStoreFacts { version: *version, node_id },
        }
        .into(),
    };
    event.into()
}
