//! Where values come from: what a node reads, and what it stores under another name.

use baton_model::workflow::PortValue;
use serde_json::Value;

use super::problem::Problem;
use crate::expr::{Expression, Strictness};

/// Where an input takes its value from, ready to be read.
#[derive(Debug)]
pub(crate) enum Port {
    Static(Value),
    Expression(Expression),
    Connection { node: usize, output: String, optional: bool },
    Variable { name: String, optional: bool },
}

impl Port {
    pub(super) fn compile(
        value: &PortValue,
        pointer: &str,
        place: &str,
        strictness: Strictness,
        node_index: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, Problem> {
        Ok(match value {
            PortValue::Static { value } => Self::Static(value.clone()),
            PortValue::Expression { expression } => Self::Expression(
                Expression::compile(expression, place, strictness)
                    .map_err(|error| Problem::at(format!("{pointer}/expression"), format!("Not valid CEL: {error}")))?,
            ),
            PortValue::Connection { node_id, output_key, optional } => {
                let node = node_index(node_id.as_str()).ok_or_else(|| {
                    Problem::at(format!("{pointer}/nodeId"), format!("There is no node `{node_id}` to connect to."))
                })?;
                Self::Connection { node, output: output_key.clone(), optional: *optional }
            }
            PortValue::Variable { variable_name, optional } => {
                Self::Variable { name: variable_name.clone(), optional: *optional }
            }
        })
    }
}

/// Where a node takes a value from that it stores under another name.
pub(crate) enum Origin<'a> {
    Expression(&'a Expression),
    Port(&'a str),
    Variable(&'a str),
}
