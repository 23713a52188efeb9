//! An answer as a chat completion, in one piece or as chunks.

use baton_model::{ModelReply, StopReason, ToolUse};
use baton_runtime::StepReply;
use serde_json::{Value, json};

use super::OpenAiQuestion;

pub(crate) fn chat_reply(asked: &OpenAiQuestion, answer: &StepReply) -> Value {
    let reply = &answer.reply;
    let mut message = json!({"role": "assistant", "content": content(reply), "refusal": reply.refusal});
    if !reply.tools.is_empty() {
        message["tool_calls"] = reply.tools.iter().map(call).collect();
    }
    if let Some(thought) = &reply.reasoning {
        message["reasoning_content"] = thought.as_str().into();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(reply), "logprobs": null});
    let mut whole = frame(asked, answer, "chat.completion");
    whole["choices"] = json!([choice]);
    whole["usage"] = usage(reply);
    whole
}

/// The same as a stream: what is said is on the log already, so it comes in few pieces.
pub(crate) fn chat_chunks(asked: &OpenAiQuestion, answer: &StepReply) -> Vec<u8> {
    let reply = &answer.reply;
    let mut deltas = vec![(json!({"role": "assistant", "content": ""}), None)];
    deltas.extend(reply.reasoning.iter().map(|thought| (json!({"reasoning_content": thought}), None)));
    if !reply.content.is_empty() {
        deltas.push((json!({"content": reply.content}), None));
    }
    deltas.extend(reply.refusal.iter().map(|refusal| (json!({"refusal": refusal}), None)));
    for (index, tool) in reply.tools.iter().enumerate() {
        let mut call = call(tool);
        call["index"] = index.into();
        deltas.push((json!({"tool_calls": [call]}), None));
    }
    deltas.push((json!({}), Some(finish(reply))));
    let mut out = Vec::new();
    for (delta, finish_reason) in deltas {
        let mut chunk = frame(asked, answer, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null}]);
        push(&mut out, &chunk);
    }
    if asked.include_usage {
        let mut chunk = frame(asked, answer, "chat.completion.chunk");
        chunk["choices"] = json!([]);
        chunk["usage"] = usage(reply);
        push(&mut out, &chunk);
    }
    out.extend_from_slice(b"data: [DONE]\n\n");
    out
}

fn push(out: &mut Vec<u8>, chunk: &Value) {
    out.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
}

fn frame(asked: &OpenAiQuestion, answer: &StepReply, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.id),
        "object": object,
        "created": answer.at.as_micros() / 1_000_000,
        "model": asked.model,
    })
}

fn content(reply: &ModelReply) -> Value {
    let silent = reply.content.is_empty() && (!reply.tools.is_empty() || reply.refusal.is_some());
    if silent { Value::Null } else { reply.content.as_str().into() }
}

fn call(tool: &ToolUse) -> Value {
    let function = json!({"name": tool.name, "arguments": written(&tool.arguments)});
    json!({"id": tool.id, "type": "function", "function": function})
}

/// Arguments are a text; what a model wrote that is no JSON stays as it is.
pub(super) fn written(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn finish(reply: &ModelReply) -> &'static str {
    match reply.stop {
        StopReason::MaxTokens => "length",
        StopReason::ToolUse => "tool_calls",
        StopReason::Refusal => "content_filter",
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Other => "stop",
    }
}

fn usage(reply: &ModelReply) -> Value {
    let usage = &reply.usage;
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens.unwrap_or(0)},
    })
}
