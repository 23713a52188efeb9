//! Settings of an approval: who decides, with which actions, and how many must agree.

use baton_model::event::ApprovalAction;
use baton_model::workflow::Node;
use serde::Deserialize;
use serde_json::Value;

use super::config::Config;
use crate::plan::problem::Problem;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rejection {
    /// One reject ends it. `first` is an older name for the same.
    #[default]
    #[serde(alias = "first")]
    SingleVeto,
    Majority,
}

/// `core.approvalGate`: waits until enough people said yes, or somebody said no.
#[derive(Debug)]
pub(crate) struct ApprovalGate {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) artifact: (String, String),
    pub(crate) artifact_input: bool,
    pub(crate) actions: Vec<ApprovalAction>,
    pub(crate) required: u32,
    pub(crate) rejection: Rejection,
    pub(crate) approvers: Vec<String>,
    pub(crate) bearer_only: bool,
    pub(crate) timeout_ms: Option<u64>,
}

impl ApprovalGate {
    pub(crate) fn compile(config: &Config<'_>, node: &Node) -> Result<Self, Vec<Problem>> {
        let actions = match config.get("actions") {
            None => vec![ApprovalAction::Accept, ApprovalAction::Reject],
            Some(list) => read_actions(list).ok_or_else(|| {
                config.problem("actions", "`actions` lists one or more of accept, reject, refine, edit-accept, ask.")
            })?,
        };
        let required = config.whole("requiredApprovals", 1, 1000)?.unwrap_or(1);
        let approvers = match config.get("approversList") {
            None => Vec::new(),
            Some(list) => serde_json::from_value(list.clone())
                .map_err(|_| config.problem("approversList", "`approversList` is a list of strings."))?,
        };
        let title = config.text("title")?.filter(|title| !title.is_empty()).unwrap_or_else(|| node.name.clone());
        Ok(Self {
            title: if title.is_empty() { node.id.to_string() } else { title },
            description: config.text("description")?,
            artifact: (
                config.text("artifactId")?.unwrap_or_else(|| format!("{}-artifact", node.id)),
                config.text("artifactType")?.unwrap_or_else(|| "approval".to_owned()),
            ),
            artifact_input: node.inputs.contains_key("artifact"),
            actions,
            required: u32::try_from(required).unwrap_or(u32::MAX),
            rejection: config.choice("rejectionPolicy", "single-veto, majority")?.unwrap_or_default(),
            approvers,
            bearer_only: config.text("profile")?.as_deref() == Some("openwop-interrupt-auth-required"),
            timeout_ms: config.whole("timeoutMs", 0, 31_536_000_000)?.filter(|&ms| ms > 0),
        })
    }
}

/// `edit` is an older spelling of `edit-accept`.
fn read_actions(list: &Value) -> Option<Vec<ApprovalAction>> {
    let mut actions = Vec::new();
    for item in list.as_array()? {
        let action = match item.as_str()? {
            "accept" => ApprovalAction::Accept,
            "reject" => ApprovalAction::Reject,
            "refine" => ApprovalAction::Refine,
            "edit-accept" | "edit" => ApprovalAction::EditAccept,
            "ask" => ApprovalAction::Ask,
            _ => return None,
        };
        if !actions.contains(&action) {
            actions.push(action);
        }
    }
    (!actions.is_empty()).then_some(actions)
}
