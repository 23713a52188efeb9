use serde_json::json;

use super::config::Config;
use super::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::expr::Expression;
use crate::plan::Problem;

/// `core.conditional`: takes the port `true` or `false`.
#[derive(Debug)]
pub(crate) struct Conditional {
    expression: Expression,
}

impl Conditional {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["expression", "condition"])?;
        for key in ["expression", "condition"] {
            if let Some(expression) = config.expression(key)? {
                return Ok(Self { expression });
            }
        }
        Err(config.problem("expression", "`expression` is required: CEL that yields true or false."))
    }

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        match self.expression.evaluate_bool(scene) {
            Ok(result) => Outcome::Done(Done {
                outputs: [("result".to_owned(), json!(result))].into_iter().collect(),
                port: Some(if result { "true" } else { "false" }),
                ..Done::default()
            }),
            Err(error) => Outcome::Failed(self.expression.fault(&error)),
        }
    }
}
