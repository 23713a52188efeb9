//! Work that goes from one agent to another: what an agent made is what the next one begins with. Said in the bracket of
//! whoever takes over, right after it opens.

use std::collections::BTreeSet;

use baton_model::event::AgentHandoff;
use baton_model::{Draft, Event, NodeStatus};

use super::invocation::place;
use crate::nodes::Kind;
use crate::state::RunState;

/// The agents nearest on the ways that led to this node, each handing over to `to`.
pub(super) fn taken_over(state: &RunState, node: usize, to: &str) -> Vec<Draft> {
    // Logs from before this was said must still replay as they are.
    if state.rule() < 2 {
        return Vec::new();
    }
    let plan = &state.plan;
    let (mut agents, mut seen, mut ways) = (BTreeSet::new(), BTreeSet::from([node]), vec![node]);
    while let Some(here) = ways.pop() {
        let sources = plan.nodes[here].incoming.iter().map(|&edge| plan.edges[edge].source);
        for source in sources.filter(|source| state.nodes[*source].status() == NodeStatus::Completed) {
            if !seen.insert(source) {
                continue;
            }
            match &plan.nodes[source].kind {
                Kind::Agent(agent) => {
                    agents.insert(agent.agent_id.as_str());
                }
                _ => ways.push(source),
            }
        }
    }
    agents.remove(to);
    let handoff = |from: &str| AgentHandoff {
        from_agent_id: from.to_owned(),
        to_agent_id: to.to_owned(),
        reason: None,
        context: None,
        private: place(state, node),
    };
    agents.into_iter().map(|from| Event::from(handoff(from)).into()).collect()
}
