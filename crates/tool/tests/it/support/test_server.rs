//! A server with a few tools, for tests of the client.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

pub(crate) const CANARY: &str = "canary-77aa01ff";

#[derive(Clone)]
pub(crate) struct TestServer {
    pub(crate) revisions: &'static [ProtocolVersion],
    /// How often a tool was really called.
    pub(crate) calls: Arc<AtomicUsize>,
    /// A call of `hang` has begun.
    pub(crate) hanging: Arc<Notify>,
    /// Whether there is one tool more.
    pub(crate) grown: Arc<AtomicBool>,
    pub(crate) growth: watch::Sender<()>,
}

impl Default for TestServer {
    fn default() -> Self {
        Self {
            revisions: ProtocolVersion::KNOWN_VERSIONS,
            calls: Arc::default(),
            hanging: Arc::default(),
            grown: Arc::default(),
            growth: watch::Sender::new(()),
        }
    }
}

fn schema(value: Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

fn object() -> JsonObject {
    schema(json!({"type": "object", "properties": {"x": {"type": "string"}}}))
}

impl ServerHandler for TestServer {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.revisions)
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("workshop", "1.0.0"))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut growth = self.growth.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = growth.changed() => {
                    changed.unwrap();
                    context.sink().notify_tool_list_changed().await.unwrap();
                }
            }
        }
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = ListToolsResult::default();
        if page.and_then(|page| page.cursor).is_none() {
            // What a server says about itself must not count.
            let harmless = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true);
            result.tools = vec![
                Tool::new("echo", "Says it again.", object()).annotate(harmless),
                Tool::new("texts", "d".repeat(5000), object()),
                Tool::new("fail", "Fails.", object()),
                Tool::new("not a name", "x", object()),
                Tool::new("list-of-things", "x", schema(json!({"type": "array"}))),
            ];
            result.next_cursor = Some("2".to_owned());
        } else {
            for name in ["reject", "big", "hang", "grow"] {
                result.tools.push(Tool::new(name, "x", object()));
            }
            if self.grown.load(Ordering::SeqCst) {
                result.tools.push(Tool::new("grown", "x", object()));
            }
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(match request.name.as_ref() {
            "echo" => {
                let seen = json!({"arguments": request.arguments, "meta": context.meta, "token": CANARY});
                CallToolResult::structured(seen).into()
            }
            "texts" => {
                let parts = vec![
                    ContentBlock::text("one"),
                    ContentBlock::image("aGk=", "image/png"),
                    ContentBlock::text(CANARY),
                ];
                CallToolResult::success(parts).into()
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text(format!("no such row, token {CANARY}"))]).into(),
            "big" => CallToolResult::success(vec![ContentBlock::text("x".repeat(300 * 1024))]).into(),
            "hang" => {
                self.hanging.notify_one();
                std::future::pending().await
            }
            "grow" => {
                self.grown.store(true, Ordering::SeqCst);
                self.growth.send_replace(());
                // Older clients are told without having asked; newer ones would not listen here.
                let _ = context.peer.notify_tool_list_changed().await;
                CallToolResult::success(vec![ContentBlock::text("grown")]).into()
            }
            _ => return Err(ErrorData::invalid_params(format!("nothing here for {CANARY}"), None)),
        })
    }
}
