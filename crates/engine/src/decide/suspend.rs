//! A node that waits for somebody outside: the question, on the log.

use baton_model::event::{
    ApprovalRequested, ClarificationRequested, InterruptRequested, InterruptRequestedFacts, NodeSuspended,
    NodeSuspendedFacts, Words,
};
use baton_model::{Draft, Event, NodeId, Timestamp};
use serde_json::Value;

use crate::nodes::Ask;
use crate::state::RunState;

/// A key never asks twice, so another attempt has another one.
pub(crate) fn key(node: &NodeId, visit: u32, attempt: u32) -> String {
    if attempt == 0 { format!("{node}:{visit}") } else { format!("{node}:{visit}:{attempt}") }
}

/// Opens a question.
pub(crate) fn suspend(state: &RunState, node: usize, key: &str, ask: Ask, at: Timestamp) -> Vec<Draft> {
    let node_id = state.plan.nodes[node].id.clone();
    let interrupt_id = format!("int:{key}");
    // What an agent wants to know, or is not sure of, is in its own words.
    let untrusted = state.rule() >= 4 && state.plan.nodes[node].kind.live_agent().is_some();
    let mut drafts: Vec<Draft> = vec![
        Event::from(NodeSuspended {
            node_id: node_id.clone(),
            interrupt_id: interrupt_id.clone(),
            kind: Some(ask.kind.to_owned()),
            key: Some(key.to_owned()),
            reason: ask.low_confidence.as_ref().map(|_| "low-confidence".to_owned()),
            child_status: None,
            child_run_id: None,
            agent_id: ask.low_confidence.as_ref().map(|low| low.agent_id.clone()),
            threshold: ask.low_confidence.as_ref().map(|low| low.threshold),
            observed: ask.low_confidence.as_ref().map(|low| low.observed),
            private: NodeSuspendedFacts::default(),
        })
        .into(),
        Event::from(InterruptRequested {
            kind: ask.kind.to_owned(),
            key: key.to_owned(),
            interrupt_id: Some(interrupt_id.clone()).filter(|_| state.rule() >= 4),
            data: ask.data.clone(),
            resume_schema: ask.resume_schema,
            timeout_ms: ask.timeout_ms,
            private: InterruptRequestedFacts {
                node_id: node_id.clone(),
                interrupt_id: interrupt_id.clone(),
                expires_at: ask.timeout_ms.map(|ms| at.plus_millis(ms)),
                bearer_only: ask.bearer_only,
                hidden: ask.hidden,
                untrusted,
            },
        })
        .into(),
    ];
    let text = |key: &str| ask.data.get(key).and_then(Value::as_str).map(str::to_owned);
    match ask.kind {
        "approval" => drafts.push(
            Event::from(ApprovalRequested {
                node_id,
                interrupt_id,
                artifact_id: text("artifactId").unwrap_or_default(),
                artifact_type: text("artifactType").unwrap_or_default(),
                title: text("title"),
                actions: ask
                    .data
                    .get("actions")
                    .and_then(|v| serde_json::from_value(v.clone()).ok())
                    .unwrap_or_default(),
                required_approvals: ask
                    .data
                    .get("requiredApprovals")
                    .and_then(Value::as_u64)
                    .and_then(|n| u32::try_from(n).ok()),
                approvers_list: ask.data.get("approversList").and_then(|v| serde_json::from_value(v.clone()).ok()),
            })
            .into(),
        ),
        "clarification" => {
            let questions = ask.data.get("questions").and_then(Value::as_array).cloned().unwrap_or_default();
            drafts.push(
                Event::from(ClarificationRequested { node_id, interrupt_id, questions, private: Words { untrusted } })
                    .into(),
            );
        }
        _ => {}
    }
    drafts
}
