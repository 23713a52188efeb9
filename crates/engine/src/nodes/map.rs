//! A list gone through: which items there are, what is done for one, and what is made of all.

use baton_model::{Fault, code, json as sizes};
use serde_json::{Map, Value, json};

use super::outcome::Done;
use crate::eval_context::EvalContext;
use crate::plan::{Items, MOST_ITEMS, MapStep, Work};
use crate::size;
use crate::state::{ItemEnd, MapRun};

/// Of how many failed items the message is told with the results. The log has all of them.
const MESSAGES_TOLD: usize = 100;

impl MapStep {
    /// The list, bounded before anything is done for any of it.
    pub(crate) fn list(&self, context: &EvalContext<'_>) -> Result<Vec<Value>, Fault> {
        let bounds = context.state.bounds();
        let found = match &self.items {
            Items::List(list) => Value::Array(list.clone()),
            Items::Expression(expression) => expression.evaluate(context).map_err(|error| expression.fault(&error))?,
            Items::Variable(name) => {
                size::one(name, context.state.size_of(name), bounds)?;
                let missing = || {
                    Fault::new(
                        code::INPUT_MISSING,
                        format!("The variable `{name}`, which is to hold the items, is not set."),
                    )
                };
                context.state.value_for(context.node, name)?.ok_or_else(missing)?
            }
            Items::Port => context.inputs.get("items").cloned().ok_or_else(|| {
                let message = "The node has no items: give it `items`, `itemsExpression` or an input port `items`.";
                Fault::new(code::INPUT_MISSING, message).with("input", "items")
            })?,
        };
        size::one("items", sizes::size(&found), bounds)?;
        let Value::Array(list) = found else {
            return Err(Fault::new(code::VALIDATION_ERROR, "The items of a map are a list."));
        };
        if list.len() > MOST_ITEMS {
            let message = format!("There are {} items; a map goes through {MOST_ITEMS} at most.", list.len());
            return Err(Fault::new(code::VALIDATION_ERROR, message)
                .with("limit", MOST_ITEMS)
                .with("observed", list.len()));
        }
        Ok(list)
    }

    /// The inputs of the run that works on an item.
    pub(crate) fn child_inputs(&self, context: &EvalContext<'_>) -> Result<Map<String, Value>, Fault> {
        let index = context.item.map_or(0, |item| item.index);
        match (&self.work, self.given().value(context)?) {
            (Work::Agent { .. }, Value::Object(task)) => Ok(task),
            (Work::Agent { .. }, task) => Ok([("task".to_owned(), task)].into_iter().collect()),
            (_, Value::Object(inputs)) if self.given().expression().is_some() || !self.gives_items() => Ok(inputs),
            (_, item) if self.gives_items() => {
                Ok([("item".to_owned(), item), ("index".to_owned(), json!(index))].into_iter().collect())
            }
            _ => Err(Fault::new(
                code::VALIDATION_ERROR,
                "`inputsExpression` gives an object: the workflow's inputs by name.",
            )),
        }
    }

    fn gives_items(&self) -> bool {
        matches!(self.given(), crate::plan::Given::Default)
    }

    /// What a completed child made of its item.
    pub(crate) fn made(&self, child: &Map<String, Value>) -> Result<Value, Fault> {
        let name = match &self.work {
            Work::Workflow { output: None, .. } => return Ok(Value::Null),
            Work::Workflow { output: Some(name), .. } => name,
            Work::Agent { .. } | Work::Tool { .. } => "result",
        };
        child.get(name).cloned().ok_or_else(|| {
            let message = format!("The run that worked on the item has left no variable `{name}`.");
            Fault::new(code::INPUT_MISSING, message).with("variable", name)
        })
    }

    /// All results in the order of the items, and what failed.
    pub(crate) fn done(&self, map: &MapRun) -> Done {
        let mut results = Vec::with_capacity(map.ends.len());
        let mut errors = Vec::new();
        for (index, end) in map.ends.iter().enumerate() {
            match end {
                Some(ItemEnd::Done(value)) => results.push(value.clone()),
                Some(ItemEnd::Failed(error)) => {
                    results.push(Value::Null);
                    errors.push(match errors.len() {
                        0..MESSAGES_TOLD => json!({"index": index, "code": error.code, "message": error.message}),
                        _ => json!({"index": index, "code": error.code}),
                    });
                }
                None => results.push(Value::Null),
            }
        }
        let results = Value::Array(results);
        let variables = self.into.iter().map(|into| (into.clone(), results.clone())).collect();
        let outputs = [
            ("results".to_owned(), results),
            ("errors".to_owned(), Value::Array(errors)),
            ("completed".to_owned(), json!(map.completed)),
            ("failed".to_owned(), json!(map.failed)),
        ];
        Done { variables, ..Done::with(outputs.into_iter().collect()) }
    }
}
