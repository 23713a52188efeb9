//! Starting a child run, and what is taken over from it.

use baton_model::event::ChildPlan;
use baton_model::{Fault, ValueBounds};
use serde_json::{Map, Value};

use super::dispatch::{Harvest, harvest, kept};
use super::outcome::Outcome;
use crate::eval_context::EvalContext;
use crate::plan::SubWorkflow;

impl SubWorkflow {
    /// What is taken over from a completed child: parent variable ← child variable.
    pub(crate) fn harvest(&self, child: &Map<String, Value>, bounds: ValueBounds) -> Result<Harvest, Fault> {
        harvest(&self.output, child, bounds)
    }

    /// The part of a child's variables that a harvest could need.
    pub(crate) fn kept(&self, child: &Map<String, Value>, bounds: ValueBounds) -> Result<Map<String, Value>, Fault> {
        kept(&self.output, child, bounds)
    }

    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        // A parent variable that is not set leaves the child's default alone: JSON has no `undefined`, and null
        // would be a value.
        let mapped = self.input.iter().map(|(child, parent)| (child.as_str(), parent.as_str()));
        let variables = match context.state.copy_all("What the child is given would", mapped) {
            Ok(variables) => variables,
            Err(fault) => return Outcome::Failed(fault),
        };
        Outcome::Child(ChildPlan {
            run: context.state.run.child(context.node_id(), context.visit, context.attempt),
            workflow: self.workflow.clone(),
            cause: "core.subWorkflow".to_owned(),
            inputs: context.inputs.clone(),
            variables,
            isolated: false,
        })
    }
}
