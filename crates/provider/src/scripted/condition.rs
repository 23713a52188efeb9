//! When a rule is about a request.

use std::borrow::Cow;

use baton_model::ModelRequest;
use baton_model::cache_key::Message;
use serde::Deserialize;
use serde_json::Value;

/// Stands for the text of the last message.
const LAST: &str = "{{last}}";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct When {
    node: Option<String>,
    model: Option<String>,
    system: Texts,
    last: Texts,
    any: Texts,
    tool: Option<String>,
    call: Option<usize>,
}

/// One text or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    All(Vec<String>),
}

impl Default for Texts {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl Texts {
    fn all(&self, holds: impl FnMut(&String) -> bool) -> bool {
        match self {
            Self::One(text) => std::slice::from_ref(text).iter().all(holds),
            Self::All(texts) => texts.iter().all(holds),
        }
    }
}

impl When {
    pub(super) fn holds(&self, input: &ScriptInput<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        is(&self.node, input.request.node.as_str())
            && is(&self.model, &input.request.semantic.model)
            && self.tool.as_deref().is_none_or(|tool| input.answered() == Some(tool))
            && self.call.is_none_or(|call| call == input.call())
            && self.system.all(|text| input.of_role("system").any(|message| message.contains(text.as_str())))
            && self.last.all(|text| input.last().contains(text.as_str()))
            && self.any.all(|text| input.messages().any(|message| message.contains(text.as_str())))
    }
}

/// What rules look at.
pub(super) struct ScriptInput<'a> {
    request: &'a ModelRequest,
}

impl<'a> ScriptInput<'a> {
    pub(super) const fn of(request: &'a ModelRequest) -> Self {
        Self { request }
    }

    /// Which call of this conversation it is, from 1 on.
    pub(super) fn call(&self) -> usize {
        1 + self.of_role("assistant").count()
    }

    pub(super) fn words(&self) -> u64 {
        self.messages().map(|message| message.split_whitespace().count() as u64).sum()
    }

    /// The text with the last message where it refers to it.
    pub(super) fn fill(&self, text: &str) -> String {
        if text.contains(LAST) { text.replace(LAST, &self.last()) } else { text.to_owned() }
    }

    pub(super) fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), self.filled(value))).collect(),
            other => other.clone(),
        }
    }

    /// The tool whose answer came last.
    fn answered(&self) -> Option<&'a str> {
        let last = self.request.semantic.messages.last().filter(|message| message.role() == "tool")?;
        last.get("name")?.as_str()
    }

    fn last(&self) -> Cow<'a, str> {
        self.request.semantic.messages.last().map(text).unwrap_or_default()
    }

    fn messages(&self) -> impl Iterator<Item = Cow<'a, str>> {
        self.request.semantic.messages.iter().map(text)
    }

    fn of_role(&self, role: &str) -> impl Iterator<Item = Cow<'a, str>> {
        self.request.semantic.messages.iter().filter(move |message| message.role() == role).map(text)
    }
}

/// What a message says, whatever form it has.
fn text(message: &Message) -> Cow<'_, str> {
    match message.content() {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
            Cow::Owned(texts.collect())
        }
        other => Cow::Owned(other.to_string()),
    }
}
