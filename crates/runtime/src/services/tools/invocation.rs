//! One call of a tool, and on whose behalf it is made.

use baton_engine::ToolCall;

/// On whose behalf a tool is called, and whether it really is.
#[derive(Clone, Debug)]
pub(crate) struct ToolInvocation {
    pub(crate) call: Box<ToolCall>,
    pub(crate) tenant: baton_model::TenantId,
    pub(crate) principal: String,
    /// Whose runners may make it.
    pub(crate) subject: String,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) trace: Option<baton_model::TraceContext>,
    /// Answered from the record instead of being made.
    pub(crate) simulated: bool,
}
