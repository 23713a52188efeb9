//! What makes two model calls the same call, and the key that says so.
//!
//! The recipe is the protocol's `openwop-semantic-request-v2`: everything that can change the answer is in the key, and
//! nothing else is. Who asks, how long they wait and how the answer travels are not. A key is no secret and no proof of
//! who may read what it stands for: whoever keeps answers by key keeps them apart by tenant.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use crate::tool::ToolUse;
use crate::{Digest, ModelReply};

/// The recipe's name, which is part of what is hashed: keys of different recipes never meet.
pub const RECIPE: &str = "openwop-semantic-request-v2";

/// The part of a model call that decides its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SemanticRequest {
    pub provider: String,
    pub model: String,
    pub messages: Vec<Message>,
    /// Each an object with a `name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Number>,
    /// Absent and empty are not the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_settings: Option<Value>,
    /// What only one vendor knows, as `vendor.<provider>.<option>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_options: Option<Map<String, Value>>,
}

/// One message of a conversation, exactly as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message(Map<String, Value>);

impl Message {
    pub fn new(role: &str, content: impl Into<Value>) -> Self {
        Self(Map::from_iter([("role".to_owned(), role.into()), ("content".to_owned(), content.into())]))
    }

    /// What a model said, as it is shown to it again: `toolCalls` are what it wanted called, `echo` what its vendor
    /// wants to see word for word.
    pub fn said(reply: &ModelReply) -> Self {
        let mut message = Self::new("assistant", reply.content.as_str());
        if !reply.tools.is_empty() {
            message.0.insert("toolCalls".to_owned(), json!(reply.tools));
        }
        message.0.extend(reply.echo.clone().map(|echo| ("echo".to_owned(), echo)));
        message
    }

    /// What a tool answered, for the model that asked.
    pub fn tool(call: &ToolUse, content: impl Into<Value>) -> Self {
        let mut message = Self::new("tool", content);
        message.0.insert("toolCallId".to_owned(), call.id.as_str().into());
        message.0.insert("name".to_owned(), call.name.as_str().into());
        message
    }

    pub fn role(&self) -> &str {
        self.0.get("role").and_then(Value::as_str).unwrap_or_default()
    }

    /// A text, or a list of parts.
    pub fn content(&self) -> &Value {
        self.0.get("content").unwrap_or(&Value::Null)
    }

    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }
}

/// Why a request cannot be read, and which field is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {why}")]
pub struct BadRequest {
    pub field: String,
    pub why: String,
}

impl SemanticRequest {
    /// Reads a flat object. Fields that cannot change the answer are passed over.
    pub fn read(raw: &Map<String, Value>) -> Result<Self, BadRequest> {
        Ok(Self {
            provider: name(raw, "provider")?.to_ascii_lowercase(),
            model: name(raw, "model")?,
            messages: messages(raw.get("messages").ok_or_else(|| bad("messages", "is required"))?, "messages")?,
            tools: tools(raw)?,
            temperature: number(raw, "temperature")?,
            top_p: number(raw, "topP")?,
            top_k: number(raw, "topK")?,
            max_output_tokens: whole(raw, "maxOutputTokens")?,
            seed: number(raw, "seed")?,
            stop: stop(raw)?,
            response_format: object(raw, "responseFormat")?.map(Value::Object),
            safety_settings: settings(raw)?,
            provider_options: object(raw, "providerOptions")?,
        })
    }

    /// The key of this request.
    pub fn cache_key(&self) -> Digest {
        Digest::of_json(&self.canonical())
    }

