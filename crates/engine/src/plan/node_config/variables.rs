//! Settings of nodes that set and read variables.

use baton_model::workflow::Definition;
use serde_json::Value;

use super::config::Config;
use super::source::ValueSource;
use crate::plan::ports::Origin;
use crate::plan::problem::{Problem, escape};

/// `core.setVariable`: one name and a value or CEL expression, or several expressions under `assign`.
#[derive(Debug)]
pub(crate) struct SetVariable {
    pub(crate) assignments: Vec<(String, ValueSource)>,
}

impl SetVariable {
    pub(crate) fn compile(config: &Config<'_>, definition: &Definition) -> Result<Self, Vec<Problem>> {
        config.only(&["assign", "name", "variableName", "value", "expression"])?;
        let assignments = match config.get("assign") {
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, source)| {
                    let place = format!("assign/{}", escape(name));
                    let source =
                        source.as_str().ok_or_else(|| config.problem(&place, "An assignment is a CEL string."))?;
                    Ok((name.clone(), ValueSource::Expression(config.cel(&place, source)?)))
                })
                .collect::<Result<Vec<_>, Vec<Problem>>>()?,
            Some(_) => return Err(config.problem("assign", "`assign` maps names to CEL expressions.")),
            None => {
                let name = match config.text("name")? {
                    Some(name) => name,
                    None => config.required_text("variableName")?,
                };
                let source = match (config.expression("expression")?, config.get("value")) {
                    (Some(expression), _) => ValueSource::Expression(expression),
                    (None, Some(value)) => ValueSource::Value(value.clone()),
                    (None, None) => ValueSource::Input,
                };
                vec![(name, source)]
            }
        };
        for (name, _) in &assignments {
            if definition.channels.contains_key(name) {
                return Err(config.problem("", format!("`{name}` is a channel; write it with core.channelWrite.")));
            }
        }
        Ok(Self { assignments })
    }

    pub(crate) fn stores(&self) -> Vec<(&str, Origin<'_>)> {
        let flows = self.assignments.iter().filter_map(|(name, source)| match source {
            ValueSource::Value(_) => None,
            ValueSource::Expression(expression) => Some((name.as_str(), Origin::Expression(expression))),
            ValueSource::Input => Some((name.as_str(), Origin::Port("value"))),
        });
        flows.collect()
    }
}

/// `core.getVariable`: hands a variable on as its output `value`; null when it is not set.
#[derive(Debug)]
pub(crate) struct GetVariable {
    pub(crate) name: String,
}

impl GetVariable {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["name", "variableName"])?;
        let name = match config.text("name")? {
            Some(name) => name,
            None => config.required_text("variableName")?,
        };
        Ok(Self { name })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
