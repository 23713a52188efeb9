//! Calls of which nobody knows whether they took place. That is shown, and handled as the tool says: made again under
//! the same key, looked up, put to a human, or counted as failed. It is never guessed.
//!
//! ```text
//!  called ─► unknown ─┬─ retry ──► taken up again, a few times, then failed
//!                     ├─ verify ─► looked up ─┬─ it took place ──► returned
//!                     │                       ├─ it did not ─────► taken up again
//!                     │                       └─ unknown still ──► ask
//!                     ├─ ask ────► retry │ done │ fail, as somebody says
//!                     └─ fail ───► returned as lost
//! ```

use baton_model::event::{EffectRetried, EffectUnknown, Outcome, REDACTED};
use baton_model::{Draft, OutcomePolicy, Timestamp, ToolOutcome, code};
use serde_json::{Value, json};

use super::resolve::{self, Answer};
use super::{tool, visit};
use crate::command::Refusal;
use crate::invocation::{Call, Open};
use crate::nodes::Ask;
use crate::state::RunState;

/// The interrupt that asks a human what became of a call.
pub const UNKNOWN_EFFECT: &str = "x-host-baton-effect-unknown";
/// How often a call is taken up again before somebody else has to see to it.
const MOST_TIMES: u32 = 3;

/// What is done about a call of unknown outcome: what its tool says, as long as that leads anywhere.
pub(super) fn policy(open: Open<'_>) -> OutcomePolicy {
    let Open { call, tool } = open;
    match tool.outcome_policy {
        OutcomePolicy::Verify if call.verify || call.again >= MOST_TIMES => OutcomePolicy::Ask,
        OutcomePolicy::Retry if call.again >= MOST_TIMES => OutcomePolicy::Fail,
        policy => policy,
    }
}

pub(super) fn unknown(state: &RunState, node: usize, open: Open<'_>, policy: OutcomePolicy, reason: &str) -> Draft {
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
    let doubtful = open.filter(|open| open.changes_the_world() && open.call.is_wanted());
    doubtful.map(|open| unknown(state, node, open, policy(open), "The node's time was up.")).collect()
}

/// What is done about a call of unknown outcome.
pub(super) fn handled(state: &RunState, node: usize, call: &Call, at: Timestamp) -> Vec<Draft> {
    match call.unknown {
        None => Vec::new(),
        Some(OutcomePolicy::Retry) => vec![taken_up(state, node, call, false)],
        Some(OutcomePolicy::Verify) => vec![taken_up(state, node, call, true)],
        Some(OutcomePolicy::Fail) => tool::settled(state, node, call, lost(call), &[]),
        Some(OutcomePolicy::Ask) => {
            let key = format!("{}:{}", call.id, call.again);
            visit::suspend(state, node, &key, question(state, node, call), at)
        }
    }
}

fn question(state: &RunState, node: usize, call: &Call) -> Ask {
    let inputs = if state.plan.nodes[node].veiled { REDACTED.into() } else { call.asked.arguments.clone() };
    let data = json!({
        "callId": call.id,
        "toolName": call.asked.name,
        "inputs": inputs,
        "question": "Nobody knows whether this call took place. Say what became of it.",
        "actions": ["retry", "done", "fail"],
    });
    let schema = json!({
        "type": "object",
        "required": ["action"],
        "properties": {"action": {"enum": ["retry", "done", "fail"]}, "result": {}},
    });
    Ask { resume_schema: Some(schema), ..Ask::new(UNKNOWN_EFFECT, data) }
}

fn lost(call: &Call) -> ToolOutcome {
    let message = format!("Nobody knows whether the call of `{}` took place.", call.asked.name);
    ToolOutcome::failed(code::EFFECT_OUTCOME_UNKNOWN, message)
}

/// A human says what became of a call.
pub(super) fn answered(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, .. } = answer;
    let call_id = interrupt.data.get("callId").and_then(Value::as_str).unwrap_or_default();
    let Some(Open { call, .. }) = state.open_call(node, call_id) else {
        return Err(Refusal::invalid("The call this is about is not open any more."));
    };
    let by = actor.subject.as_deref();
    let action = value.as_str().or_else(|| value.get("action").and_then(Value::as_str));
    let (outcome, follows) = match action {
        Some("retry") => (Outcome::Answered, vec![taken_up(state, node, call, false)]),
        Some("done") => {
            let result = value.get("result").cloned().unwrap_or(Value::Null);
            (Outcome::Accepted, tool::settled(state, node, call, ToolOutcome::ok(result), &[]))
        }
        Some("fail") => (Outcome::Rejected, tool::settled(state, node, call, lost(call), &[])),
        _ => {
            let message = "`action` is one of retry, done, fail; with done, `result` says what it returned.";
            return Err(Refusal::invalid(message));
        }
    };
    let mut drafts = answer.closes(by, outcome);
    drafts.extend(follows);
    Ok(drafts)
}

/// Closes the question about this call, if there is one, because the answer came from elsewhere.
pub(super) fn withdrawn(state: &RunState, node: usize, call: &Call) -> Vec<Draft> {
    let about = |data: &Value| data.get("callId").and_then(Value::as_str) == Some(call.id.as_str());
    match state.interrupts.get(&node) {
        Some(open) if open.kind == UNKNOWN_EFFECT && about(&open.data) => {
            resolve::overtaken(state, node, open, "outcome-known")
        }
        _ => Vec::new(),
    }
}

/// Something ends the attempt while its calls are open. What was to be done outside may have been; what was to be done
/// in here was not.
pub(super) fn abandoned(state: &RunState, node: usize) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for open in state.open_calls(node) {
        if !open.is_abroad() {
            let message = "The call was not made: whoever wanted it stopped first.";
            let outcome = ToolOutcome::failed(code::EXTERNAL_CALL_FAILED, message);
            drafts.extend(tool::settled(state, node, open.call, outcome, &[]));
            continue;
        }
        if open.call.unknown.is_none() {
            let reason = "Whoever wanted the call stopped while it was open.";
            drafts.push(unknown(state, node, open, OutcomePolicy::Fail, reason));
        }
        drafts.extend(tool::settled(state, node, open.call, lost(open.call), &[]));
    }
    drafts
}
