//! Calls that have not come back, when their time is up or whoever wanted them stops.

use baton_model::event::{EffectRetried, EffectUnknown};
use baton_model::{Draft, OutcomePolicy, ToolOutcome, code};

use super::tool_records::settled;
use crate::invocation::{Call, OpenCall};
use crate::state::RunState;

/// How often a call is taken up again before somebody else has to see to it.
const MOST_TIMES: u32 = 3;

/// What is done about a call of unknown outcome: what its tool says, as long as that leads anywhere.
pub(super) fn policy(open: OpenCall<'_>) -> OutcomePolicy {
    let OpenCall { call, tool } = open;
    match tool.outcome_policy {
        OutcomePolicy::Verify if call.verify || call.again >= MOST_TIMES => OutcomePolicy::Ask,
        OutcomePolicy::Retry if call.again >= MOST_TIMES => OutcomePolicy::Fail,
        policy => policy,
    }
}

pub(super) fn unknown(state: &RunState, node: usize, open: OpenCall<'_>, policy: OutcomePolicy, reason: &str) -> Draft {
    let event = EffectUnknown {
        node_id: state.plan.nodes[node].id.clone(),
        call_id: open.call.id.clone(),
        tool_name: open.tool.id.clone(),
        policy,
        reason: Some(reason.to_owned()),
    };
    Draft { event: event.into(), causation: open.call.seq }
}

/// The call is made once more, or looked up.
pub(super) fn taken_up(state: &RunState, node: usize, call: &Call, verify: bool) -> Draft {
    let event = EffectRetried {
        node_id: state.plan.nodes[node].id.clone(),
        call_id: call.id.clone(),
        tool_name: call.asked.name.clone(),
        verify,
    };
    Draft { event: event.into(), causation: call.seq }
}

/// The node's time is up while calls are open that may have changed the world: of these nobody knows. Trying the whole
/// node again would make them a second time.
pub(super) fn overdue(state: &RunState, node: usize) -> Vec<Draft> {
    let open = state.open_calls(node).into_iter();
    let uncertain = open.filter(|open| open.changes_the_world() && open.call.is_wanted());
    uncertain.map(|open| unknown(state, node, open, policy(open), "The node's time was up.")).collect()
}

pub(super) fn lost(call: &Call) -> ToolOutcome {
    let message = format!("Nobody knows whether the call of `{}` took place.", call.asked.name);
    ToolOutcome::failed(code::EFFECT_OUTCOME_UNKNOWN, message)
}

/// Something ends the attempt while its calls are open. What was to be done outside may have been; what was to be done
/// in here was not.
pub(super) fn abandoned(state: &RunState, node: usize) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for open in state.open_calls(node) {
        if !open.is_external() {
            let message = "The call was not made: whoever wanted it stopped first.";
            let outcome = ToolOutcome::failed(code::EXTERNAL_CALL_FAILED, message);
            drafts.extend(settled(state, node, open.call, outcome, &[]));
            continue;
        }
        if open.call.unknown.is_none() {
            let reason = "Whoever wanted the call stopped while it was open.";
            drafts.push(unknown(state, node, open, OutcomePolicy::Fail, reason));
        }
        drafts.extend(settled(state, node, open.call, lost(open.call), &[]));
    }
    drafts
}
