//! Taking one of two ways.

use serde_json::json;

use super::outcome::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::plan::Conditional;

impl Conditional {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        match self.expression.evaluate_bool(context) {
            Ok(result) => Outcome::Done(Done {
                outputs: [("result".to_owned(), json!(result))].into_iter().collect(),
                port: Some(if result { "true" } else { "false" }),
                ..Done::default()
            }),
            Err(error) => Outcome::Failed(self.expression.fault(&error)),
        }
    }
}
