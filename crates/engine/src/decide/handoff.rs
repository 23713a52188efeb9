//! Work that goes from one agent to another: what an agent made is what the next one begins with.
//!
//! Where an answer is what starts the next agent, it is said in the bracket of whoever gives, after its decision. Where
//! something comes in between, a human, another node or somebody else's work, nobody knows at that time whether there
//! will be a next one; then whoever takes over says it, right before its own bracket opens.

use std::collections::BTreeSet;

use baton_model::event::AgentHandoff;
use baton_model::{Draft, Event, NodeStatus, Timestamp};

use super::caps;
use super::node_records::place;
use crate::apply::apply;
use crate::plan::Kind;
use crate::state::{RunState, Verdict};

/// To whom the agent of this node hands over by its answer: `end` ends its work and its node.
pub(super) fn handed_over(state: &RunState, node: usize, end: &[Draft], at: Timestamp) -> Vec<Draft> {
    let plan = &state.plan;
    let Kind::Agent(giver) = &plan.nodes[node].kind else { return Vec::new() };
    let targets = plan.nodes[node].outgoing.iter().map(|&edge| plan.edges[edge].target);
    let next: Vec<(usize, &str)> = targets
        .filter_map(|target| match &plan.nodes[target].kind {
            Kind::Agent(agent) if agent.agent_id != giver.agent_id => Some((target, agent.agent_id.as_str())),
            _ => None,
        })
        .collect();
    if next.is_empty() || state.rule() < 3 {
        return Vec::new();
    }
    // Which way the run goes is for the fold to say, not to be guessed here.
    let mut after = state.clone();
    if apply(&mut after, end.to_vec(), at).is_err() {
        return Vec::new();
    }
    if after.nodes[node].status() != NodeStatus::Completed {
        return Vec::new();
    }
    let due = |state: &RunState, node| {
        state.ready.iter().any(|ready| ready.node == node && !matches!(ready.verdict, Verdict::Skip))
    };
    // Whatever keeps a node that is due from being asked.
    let begins = |node: usize| {
        !plan.nodes[node].disabled
            && after.incapable(node).is_none()
            && caps::too_many_starts(&after, node, 0).is_none()
    };
    let starts = next.into_iter().filter(|&(target, _)| due(&after, target) && !due(state, target) && begins(target));
    let takers: BTreeSet<&str> = starts.map(|(_, agent)| agent).collect();
    takers.into_iter().map(|to| said(state, node, &giver.agent_id, to)).collect()
}

/// The agents nearest on the ways that led to this node, each handing over to `to`, as far as none of them has said so.
pub(super) fn taken_over(state: &RunState, node: usize, to: &str) -> Vec<Draft> {
    // Logs from before this was said must still replay as they are.
    if state.rule() < 2 {
        return Vec::new();
    }
    let plan = &state.plan;
    let (mut agents, mut seen, mut ways) = (BTreeSet::new(), BTreeSet::from([node]), vec![node]);
    let mut known = BTreeSet::from([to]);
    while let Some(here) = ways.pop() {
        let sources = plan.nodes[here].incoming.iter().map(|&edge| plan.edges[edge].source);
        for source in sources.filter(|source| state.nodes[*source].status() == NodeStatus::Completed) {
            if !seen.insert(source) {
                continue;
            }
            match &plan.nodes[source].kind {
                Kind::Agent(agent) => {
                    if state.rule() >= 3 && state.nodes[source].handed_to.contains(to) {
                        known.insert(&agent.agent_id);
                    }
                    agents.insert(agent.agent_id.as_str());
                }
                _ => ways.push(source),
            }
        }
    }
    agents.difference(&known).map(|from| said(state, node, from, to)).collect()
}

fn said(state: &RunState, node: usize, from: &str, to: &str) -> Draft {
    let event = AgentHandoff {
        from_agent_id: from.to_owned(),
        to_agent_id: to.to_owned(),
        reason: None,
        context: None,
        private: place(state, node),
    };
    Event::from(event).into()
}
