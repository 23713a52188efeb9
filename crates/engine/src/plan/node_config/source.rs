//! Where a node takes a text or a value from.

use baton_model::Fault;
use serde_json::Value;

use super::config::Config;
use crate::expr::{Expression, Scope};
use crate::plan::problem::Problem;

/// A text that stands in the configuration or is computed.
#[derive(Debug)]
pub(crate) enum TextSource {
    Text(String),
    Expression(Expression),
}

impl TextSource {
    /// `key`, or `keyExpression`: exactly one of the two.
    pub(crate) fn compile(config: &Config<'_>, key: &str) -> Result<Self, Vec<Problem>> {
        let computed = format!("{key}Expression");
        match (config.text(key)?, config.expression(&computed)?) {
            (Some(text), None) => Ok(Self::Text(text)),
            (None, Some(expression)) => Ok(Self::Expression(expression)),
            _ => Err(config.problem(key, format!("Give either `{key}` or `{computed}`."))),
        }
    }

    /// The text itself. What an expression makes of it that is not text is kept as JSON.
    pub(crate) fn text(&self, scope: &dyn Scope) -> Result<String, Fault> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Expression(expression) => match expression.evaluate(scope) {
                Ok(Value::String(text)) => Ok(text),
                Ok(other) => Ok(other.to_string()),
                Err(error) => Err(expression.fault(&error)),
            },
        }
    }
}

/// A value that a node stores.
#[derive(Debug)]
pub(crate) enum ValueSource {
    Value(Value),
    Expression(Expression),
    /// The node's input port `value`.
    Input,
}
