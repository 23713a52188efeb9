//! Content of messages, in either interface's words, as ours.

use serde_json::{Map, Value, json};

use super::OpenAiError;

pub(super) fn wrong(place: &str, why: &str) -> OpenAiError {
    let param = place.split(['[', '.']).next().unwrap_or(place);
    OpenAiError::param(param, format!("`{place}` {why}."))
}

/// A text, or a list of parts.
pub(super) fn content(value: Option<&Value>, place: &str) -> Result<Value, OpenAiError> {
    match value {
        None | Some(Value::Null) => Ok("".into()),
        Some(Value::String(text)) => Ok(text.as_str().into()),
        Some(Value::Array(parts)) => {
            let read = |(i, value): (usize, &Value)| part(value, &format!("{place}[{i}]"));
            let parts = parts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
            // One text is a text: how it was wrapped does not change what is asked.
            Ok(match &parts[..] {
                [only] if only["type"] == "text" => only["text"].clone(),
                _ => Value::Array(parts),
            })
        }
        Some(_) => Err(wrong(place, "is a text or a list of parts")),
    }
}

/// The same where only text will do.
pub(super) fn text(value: Option<&Value>, place: &str) -> Result<String, OpenAiError> {
    match content(value, place)? {
        Value::String(text) => Ok(text),
        Value::Array(parts) => {
            let text = |part: &Value| part["text"].as_str().map(str::to_owned);
            let texts = parts.iter().map(text).collect::<Option<Vec<_>>>();
            texts.map(|texts| texts.concat()).ok_or_else(|| wrong(place, "is text and nothing else"))
        }
        _ => Err(wrong(place, "is text and nothing else")),
    }
}

fn part(value: &Value, place: &str) -> Result<Value, OpenAiError> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    match text("/type") {
        Some("text" | "input_text" | "output_text") => {
            let text = text("/text").ok_or_else(|| wrong(place, "has no `text`"))?;
            Ok(json!({"type": "text", "text": text}))
        }
        Some("refusal") => Ok(json!({"type": "text", "text": text("/refusal").unwrap_or_default()})),
        Some("image_url" | "input_image") => {
            let url = text("/image_url/url").or_else(|| text("/image_url"));
            media("image", url.ok_or_else(|| wrong(place, "has no `image_url`"))?, place)
        }
        Some("input_audio") => {
            let (data, format) = (text("/input_audio/data"), text("/input_audio/format"));
            let mime = match format {
                Some("wav") => "audio/wav",
                Some("mp3") => "audio/mpeg",
                _ => return Err(wrong(place, "is audio that is neither `wav` nor `mp3`")),
            };
            let data = data.ok_or_else(|| wrong(place, "has no `data`"))?;
            Ok(json!({"type": "audio", "mimeType": mime, "data": data}))
        }
        Some("file" | "input_file") => {
            let data = text("/file/file_data").or_else(|| text("/file_data"));
            let data = data.ok_or_else(|| wrong(place, "has no `file_data`; files are not stored here"))?;
            media("document", data, place)
        }
        _ => Err(wrong(place, "is a part that cannot be passed on")),
    }
}

/// Where it is, or what is in it.
fn media(kind: &str, url: &str, place: &str) -> Result<Value, OpenAiError> {
    match url.strip_prefix("data:") {
        Some(rest) => {
            let (mime, data) = rest.split_once(";base64,").ok_or_else(|| wrong(place, "is no base64 data"))?;
            Ok(json!({"type": kind, "mimeType": mime, "data": data}))
        }
        None if url.starts_with("https://") || url.starts_with("http://") => {
            Ok(json!({"type": kind, "mimeType": format!("{kind}/*"), "url": url}))
        }
        None => Err(wrong(place, "is neither an address nor `data:`")),
    }
}

/// Arguments as a model wrote them.
pub(super) fn arguments(value: Option<&Value>) -> Value {
    match value {
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
        Some(value @ Value::Object(_)) => value.clone(),
        _ => Value::Object(Map::new()),
    }
}

/// The form that an answer must have.
pub(super) fn format(asked: &Value, param: &str) -> Result<Option<Value>, OpenAiError> {
    match asked.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({"type": "json_object"}))),
        Some("json_schema") => {
            let inner = asked.get("json_schema").unwrap_or(asked);
            let schema = inner.get("schema").filter(|schema| schema.is_object());
            let schema = schema.ok_or_else(|| OpenAiError::param(param, format!("`{param}` has no `schema`.")))?;
            let name = inner.get("name").and_then(Value::as_str).unwrap_or("answer");
            Ok(Some(json!({"type": "json_schema", "name": name, "schema": schema})))
        }
        _ => Err(OpenAiError::param(param, format!("`{param}` is text, json_object or json_schema."))),
    }
}
