//! What a model is asked, whoever the vendor is.

use std::sync::Arc;

use crate::cache_key::SemanticRequest;
use crate::{NodeId, TraceContext};

pub use crate::model_reply::{ModelReply, StopReason, Usage};

/// What a provider is asked to do. Everything besides [`SemanticRequest`] is about this one call and not about its
/// answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// Names this call for ever: made again after a crash, it is the same call.
    pub key: String,
    /// The node that asks.
    pub node: NodeId,
    pub semantic: Arc<SemanticRequest>,
    /// How long the caller will wait.
    pub timeout_ms: Option<u64>,
    /// The trace this call belongs to.
    pub trace: Option<TraceContext>,
    /// Whether the model should think aloud, where it can.
    pub reasoning: bool,
    /// The most that may be said and thought, whoever allows more: nothing is left to pay for it.
    pub cap: Option<u64>,
}
