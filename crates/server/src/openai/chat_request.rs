//! A request for a chat completion.

use std::collections::BTreeMap;

use baton_model::{SemanticRequest, cache_key};
use serde_json::{Map, Value, json};

use super::content::{self, wrong};
use super::parameters::Parameters;
use super::{OpenAiError, OpenAiQuestion, choice};

pub(crate) fn read_chat(body: Map<String, Value>) -> Result<OpenAiQuestion, OpenAiError> {
    let include_usage = body.get("stream_options").is_some_and(|options| options["include_usage"] == true);
    let mut asked = Parameters::new(body);
    let (provider, name, model) = asked.model()?;
    let messages = messages(&asked.list("messages")?)?;
    let tools = asked.list("tools")?;
    let mut tools = tools.iter().enumerate().map(|(i, tool)| choice::tool(tool, i)).collect::<Result<Vec<_>, _>>()?;
    let mut options = Map::new();
    let parallel = asked.flag("parallel_tool_calls")?;
    choice::apply(asked.take("tool_choice"), parallel, &mut tools, &mut options)?;
    asked.vendor_options(&mut options)?;
    let most = asked.whole("max_tokens")?;
    let max_output_tokens = asked.whole("max_completion_tokens")?.or(most);
    let response_format = match asked.take("response_format") {
        Some(format) => content::format(&format, "response_format")?,
        None => None,
    };
    asked.refuse("n", &[json!(1)])?;
    asked.refuse("logprobs", &[json!(false)])?;
    asked.refuse("top_logprobs", &[json!(0)])?;
    asked.refuse("modalities", &[json!(["text"])])?;
    asked.refuse("logit_bias", &[json!({})])?;
    for name in ["audio", "prediction", "web_search_options", "functions", "function_call", "moderation"] {
        asked.refuse(name, &[])?;
    }
    let semantic = SemanticRequest {
        provider,
        model: name,
        messages,
        tools,
        temperature: asked.number("temperature")?,
        top_p: asked.number("top_p")?,
        top_k: asked.number("top_k")?,
        max_output_tokens,
        seed: asked.number("seed")?,
        stop: asked.stop()?,
        response_format,
        safety_settings: None,
        provider_options: (!options.is_empty()).then_some(options),
    };
    let stream = asked.flag("stream")?.unwrap_or(false);
    asked.finish()?;
    Ok(OpenAiQuestion { semantic, model, stream, include_usage })
}

fn messages(all: &[Value]) -> Result<Vec<cache_key::Message>, OpenAiError> {
    if all.is_empty() {
        return Err(OpenAiError::param("messages", "`messages` is a list with at least one message."));
    }
    // An answer of a tool names the call; the call names the tool.
    let mut tools = BTreeMap::new();
    let mut ours = Vec::with_capacity(all.len());
    for (i, message) in all.iter().enumerate() {
        ours.push(self::message(message, &format!("messages[{i}]"), &mut tools)?);
    }
    cache_key::messages(&Value::Array(ours), "messages")
        .map_err(|error| OpenAiError::param("messages", error.to_string()))
}

fn message(message: &Value, place: &str, tools: &mut BTreeMap<String, String>) -> Result<Value, OpenAiError> {
    let said = message.get("content");
    let place_of_content = format!("{place}.content");
    match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => {
            Ok(json!({"role": "system", "content": content::text(said, &place_of_content)?}))
        }
        Some("user") => Ok(json!({"role": "user", "content": content::content(said, &place_of_content)?})),
        Some("assistant") => {
            if message.get("function_call").is_some_and(|call| !call.is_null()) {
                return Err(wrong(place, "has a `function_call`; write `tool_calls`"));
            }
            let mut ours = json!({"role": "assistant", "content": content::text(said, &place_of_content)?});
            let calls = message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let mut uses = Vec::with_capacity(calls.len());
            for call in calls {
                let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str);
                let (Some(id), Some(name)) = (text("/id"), text("/function/name")) else {
                    return Err(wrong(place, "has a call without `id` and function `name`"));
                };
                tools.insert(id.to_owned(), name.to_owned());
                let arguments = content::arguments(call.pointer("/function/arguments"));
                uses.push(json!({"id": id, "name": name, "arguments": arguments}));
            }
            if !uses.is_empty() {
                ours["toolCalls"] = uses.into();
            }
            Ok(ours)
        }
        Some("tool") => {
            let id = message.get("tool_call_id").and_then(Value::as_str);
            let id = id.ok_or_else(|| wrong(place, "has no `tool_call_id`"))?;
            let name = tools.get(id).map_or("", String::as_str);
            let content = content::text(said, &place_of_content)?;
            Ok(json!({"role": "tool", "content": content, "toolCallId": id, "name": name}))
        }
        _ => Err(wrong(place, "has a role that is none of system, developer, user, assistant and tool")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(more: Value) -> Result<OpenAiQuestion, Value> {
        let mut body = json!({"model": "script/x", "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read_chat(body.as_object().unwrap().clone()).map_err(OpenAiError::into_body)
    }

    #[test]
    fn a_conversation_with_tools_reads_as_ours() {
        let asked = read(json!({
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief"}]},
                {"role": "user", "content": [{"type": "text", "text": "What is it?"}]},
                {"role": "user", "content": [
                    {"type": "text", "text": "This."},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": true,
            }}],
            "max_completion_tokens": 7, "max_tokens": 9, "temperature": 0.5, "stop": "END", "seed": 3,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
            "stream": true, "stream_options": {"include_usage": true}, "user": "u", "metadata": {"a": "b"},
        }))
        .unwrap();
        assert!(asked.stream && asked.include_usage);
        let semantic = serde_json::to_value(&asked.semantic).unwrap();
        assert_eq!(
            semantic,
            json!({
                "provider": "script", "model": "x",
                "messages": [
                    {"role": "system", "content": "Be brief"},
                    {"role": "user", "content": "What is it?"},
                    {"role": "user", "content": [
                        {"type": "text", "text": "This."}, {"type": "image", "mimeType": "image/png", "data": "AAAA"},
                    ]},
                    {"role": "assistant", "content": "",
                     "toolCalls": [{"id": "c1", "name": "look", "arguments": {"at": 1}}]},
                    {"role": "tool", "content": "a cat", "toolCallId": "c1", "name": "look"},
                ],
                "tools": [{"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}],
                "temperature": 0.5, "maxOutputTokens": 7, "seed": 3, "stop": ["END"],
                "responseFormat": {"type": "json_schema", "name": "n", "schema": {"type": "object"}},
            })
        );
    }

    #[test]
    fn what_cannot_be_passed_on_is_refused_by_name_and_what_says_nothing_is_not() {
        for (more, param) in [
            (json!({"n": 2}), "n"),
            (json!({"logprobs": true}), "logprobs"),
            (json!({"audio": {"voice": "x"}}), "audio"),
            (json!({"modalities": ["text", "audio"]}), "modalities"),
            (json!({"invented": 1}), "invented"),
            (json!({"messages": []}), "messages"),
            (json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]}), "messages"),
            (json!({"tools": [{"type": "web_search"}]}), "tools"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"response_format": {"type": "xml"}}), "response_format"),
            (json!({"model": 1}), "model"),
        ] {
            let refused = read(more.clone()).unwrap_err();
            assert_eq!(refused["error"]["param"], param, "{more}: {refused}");
            assert_eq!(refused["error"]["type"], "invalid_request_error");
        }
        let usual = json!({"n": 1, "logprobs": false, "audio": null, "store": true, "tool_choice": "auto"});
        assert_eq!(read(usual), read(json!({})));
    }
}
