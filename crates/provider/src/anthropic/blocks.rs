//! The blocks that messages are made of.

use serde_json::{Map, Value, json};

use crate::ProviderFault;
use crate::conversation::{Answered, AssistantMessage, Media, MediaKind, Part, Source, unreadable};
use crate::draft::as_object;
use crate::tool_names::Names;
use crate::vendor_names::ANTHROPIC;

pub(super) fn of_parts(parts: &[Part<'_>]) -> Result<Vec<Value>, ProviderFault> {
    parts.iter().filter(|part| !part.is_empty()).map(of_part).collect()
}

/// What the model said, in its own blocks where they were kept.
pub(super) fn of_assistant(said: &AssistantMessage<'_>, names: &Names) -> Result<Vec<Value>, ProviderFault> {
    if let Some(Value::Array(blocks)) = said.echo(ANTHROPIC) {
        return Ok(blocks.iter().map(|block| renamed(block, names)).collect());
    }
    let mut blocks = of_parts(&said.parts)?;
    blocks.extend(said.calls.iter().map(|call| {
        json!({
            "type": "tool_use", "id": id(call.id),
            "name": names.theirs(call.name), "input": as_object(&call.arguments),
        })
    }));
    Ok(blocks)
}

pub(super) fn tool_result(answer: &Answered<'_>) -> Value {
    json!({"type": "tool_result", "tool_use_id": id(answer.call), "content": answer.content})
}

/// A block that was kept has the tool's canonical id; the name it goes by may be another this time.
fn renamed(block: &Value, names: &Names) -> Value {
    let mut block = block.clone();
    if let Some(fields) = block.as_object_mut().filter(|fields| is_call(fields)) {
        let name = fields.get("name").and_then(Value::as_str).map(|name| names.theirs(name).to_owned());
        fields.extend(name.map(|name| ("name".to_owned(), name.into())));
        let input = as_object(fields.get("input").unwrap_or(&Value::Null));
        fields.insert("input".to_owned(), input);
    }
    block
}

pub(super) fn is_call(block: &Map<String, Value>) -> bool {
    block.get("type").and_then(Value::as_str) == Some("tool_use")
}

/// Ids of other vendors may have letters that this one does not take.
fn id(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    id.chars().map(letter).collect()
}

fn of_part(part: &Part<'_>) -> Result<Value, ProviderFault> {
    match part {
        Part::Text(text) => Ok(json!({"type": "text", "text": text})),
        Part::Media(media) => of_media(media),
    }
}

fn of_media(media: &Media<'_>) -> Result<Value, ProviderFault> {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Document => "document",
        MediaKind::Audio => return Err(unreadable("messages", "hold audio, which this vendor does not take")),
    };
    let source = match media.source {
        Source::Url(url) => json!({"type": "url", "url": url}),
        Source::Data(data) => json!({"type": "base64", "media_type": media.mime, "data": data}),
    };
    Ok(json!({"type": kind, "source": source}))
}
