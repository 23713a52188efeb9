//! How a connection is doing.

use rmcp::{Peer, RoleClient};

/// What an operator is told about a server.
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
