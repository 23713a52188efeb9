//! Settings of a node that takes one of two ways.

use super::config::Config;
use crate::expr::Expression;
use crate::plan::problem::Problem;

/// `core.conditional`: takes the port `true` or `false`.
#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) expression: Expression,
}

impl Conditional {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["expression", "condition"])?;
        for key in ["expression", "condition"] {
            if let Some(expression) = config.expression(key)? {
                return Ok(Self { expression });
            }
        }
        Err(config.problem("expression", "`expression` is required: CEL that yields true or false."))
    }
}
