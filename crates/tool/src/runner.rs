//! Tools that runners bring: how they are offered, what operators say about them, and what their results mean. They are not
//! called here: whoever keeps the queue of a runner does that.

use std::collections::BTreeMap;

use async_trait::async_trait;
use baton_model::tool::{SafetyTier, ToolFault, ToolOutcome, ToolRequest, ToolStatus};
use baton_model::{ToolSpec, code};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::catalog::{About, Egress, Latency, Source};
use crate::listed::Judged;
pub use crate::listed::ListedTool;
use crate::mcp::ToolOverride;
use crate::{Called, Tool};

/// What ids of such tools begin with.
pub const PREFIX: &str = "runner:";

/// How much of a complaint is passed on.
const MAX_MESSAGE_CHARS: usize = 2_000;
const MAX_POOL_CHARS: usize = 64;

/// What an operator says about the runners of one pool: `[runners.POOL]` in the configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolSettings {
    /// How long a call waits until a runner takes it.
    #[serde(default = "default_wait_ms")]
    pub wait_for_runner_ms: u64,
    /// The longest a call may take once a runner has it.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// The largest output of a step.
    #[serde(default = "default_output_bytes")]
    pub max_output_bytes: usize,
    #[serde(default)]
    pub tools: BTreeMap<String, RunnerToolSettings>,
}

/// What the operator says about one tool of a pool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerToolSettings {
    pub tier: Option<SafetyTier>,
    pub outcome_policy: Option<baton_model::OutcomePolicy>,
    #[serde(default)]
    pub scopes: Vec<String>,
    pub stub: Option<Value>,
    pub timeout_ms: Option<u64>,
}

const fn default_wait_ms() -> u64 {
    120_000
}

const fn default_timeout_ms() -> u64 {
    60 * 60 * 1000
}

const fn default_output_bytes() -> usize {
    256 * 1024
}

/// Nobody waits longer than this for one step: what is known of it is forgotten some time after.
pub const LONGEST_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            wait_for_runner_ms: default_wait_ms(),
            timeout_ms: default_timeout_ms(),
            max_output_bytes: default_output_bytes(),
            tools: BTreeMap::new(),
        }
    }
}

impl PoolSettings {
    /// Why they cannot be used. Says what to change.
    pub fn check(&self, pool: &str) -> Result<(), String> {
        if !is_pool_name(pool) {
            return Err(format!("[runners.{pool}] is not a name for a pool: use 1 to 64 of a-z A-Z 0-9 - _"));
        }
        let timeouts = self.tools.values().filter_map(|said| said.timeout_ms).chain([self.timeout_ms]);
        if timeouts.into_iter().any(|timeout| timeout == 0 || timeout > LONGEST_TIMEOUT_MS) {
            return Err(format!("[runners.{pool}] `timeout_ms` must be 1 to {LONGEST_TIMEOUT_MS}"));
        }
        if self.max_output_bytes == 0 {
            return Err(format!("[runners.{pool}] `max_output_bytes` must be 1 or more"));
        }
        for (tool, said) in &self.tools {
            if said.scopes.iter().any(|scope| scope.trim().is_empty()) {
                return Err(format!("[runners.{pool}] tools.{tool}: a scope must not be empty"));
            }
        }
        Ok(())
    }

    /// How long a call of this tool may take.
    pub fn timeout_of(&self, tool: &str) -> u64 {
        self.tools.get(tool).and_then(|said| said.timeout_ms).unwrap_or(self.timeout_ms)
    }
}

/// Letters that need no escaping anywhere, and no dot: tools follow behind one.
pub fn is_pool_name(pool: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !pool.is_empty() && pool.len() <= MAX_POOL_CHARS && pool.chars().all(letter)
}

/// The pool and the name of a tool with this id.
pub fn parts_of(id: &str) -> Option<(&str, &str)> {
    id.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.'))
}

/// One tool of a pool.
pub struct RunnerTool {
    spec: ToolSpec,
    title: Option<String>,
    output_schema: Option<Value>,
}

impl RunnerTool {
    /// A tool as a runner lists it, or why it cannot be offered.
    pub fn new(pool: &str, listed: ListedTool, settings: Option<&PoolSettings>) -> Result<Self, &'static str> {
        let said = settings.and_then(|settings| settings.tools.get(&listed.name)).cloned().unwrap_or_default();
        let said =
            ToolOverride { tier: said.tier, outcome_policy: said.outcome_policy, scopes: said.scopes, stub: said.stub };
        let Judged { spec, title, output_schema } = listed.judged(&format!("{PREFIX}{pool}"), said)?;
        Ok(Self { spec, title, output_schema })
    }
}

#[async_trait]
impl Tool for RunnerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        About {
            source: Source::HostExtension,
            title: self.title.clone(),
            output_schema: self.output_schema.clone(),
            egress: Some(Egress::HostOwned),
            latency: Some(Latency::Medium),
            ..About::default()
        }
    }

    async fn call(&self, _: &ToolRequest) -> Called {
        Called::failed(code::RUNNER_UNAVAILABLE, format!("{} is called by its runner only.", self.spec.id))
    }
}

