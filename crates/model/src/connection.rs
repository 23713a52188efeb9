//! How the link to something outside the host is doing: an MCP server, a model provider, another host.

use serde::Serialize;

use crate::Timestamp;

/// One link, as operators see it. The name is the operator's own, from the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    pub kind: ConnectionKind,
    pub name: String,
    pub state: ConnectionState,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// How many tools an MCP server offers, or offered before it was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Which of its tools an MCP server does not get to offer, and why. Holds no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Failures in a row.
    pub failures: u32,
    /// When it is tried again. Absent where nobody tries by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Timestamp>,
    /// Why it failed last, if it has not worked since. Holds no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the process behind it ended: `exit code 3`, `signal 9`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// The last lines that process wrote to its standard error, oldest first, without secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ConnectionKind {
    Mcp,
    Provider,
    Remote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ConnectionState {
    /// Nobody has needed it yet. Providers and other hosts are asked when a run asks.
    Idle,
    Connecting,
    Connected,
    Failed,
}

impl ConnectionKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Provider => "provider",
            Self::Remote => "remote",
        }
    }
}

impl ConnectionState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed => "failed",
        }
    }

    /// Whether it works, as far as anybody knows. Unknown while nobody has needed it.
    pub const fn up(self) -> Option<bool> {
        match self {
            Self::Idle => None,
            Self::Connected => Some(true),
            Self::Connecting | Self::Failed => Some(false),
        }
    }
}

impl Connection {
    /// One that nothing is known of beyond its state.
    pub fn new(kind: ConnectionKind, name: impl Into<String>, state: ConnectionState, since: Timestamp) -> Self {
        Self {
            kind,
            name: name.into(),
            state,
            since,
            tools: None,
            left_out: None,
            failures: 0,
            next_attempt: None,
            reason: None,
            exit: None,
            stderr: Vec::new(),
        }
    }
}
