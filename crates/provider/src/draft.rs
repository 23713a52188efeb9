//! An answer while it is being read, and what all vendors' answers have in common once it is complete.

use std::collections::BTreeSet;

use baton_model::{ModelReply, ModelRequest, StopReason, ToolUse, Usage};
use serde_json::{Map, Value};

use crate::schema_compat::Shape;
use crate::tool_names::Names;

/// Ids for calls of vendors that give none start like this, and are not shown to them again.
pub(crate) const OWN_ID: &str = "baton_call_";

/// What is known about an answer before it comes.
#[derive(Clone, Debug)]
pub(crate) struct ReplyContext {
    pub(crate) model: String,
    pub(crate) names: Names,
    /// The shape the vendor was told, if it was told one.
    pub(crate) shape: Option<Shape>,
}

impl ReplyContext {
    pub(crate) fn new(request: &ModelRequest, names: Names, shape: Option<Shape>) -> Self {
        Self { model: request.semantic.model.clone(), names, shape }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) content: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<DraftCall>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) refusal: String,
    pub(crate) safety_category: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) echo: Option<Value>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DraftCall {
    pub(crate) id: String,
    /// As the vendor calls it.
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl Draft {
    /// The reply that this is, given why it stopped.
    pub(crate) fn reply(self, frame: &ReplyContext, stop: StopReason) -> ModelReply {
        let refused = stop == StopReason::Refusal || !self.refusal.is_empty();
        let cut_off = stop == StopReason::MaxTokens;
        // Half a call is no call, and a refusal wants nothing.
        let tools = if refused || cut_off { Vec::new() } else { uses(self.calls, &frame.names) };
        let stop = match stop {
            _ if refused => StopReason::Refusal,
            // Some say that they stopped, and mean that they wait for tools.
            StopReason::EndTurn | StopReason::Other if !tools.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if tools.is_empty() => StopReason::Other,
            other => other,
        };
        // What was said before a refusal is not an answer, but may be all there is to say about it.
        let (content, refusal) = match (refused, self.refusal.is_empty()) {
            (false, _) => (self.content, None),
            (true, false) => (String::new(), Some(self.refusal)),
            (true, true) => (String::new(), Some(self.content).filter(|text| !text.is_empty())),
        };
        let whole = stop == StopReason::EndTurn || stop == StopReason::StopSequence;
        let content = match &frame.shape {
            Some(shape) if whole => shape.without_added_nulls(content),
            _ => content,
        };
        ModelReply {
            content,
            stop,
            tools,
            reasoning: Some(self.reasoning).filter(|text| !text.is_empty()),
            echo: self.echo.filter(|_| !refused && !cut_off),
            refusal,
            safety_category: self.safety_category.filter(|_| refused),
            model: self.model.filter(|model| !model.is_empty() && *model != frame.model),
            usage: self.usage,
        }
    }
}

fn uses(calls: Vec<DraftCall>, names: &Names) -> Vec<ToolUse> {
    let mut taken = BTreeSet::new();
    let mut uses = Vec::with_capacity(calls.len());
    for (i, call) in calls.into_iter().enumerate() {
        let mut id = call.id;
        let mut n = i;
        while id.is_empty() || taken.contains(&id) {
            id = format!("{OWN_ID}{n}");
            n += 1;
        }
        taken.insert(id.clone());
        uses.push(ToolUse { id, name: names.ours(&call.name).to_owned(), arguments: call.arguments });
    }
    uses
}

/// Arguments as a model wrote them. What is no JSON stays the text it is: the model is told so when it is called to
/// account for it, and nobody guesses. No text at all means no arguments.
pub(crate) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Arguments for a vendor that takes objects only.
pub(crate) fn as_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => serde_json::json!({"unreadable": text}),
        other => serde_json::json!({"unreadable": other.to_string()}),
    }
}

/// A count that a vendor gives, or 0.
pub(crate) fn count(usage: &Value, place: &str) -> u64 {
    known_count(usage, place).unwrap_or(0)
}

pub(crate) fn known_count(usage: &Value, place: &str) -> Option<u64> {
    usage.pointer(place)?.as_u64()
}
