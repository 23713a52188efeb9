//! A request in the words of Responses: a list of items, and how the answer should look.

use baton_model::{ModelRequest, SemanticRequest};
use serde_json::{Map, Value, json};

use crate::capabilities::vendor_capabilities;
use crate::conversation::{AssistantMessage, Call, Media, MediaKind, Part, Source, Turn, turns, unreadable};
use crate::draft::ReplyContext;
use crate::format::Format;
use crate::schema_compat::Dialect;
use crate::tool_names::Names;
use crate::vendor_names::OPENAI;
use crate::vendor_names::OPENAI_RESPONSES;
use crate::wire::{Settings, Wire};
use crate::{ProviderFault, options};

pub(super) fn encode(request: &ModelRequest, settings: &Settings) -> Result<(Wire, ReplyContext), ProviderFault> {
    let semantic = &*request.semantic;
    if semantic.stop.as_ref().is_some_and(|stop| !stop.is_empty()) {
        return Err(unreadable("stop", "cannot be said over Responses; set `wire = \"chat\"` for this provider"));
    }
    let names = Names::of(semantic);
    let format = Format::read(semantic.response_format.as_ref(), settings.native_schemas);
    let mut body = Map::new();
    body.insert("model".to_owned(), semantic.model.as_str().into());
    body.insert("input".to_owned(), input(semantic, &names, &format)?.into());
    // What the vendor keeps, somebody else might read.
    body.insert("store".to_owned(), false.into());
    body.extend(numbers(request, settings));
    if !semantic.tools.is_empty() {
        body.insert("tools".to_owned(), semantic.tools.iter().map(|tool| function(tool, &names)).collect());
    }
    match &format {
        Format::Native { name, shape } => {
            let schema = shape.render(Dialect::JsonSchema);
            let format = json!({"type": "json_schema", "name": name, "strict": true, "schema": schema});
            body.insert("text".to_owned(), json!({"format": format}));
        }
        Format::Json if settings.native_schemas => {
            body.insert("text".to_owned(), json!({"format": {"type": "json_object"}}));
        }
        _ => {}
    }
    // The vendor refuses both where a model does not think, so where its name does not tell, nobody asks.
    let thinks = settings.official
        && vendor_capabilities(OPENAI, &semantic.model).is_some_and(|able| able.contains("reasoning"));
    if thinks {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
        if request.reasoning {
            body.insert("reasoning".to_owned(), json!({"summary": "auto"}));
        }
    }
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
    }
    options::apply(&mut body, semantic, OPENAI)?;
    options::hold_to(&mut body, request.cap, &["max_output_tokens"]);
    renamed(&mut body, "reasoning_effort", "reasoning", "effort");
    renamed(&mut body, "verbosity", "text", "verbosity");
    let headers = vec![("idempotency-key", request.key.clone())];
    let wire = Wire { path: vec!["responses".to_owned()], query: Vec::new(), headers, body };
    Ok((wire, ReplyContext::new(request, names, format.into_shape())))
}

/// An option that chat completions have at the root lives in a block here.
fn renamed(body: &mut Map<String, Value>, option: &str, block: &str, member: &str) {
    if let Some(value) = body.remove(option)
        && let Value::Object(block) = body.entry(block).or_insert_with(|| json!({}))
    {
        block.insert(member.to_owned(), value);
    }
}

/// There is no `seed` and no `top_k` here: both were hints.
fn numbers(asked: &ModelRequest, settings: &Settings) -> impl Iterator<Item = (String, Value)> {
    let request = &*asked.semantic;
    let fields = [
        ("max_output_tokens", settings.room(asked).map(Value::from)),
        ("temperature", request.temperature.clone().map(Value::Number)),
        ("top_p", request.top_p.clone().map(Value::Number)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// `strict` would hold tools to the part of JSON Schema that the vendor understands; their authors did not know of it.
fn function(tool: &Value, names: &Names) -> Value {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut function = json!({
        "type": "function", "name": names.theirs(name), "strict": false,
        "parameters": tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}})),
    });
    if let Some(description) = tool.get("description") {
        function["description"] = description.clone();
    }
    function
}

