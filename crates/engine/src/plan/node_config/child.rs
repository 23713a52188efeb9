//! Settings of a node that runs another workflow as a child.

use baton_model::WorkflowId;
use serde::Deserialize;

use super::config::Config;
use super::dispatch::{Attest, read_attest};
use crate::plan::problem::Problem;

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
    pub(crate) workflow: WorkflowId,
    /// Child variable ← parent variable.
    pub(crate) input: Vec<(String, String)>,
    /// Parent variable ← child variable.
    pub(crate) output: Vec<(String, String)>,
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
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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
}
