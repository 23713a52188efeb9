//! One turn of a supervisor, and reading what a live one answered.

use baton_model::{Decision, Fault};
use serde_json::Value;

use crate::expr::Scope;
use crate::plan::{Decider, Supervisor};

impl Supervisor {
    /// This turn's decision; `None` when an agent has to be asked.
    pub(crate) fn decide(&self, turn: u64, scope: &dyn Scope) -> Result<Option<Decision>, Fault> {
        match &self.decider {
            Decider::Agent => Ok(None),
            Decider::Script(plan) => {
                let position = usize::try_from(turn - 1).unwrap_or(usize::MAX);
                let done = || Decision::Terminate { reason: Some("plan-exhausted".to_owned()), confidence: None };
                Ok(Some(plan.get(position).cloned().unwrap_or_else(done)))
            }
            Decider::Rules { rules, otherwise } => {
                for (when, decision) in rules {
                    let holds = when.evaluate_bool(scope).map_err(|error| when.fault(&error))?;
                    if holds {
                        return Ok(Some(decision.clone()));
                    }
                }
                Ok(Some(otherwise.clone()))
            }
        }
    }
}

/// A live supervisor's answer, taken apart.
pub(crate) struct AgentDecision {
    pub(crate) decision: Decision,
    pub(crate) agent_confidence: Option<f64>,
}

/// Reads it, or says what is wrong with it in words that repeat none of it.
pub(crate) fn read_agent_decision(value: &Value, engine_rule: u32) -> Result<AgentDecision, &'static str> {
    let given = |name: &str| value.get(name).filter(|value| !value.is_null());
    let listed = |name: &str| given(name).and_then(Value::as_array);
    let (fields, rule): (&[&str], _) = match value.get("kind").and_then(Value::as_str) {
        Some("next-worker") => (
            &["kind", "nextWorkerIds", "nextWorkerInputs", "confidence"],
            "A `next-worker` decision names at least one worker in `nextWorkerIds`, each with 1 to 256 characters.",
        ),
        Some("ask-user") => (&["kind", "prompt"], "An `ask-user` decision has a `prompt` that is not empty."),
        _ => (&["kind", "reason", "confidence"], "The `reason` of a `terminate` decision is absent or not empty."),
    };
    let kind = value.get("kind").and_then(Value::as_str);
    let workers = listed("nextWorkerIds").is_some_and(|workers| !workers.is_empty());
    let prompts = given("prompt").is_some_and(|prompt| prompt != "");
    if engine_rule >= 4 && ((workers && kind != Some("next-worker")) || (prompts && kind != Some("ask-user"))) {
        return Err("The answer has members of more than one kind of decision: leave out those of the others.");
    }
    if let (Some(workers), Some(inputs)) = (listed("nextWorkerIds"), listed("nextWorkerInputs"))
        && workers.len() != inputs.len()
    {
        return Err("`nextWorkerInputs` is absent or has one object for each worker.");
    }
    let own = |name: &&str| Some(((*name).to_owned(), given(name)?.clone()));
    let decision = Decision::read(&Value::Object(fields.iter().filter_map(own).collect())).map_err(|_| rule)?;
    Ok(AgentDecision { decision, agent_confidence: value.get("agentConfidence").and_then(Value::as_f64) })
}
