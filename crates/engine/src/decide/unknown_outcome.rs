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

use baton_model::event::{Outcome, REDACTED};
use baton_model::{Draft, OutcomePolicy, Timestamp, ToolOutcome};
use serde_json::{Value, json};

use super::human_answer::Answer;
use super::open_calls::{lost, taken_up};
use super::{human_answer, suspend, tool_records};
use crate::command::Refusal;
use crate::invocation::{Call, OpenCall};
use crate::nodes::Ask;
use crate::state::RunState;

/// The interrupt that asks a human what became of a call.
pub const UNKNOWN_EFFECT: &str = "x-host-baton-effect-unknown";

/// What is done about a call of unknown outcome.
pub(super) fn handled(state: &RunState, node: usize, call: &Call, at: Timestamp) -> Vec<Draft> {
    match call.unknown {
        None => Vec::new(),
        Some(OutcomePolicy::Retry) => vec![taken_up(state, node, call, false)],
        Some(OutcomePolicy::Verify) => vec![taken_up(state, node, call, true)],
        Some(OutcomePolicy::Fail) => tool_records::settled(state, node, call, lost(call), &[]),
        Some(OutcomePolicy::Ask) => {
            let key = format!("{}:{}", call.id, call.again);
            suspend::suspend(state, node, &key, question(state, node, call), at)
        }
    }
}

fn question(state: &RunState, node: usize, call: &Call) -> Ask {
    let inputs = if state.plan.nodes[node].sensitive { REDACTED.into() } else { call.asked.arguments.clone() };
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

/// A human says what became of a call.
pub(super) fn answered(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, .. } = answer;
    let call_id = interrupt.data.get("callId").and_then(Value::as_str).unwrap_or_default();
    let Some(OpenCall { call, .. }) = state.open_call(node, call_id) else {
        return Err(Refusal::invalid("The call this is about is not open any more."));
    };
    let by = actor.subject.as_deref();
    let action = value.as_str().or_else(|| value.get("action").and_then(Value::as_str));
    let (outcome, follows) = match action {
        Some("retry") => (Outcome::Answered, vec![taken_up(state, node, call, false)]),
        Some("done") => {
            let result = value.get("result").cloned().unwrap_or(Value::Null);
            (Outcome::Accepted, tool_records::settled(state, node, call, ToolOutcome::ok(result), &[]))
        }
        Some("fail") => (Outcome::Rejected, tool_records::settled(state, node, call, lost(call), &[])),
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
            human_answer::overtaken(state, node, open, "outcome-known")
        }
        _ => Vec::new(),
    }
}
