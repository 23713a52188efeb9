use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a run stands, as the wire spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RunStatus {
    Pending,
    Running,
    Paused,
    WaitingApproval,
    WaitingInput,
    WaitingExternal,
    /// A held decision asked as a clarification; ordinary clarifications are `waiting-input`.
    WaitingClarification,
    Cancelling,
    Completed,
    Failed,
    Cancelled,
}

impl RunStatus {
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::Running,
        Self::Paused,
        Self::WaitingApproval,
        Self::WaitingInput,
        Self::WaitingExternal,
        Self::WaitingClarification,
        Self::Cancelling,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::WaitingApproval => "waiting-approval",
            Self::WaitingInput => "waiting-input",
            Self::WaitingExternal => "waiting-external",
            Self::WaitingClarification => "waiting-clarification",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Suspended until somebody outside answers.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::WaitingApproval | Self::WaitingInput | Self::WaitingExternal | Self::WaitingClarification)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where one node stands in its current visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeStatus {
    Pending,
    Running,
    Retrying,
    Suspended,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

impl NodeStatus {
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped | Self::Cancelled)
    }
}
