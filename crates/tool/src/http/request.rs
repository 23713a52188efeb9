//! A call somebody wants made, and what is said of one that cannot be.

use std::collections::BTreeMap;

use baton_model::tool::ToolFault;
use baton_model::{TenantId, TraceContext, code};
use serde_json::Value;

use crate::egress::Refused;

/// A call somebody wants made.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpCall {
    /// Sent as `Idempotency-Key`: names this call for ever, so that a callee that has seen it can tell.
    pub key: String,
    pub method: String,
    pub url: String,
    /// Values are texts or references to secrets (`{"$secret": "ID"}`).
    pub headers: BTreeMap<String, Value>,
    /// A text is sent as it is, anything else as JSON; `null` means no body.
    pub body: Value,
    pub tenant: TenantId,
    pub trace: Option<TraceContext>,
    pub timeout_ms: Option<u64>,
}

pub(super) fn fault(code: &str, message: impl Into<String>, retryable: bool) -> ToolFault {
    ToolFault { code: code.to_owned(), message: message.into(), details: None, retryable: Some(retryable) }
}

pub(super) fn denied(refused: Refused) -> ToolFault {
    fault(
        code::EGRESS_DENIED,
        format!("This address may not be called: {refused}. Use a public https:// address."),
        false,
    )
}
