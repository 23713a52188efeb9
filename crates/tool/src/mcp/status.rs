//! How a connection is doing.

use std::time::SystemTime;

use baton_model::{Connection, ConnectionKind, ConnectionState, Timestamp};
use rmcp::{Peer, RoleClient};

/// What a caller is told about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpStatus {
    Connecting,
    /// With the revision of the protocol that both sides agreed on.
    Connected {
        revision: String,
    },
    /// Waiting before the next try. Why the last one failed.
    Disconnected {
        reason: String,
    },
}

/// The same, with what is needed to call.
#[derive(Clone, Debug)]
pub(super) enum Link {
    Connecting,
    Up { peer: Peer<RoleClient>, revision: String, generation: u64 },
    Down { reason: String },
}

impl Link {
    pub(super) fn is_generation(&self, wanted: u64) -> bool {
        matches!(self, Self::Up { generation, .. } if *generation == wanted)
    }
}

impl From<&Link> for McpStatus {
    fn from(link: &Link) -> Self {
        match link {
            Link::Connecting => Self::Connecting,
            Link::Up { revision, .. } => Self::Connected { revision: revision.clone() },
            Link::Down { reason } => Self::Disconnected { reason: reason.clone() },
        }
    }
}

/// Why a connection could not be made, or was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    /// In words, without anything that the server or a secret could have put there.
    pub(super) reason: String,
    /// How its process ended, if it did.
    pub(super) exit: Option<String>,
}

impl Failure {
    pub(super) fn new(reason: impl Into<String>, exit: Option<String>) -> Self {
        let reason = match &exit {
            Some(exit) => format!("its process ended with {exit}"),
            None => reason.into(),
        };
        Self { reason, exit }
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { reason, exit: None }
    }
}

/// What has happened so far, for operators.
#[derive(Clone, Debug)]
pub(super) struct History {
    up: bool,
    /// Since when it works, or does not: trying again in between is no change.
    since: Timestamp,
    /// In a row.
    pub(super) failures: u32,
    pub(super) next_attempt: Option<Timestamp>,
    last: Option<Failure>,
    /// What of its list is not offered. Stays when it is lost, as its tools do.
    pub(super) left_out: Option<String>,
    stderr: Vec<String>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            up: false,
            since: now(),
            failures: 0,
            next_attempt: None,
            last: None,
            left_out: None,
            stderr: Vec::new(),
        }
    }
}

impl History {
    pub(super) fn turned(&mut self, up: bool) {
        if up != self.up {
            *self = Self { up, left_out: self.left_out.take(), ..Self::default() };
        }
    }

    pub(super) fn lost(&mut self, failure: Failure, stderr: Vec<String>) {
        self.last = Some(failure);
        self.stderr = stderr;
    }

    pub(super) fn connection(self, name: &str, link: &Link, tools: usize) -> Connection {
        let state = match link {
            Link::Connecting => ConnectionState::Connecting,
            Link::Up { .. } => ConnectionState::Connected,
            Link::Down { .. } => ConnectionState::Failed,
        };
        let mut shown = Connection::new(ConnectionKind::Mcp, name, state, self.since);
        shown.tools = Some(tools);
        shown.left_out = self.left_out;
        shown.failures = self.failures;
        shown.next_attempt = self.next_attempt.filter(|_| state == ConnectionState::Failed);
        if let Some(Failure { reason, exit }) = self.last {
            shown.reason = Some(reason);
            shown.exit = exit;
            shown.stderr = self.stderr;
        }
        shown
    }
}

/// For people to read; nothing is decided by it.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
