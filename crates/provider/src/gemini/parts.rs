//! The parts that contents are made of.

use serde_json::{Value, json};

use crate::conversation::{Answered, AssistantMessage, Media, Part, Source};
use crate::draft::{OWN_ID, as_object};
use crate::tool_names::Names;
use crate::vendor_names::GEMINI;

pub(super) fn of_parts(parts: &[Part<'_>]) -> Vec<Value> {
    parts.iter().filter(|part| !part.is_empty()).map(of_part).collect()
}

/// What the model said, in its own parts where they were kept.
pub(super) fn of_assistant(said: &AssistantMessage<'_>, names: &Names) -> Vec<Value> {
    if let Some(Value::Array(parts)) = said.echo(GEMINI) {
        return parts.iter().map(|part| renamed(part, names)).collect();
    }
    let mut parts = of_parts(&said.parts);
    parts.extend(said.calls.iter().map(|call| {
        let mut function = json!({"name": names.theirs(call.name), "args": as_object(&call.arguments)});
        identify(&mut function, call.id);
        json!({"functionCall": function})
    }));
    parts
}

pub(super) fn function_response(answer: &Answered<'_>, names: &Names) -> Value {
    let mut response = json!({"name": names.theirs(answer.name), "response": {"result": answer.content}});
    identify(&mut response, answer.call);
    json!({"functionResponse": response})
}

/// An id that the vendor gave. It is not shown one that it never heard of.
fn identify(function: &mut Value, id: &str) {
    if !id.starts_with(OWN_ID) {
        function["id"] = id.into();
    }
}

/// A part that was kept has the tool's canonical id; the name it goes by may be another this time.
fn renamed(part: &Value, names: &Names) -> Value {
    let mut part = part.clone();
    if let Some(name) = part.pointer_mut("/functionCall/name")
        && let Some(id) = name.as_str()
    {
        *name = names.theirs(id).into();
    }
    part
}

fn of_part(part: &Part<'_>) -> Value {
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::Media(Media { mime, source: Source::Data(data), .. }) => {
            json!({"inlineData": {"mimeType": mime, "data": data}})
        }
        Part::Media(Media { mime, source: Source::Url(url), .. }) => {
            json!({"fileData": {"mimeType": mime, "fileUri": url}})
        }
    }
}
