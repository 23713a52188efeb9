//! A request in OpenAI's words.

use baton_model::{ModelRequest, SemanticRequest};
use serde_json::{Map, Value, json};

use crate::conversation::{AssistantMessage, Call, Media, MediaKind, Part, Source, Turn, turns, unreadable};
use crate::draft::ReplyContext;
use crate::format::Format;
use crate::schema_compat::Dialect;
use crate::tool_names::Names;
use crate::vendor_names::OPENAI;
use crate::wire::{Settings, Wire};
use crate::{ProviderFault, options};

pub(super) fn encode(request: &ModelRequest, settings: &Settings) -> Result<(Wire, ReplyContext), ProviderFault> {
    let semantic = &*request.semantic;
    let names = Names::of(semantic);
    let format = Format::read(semantic.response_format.as_ref(), settings.native_schemas);
    let mut body = Map::new();
    body.insert("model".to_owned(), semantic.model.as_str().into());
    body.insert("messages".to_owned(), messages(semantic, &names, &format)?.into());
    body.extend(numbers(request, settings));
    if !semantic.tools.is_empty() {
        body.insert("tools".to_owned(), semantic.tools.iter().map(|tool| function(tool, &names)).collect());
    }
    match &format {
        Format::Native { name, shape } => {
            let schema = json!({"name": name, "strict": true, "schema": shape.render(Dialect::JsonSchema)});
            body.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": schema}));
        }
        Format::Json if settings.native_schemas => {
            body.insert("response_format".to_owned(), json!({"type": "json_object"}));
        }
        _ => {}
    }
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    options::apply(&mut body, semantic, OPENAI)?;
    options::hold_to(&mut body, request.cap, &["max_tokens", "max_completion_tokens"]);
    let path = vec!["chat".to_owned(), "completions".to_owned()];
    let headers = vec![("idempotency-key", request.key.clone())];
    Ok((Wire { path, query: Vec::new(), headers, body }, ReplyContext::new(request, names, format.into_shape())))
}

fn numbers(asked: &ModelRequest, settings: &Settings) -> impl Iterator<Item = (String, Value)> {
    let request = &*asked.semantic;
    // The vendor renamed one and never knew the other; those who are like it kept both.
    let (most, top_k) =
        if settings.official { ("max_completion_tokens", None) } else { ("max_tokens", request.top_k.clone()) };
    let stop = request.stop.clone().filter(|stop| !stop.is_empty());
    let fields = [
        (most, settings.room(asked).map(Value::from)),
        ("temperature", request.temperature.clone().map(Value::Number)),
        ("top_p", request.top_p.clone().map(Value::Number)),
        ("top_k", top_k.map(Value::Number)),
        ("seed", request.seed.clone().map(Value::Number)),
        ("stop", stop.map(Value::from)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

fn function(tool: &Value, names: &Names) -> Value {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut function = json!({
        "name": names.theirs(name),
        "parameters": tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}})),
    });
    if let Some(description) = tool.get("description") {
        function["description"] = description.clone();
    }
    json!({"type": "function", "function": function})
}

fn messages(request: &SemanticRequest, names: &Names, format: &Format<'_>) -> Result<Vec<Value>, ProviderFault> {
    let mut turns = turns(request)?;
    if let Some(instruction) = format.instruction() {
        // Many of those who are like the vendor take one system message, and only in front.
        match turns.iter_mut().find_map(|turn| if let Turn::System(text) = turn { Some(text) } else { None }) {
            Some(text) => *text = format!("{text}\n\n{instruction}"),
            None => turns.insert(0, Turn::System(instruction)),
        }
    }
    turns.iter().map(|turn| message(turn, names)).collect()
}

fn message(turn: &Turn<'_>, names: &Names) -> Result<Value, ProviderFault> {
    Ok(match turn {
        Turn::System(text) => json!({"role": "system", "content": text}),
        Turn::User(parts) => json!({"role": "user", "content": content(parts)?}),
        Turn::Assistant(said) => assistant(said, names)?,
        Turn::Tool(answer) => json!({"role": "tool", "tool_call_id": answer.call, "content": answer.content}),
    })
}

fn assistant(said: &AssistantMessage<'_>, names: &Names) -> Result<Value, ProviderFault> {
    let mut message = Map::from_iter([("role".to_owned(), "assistant".into())]);
    let content = content(&said.parts)?;
    // Beside calls there may be nothing to say, but without either there is no message.
    let silent = content.as_str() == Some("") && !said.calls.is_empty();
    message.insert("content".to_owned(), if silent { Value::Null } else { content });
    if !said.calls.is_empty() {
        message.insert("tool_calls".to_owned(), said.calls.iter().map(|call| tool_call(call, names)).collect());
    }
    message.extend(said.echo(OPENAI).and_then(Value::as_object).cloned().into_iter().flatten());
    Ok(Value::Object(message))
}

fn tool_call(call: &Call<'_>, names: &Names) -> Value {
    let arguments = match &*call.arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    json!({
        "id": call.id, "type": "function",
        "function": {"name": names.theirs(call.name), "arguments": arguments},
    })
}

/// A text where a text will do: not everybody reads lists.
fn content(parts: &[Part<'_>]) -> Result<Value, ProviderFault> {
    match parts {
        [] => Ok("".into()),
        [Part::Text(text)] => Ok((*text).into()),
        parts => parts.iter().filter(|part| !part.is_empty()).map(part).collect(),
    }
}

fn part(part: &Part<'_>) -> Result<Value, ProviderFault> {
    match part {
        Part::Text(text) => Ok(json!({"type": "text", "text": text})),
        Part::Media(media) => self::media(media),
    }
}

fn media(media: &Media<'_>) -> Result<Value, ProviderFault> {
    let inline = |data: &str| format!("data:{};base64,{data}", media.mime);
    match (media.kind, &media.source) {
        (MediaKind::Image, Source::Url(url)) => Ok(json!({"type": "image_url", "image_url": {"url": url}})),
        (MediaKind::Image, Source::Data(data)) => Ok(json!({"type": "image_url", "image_url": {"url": inline(data)}})),
        (MediaKind::Audio, Source::Data(data)) => {
            let format = match media.mime {
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return Err(unreadable("messages", "hold audio that is neither WAV nor MP3")),
            };
            Ok(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
        }
        (MediaKind::Document, Source::Data(data)) => {
            Ok(json!({"type": "file", "file": {"filename": "document", "file_data": inline(data)}}))
        }
        (_, Source::Url(_)) => Err(unreadable("messages", "hold audio or a document by URL; send it as `data`")),
    }
}
