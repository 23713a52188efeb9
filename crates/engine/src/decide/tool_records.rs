//! A call of a tool on the log: announced before it leaves the process, and ended by what came of it.

use baton_model::event::{AgentToolCalled, AgentToolReturned, REDACTED, ToolFacts};
use baton_model::tool::{FoundTool, ToolFault, Transport};
use baton_model::{Digest, Draft, Event, ToolOutcome, ToolUse};

use super::node_records::{recorded, spoken};
use crate::depth;
use crate::invocation::Call;
use crate::node_request::Written;
use crate::state::RunState;

/// Who calls where no agent does.
pub(crate) const SYSTEM: &str = "core.system";

/// The intent.
pub(crate) fn called(
    state: &RunState,
    node: usize,
    agent_id: &str,
    call_id: &str,
    asked: &ToolUse,
    transport: Transport,
) -> Draft {
    Event::from(call(state, node, agent_id, call_id, asked, transport)).into()
}

/// A call that a node makes by itself, of a tool it has looked up.
pub(crate) fn called_by_node(
    state: &RunState,
    node: usize,
    call_id: &str,
    asked: &ToolUse,
    tool: &FoundTool,
    item: Option<u32>,
) -> Draft {
    let mut event = call(state, node, SYSTEM, call_id, asked, tool.spec.transport);
    event.principal = Some(SYSTEM.to_owned());
    event.private.item = item;
    // Of a map, it is on the record of its beginning.
    event.private.tool = item.is_none().then(|| Box::new(tool.clone()));
    Event::from(event).into()
}

fn call(
    state: &RunState,
    node: usize,
    agent_id: &str,
    call_id: &str,
    asked: &ToolUse,
    transport: Transport,
) -> AgentToolCalled {
    let owner = state.start.as_ref().map(|start| &start.event.owner);
    let shown = if state.plan.nodes[node].sensitive { REDACTED.into() } else { asked.arguments.clone() };
    AgentToolCalled {
        agent_id: agent_id.to_owned(),
        tool_name: asked.name.clone(),
        call_id: call_id.to_owned(),
        args_hash: Some(Digest::of_json(&shown)),
        inputs: Some(shown),
        principal: owner.and_then(|owner| owner.principal.clone()).filter(|principal| !principal.is_empty()),
        transport: Some(transport),
        private: ToolFacts { place: spoken(state, node), asked: Some(Box::new(asked.clone())), ..ToolFacts::default() },
    }
}

/// What came of a call, caused by the call.
pub(crate) fn ended(state: &RunState, node: usize, agent_id: &str, call: &Call, outcome: ToolOutcome) -> Draft {
    let outcome = match depth::check("result", &outcome.value) {
        Ok(()) => outcome,
        Err(fault) => {
            ToolOutcome { duration_ms: outcome.duration_ms, ..ToolOutcome::failed(&fault.code, fault.message) }
        }
    };
    let hidden = state.plan.nodes[node].sensitive.then(|| Box::new(outcome.clone()));
    let ToolOutcome { status, mut value, mut error, duration_ms } = outcome;
    if hidden.is_some() {
        value = REDACTED.into();
        error = error.map(|error| ToolFault { message: REDACTED.to_owned(), details: None, ..error });
    }
    let event = AgentToolReturned {
        agent_id: agent_id.to_owned(),
        // A model may ask for a tool without a name.
        tool_name: if call.asked.name.is_empty() { "unknown".to_owned() } else { call.asked.name.clone() },
        call_id: call.id.clone(),
        outcome: error.is_none().then_some(value),
        error,
        status: Some(status),
        duration_ms,
        private: ToolFacts {
            place: spoken(state, node),
            // Where no call was announced, this record must say what was asked.
            asked: call.seq.is_none().then(|| Box::new(call.asked.clone())),
            hidden,
            ..ToolFacts::default()
        },
    };
    Draft { event: event.into(), causation: call.seq }
}

/// The result of an open call, with what it wrote.
pub(crate) fn settled(
    state: &RunState,
    node: usize,
    call: &Call,
    outcome: ToolOutcome,
    written: &[Written],
) -> Vec<Draft> {
    let node_id = &state.plan.nodes[node].id;
    let agent = state.invocation(node).map(|invocation| invocation.card().agent_id.as_str());
    let mut drafts: Vec<Draft> = written.iter().map(|written| recorded(node_id, agent, written)).collect();
    drafts.push(ended(state, node, agent.unwrap_or(SYSTEM), call, outcome));
    drafts
}
