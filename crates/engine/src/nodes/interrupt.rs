//! Asking whatever the node's configuration names.

use serde_json::Value;

use super::outcome::{Ask, Outcome};
use crate::eval_context::EvalContext;
use crate::plan::{Custom, External, GenericInterrupt};

impl GenericInterrupt {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        match self {
            Self::Approval(gate) => gate.run(context),
            Self::Clarification(gate) => gate.run(),
            Self::External(External { data, timeout_ms }) => {
                Outcome::Ask(Ask { timeout_ms: *timeout_ms, ..Ask::new("external-event", data.clone()) })
            }
            Self::Custom(Custom { data, resume_schema, timeout_ms }) => Outcome::Ask(Ask {
                resume_schema: resume_schema.as_ref().map(|(raw, _)| raw.clone()),
                timeout_ms: *timeout_ms,
                ..Ask::new("custom", data.clone())
            }),
        }
    }

    /// Checks an answer against the custom schema, if there is one.
    pub(crate) fn check_custom(&self, value: &Value) -> Result<(), (String, String)> {
        match self {
            Self::Custom(Custom { resume_schema: Some((_, schema)), .. }) => schema.check(value),
            _ => Ok(()),
        }
    }
}
