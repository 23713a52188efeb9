//! A call somebody wants made, and what is said of one that cannot be.

use std::collections::BTreeMap;

use baton_model::tool::ToolFault;
use baton_model::{TenantId, TraceContext, code};
use serde_json::Value;

use crate::egress::Refused;
use reqwest::Url;

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

/// `url` is the address as the caller, or a page it was sent on from, wrote it.
pub(super) fn denied(refused: Refused, url: &Url) -> ToolFault {
    let place = url.host_str().zip(url.port_or_known_default()).map(|(host, port)| format!("{host}:{port}"));
    let hint = match (refused, place) {
        // No setting opens these.
        (Refused::Credentials, _) | (_, None) => "Use a public https:// address.".to_owned(),
        (Refused::Scheme | Refused::Inside, Some(place)) => format!(
            "Use a public https:// address. If this call is meant, the operator allows it with the setting \
             [http] allow = [\"{place}\"] in the file that --config names, or BATON_HTTP_ALLOW={place}, also in `baton dev`."
        ),
    };
    fault(code::EGRESS_DENIED, format!("This address may not be called: {refused}. {hint}"), false)
}
