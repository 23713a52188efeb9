//! What the client takes and gives beyond the bodies that `baton_api` describes.

use baton_api::WorkflowVersion;
use baton_model::{RunStatus, Timestamp};
use serde::Serialize;

/// Which runs to list; empty fields do not filter.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub status: Vec<RunStatus>,
    pub workflow: Option<String>,
    pub tag: Option<String>,
    pub id_prefix: Option<String>,
    pub parent: Option<String>,
    /// Every descendant of this top-level run.
    pub root: Option<String>,
    pub created_from: Option<Timestamp>,
    pub created_until: Option<Timestamp>,
    /// Nothing happened since.
    pub updated_until: Option<Timestamp>,
    /// Whether somebody or something outside is waited for.
    pub waiting: Option<bool>,
    pub diverged: Option<bool>,
    pub over_budget: Option<bool>,
    /// The beginning of the run's id, or of its workflow's.
    pub text_prefix: Option<String>,
    pub cursor: Option<String>,
    pub limit: Option<usize>,
}

/// A workflow that was handed to the host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegisteredWorkflow {
    #[serde(flatten)]
    pub workflow: WorkflowVersion,
    /// False when this exact content was already the newest version.
    pub created: bool,
}

#[derive(Clone, Debug)]
pub struct Readiness {
    pub ready: bool,
    /// Why not.
    pub reason: Option<String>,
}
