//! An answer of OpenAI, or of somebody who is like it.

use baton_model::{ModelReply, StopReason, Usage};
use serde_json::{Map, Value};

use crate::conversation::echo;
use crate::draft::{Draft, DraftCall, ReplyContext, arguments, count, known_count};
use crate::think::{Split, Splitter};
use crate::vendor_names::OPENAI;
use crate::wire::{Decoder, Progress, broken_off, garbled, parse};
use crate::{Delta, ProviderFault, error_response};

#[derive(Debug)]
pub(super) struct Answer {
    frame: ReplyContext,
    draft: Draft,
    splitter: Splitter,
    calls: Vec<Piece>,
    /// What some servers want to see again with a tool's answer.
    thought: String,
    details: Vec<Value>,
}

/// A call, as it comes piece by piece.
#[derive(Debug, Default)]
struct Piece {
    /// Where the vendor says it belongs.
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Answer {
    pub(super) fn new(frame: ReplyContext) -> Self {
        let (draft, splitter) = (Draft::default(), Splitter::default());
        Self { frame, draft, splitter, calls: Vec::new(), thought: String::new(), details: Vec::new() }
    }

    /// What a chunk and a whole answer have in common; `place` is where a choice keeps what it says.
    fn take(&mut self, body: &Value, place: &str, heard: &mut Vec<Delta>) -> Result<(), ProviderFault> {
        if body.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error_response::in_answer(body));
        }
        if let Some(model) = body.get("model").and_then(Value::as_str) {
            self.draft.model = Some(model.to_owned());
        }
        if let Some(usage) = body.get("usage").filter(|usage| usage.is_object()) {
            self.draft.usage = self::usage(usage);
        }
        let Some(choice) = body.get("choices").and_then(|choices| choices.get(0)) else { return Ok(()) };
        if let Some(said) = choice.get(place) {
            self.say(said, place == "message", heard);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.draft.stop = Some(stop(reason));
            if reason == "content_filter" {
                self.draft.safety_category = Some(category(choice).unwrap_or(reason).to_owned());
            }
        }
        Ok(())
    }

    fn say(&mut self, said: &Value, whole: bool, heard: &mut Vec<Delta>) {
        for field in ["reasoning_content", "reasoning"] {
            if let Some(thought) = said.get(field).and_then(Value::as_str) {
                if field == "reasoning_content" {
                    self.thought.push_str(thought);
                }
                self.think(thought.to_owned(), heard);
                break;
            }
        }
        match said.get("content") {
            Some(Value::String(text)) => self.speak(text, heard),
            Some(Value::Array(parts)) => {
                for text in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                    self.speak(text, heard);
                }
            }
            _ => {}
        }
        if let Some(text) = said.get("refusal").and_then(Value::as_str) {
            self.draft.refusal.push_str(text);
        }
        if let Some(Value::Array(details)) = said.get("reasoning_details") {
            self.details.extend(details.iter().cloned());
        }
        for (i, call) in said.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.call(call, whole.then_some(i as u64));
        }
    }

    fn speak(&mut self, text: &str, heard: &mut Vec<Delta>) {
        let split = self.splitter.push(text);
        self.split(split, heard);
    }

    fn split(&mut self, split: Split, heard: &mut Vec<Delta>) {
        self.think(split.thought, heard);
        if !split.answer.is_empty() {
            self.draft.content.push_str(&split.answer);
            heard.push(Delta::Text(split.answer));
        }
    }

    fn think(&mut self, thought: String, heard: &mut Vec<Delta>) {
        if !thought.is_empty() {
            self.draft.reasoning.push_str(&thought);
            heard.push(Delta::Reasoning(thought));
        }
    }

    /// A list names the place of each call by where it stands; pieces of a stream do, or should.
    fn call(&mut self, call: &Value, place: Option<u64>) {
        let text = |place: &str| call.pointer(place).and_then(Value::as_str).unwrap_or_default();
        let index = place.or_else(|| call.get("index").and_then(Value::as_u64));
        let id = text("/id");
        let piece = self.piece(index, id);
        if piece.id.is_empty() {
            id.clone_into(&mut piece.id);
        }
        // Some servers say it once, some with every piece.
        let name = text("/function/name");
        if piece.name != name {
            piece.name.push_str(name);
        }
        match call.pointer("/function/arguments") {
            Some(Value::String(more)) => piece.arguments.push_str(more),
            // Some servers forget that they are a text.
            Some(value @ (Value::Object(_) | Value::Array(_))) => piece.arguments.push_str(&value.to_string()),
            _ => {}
        }
    }

    /// The call that a piece belongs to: by index where there is one, by id where that is new, else the last.
    fn piece(&mut self, index: Option<u64>, id: &str) -> &mut Piece {
        let known = match index {
            // Some servers give all calls the same index.
            Some(_) => self
                .calls
                .iter()
                .rposition(|piece| piece.index == index && (id.is_empty() || piece.id.is_empty() || piece.id == id)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().position(|piece| piece.id == id),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(Piece { index, ..Piece::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    fn echo(&self) -> Option<Value> {
        let mut again = Map::new();
        if !self.details.is_empty() {
            again.insert("reasoning_details".to_owned(), self.details.clone().into());
        }
        // Only a conversation that goes on because of a tool may see it again.
        if !self.thought.is_empty() && !self.calls.is_empty() {
            again.insert("reasoning_content".to_owned(), self.thought.as_str().into());
        }
        (!again.is_empty()).then(|| echo(OPENAI, Value::Object(again)))
    }
}

impl Decoder for Answer {
    fn event(&mut self, data: &str, heard: &mut Vec<Delta>) -> Result<Progress, ProviderFault> {
        if data.trim() == "[DONE]" {
            return Ok(Progress::Done);
        }
        self.take(&parse(data)?, "delta", heard)?;
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &Value) -> Result<(), ProviderFault> {
        self.take(body, "message", &mut Vec::new())?;
        // Without a choice this is JSON of something else.
        if body.pointer("/choices/0").is_none() { Err(garbled()) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<ModelReply, ProviderFault> {
        let stop = self.draft.stop.ok_or_else(broken_off)?;
        let rest = self.splitter.finish();
        self.split(rest, &mut Vec::new());
        self.draft.echo = self.echo();
        let call = |piece: Piece| DraftCall { id: piece.id, name: piece.name, arguments: arguments(&piece.arguments) };
        self.calls.sort_by_key(|piece| piece.index);
        self.draft.calls = self.calls.into_iter().map(call).collect();
        Ok(self.draft.reply(&self.frame, stop))
    }

    fn usage(&self) -> Usage {
        self.draft.usage
    }

    fn refused(&self, status: u16, body: &Value) -> Option<ModelReply> {
        let code = body.pointer("/error/code").and_then(Value::as_str)?;
        let refused = status == 400 && matches!(code, "content_filter" | "content_policy_violation");
        refused.then(|| ModelReply {
            stop: StopReason::Refusal,
            safety_category: Some(code.to_owned()),
            ..ModelReply::text("", Usage::default())
        })
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => StopReason::Refusal,
        _ => StopReason::Other,
    }
}

/// The filter that struck, where the vendor lists them.
fn category(choice: &Value) -> Option<&str> {
    let filters = choice.get("content_filter_results")?.as_object()?;
    filters.iter().find(|(_, result)| result.get("filtered") == Some(&Value::Bool(true))).map(|(name, _)| name.as_str())
}

fn usage(usage: &Value) -> Usage {
    let cached = known_count(usage, "/prompt_tokens_details/cached_tokens");
    Usage {
        input_tokens: count(usage, "/prompt_tokens"),
        output_tokens: count(usage, "/completion_tokens"),
        cache_read_tokens: cached.or_else(|| known_count(usage, "/prompt_cache_hit_tokens")),
        ..Usage::default()
    }
}
