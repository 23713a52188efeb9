//! A neutral conversation, read for translation. Everything a vendor cannot be told is refused here or there, never left
//! out in silence.

use std::borrow::Cow;

use baton_model::SemanticRequest;
use baton_model::cache_key::Message;
use serde_json::Value;

use crate::ProviderFault;

#[derive(Debug)]
pub(crate) enum Turn<'a> {
    System(String),
    User(Vec<Part<'a>>),
    Assistant(AssistantMessage<'a>),
    Tool(Answered<'a>),
}

/// What a model said earlier.
#[derive(Debug)]
pub(crate) struct AssistantMessage<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) calls: Vec<Call<'a>>,
    echo: Option<&'a Value>,
}

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: &'a str,
    /// The tool's canonical id.
    pub(crate) name: &'a str,
    pub(crate) arguments: Cow<'a, Value>,
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) call: &'a str,
    pub(crate) name: &'a str,
    pub(crate) content: Cow<'a, str>,
}

#[derive(Debug)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Media(Media<'a>),
}

#[derive(Debug)]
pub(crate) struct Media<'a> {
    pub(crate) kind: MediaKind,
    pub(crate) mime: &'a str,
    pub(crate) source: Source<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Image,
    Audio,
    Document,
}

#[derive(Debug)]
pub(crate) enum Source<'a> {
    Url(&'a str),
    /// Base64.
    Data(&'a str),
}

impl<'a> AssistantMessage<'a> {
    /// What this vendor wants to see again. Another vendor's is of no use to it.
    pub(crate) fn echo(&self, vendor: &str) -> Option<&'a Value> {
        self.echo.filter(|echo| echo.get("vendor").and_then(Value::as_str) == Some(vendor))?.get("said")
    }
}

/// What a vendor will want to see again; see [`AssistantMessage::echo`].
pub(crate) fn echo(vendor: &str, said: Value) -> Value {
    serde_json::json!({"vendor": vendor, "said": said})
}

impl Part<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

pub(crate) fn turns(request: &SemanticRequest) -> Result<Vec<Turn<'_>>, ProviderFault> {
    request.messages.iter().enumerate().map(|(i, message)| turn(message, &format!("messages/{i}"))).collect()
}

/// System texts as one, and the rest of the conversation, for vendors that keep the two apart.
pub(crate) fn apart(turns: Vec<Turn<'_>>) -> (Option<String>, Vec<Turn<'_>>) {
    let (mut system, mut rest) = (Vec::new(), Vec::new());
    for turn in turns {
        match turn {
            Turn::System(text) => system.push(text),
            other => rest.push(other),
        }
    }
    (Some(system.join("\n\n")).filter(|text| !text.is_empty()), rest)
}

fn turn<'a>(message: &'a Message, place: &str) -> Result<Turn<'a>, ProviderFault> {
    match message.role() {
        "system" => Ok(Turn::System(system(message, place)?)),
        "user" => Ok(Turn::User(parts(message.content(), place)?)),
        "assistant" => {
            let calls = message.get("toolCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let calls = calls.iter().enumerate().map(|(i, call)| self::call(call, &format!("{place}/toolCalls/{i}")));
            let calls = calls.collect::<Result<_, _>>()?;
            Ok(Turn::Assistant(AssistantMessage {
                parts: parts(message.content(), place)?,
                calls,
                echo: message.get("echo"),
            }))
        }
        "tool" => {
            let text = |field: &str| message.get(field).and_then(Value::as_str);
            let call = text("toolCallId").ok_or_else(|| unreadable(place, "has no `toolCallId`"))?;
            let content = match message.content() {
                Value::String(text) => Cow::Borrowed(text.as_str()),
                other => Cow::Owned(other.to_string()),
            };
            Ok(Turn::Tool(Answered { call, name: text("name").unwrap_or_default(), content }))
        }
        _ => Err(unreadable(place, "has a role that is none of system, user, assistant and tool")),
    }
}

fn system(message: &Message, place: &str) -> Result<String, ProviderFault> {
    let text = |part: Part<'_>| match part {
        Part::Text(text) => Ok(text.to_owned()),
        Part::Media(_) => Err(unreadable(place, "is a system message and can hold text alone")),
    };
    Ok(parts(message.content(), place)?.into_iter().map(text).collect::<Result<Vec<_>, _>>()?.concat())
}

fn call<'a>(call: &'a Value, place: &str) -> Result<Call<'a>, ProviderFault> {
    let text = |field: &str| {
        let text = call.get(field).and_then(Value::as_str);
        text.ok_or_else(|| unreadable(place, "is a tool call with an `id` and a `name`"))
    };
    let arguments = call.get("arguments").map_or(Cow::Owned(Value::Object(Default::default())), Cow::Borrowed);
    Ok(Call { id: text("id")?, name: text("name")?, arguments })
}

fn parts<'a>(content: &'a Value, place: &str) -> Result<Vec<Part<'a>>, ProviderFault> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part::Text(text)]),
        Value::Array(parts) => {
            let read = |(i, value): (usize, &'a Value)| part(value, &format!("{place}/content/{i}"));
            parts.iter().enumerate().map(read).collect()
        }
        _ => Err(unreadable(&format!("{place}/content"), "is a text or a list of parts")),
    }
}

fn part<'a>(value: &'a Value, place: &str) -> Result<Part<'a>, ProviderFault> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let kind = match text("type") {
        _ if value.is_string() => return Ok(Part::Text(value.as_str().unwrap_or_default())),
        Some("text") => {
            return text("text").map(Part::Text).ok_or_else(|| unreadable(place, "is a text part without `text`"));
        }
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some("document") => MediaKind::Document,
        _ => return Err(unreadable(place, "is a part of no known type")),
    };
    let mime = text("mimeType").ok_or_else(|| unreadable(place, "has no `mimeType`"))?;
    let source = match (text("url"), text("data"), text("mediaRef")) {
        (Some(url), None, None) => Source::Url(url),
        (None, Some(data), None) => Source::Data(data),
        (None, None, Some(_)) => return Err(unreadable(place, "refers to stored media, which cannot be sent yet")),
        _ => return Err(unreadable(place, "wants exactly one of `url`, `data` and `mediaRef`")),
    };
    Ok(Part::Media(Media { kind, mime, source }))
}

/// Names the place, never what is there.
pub(crate) fn unreadable(place: &str, why: &str) -> ProviderFault {
    ProviderFault::Rejected(format!("`{place}` {why}"))
}
