//! One answer to one open question, and what closes a question that nobody answers.

use baton_model::event::{InterruptResolved, InterruptResolvedFacts, NodeResumed, Outcome, Words};
use baton_model::{Draft, Event, Timestamp};
use serde_json::{Map, Value};

use crate::command::{Actor, Refusal};
use crate::nodes::read_answers;
use crate::state::{Interrupt, RunState};

/// One answer to one open question.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) state: &'a RunState,
    pub(super) node: usize,
    pub(super) interrupt: &'a Interrupt,
    pub(super) value: &'a Value,
    pub(super) actor: &'a Actor,
    pub(super) at: Timestamp,
}

impl Answer<'_> {
    /// The records every answer begins with.
    pub(super) fn closes(&self, by: Option<&str>, outcome: Outcome) -> Vec<Draft> {
        let node_id = self.state.plan.nodes[self.node].id.clone();
        vec![
            Event::from(NodeResumed {
                node_id: node_id.clone(),
                interrupt_id: Some(self.interrupt.interrupt_id.clone()),
                resume_value: Some(self.value.clone()),
                child_run_id: None,
                private: Words::default(),
            })
            .into(),
            Event::from(InterruptResolved {
                node_id,
                interrupt_id: self.interrupt.interrupt_id.clone(),
                kind: self.interrupt.kind.clone(),
                resume_value: Some(self.value.clone()),
                resolved_by: by.map(str::to_owned),
                outcome,
                reason: None,
                private: InterruptResolvedFacts::default(),
            })
            .into(),
        ]
    }
}

/// An answer to every question.
pub(super) fn answers(answer: &Answer<'_>) -> Result<Map<String, Value>, Refusal> {
    let Answer { interrupt, value, .. } = answer;
    let answers = read_answers(value)
        .ok_or_else(|| Refusal::invalid("Answer with {\"answers\": {\"<question id>\": <value>}}."))?;
    let questions = interrupt.data.get("questions").and_then(Value::as_array).cloned().unwrap_or_default();
    let ids = questions.iter().filter_map(|question| question.get("id").and_then(Value::as_str));
    let missing: Vec<&str> = ids.filter(|id| !answers.contains_key(*id)).collect();
    if !missing.is_empty() {
        return Err(Refusal::invalid(format!("These questions have no answer: {}.", missing.join(", ")))
            .with("missing", serde_json::json!(missing)));
    }
    Ok(answers)
}

/// Closes the node's question, if it has one, because the node itself ran out of time: another attempt asks anew.
pub(super) fn withdraw(state: &RunState, node: usize) -> Vec<Draft> {
    let open = state.interrupts.get(&node);
    open.map(|interrupt| unanswered(state, node, interrupt, "node-timeout")).into_iter().collect()
}

/// The answer came from elsewhere: the node goes on.
pub(super) fn overtaken(state: &RunState, node: usize, interrupt: &Interrupt, reason: &str) -> Vec<Draft> {
    let resumed = NodeResumed {
        node_id: state.plan.nodes[node].id.clone(),
        interrupt_id: Some(interrupt.interrupt_id.clone()),
        resume_value: None,
        child_run_id: None,
        private: Words::default(),
    };
    vec![Event::from(resumed).into(), unanswered(state, node, interrupt, reason)]
}

fn unanswered(state: &RunState, node: usize, interrupt: &Interrupt, reason: &str) -> Draft {
    let event = InterruptResolved {
        node_id: state.plan.nodes[node].id.clone(),
        interrupt_id: interrupt.interrupt_id.clone(),
        kind: interrupt.kind.clone(),
        resume_value: None,
        resolved_by: None,
        outcome: Outcome::Cancelled,
        reason: Some(reason.to_owned()),
        private: InterruptResolvedFacts::default(),
    };
    Event::from(event).into()
}
