//! Tools: what an agent may call, and the ways to call it.
//!
//! [`Tool`] is the port. Behind it are HTTP ([`http`]) and servers of the Model Context Protocol ([`mcp`]); memory and
//! workspace are described here ([`native`]) and done by whoever keeps the versioned stores. A [`Toolbox`] says which of them a
//! tenant has. Before a call somebody asks [`hooks`] whether it may be made, and afterwards what came back is put
//! between marks ([`baton_model::fence`]): it was written by strangers.
//!
//! Nothing here knows runs or the log. A tool makes one call, once, and says what came of it; when to make it, whether
//! to make it again and what is written down is the business of others.

mod alias;
mod call_queue;
pub mod catalog;
pub mod egress;
pub mod hooks;
pub mod http;
mod listed;
pub mod mcp;
pub mod native;
pub mod runner;
mod secrets;
mod toolbox;

pub use alias::Aliases;
pub use baton_model::redact_value;
pub use call_queue::{CallQueue, CallTurn};
pub use catalog::{About, ToolDescriptor};
pub use secrets::{Destination, NoSecrets, SecretTable, Secrets};
pub use toolbox::{Audience, ToolSet, ToolSetError, ToolSource, Toolbox, is_allowed, narrowed};
// Names of the version before, for callers that still use them.

use async_trait::async_trait;
use baton_model::ToolSpec;
use baton_model::tool::{ToolOutcome, ToolRequest};

/// One thing that can be called.
#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// What the catalogue says beyond the specification.
    fn about(&self) -> About {
        About::default()
    }

    /// Makes the call, once, within its own bound of time. Whoever loses interest drops the future; the tool then gives
    /// up what it has open, and what the callee does about it is unknown.
    ///
    /// The request has been admitted: see [`hooks`].
    async fn call(&self, request: &ToolRequest) -> Called;
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Called {
    /// There is an answer, or it is certain that the callee never got the request.
    Done(ToolOutcome),
    /// The request may have reached the callee and no answer came: the connection was cut after sending, or time ran
    /// out. What to do about it is the tool's [`OutcomePolicy`](baton_model::OutcomePolicy).
    Unknown { reason: String },
}

impl Called {
    pub(crate) fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::Done(ToolOutcome::failed(code, message))
    }

    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown { reason: reason.into() }
    }
}
