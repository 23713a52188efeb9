//! An answer as a response, in one piece or as its events.

use baton_model::{ModelReply, StopReason};
use baton_runtime::StepReply;
use serde_json::{Value, json};

use super::OpenAiQuestion;
use super::chat_reply::written;

pub(crate) fn response_reply(asked: &OpenAiQuestion, answer: &StepReply) -> Value {
    let reply = &answer.reply;
    let cut_off = reply.stop == StopReason::MaxTokens;
    let status = if cut_off { "incomplete" } else { "completed" };
    let mut response = response(asked, answer, status, output(answer));
    if cut_off {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response["usage"] = usage(reply);
    response
}

/// The events of the same. Each has the next number, from 0.
pub(crate) fn response_events(asked: &OpenAiQuestion, answer: &StepReply) -> Vec<u8> {
    let mut events = Events::default();
    let begun = response(asked, answer, "in_progress", Vec::new());
    events.push("response.created", json!({"response": begun}));
    events.push("response.in_progress", json!({"response": begun}));
    for (index, item) in output(answer).into_iter().enumerate() {
        let mut open = item.clone();
        open["status"] = "in_progress".into();
        match item["type"].as_str() {
            Some("message") => {
                open["content"] = json!([]);
                events.push("response.output_item.added", json!({"output_index": index, "item": open}));
                events.message(index, &item);
            }
            Some("function_call") => {
                open["arguments"] = "".into();
                events.push("response.output_item.added", json!({"output_index": index, "item": open}));
                let place = json!({"item_id": item["id"], "output_index": index});
                let (mut delta, mut done) = (place.clone(), place);
                delta["delta"] = item["arguments"].clone();
                done["arguments"] = item["arguments"].clone();
                done["name"] = item["name"].clone();
                events.push("response.function_call_arguments.delta", delta);
                events.push("response.function_call_arguments.done", done);
            }
            _ => events.push("response.output_item.added", json!({"output_index": index, "item": open})),
        }
        events.push("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let whole = response_reply(asked, answer);
    let end = if whole["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    events.push(end, json!({"response": whole}));
    events.out
}

#[derive(Default)]
struct Events {
    out: Vec<u8>,
    number: u64,
}

impl Events {
    fn push(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.number.into();
        self.number += 1;
        self.out.extend_from_slice(format!("event: {kind}\ndata: {event}\n\n").as_bytes());
    }

    fn message(&mut self, index: usize, item: &Value) {
        for (place, part) in item["content"].as_array().into_iter().flatten().enumerate() {
            let at = json!({"item_id": item["id"], "output_index": index, "content_index": place});
            let with = |name: &str, value: Value| {
                let mut event = at.clone();
                event[name] = value;
                event
            };
            let (field, kind) = match part["type"].as_str() {
                Some("refusal") => ("refusal", "response.refusal"),
                _ => ("text", "response.output_text"),
            };
            let mut empty = part.clone();
            empty[field] = "".into();
            self.push("response.content_part.added", with("part", empty));
            let (mut delta, mut done) = (with("delta", part[field].clone()), with(field, part[field].clone()));
            if field == "text" {
                delta["logprobs"] = json!([]);
                done["logprobs"] = json!([]);
            }
            self.push(&format!("{kind}.delta"), delta);
            self.push(&format!("{kind}.done"), done);
            self.push("response.content_part.done", with("part", part.clone()));
        }
    }
}

fn output(answer: &StepReply) -> Vec<Value> {
    let (reply, id) = (&answer.reply, &answer.id);
    let mut items = Vec::new();
    if let Some(thought) = &reply.reasoning {
        let summary = json!([{"type": "summary_text", "text": thought}]);
        items.push(json!({"type": "reasoning", "id": format!("rs_{id}"), "summary": summary}));
    }
    let mut content = Vec::new();
    if !reply.content.is_empty() || (reply.tools.is_empty() && reply.refusal.is_none()) {
        content.push(json!({"type": "output_text", "text": reply.content, "annotations": [], "logprobs": []}));
    }
    content.extend(reply.refusal.iter().map(|refusal| json!({"type": "refusal", "refusal": refusal})));
    if !content.is_empty() {
        items.push(json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": content,
        }));
    }
    items.extend(reply.tools.iter().enumerate().map(|(i, tool)| {
        json!({
            "type": "function_call", "id": format!("fc_{id}_{i}"), "call_id": tool.id, "name": tool.name,
            "arguments": written(&tool.arguments), "status": "completed",
        })
    }));
    items
}

fn response(asked: &OpenAiQuestion, answer: &StepReply, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": format!("resp_{}", answer.id),
        "object": "response",
        "created_at": answer.at.as_micros() / 1_000_000,
        "model": asked.model,
        "status": status,
        "output": output,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "temperature": asked.semantic.temperature,
        "top_p": asked.semantic.top_p,
        "max_output_tokens": asked.semantic.max_output_tokens,
        "previous_response_id": null,
        "usage": null,
    })
}

fn usage(reply: &ModelReply) -> Value {
    let usage = &reply.usage;
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens.unwrap_or(0)},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total(),
    })
}
