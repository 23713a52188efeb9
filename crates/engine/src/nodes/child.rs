use baton_model::WorkflowId;
use baton_model::event::ChildPlan;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Outcome;
use super::config::Config;
use super::dispatch::{Attest, read_attest};
use crate::plan::Problem;
use crate::scene::Scene;

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
    pub(crate) fn harvest(&self, child: &Map<String, Value>) -> Vec<(String, Value)> {
        self.output.iter().filter_map(|(parent, key)| Some((parent.clone(), child.get(key)?.clone()))).collect()
    }

    /// The part of a child's variables that a harvest could need.
    pub(crate) fn kept(&self, child: &Map<String, Value>) -> Map<String, Value> {
        self.output.iter().filter_map(|(_, key)| Some((key.clone(), child.get(key)?.clone()))).collect()
    }

    pub(super) fn run(&self, scene: &Scene<'_>) -> Outcome {
        // A parent variable that is not set leaves the child's default alone: JSON has no `undefined`, and null
        // would be a value.
        let variables: Map<String, Value> =
            self.input.iter().filter_map(|(child, parent)| Some((child.clone(), scene.state.value(parent)?))).collect();
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