fn input(request: &SemanticRequest, names: &Names, format: &Format<'_>) -> Result<Vec<Value>, ProviderFault> {
    let mut turns = turns(request)?;
    if let Some(instruction) = format.instruction() {
        match turns.iter_mut().find_map(|turn| if let Turn::System(text) = turn { Some(text) } else { None }) {
            Some(text) => *text = format!("{text}\n\n{instruction}"),
            None => turns.insert(0, Turn::System(instruction)),
        }
    }
    let mut items = Vec::new();
    for turn in &turns {
        match turn {
            Turn::System(text) => items.push(message("system", vec![json!({"type": "input_text", "text": text})])),
            Turn::User(parts) => {
                let parts = parts.iter().filter(|part| !part.is_empty()).map(part).collect::<Result<_, _>>()?;
                items.push(message("user", parts));
            }
            Turn::Assistant(said) => items.extend(assistant(said, names)?),
            Turn::Tool(answer) => {
                items.push(json!({"type": "function_call_output", "call_id": answer.call, "output": answer.content}));
            }
        }
    }
    Ok(items)
}

fn message(role: &str, content: Vec<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

/// What the model said, in its own items where they were kept.
fn assistant(said: &AssistantMessage<'_>, names: &Names) -> Result<Vec<Value>, ProviderFault> {
    if let Some(Value::Array(items)) = said.echo(OPENAI_RESPONSES) {
        return Ok(items.iter().map(|item| under_this_name(item, names)).collect());
    }
    let mut items = Vec::new();
    let mut texts = Vec::new();
    for part in said.parts.iter().filter(|part| !part.is_empty()) {
        match part {
            Part::Text(text) => texts.push(json!({"type": "output_text", "text": text})),
            Part::Media(_) => return Err(unreadable("messages", "hold media that a model made; send its words alone")),
        }
    }
    if !texts.is_empty() {
        items.push(message("assistant", texts));
    }
    items.extend(said.calls.iter().map(|call| function_call(call, names)));
    Ok(items)
}

fn function_call(call: &Call<'_>, names: &Names) -> Value {
    let arguments = match &*call.arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    json!({"type": "function_call", "call_id": call.id, "name": names.theirs(call.name), "arguments": arguments})
}

/// An item that was kept has the tool's canonical id; the name it goes by may be another this time.
fn under_this_name(item: &Value, names: &Names) -> Value {
    let mut item = item.clone();
    if let Some(name) = item.get("name").and_then(Value::as_str).map(|name| names.theirs(name).to_owned()) {
        item["name"] = name.into();
    }
    item
}

fn part(part: &Part<'_>) -> Result<Value, ProviderFault> {
    match part {
        Part::Text(text) => Ok(json!({"type": "input_text", "text": text})),
        Part::Media(media) => self::media(media),
    }
}

fn media(media: &Media<'_>) -> Result<Value, ProviderFault> {
    let inline = |data: &str| format!("data:{};base64,{data}", media.mime);
    match (media.kind, &media.source) {
        (MediaKind::Image, Source::Url(url)) => Ok(json!({"type": "input_image", "image_url": url})),
        (MediaKind::Image, Source::Data(data)) => Ok(json!({"type": "input_image", "image_url": inline(data)})),
        (MediaKind::Document, Source::Url(url)) => Ok(json!({"type": "input_file", "file_url": url})),
        (MediaKind::Document, Source::Data(data)) => {
            Ok(json!({"type": "input_file", "filename": "document", "file_data": inline(data)}))
        }
        (MediaKind::Audio, _) => {
            Err(unreadable("messages", "hold audio, which Responses do not take; set `wire = \"chat\"`"))
        }
    }
}
