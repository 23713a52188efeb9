//! Asking for approval.

use baton_model::event::REDACTED;
use serde_json::json;

use super::outcome::{Ask, Outcome};
use crate::eval_context::EvalContext;
use crate::plan::{ApprovalGate, Rejection};

impl ApprovalGate {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        let (artifact_id, artifact_type) = &self.artifact;
        let mut data = json!({
            "artifactId": artifact_id,
            "artifactType": artifact_type,
            "title": self.title,
            "actions": self.actions,
        });
        if let Some(description) = &self.description {
            data["description"] = description.as_str().into();
        }
        if self.required > 1 {
            data["requiredApprovals"] = self.required.into();
            data["rejectionPolicy"] = match self.rejection {
                Rejection::SingleVeto => "single-veto".into(),
                Rejection::Majority => "majority".into(),
            };
        }
        if !self.approvers.is_empty() {
            data["approversList"] = self.approvers.clone().into();
        }
        if let Some(artifact) = self.artifact_input.then(|| context.inputs.get("artifact")).flatten() {
            let hidden = context.state.plan.nodes[context.node].hidden.contains("artifact");
            data["artifactData"] = if hidden { REDACTED.into() } else { artifact.clone() };
        }
        let ask = Ask::new("approval", data);
        Outcome::Ask(Ask { timeout_ms: self.timeout_ms, bearer_only: self.bearer_only, ..ask })
    }
}
