//! What test workflows have besides the ordinary kinds of nodes.

use baton_model::{Entrance, Fault, code};

use super::mock_agent::MockAgent;
use crate::node_request::Probe;

#[derive(Debug)]
pub(crate) enum TestKind {
    /// `core.conformance.mock-agent`.
    MockAgent(Box<MockAgent>),
    /// A memory check.
    Probe(Probe),
    /// `core.ai.callPrompt`: streams the tokens that `configurable.mockProvider` lists.
    StreamText,
    /// Needs a runtime capability that no host provides: refused before it starts.
    Missing { capability: String },
}

impl TestKind {
    /// Whether the shell has to be asked before a visit can start.
    pub(crate) fn asks_first(&self) -> bool {
        matches!(self, Self::Probe(_))
    }

    /// Where what it makes comes from, and the agent that is said to have made it.
    pub(crate) fn makes(&self) -> (Entrance, Option<&str>) {
        match self {
            Self::MockAgent(mock) => (Entrance::Agent, Some(&mock.agent_id)),
            Self::Probe(_) => (Entrance::Memory, None),
            Self::StreamText => (Entrance::Model, None),
            Self::Missing { .. } => (Entrance::Node, None),
        }
    }

    /// Why it cannot even start.
    pub(crate) fn missing(&self) -> Option<Fault> {
        match self {
            Self::Missing { capability } => {
                let message = format!("This host does not provide the capability `{capability}`.");
                Some(Fault::new(code::CAPABILITY_NOT_PROVIDED, message))
            }
            Self::MockAgent(_) | Self::Probe(_) | Self::StreamText => None,
        }
    }

    /// Whether it says something in pieces, over time.
    pub(crate) fn streams(&self) -> bool {
        matches!(self, Self::StreamText)
    }
}
