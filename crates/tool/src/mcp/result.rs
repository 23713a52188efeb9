//! From what a server answered to what a caller gets.

use baton_model::tool::{ToolFault, ToolOutcome, ToolStatus};
use baton_model::{Secret, code, redact};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::Called;
use baton_model::redact_value;

/// How much of a server's complaint is passed on.
const MAX_MESSAGE_CHARS: usize = 2_000;

pub(super) fn read(tool: &str, response: CallToolResponse, secrets: &[Secret], max_bytes: usize) -> Called {
    match response {
        CallToolResponse::Complete(result) if result.is_error == Some(true) => failed(tool, &texts(&result), secrets),
        CallToolResponse::Complete(result) => complete(tool, result, secrets, max_bytes),
        CallToolResponse::InputRequired(_) => {
            invocation_failed(format!("{tool} asks its caller for input, which this host does not offer."))
        }
        // Nobody asked for a task, or for anything else that goes on, so nobody will come back for it.
        _ => Called::unknown(format!("{tool} goes on in the background, where this host does not follow it")),
    }
}

/// A complaint of the server, in its own words: whoever shows it fences it.
pub(super) fn failed(tool: &str, complaint: &str, secrets: &[Secret]) -> Called {
    let complaint: String = redact(complaint, secrets).chars().take(MAX_MESSAGE_CHARS).collect();
    if complaint.trim().is_empty() {
        return invocation_failed(format!("{tool} failed and did not say why."));
    }
    invocation_failed(complaint)
}

pub(crate) fn disconnected(server: &str, reason: &str) -> Called {
    let error = Some(disconnection(server, reason));
    Called::Done(ToolOutcome { status: ToolStatus::Error, value: Value::Null, error, duration_ms: None })
}

pub(crate) fn disconnection(server: &str, reason: &str) -> ToolFault {
    ToolFault {
        code: code::MCP_SERVER_DISCONNECTED.to_owned(),
        message: format!("The MCP server {server} cannot be reached, and was not called: {reason}."),
        details: None,
        retryable: Some(true),
    }
}

fn complete(tool: &str, result: CallToolResult, secrets: &[Secret], max_bytes: usize) -> Called {
    let value = match result.structured_content {
        Some(structured) => redact_value(&structured, secrets),
        None => Value::String(redact(&texts(&result), secrets)),
    };
    let bytes = match &value {
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    };
    if bytes > max_bytes {
        return invocation_failed(format!(
            "{tool} was called, but its result has {bytes} bytes, more than the {max_bytes} that are allowed. Ask it for less."
        ));
    }
    Called::Done(ToolOutcome::ok(value))
}

/// The texts of a result, one after the other. What is not text is only mentioned.
fn texts(result: &CallToolResult) -> String {
    let parts: Vec<String> = result
        .content
        .iter()
        .map(|part| match part {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => format!("[image, {}]", image.mime_type),
            ContentBlock::Audio(audio) => format!("[audio, {}]", audio.mime_type),
            ContentBlock::Resource(embedded) => match &embedded.resource {
                ResourceContents::TextResourceContents { text, .. } => text.clone(),
                ResourceContents::BlobResourceContents { uri, .. } => format!("[resource {uri}]"),
                _ => "[resource]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => format!("[resource {}]", link.uri),
            _ => "[content]".to_owned(),
        })
        .collect();
    parts.join("\n")
}

fn invocation_failed(message: String) -> Called {
    fault(code::MCP_TOOL_INVOCATION_FAILED, message, false)
}

fn fault(code: &str, message: String, retryable: bool) -> Called {
    let error = ToolFault { code: code.to_owned(), message, details: None, retryable: Some(retryable) };
    Called::Done(ToolOutcome { status: ToolStatus::Error, value: Value::Null, error: Some(error), duration_ms: None })
}
