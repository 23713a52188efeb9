//! Setting and reading variables.

use serde_json::{Map, Value};

use super::outcome::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::plan::{GetVariable, SetVariable, ValueSource};

impl SetVariable {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        let mut variables = Vec::with_capacity(self.assignments.len());
        for (name, source) in &self.assignments {
            let value = match source {
                ValueSource::Value(value) => value.clone(),
                ValueSource::Input => context.inputs.get("value").cloned().unwrap_or(Value::Null),
                ValueSource::Expression(expression) => match expression.evaluate(context) {
                    Ok(value) => value,
                    Err(error) => return Outcome::Failed(expression.fault(&error)),
                },
            };
            variables.push((name.clone(), value));
        }
        let outputs: Map<String, Value> = variables.iter().cloned().collect();
        Outcome::Done(Done { outputs, variables, ..Done::default() })
    }
}

impl GetVariable {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        let value = match context.state.value_for(context.node, &self.name) {
            Ok(value) => value.unwrap_or(Value::Null),
            Err(fault) => return Outcome::Failed(fault),
        };
        Outcome::Done(Done::with([("value".to_owned(), value)].into_iter().collect()))
    }
}