/// What a step's output means. It is an MCP tool result, `{content, structuredContent?, isError?}`; any other object counts
/// as structured content.
pub fn read_output(tool: &str, output: &Map<String, Value>) -> ToolOutcome {
    let content = output.get("content").and_then(Value::as_array);
    let structured = output.get("structuredContent").filter(|value| !value.is_null());
    if content.is_none() && structured.is_none() && !output.contains_key("isError") {
        return ToolOutcome::ok(Value::Object(output.clone()));
    }
    let texts = || content.map(|content| texts(content)).unwrap_or_default();
    if output.get("isError") == Some(&Value::Bool(true)) {
        let complaint: String = texts().chars().take(MAX_MESSAGE_CHARS).collect();
        let message = match complaint.trim().is_empty() {
            true => format!("{tool} failed and did not say why."),
            false => complaint,
        };
        let code = code::MCP_TOOL_INVOCATION_FAILED.to_owned();
        let error = ToolFault { code, message, details: None, retryable: Some(false) };
        return ToolOutcome { status: ToolStatus::Error, value: Value::Null, error: Some(error), duration_ms: None };
    }
    ToolOutcome::ok(structured.cloned().unwrap_or_else(|| Value::String(texts())))
}

/// The texts, one after the other. What is not text is only mentioned.
fn texts(content: &[Value]) -> String {
    let text = |part: &Value| {
        let of = |name: &str| part.get(name).and_then(Value::as_str);
        match of("type") {
            Some("text") => of("text").unwrap_or_default().to_owned(),
            Some(kind @ ("image" | "audio")) => format!("[{kind}, {}]", of("mimeType").unwrap_or("unknown")),
            Some("resource") => match part.pointer("/resource/text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!("[resource {}]", part.pointer("/resource/uri").and_then(Value::as_str).unwrap_or("")),
            },
            Some("resource_link") => format!("[resource {}]", of("uri").unwrap_or_default()),
            _ => "[content]".to_owned(),
        }
    };
    content.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(output: Value) -> Result<Value, String> {
        let outcome = read_output("runner:p.t", output.as_object().unwrap());
        outcome.error.map_or(Ok(outcome.value), |error| Err(error.message))
    }

    #[test]
    fn an_output_is_a_tool_result_or_structured_content() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(read(json!({"content": [text("a"), text("b")]})), Ok(json!("a\nb")));
        assert_eq!(read(json!({"content": [text("a")], "structuredContent": {"n": 1}})), Ok(json!({"n": 1})));
        assert_eq!(read(json!({"content": [], "structuredContent": null})), Ok(json!("")));
        assert_eq!(read(json!({"n": 1, "m": []})), Ok(json!({"n": 1, "m": []})));
        assert_eq!(read(json!({})), Ok(json!({})));
        assert_eq!(read(json!({"content": [text("no")], "isError": true})), Err("no".to_owned()));
        assert!(read(json!({"isError": true})).unwrap_err().contains("did not say why"));
        let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
        assert_eq!(read(json!({"content": [image, 1]})), Ok(json!("[image, image/png]\n[content]")));
    }

    #[test]
    fn a_tool_is_offered_as_the_operator_says_and_not_as_the_runner_says() {
        let listed = |name: &str| ListedTool {
            name: name.to_owned(),
            input_schema: json!({"type": "object"}),
            ..ListedTool::default()
        };
        let settings: PoolSettings =
            serde_json::from_value(json!({"tools": {"read": {"tier": "read", "scopes": ["files:read"]}}})).unwrap();
        let spec = |name: &str| RunnerTool::new("py", listed(name), Some(&settings)).map(|tool| tool.spec);
        let read = spec("read").unwrap();
        assert_eq!((read.id.as_str(), read.tier), ("runner:py.read", SafetyTier::Read));
        assert_eq!(read.outcome_policy, baton_model::OutcomePolicy::Retry);
        assert_eq!(spec("write").unwrap().outcome_policy, baton_model::OutcomePolicy::Ask);
        assert!(spec("a b").is_err() && spec("").is_err());
        assert_eq!(parts_of("runner:py.a.b"), Some(("py", "a.b")));
        assert_eq!(parts_of("mcp:py.a"), None);
    }

    #[test]
    fn wrong_settings_say_what_to_change() {
        let problem = |pool: &str, settings: Value| {
            serde_json::from_value::<PoolSettings>(settings).unwrap().check(pool).unwrap_err()
        };
        assert!(problem("a.b", json!({})).contains("not a name for a pool"));
        assert!(problem("a", json!({"timeout_ms": 0})).contains("timeout_ms"));
        assert!(problem("a", json!({"tools": {"t": {"timeout_ms": 86_400_001}}})).contains("timeout_ms"));
        assert!(problem("a", json!({"max_output_bytes": 0})).contains("max_output_bytes"));
        assert!(problem("a", json!({"tools": {"t": {"scopes": [" "]}}})).contains("scope"));
        assert!(serde_json::from_value::<PoolSettings>(json!({"tool": {}})).is_err());
        assert!(PoolSettings::default().check("py").is_ok());
    }
}
