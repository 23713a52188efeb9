//! A request for a response: OpenAI's newer interface. Nothing of an earlier request is kept here, so a client sends the whole
//! conversation.

use std::collections::BTreeMap;

use baton_model::{SemanticRequest, cache_key};
use serde_json::{Map, Value, json};

use super::content::{self, wrong};
use super::parameters::Parameters;
use super::{OpenAiError, OpenAiQuestion, choice};

pub(crate) fn read_responses(body: Map<String, Value>) -> Result<OpenAiQuestion, OpenAiError> {
    let mut asked = Parameters::new(body);
    let (provider, name, model) = asked.model()?;
    let mut conversation = Conversation::default();
    if let Some(text) = asked.text("instructions")? {
        conversation.push(json!({"role": "system", "content": text}));
    }
    match asked.take("input") {
        Some(Value::String(text)) => conversation.push(json!({"role": "user", "content": text})),
        Some(Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                conversation.item(item, &format!("input[{i}]"))?;
            }
        }
        _ => return Err(OpenAiError::param("input", "`input` is a text or a list of items.")),
    }
    let tools = asked.list("tools")?;
    let mut tools = tools.iter().enumerate().map(|(i, tool)| choice::tool(tool, i)).collect::<Result<Vec<_>, _>>()?;
    let mut options = Map::new();
    let parallel = asked.flag("parallel_tool_calls")?;
    choice::apply(asked.take("tool_choice"), parallel, &mut tools, &mut options)?;
    asked.vendor_options(&mut options)?;
    if let Some(effort) = asked.object("reasoning")?.and_then(|mut reasoning| reasoning.remove("effort")) {
        options.insert("vendor.openai.reasoning_effort".to_owned(), effort);
    }
    let mut response_format = None;
    if let Some(mut text) = asked.object("text")? {
        if let Some(format) = text.remove("format").filter(|format| !format.is_null()) {
            response_format = content::format(&format, "text")?;
        }
        if let Some(verbosity) = text.remove("verbosity").filter(|word| !word.is_null()) {
            options.insert("vendor.openai.verbosity".to_owned(), verbosity);
        }
    }
    asked.refuse("background", &[json!(false)])?;
    asked.refuse("truncation", &[json!("disabled")])?;
    asked.refuse("top_logprobs", &[json!(0)])?;
    for name in ["previous_response_id", "conversation", "prompt", "max_tool_calls", "context_management"] {
        asked.refuse(name, &[])?;
    }
    let semantic = SemanticRequest {
        provider,
        model: name,
        messages: cache_key::messages(&Value::Array(conversation.messages), "input")
            .map_err(|error| OpenAiError::param("input", error.to_string()))?,
        tools,
        temperature: asked.number("temperature")?,
        top_p: asked.number("top_p")?,
        top_k: asked.number("top_k")?,
        max_output_tokens: asked.whole("max_output_tokens")?,
        seed: asked.number("seed")?,
        stop: None,
        response_format,
        safety_settings: None,
        provider_options: (!options.is_empty()).then_some(options),
    };
    let stream = asked.flag("stream")?.unwrap_or(false);
    asked.finish()?;
    Ok(OpenAiQuestion { semantic, model, stream, include_usage: true })
}

#[derive(Default)]
struct Conversation {
    messages: Vec<Value>,
    /// The tool that each call is of.
    tools: BTreeMap<String, String>,
}

impl Conversation {
    fn push(&mut self, message: Value) {
        self.messages.push(message);
    }

    fn item(&mut self, item: &Value, place: &str) -> Result<(), OpenAiError> {
        let text = |field: &str| item.get(field).and_then(Value::as_str);
        match text("type").unwrap_or("message") {
            "message" => self.message(item, place),
            "function_call" => {
                let (Some(id), Some(name)) = (text("call_id"), text("name")) else {
                    return Err(wrong(place, "is a call without `call_id` and `name`"));
                };
                self.tools.insert(id.to_owned(), name.to_owned());
                let call = json!({"id": id, "name": name, "arguments": content::arguments(item.get("arguments"))});
                // What a model said and what it wanted called are one message.
                match self.messages.last_mut().filter(|last| last["role"] == "assistant") {
                    Some(last) => match last.get_mut("toolCalls").and_then(Value::as_array_mut) {
                        Some(calls) => calls.push(call),
                        None => last["toolCalls"] = json!([call]),
                    },
                    None => self.push(json!({"role": "assistant", "content": "", "toolCalls": [call]})),
                }
                Ok(())
            }
            "function_call_output" => {
                let id = text("call_id").ok_or_else(|| wrong(place, "has no `call_id`"))?;
                let name = self.tools.get(id).map_or("", String::as_str);
                let content = content::text(item.get("output"), &format!("{place}.output"))?;
                let message = json!({"role": "tool", "content": content, "toolCallId": id, "name": name});
                self.push(message);
                Ok(())
            }
            // Thoughts are shown to clients and not read again.
            "reasoning" => Ok(()),
            _ => Err(wrong(place, "is an item that cannot be passed on")),
        }
    }

    fn message(&mut self, item: &Value, place: &str) -> Result<(), OpenAiError> {
        let (said, place_of_content) = (item.get("content"), format!("{place}.content"));
        let message = match item.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => {
                json!({"role": "system", "content": content::text(said, &place_of_content)?})
            }
            Some("user") => json!({"role": "user", "content": content::content(said, &place_of_content)?}),
            Some("assistant") => json!({"role": "assistant", "content": content::text(said, &place_of_content)?}),
            _ => return Err(wrong(place, "has a role that is none of system, developer, user and assistant")),
        };
        self.push(message);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<OpenAiQuestion, Value> {
        read_responses(body.as_object().unwrap().clone()).map_err(OpenAiError::into_body)
    }

    #[test]
    fn items_read_as_a_conversation() {
        let asked = read(json!({
            "model": "script/x", "instructions": "Be brief", "max_output_tokens": 9,
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I do."}]},
                {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
                {"type": "reasoning", "summary": []},
            ],
            "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "reasoning": {"effort": "low"}, "store": false, "include": ["reasoning.encrypted_content"],
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(&asked.semantic).unwrap(),
            json!({
                "provider": "script", "model": "x",
                "messages": [
                    {"role": "system", "content": "Be brief"},
                    {"role": "user", "content": "Look."},
                    {"role": "assistant", "content": "I do.",
                     "toolCalls": [{"id": "c1", "name": "look", "arguments": {}}]},
                    {"role": "tool", "content": "a cat", "toolCallId": "c1", "name": "look"},
                ],
                "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
                "maxOutputTokens": 9,
                "responseFormat": {"type": "json_schema", "name": "n", "schema": {"type": "object"}},
                "providerOptions": {"vendor.openai.reasoning_effort": "low"},
            })
        );
    }

    #[test]
    fn what_needs_an_earlier_response_is_refused() {
        for (param, value) in
            [("previous_response_id", json!("resp_1")), ("background", json!(true)), ("prompt", json!({"id": "p"}))]
        {
            let refused = read(json!({"model": "a/b", "input": "x", param: value})).unwrap_err();
            assert_eq!(refused["error"]["param"], param);
        }
        assert_eq!(read(json!({"model": "a/b"})).unwrap_err()["error"]["param"], "input");
        let item = json!({"model": "a/b", "input": [{"type": "item_reference", "id": "x"}]});
        assert_eq!(read(item).unwrap_err()["error"]["param"], "input");
    }
}
