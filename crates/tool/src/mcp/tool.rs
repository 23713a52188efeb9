//! One tool of a server.

use std::sync::Arc;

use async_trait::async_trait;
use baton_model::ToolSpec;
use baton_model::tool::ToolRequest;
use serde_json::Value;

use super::call;
use super::handle::ServerHandle;
use crate::catalog::{About, Egress, Latency, Source};
use crate::listed::{Judged, ListedTool};
use crate::{Called, Tool};

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
        let said = server.settings.tools.get(&name).cloned().unwrap_or_default();
        let listed = ListedTool {
            name: name.clone(),
            title: listed.title,
            description: listed.description.map(|text| text.into_owned()),
            input_schema: Value::Object(Arc::unwrap_or_clone(listed.input_schema)),
            output_schema: listed.output_schema.map(|schema| Value::Object(Arc::unwrap_or_clone(schema))),
        };
        let Judged { spec, title, output_schema } = listed.judged(&format!("mcp:{}", server.name), said)?;
        Ok(Self { server: Arc::clone(server), name, spec, title, output_schema })
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
