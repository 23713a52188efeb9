//! One prepared outcome of a call.

use baton_model::ModelReply;

use crate::ProviderFault;

/// What one call comes to.
#[derive(Clone, Debug, PartialEq)]
// One of these lives for the length of a call: a box would only be another allocation.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    Reply(ModelReply),
    Fault(ProviderFault),
    /// Never answers. Only whoever asked can end it.
    Stall,
}
