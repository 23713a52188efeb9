//! One call of a tool of the catalogue: what it is given, and what is made of its result.

use baton_model::{Fault, code};
use serde_json::{Value, json};

use super::outcome::Done;
use crate::eval_context::EvalContext;
use crate::plan::{Given, ToolStep};

impl ToolStep {
    /// What the tool is called with.
    pub(crate) fn given(&self, context: &EvalContext<'_>) -> Result<Value, Fault> {
        match &self.arguments {
            Given::Default => Ok(Value::Object(context.inputs.clone())),
            given => given.value(context),
        }
    }

    pub(crate) fn done(&self, result: Value, is_error: bool) -> Done {
        let variables = self.into.iter().map(|into| (into.clone(), result.clone())).collect();
        let outputs = [("result".to_owned(), result), ("isError".to_owned(), json!(is_error))];
        Done { variables, ..Done::with(outputs.into_iter().collect()) }
    }
}

impl Given {
    /// The value; one that comes from nowhere in particular is the item that is being looked at.
    pub(crate) fn value(&self, context: &EvalContext<'_>) -> Result<Value, Fault> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Expression(expression) => expression.evaluate(context).map_err(|error| expression.fault(&error)),
            Self::Default => context
                .item
                .map(|item| item.value.clone())
                .ok_or_else(|| Fault::new(code::INTERNAL_ERROR, "There is no item to take a value from.")),
        }
    }
}
