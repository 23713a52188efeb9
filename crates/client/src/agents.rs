//! Agents: who there is, what they may call, what they are told, and calling one.

use baton_api::{Agent, AgentList, ChatMessage, NewerFields, RenderPrompt, StartedRun};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::routes::append;
use crate::{Client, Error};

/// Something that agents may call.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    pub tool_id: String,
    pub source: String,
    pub safety_tier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    #[serde(flatten)]
    pub rest: NewerFields,
}

/// The newest version of each template, as the host serves them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptList {
    pub items: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RenderedPrompt {
    pub hash: String,
    pub refs: Vec<String>,
    #[serde(default)]
    pub variable_hashes: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composed: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_trust: Option<String>,
}

impl Client {
    pub async fn agents(&self) -> Result<AgentList, Error> {
        self.get(self.url(&["v1", "agents"])).await
    }

    pub async fn agent(&self, id: &str) -> Result<Agent, Error> {
        self.get(self.url_of_name(&["v1", "agents"], id)?).await
    }

    /// Calls an agent by name.
    pub async fn chat(&self, message: &ChatMessage, idempotency_key: Option<&str>) -> Result<StartedRun, Error> {
        self.post(self.url(&["v1", "host", "baton", "chat"]), message, idempotency_key).await
    }

    /// What may be called there; `source` is one of the protocol's words (`mcp`, `host-extension`, …).
    pub async fn tools(&self, source: Option<&str>) -> Result<Vec<Tool>, Error> {
        let mut url = self.url(&["v1", "tools"]);
        append(&mut url, [("source", source.map(str::to_owned))]);
        self.get(url).await
    }

    pub async fn tool(&self, id: &str) -> Result<Tool, Error> {
        self.get(self.url_of_name(&["v1", "tools"], id)?).await
    }

    pub async fn prompts(&self, kind: Option<&str>, cursor: Option<&str>) -> Result<PromptList, Error> {
        let mut url = self.url(&["v1", "prompts"]);
        append(&mut url, [("kind", kind.map(str::to_owned)), ("cursor", cursor.map(str::to_owned))]);
        self.get(url).await
    }

    /// One template; the newest version unless one is named.
    pub async fn prompt(&self, id: &str, version: Option<&str>) -> Result<Value, Error> {
        let mut url = self.url_of_name(&["v1", "prompts"], id)?;
        append(&mut url, [("version", version.map(str::to_owned))]);
        self.get(url).await
    }

    pub async fn render_prompt(&self, render: &RenderPrompt) -> Result<RenderedPrompt, Error> {
        self.post(self.url(&["v1", "prompts:render"]), render, None).await
    }
}
