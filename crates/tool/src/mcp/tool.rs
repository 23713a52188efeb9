//! One tool of a server.

use std::sync::Arc;

use async_trait::async_trait;
use baton_model::ToolSpec;
use baton_model::tool::{OutcomePolicy, SafetyTier, ToolRequest, Transport};
use serde_json::Value;

use super::call;
use super::handle::ServerHandle;
use crate::catalog::{About, Egress, Latency, Source};
use crate::{Called, Tool};

const MAX_NAME_CHARS: usize = 128;
const MAX_TITLE_CHARS: usize = 200;
const MAX_DESCRIPTION_CHARS: usize = 2_000;
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

pub(super) struct McpTool {
    server: Arc<ServerHandle>,
    /// The server's own name for it.
    name: String,
    spec: ToolSpec,
    title: Option<String>,
    output_schema: Option<Value>,
}

impl McpTool {
    /// A tool as it is listed, or why it cannot be offered. What the server says about how harmless it is does not count.
    pub(super) fn new(server: &Arc<ServerHandle>, listed: rmcp::model::Tool) -> Result<Self, &'static str> {
        let name = listed.name.into_owned();
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(letter) {
            return Err("its name has other characters than letters, digits and _ - . /, or too many");
        }
        let input_schema = Value::Object(Arc::unwrap_or_clone(listed.input_schema));
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("its input is not an object");
        }
        if input_schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err("its input schema is too large");
        }
        let output_schema = listed.output_schema.map(|schema| Value::Object(Arc::unwrap_or_clone(schema)));
        let said = server.settings.tools.get(&name).cloned().unwrap_or_default();
        let tier = said.tier.unwrap_or(SafetyTier::Write);
        let default_policy = if tier < SafetyTier::Write { OutcomePolicy::Retry } else { OutcomePolicy::Ask };
        let spec = ToolSpec {
            id: format!("mcp:{}.{name}", server.name),
            description: bounded(listed.description.as_deref().unwrap_or_default(), MAX_DESCRIPTION_CHARS),
            input_schema,
            transport: Transport::Mcp,
            tier,
            outcome_policy: said.outcome_policy.unwrap_or(default_policy),
            scopes: said.scopes,
            stub: said.stub,
        };
        Ok(Self {
            server: Arc::clone(server),
            name,
            spec,
            title: listed.title.map(|title| bounded(&title, MAX_TITLE_CHARS)),
            output_schema: output_schema.filter(|schema| schema.to_string().len() <= MAX_SCHEMA_BYTES),
        })
    }
}

/// The beginning of a text that is too long.
fn bounded(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        About {
            source: Source::Mcp,
            title: self.title.clone(),
            output_schema: self.output_schema.clone(),
            egress: Some(Egress::HostMediated),
            latency: Some(Latency::Medium),
            ..About::default()
        }
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        call::call(&self.server, &self.name, request).await
    }
}
