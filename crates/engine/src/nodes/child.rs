use baton_model::event::ChildPlan;
use baton_model::{Fault, ValueBounds, WorkflowId};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Outcome;
use super::config::Config;
use super::dispatch::{Attest, Harvest, harvest, kept, read_attest};
use crate::eval_context::EvalContext;
use crate::plan::Problem;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnFailure {
    #[default]
    FailParent,
    Absorb,
}

/// `core.subWorkflow`: runs another workflow as a child and waits for its end.
#[derive(Debug)]
pub(crate) struct SubWorkflow {
    workflow: WorkflowId,
    /// Child variable ← parent variable.
    input: Vec<(String, String)>,
    /// Parent variable ← child variable.
    output: Vec<(String, String)>,
    pub(crate) on_failure: OnFailure,
    pub(crate) propagate_cancellation: bool,
    pub(crate) attest: Attest,
}

const KEYS: &[&str] = &[
    "workflowId",
    "waitForCompletion",
    "onChildFailure",
    "inputMapping",
    "outputMapping",
    "propagateCancellation",
    "outputAttestation",
];

impl SubWorkflow {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(KEYS)?;
        if config.flag("waitForCompletion")? == Some(false) {
            return Err(config.problem("waitForCompletion", "This host always waits for the child; leave it out."));
        }
        Ok(Self {
            workflow: WorkflowId::new(config.required_text("workflowId")?),
            input: config.text_map("inputMapping")?,
            output: config.text_map("outputMapping")?,
            on_failure: config.choice("onChildFailure", "fail-parent, absorb")?.unwrap_or_default(),
            propagate_cancellation: config.flag("propagateCancellation")?.unwrap_or(true),
            attest: read_attest(config)?,
        })
    }

    /// What is taken over from a completed child: parent variable ← child variable.
    pub(crate) fn harvest(&self, child: &Map<String, Value>, bounds: ValueBounds) -> Result<Harvest, Fault> {
        harvest(&self.output, child, bounds)
    }

    /// The part of a child's variables that a harvest could need.
    pub(crate) fn kept(&self, child: &Map<String, Value>, bounds: ValueBounds) -> Result<Map<String, Value>, Fault> {
        kept(&self.output, child, bounds)
    }

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        // A parent variable that is not set leaves the child's default alone: JSON has no `undefined`, and null
        // would be a value.
        let mapped = self.input.iter().map(|(child, parent)| (child.as_str(), parent.as_str()));
        let variables = match scene.state.copy_all("What the child is given would", mapped) {
            Ok(variables) => variables,
            Err(fault) => return Outcome::Failed(fault),
        };
        Outcome::Child(ChildPlan {
            run: scene.state.run.child(scene.node_id(), scene.visit, scene.attempt),
            workflow: self.workflow.clone(),
            cause: "core.subWorkflow".to_owned(),
            inputs: scene.inputs.clone(),
            variables,
            isolated: false,
        })
    }
}
