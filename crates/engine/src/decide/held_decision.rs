//! A decision that is not sure enough: held, off the log, with the question that asks a human about it.

use baton_model::event::{ConfidenceEscalated, Escalation, EscalationInterrupt, EscalationKind, NodePlace};
use baton_model::{Decision, Draft};
use serde_json::json;

use super::node_records;
use crate::nodes::{Ask, LowConfidence};
use crate::plan::Supervisor;
use crate::state::RunState;

pub(super) fn escalated(
    state: &RunState,
    node: usize,
    supervisor: &Supervisor,
    decision: &Decision,
    confidence: f64,
    rule: &Escalation,
    cause: u64,
) -> Draft {
    let event = ConfidenceEscalated {
        confidence,
        floor: rule.floor,
        escalation_kind: match rule.interrupt {
            EscalationInterrupt::Clarification => EscalationKind::Clarify,
            EscalationInterrupt::Approval | EscalationInterrupt::Vendor => EscalationKind::Escalate,
        },
        worker_id: decision.first_worker().cloned(),
        parent_run_id: state.run.clone(),
        original_decision: decision.clone(),
        private: place(state, node, supervisor),
    };
    Draft { event: event.into(), causation: Some(cause) }
}

/// The question a held decision asks.
pub(super) fn held(
    state: &RunState,
    supervisor: &Supervisor,
    decision: &Decision,
    interrupt: EscalationInterrupt,
    low: LowConfidence,
) -> Ask {
    let turn = state.turns + 1;
    let title = format!(
        "Turn {turn}: the supervisor's confidence is {:.2}, and at least {:.2} is needed",
        low.observed, low.threshold
    );
    let data = match interrupt {
        EscalationInterrupt::Approval | EscalationInterrupt::Vendor => json!({
            "artifactId": format!("decision-{turn}"),
            "artifactType": "orchestrator-decision",
            "title": title,
            "artifactData": decision,
            "actions": ["accept", "reject", "refine", "edit-accept"],
        }),
        EscalationInterrupt::Clarification if state.rule() < 4 => json!({
            "questions": [{"id": "decision", "question": title}],
            "contextType": "orchestrator-decision",
        }),
        // A clarification has room for questions and nothing else. So the question says what is held in words, and its
        // schema has the whole of it: that is what counts for whoever has nothing to add.
        EscalationInterrupt::Clarification => json!({
            "questions": [{
                "id": "decision",
                "question": format!("{title}. It wants: {}. Is that what should be done?", in_words(decision)),
                "schema": {
                    "description": "accept, reject, an action with what it needs, or another decision in its place",
                    "anyOf": [{"enum": ["accept", "reject"]}, {"type": "object"}],
                    "default": decision,
                },
            }],
            "contextType": "orchestrator-decision",
        }),
    };
    Ask { timeout_ms: supervisor.hold_timeout_ms, low_confidence: Some(low), ..Ask::new(interrupt.as_str(), data) }
}

/// A decision in one line, as much of it as a person reads at a glance.
fn in_words(decision: &Decision) -> String {
    const MOST_CHARS: usize = 400;
    let words = match decision {
        Decision::NextWorker { next_worker_ids, .. } => {
            let ids: Vec<&str> = next_worker_ids.iter().map(|id| id.as_str()).collect();
            format!("next-worker {}", ids.join(", "))
        }
        Decision::AskUser { prompt } => format!("ask-user \"{prompt}\""),
        Decision::Terminate { reason: Some(reason), .. } => format!("terminate, because \"{reason}\""),
        Decision::Terminate { reason: None, .. } => "terminate".to_owned(),
    };
    let mut short: String = words.chars().take(MOST_CHARS).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    short
}

/// Where a decision is told: in words of a model, unless rules made it.
pub(super) fn place(state: &RunState, node: usize, supervisor: &Supervisor) -> NodePlace {
    if supervisor.is_agent() { node_records::spoken(state, node) } else { node_records::place(state, node) }
}
