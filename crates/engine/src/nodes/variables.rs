use baton_model::workflow::Definition;
use serde_json::{Map, Value};

use super::config::Config;
use super::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::expr::Expression;
use crate::plan::{Origin, Problem, escape};

/// `core.setVariable`: one name and a value or CEL expression, or several expressions under `assign`.
#[derive(Debug)]
pub(crate) struct SetVariable {
    assignments: Vec<(String, Source)>,
}

#[derive(Debug)]
enum Source {
    Value(Value),
    Expression(Expression),
    /// The node's input port `value`.
    Input,
}

impl SetVariable {
    pub(super) fn compile(config: &Config<'_>, definition: &Definition) -> Result<Self, Vec<Problem>> {
        config.only(&["assign", "name", "variableName", "value", "expression"])?;
        let assignments = match config.get("assign") {
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, source)| {
                    let place = format!("assign/{}", escape(name));
                    let source =
                        source.as_str().ok_or_else(|| config.problem(&place, "An assignment is a CEL string."))?;
                    Ok((name.clone(), Source::Expression(config.cel(&place, source)?)))
                })
                .collect::<Result<Vec<_>, Vec<Problem>>>()?,
            Some(_) => return Err(config.problem("assign", "`assign` maps names to CEL expressions.")),
            None => {
                let name = match config.text("name")? {
                    Some(name) => name,
                    None => config.required_text("variableName")?,
                };
                let source = match (config.expression("expression")?, config.get("value")) {
                    (Some(expression), _) => Source::Expression(expression),
                    (None, Some(value)) => Source::Value(value.clone()),
                    (None, None) => Source::Input,
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

    pub(super) fn stores(&self) -> Vec<(&str, Origin<'_>)> {
        let flows = self.assignments.iter().filter_map(|(name, source)| match source {
            Source::Value(_) => None,
            Source::Expression(expression) => Some((name.as_str(), Origin::Expression(expression))),
            Source::Input => Some((name.as_str(), Origin::Port("value"))),
        });
        flows.collect()
    }

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        let mut variables = Vec::with_capacity(self.assignments.len());
        for (name, source) in &self.assignments {
            let value = match source {
                Source::Value(value) => value.clone(),
                Source::Input => scene.inputs.get("value").cloned().unwrap_or(Value::Null),
                Source::Expression(expression) => match expression.evaluate(scene) {
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

/// `core.getVariable`: hands a variable on as its output `value`; null when it is not set.
#[derive(Debug)]
pub(crate) struct GetVariable {
    name: String,
}

impl GetVariable {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        let value = match scene.state.value_for(scene.node, &self.name) {
            Ok(value) => value.unwrap_or(Value::Null),
            Err(fault) => return Outcome::Failed(fault),
        };
        Outcome::Done(Done::with([("value".to_owned(), value)].into_iter().collect()))
    }
}
