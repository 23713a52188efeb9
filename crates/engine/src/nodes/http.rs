//! One HTTP request, as a call that is announced before it is made.

use baton_model::{Fault, ToolUse, code};
use serde_json::{Value, json};

use super::outcome::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::plan::{Http, HttpBody};

impl Http {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        match self.arguments(context) {
            Ok(arguments) => {
                let asked = ToolUse { id: context.node_id().to_string(), name: self.tool.id.clone(), arguments };
                Outcome::Effect(Box::new(asked))
            }
            Err(fault) => Outcome::Failed(fault),
        }
    }

    fn arguments(&self, context: &EvalContext<'_>) -> Result<Value, Fault> {
        let Some(url) = &self.url else { return Ok(json!({})) };
        let url = url.text(context)?;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Fault::new(code::VALIDATION_ERROR, "The address begins with http:// or https://."));
        }
        let mut arguments = json!({"method": self.method, "url": url});
        if !self.headers.is_empty() {
            arguments["headers"] = Value::Object(self.headers.clone());
        }
        match &self.body {
            None => {}
            Some(HttpBody::Value(value)) => arguments["body"] = value.clone(),
            Some(HttpBody::Expression(expression)) => {
                arguments["body"] = expression.evaluate(context).map_err(|error| expression.fault(&error))?;
            }
        }
        if let Some(url) = &self.verify_url {
            arguments["verifyUrl"] = json!(url);
        }
        Ok(arguments)
    }

    pub(crate) fn done(&self, response: Value) -> Done {
        let variables = self.into.iter().map(|into| (into.clone(), response.clone())).collect();
        Done { variables, ..Done::with([("response".to_owned(), response)].into_iter().collect()) }
    }
}
