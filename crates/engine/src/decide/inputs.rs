//! What a node's input ports bring.

use baton_model::{Fault, Timestamp, code, json};
use serde_json::{Map, Value};

use crate::eval_context::EvalContext;
use crate::plan::Port;
use crate::size::Copies;
use crate::state::RunState;

/// Reads a node's input ports.
pub(super) fn inputs(state: &RunState, node: usize, at: Timestamp) -> Result<Map<String, Value>, Fault> {
    let mut inputs = Map::new();
    let mut copies = Copies::new("The node's inputs", state.bounds());
    for (name, port) in &state.plan.nodes[node].inputs {
        let missing = |what: String| {
            Fault::new(code::INPUT_MISSING, format!("The input `{name}` has no value: {what}."))
                .with("input", name.as_str())
        };
        let value = match port {
            Port::Static(value) => {
                copies.add(name, json::size(value))?;
                Some(value.clone())
            }
            Port::Expression(expression) => {
                let context = EvalContext::new(state, node, 1, 0, Map::new(), false, at);
                let value = expression.evaluate(&context).map_err(|error| expression.fault(&error))?;
                copies.add(name, json::size(&value))?;
                Some(value)
            }
            Port::Connection { node: source, output, optional } => match state.nodes[*source].outputs.get(output) {
                Some(value) => {
                    copies.add(name, json::size(value))?;
                    Some(value.clone())
                }
                None if *optional => None,
                None => {
                    let source = &state.plan.nodes[*source].id;
                    return Err(missing(format!("node `{source}` has no output `{output}`")));
                }
            },
            Port::Variable { name: variable, optional } => {
                copies.add(name, state.size_of(variable))?;
                match state.value_for(node, variable)? {
                    Some(value) => Some(value),
                    None if *optional => None,
                    None => return Err(missing(format!("the variable `{variable}` is not set"))),
                }
            }
        };
        if let Some(value) = value {
            inputs.insert(name.clone(), value);
        }
    }
    Ok(inputs)
}