    /// The same with no more room for its answer than this.
    pub fn capped(&self, cap: Option<u64>) -> Cow<'_, Self> {
        match cap {
            Some(cap) if self.max_output_tokens.is_none_or(|room| room > cap) => {
                Cow::Owned(Self { max_output_tokens: Some(cap), ..self.clone() })
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// What is hashed. Absent fields are left out, an empty list of tools counts as none.
    fn canonical(&self) -> Value {
        let mut request = Map::from_iter([("messages".to_owned(), json!(self.messages))]);
        if !self.tools.is_empty() {
            let mut tools = self.tools.clone();
            // By UTF-16 code units: not by code points, and in no country's alphabetical order.
            tools.sort_by_cached_key(|tool| tool_name(tool).encode_utf16().collect::<Vec<u16>>());
            request.insert("tools".to_owned(), tools.into());
        }
        let fields = [
            ("temperature", self.temperature.clone().map(Value::Number)),
            ("topP", self.top_p.clone().map(Value::Number)),
            ("topK", self.top_k.clone().map(Value::Number)),
            ("maxOutputTokens", self.max_output_tokens.map(Value::from)),
            ("seed", self.seed.clone().map(Value::Number)),
            ("stop", self.stop.clone().map(Value::from)),
            ("responseFormat", self.response_format.clone()),
            ("safetySettings", self.safety_settings.clone()),
        ];
        request.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        let mut whole = json!({
            "recipe": RECIPE,
            "provider": vendor(&self.provider),
            "model": self.model,
            "request": request,
        });
        if let Some(options) = &self.provider_options {
            whole["providerOptions"] = Value::Object(options.clone());
        }
        whole
    }
}

/// A provider's name as it is hashed. One vendor goes by two names, and both mean the same call.
fn vendor(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    if name == "google" { "gemini".to_owned() } else { name }
}

/// Reads a conversation. `place` names it in what is said about mistakes.
pub fn messages(value: &Value, place: &str) -> Result<Vec<Message>, BadRequest> {
    let list = value.as_array().ok_or_else(|| bad(place, "is a list of messages"))?;
    let read = |(i, item): (usize, &Value)| match item {
        Value::Object(map) if map.get("role").is_some_and(Value::is_string) => Ok(Message(map.clone())),
        _ => Err(bad(&format!("{place}/{i}"), "is a message: an object with a `role`")),
    };
    list.iter().enumerate().map(read).collect()
}

fn bad(field: &str, why: impl Into<String>) -> BadRequest {
    BadRequest { field: field.to_owned(), why: why.into() }
}

fn present<'a>(raw: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    raw.get(field).filter(|value| !value.is_null())
}

fn name(raw: &Map<String, Value>, field: &str) -> Result<String, BadRequest> {
    match present(raw, field) {
        None => Err(bad(field, "is required")),
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(_) => Err(bad(field, "is a text and not empty")),
    }
}

fn number(raw: &Map<String, Value>, field: &str) -> Result<Option<Number>, BadRequest> {
    match present(raw, field) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number.clone())),
        Some(_) => Err(bad(field, "is a number")),
    }
}

fn whole(raw: &Map<String, Value>, field: &str) -> Result<Option<u64>, BadRequest> {
    let whole = |number: Number| number.as_u64().ok_or_else(|| bad(field, "is a whole number, not below 0"));
    number(raw, field)?.map(whole).transpose()
}

fn object(raw: &Map<String, Value>, field: &str) -> Result<Option<Map<String, Value>>, BadRequest> {
    match present(raw, field) {
        None => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map.clone())),
        Some(_) => Err(bad(field, "is an object")),
    }
}

/// Some vendors list them, some map them.
fn settings(raw: &Map<String, Value>) -> Result<Option<Value>, BadRequest> {
    match present(raw, "safetySettings") {
        None => Ok(None),
        Some(value @ (Value::Object(_) | Value::Array(_))) => Ok(Some(value.clone())),
        Some(_) => Err(bad("safetySettings", "is an object or a list")),
    }
}

fn stop(raw: &Map<String, Value>) -> Result<Option<Vec<String>>, BadRequest> {
    let wrong = || bad("stop", "is a list of texts");
    let Some(value) = present(raw, "stop") else { return Ok(None) };
    let list = value.as_array().ok_or_else(wrong)?;
    let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(wrong);
    list.iter().map(text).collect::<Result<_, _>>().map(Some)
}

fn tools(raw: &Map<String, Value>) -> Result<Vec<Value>, BadRequest> {
    let Some(value) = present(raw, "tools") else { return Ok(Vec::new()) };
    let list = value.as_array().ok_or_else(|| bad("tools", "is a list of tools"))?;
    match list.iter().position(|tool| !tool.get("name").is_some_and(Value::is_string)) {
        None => Ok(list.clone()),
        Some(i) => Err(bad(&format!("tools/{i}"), "is a tool: an object with a `name`")),
    }
}

fn tool_name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
