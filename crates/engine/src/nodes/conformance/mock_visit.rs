//! The mock agent of the conformance workflows: everything it does is one step, in a fixed order. No bracket is opened,
//! for nobody is at work.

use baton_model::event::Verbosity;
use baton_model::event::{
    AgentDecided, AgentHandoff, AgentReasoned, AgentReasoningDelta, NodeStarted, NodeStartedFacts,
};
use baton_model::tool::Transport;
use baton_model::{Draft, Event, Timestamp, ToolOutcome, ToolUse};

use super::kind::TestKind;
use super::mock_agent::MockAgent;
use crate::decide::finish::finish;
use crate::decide::low_confidence::{Unsure, low_confidence};
use crate::decide::node_records::{place, spoken, visit_of};
use crate::decide::suspend::{key, suspend};
use crate::decide::tool_records::{called, ended};
use crate::invocation::{Call, call_id, thought};
use crate::nodes::outcome::Done;
use crate::state::RunState;

/// Begins a visit that is a state machine of its own; none for the other kinds.
pub(crate) fn begin(state: &RunState, node: usize, kind: &TestKind, attempt: u32, at: Timestamp) -> Option<Vec<Draft>> {
    match kind {
        TestKind::MockAgent(mock) => Some(mocked(state, node, mock, attempt, at)),
        TestKind::Probe(_) | TestKind::StreamText | TestKind::Missing { .. } => None,
    }
}

fn mocked(state: &RunState, node: usize, mock: &MockAgent, attempt: u32, at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    let visit = visit_of(state, node, attempt);
    let unsure = mock.decides().and_then(|(decision, confidence)| {
        let (observed, threshold) = (confidence?, state.threshold(None));
        (observed < threshold).then_some((decision, Unsure { observed, threshold }))
    });
    let deadline = plan.timeout_ms.filter(|_| unsure.is_some()).map(|ms| at.plus_millis(ms));
    let private = NodeStartedFacts { visit, deadline, ..NodeStartedFacts::default() };
    let started = NodeStarted { node_id: plan.id.clone(), type_id: plan.type_id.clone(), attempt, private };
    let mut drafts: Vec<Draft> = vec![Event::from(started).into()];
    drafts.extend(thinking(state, node, mock));
    for (n, mocked) in mock.calls.iter().enumerate() {
        let id = call_id(&plan.id, visit, attempt, 0, n);
        let asked = ToolUse { id: id.clone(), name: mocked.tool_id.clone(), arguments: mocked.arguments.clone() };
        let call = Call::open(id, state.next_seq + drafts.len() as u64, asked);
        drafts.push(called(state, node, &mock.agent_id, &call.id, &call.asked, Transport::Native));
        let outcome = match (&mocked.error, &mocked.result) {
            (Some(error), _) => ToolOutcome::failed(&error.error, error.message.as_str()),
            (None, result) => ToolOutcome::ok(result.clone().unwrap_or_default()),
        };
        let outcome = ToolOutcome { duration_ms: mocked.duration_ms, ..outcome };
        drafts.push(ended(state, node, &mock.agent_id, &call, outcome));
    }
    drafts.extend(mock.handoff.as_ref().map(|handoff| {
        Draft::from(Event::from(AgentHandoff {
            from_agent_id: mock.agent_id.clone(),
            to_agent_id: handoff.to_agent_id.clone(),
            reason: handoff.reason.clone(),
            context: handoff.context.clone(),
            private: place(state, node),
        }))
    }));
    drafts.extend(mock.decides().map(|(decision, confidence)| {
        Draft::from(Event::from(AgentDecided {
            agent_id: mock.agent_id.clone(),
            decision: decision.clone(),
            confidence,
            private: spoken(state, node),
        }))
    }));
    match unsure {
        Some((decision, unsure)) => {
            let ask = low_confidence(&mock.agent_id, decision, unsure, None);
            drafts.extend(suspend(state, node, &key(&plan.id, visit, attempt), ask, at));
        }
        None => drafts.extend(finish(state, node, attempt, Done::default(), at)),
    }
    drafts
}

/// The pieces of a thought as they come, and the whole of it at the end.
fn thinking(state: &RunState, node: usize, mock: &MockAgent) -> Vec<Draft> {
    let verbosity = state.verbosity();
    let Some((pieces, whole)) = mock.thinks(verbosity).filter(|_| verbosity != Verbosity::Off) else {
        return Vec::new();
    };
    let delta = |(sequence, piece): (u32, &String)| {
        Draft::from(Event::from(AgentReasoningDelta {
            agent_id: mock.agent_id.clone(),
            delta: piece.clone(),
            sequence,
            verbosity: Some(verbosity),
            private: spoken(state, node),
        }))
    };
    let reasoned = thought(&whole, verbosity).map(|reasoning| {
        Draft::from(Event::from(AgentReasoned {
            agent_id: mock.agent_id.clone(),
            reasoning,
            verbosity: Some(verbosity),
            private: spoken(state, node),
        }))
    });
    (0..).zip(pieces).map(delta).chain(reasoned).collect()
}
