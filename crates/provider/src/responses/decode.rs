//! An answer of Responses. A stream tells it piece by piece and then once more as a whole; what is heard comes from the
//! pieces, what counts from the whole. A stream that ends before it is no answer.

use baton_model::{ModelReply, StopReason, Usage};
use serde_json::{Value, json};

use crate::conversation::echo;
use crate::draft::{Draft, DraftCall, ReplyContext, arguments, count, known_count};
use crate::vendor_names::OPENAI_RESPONSES;
use crate::wire::{Decoder, Progress, broken_off, garbled, parse};
use crate::{Delta, ProviderFault, error_response};

#[derive(Debug)]
pub(super) struct Answer {
    frame: ReplyContext,
    draft: Draft,
    /// Items that came to their end, for servers whose last word leaves them out.
    done: Vec<Value>,
    /// Something of a thought was heard already.
    thinking: bool,
}

impl Answer {
    pub(super) fn new(frame: ReplyContext) -> Self {
        Self { frame, draft: Draft::default(), done: Vec::new(), thinking: false }
    }

    /// Takes the response as a whole. Only one that says how it ended is an answer.
    fn response(&mut self, response: &Value) -> Result<(), ProviderFault> {
        if response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error_response::in_answer(response));
        }
        let said = |place: &str| response.pointer(place).and_then(Value::as_str);
        self.draft.stop = Some(match said("/status") {
            Some("completed") => StopReason::EndTurn,
            Some("incomplete") => match said("/incomplete_details/reason") {
                Some("max_output_tokens") => StopReason::MaxTokens,
                Some(reason @ "content_filter") => {
                    self.draft.safety_category = Some(reason.to_owned());
                    StopReason::Refusal
                }
                _ => StopReason::Other,
            },
            // It says that it failed, and not why.
            Some("failed") => return Err(error_response::in_answer(response)),
            // Queued, under way or cancelled: whatever it holds is half an answer.
            Some(_) => return Err(broken_off()),
            None => return Err(garbled()),
        });
        self.draft.model = said("/model").map(str::to_owned);
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            self.draft.usage = self::usage(usage);
        }
        let output = response.get("output").and_then(Value::as_array).ok_or_else(garbled)?;
        let items = if output.is_empty() { std::mem::take(&mut self.done) } else { output.clone() };
        for item in &items {
            self.item(item);
        }
        self.draft.echo = kept(&items, &self.frame);
        Ok(())
    }

    fn item(&mut self, item: &Value) {
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "message" => {
                for part in list(item, "content") {
                    if let Some(text) = part.get("text").and_then(Value::as_str) {
                        self.draft.content.push_str(text);
                    }
                    if let Some(refusal) = part.get("refusal").and_then(Value::as_str) {
                        self.draft.refusal.push_str(refusal);
                    }
                }
            }
            "reasoning" => {
                // A summary where there is one, else what some servers show of the thought itself.
                let texts = |field| list(item, field).filter_map(|part| part.get("text")?.as_str());
                let said: Vec<&str> = match texts("summary").next() {
                    Some(_) => texts("summary").collect(),
                    None => texts("content").collect(),
                };
                for text in said.into_iter().filter(|text| !text.is_empty()) {
                    if !self.draft.reasoning.is_empty() {
                        self.draft.reasoning.push_str("\n\n");
                    }
                    self.draft.reasoning.push_str(text);
                }
            }
            "function_call" => {
                let arguments = match item.get("arguments") {
                    Some(Value::String(text)) => arguments(text),
                    Some(value @ (Value::Object(_) | Value::Array(_))) => value.clone(),
                    _ => arguments(""),
                };
                let id = if text("call_id").is_empty() { text("id") } else { text("call_id") };
                self.draft.calls.push(DraftCall { id: id.to_owned(), name: text("name").to_owned(), arguments });
            }
            // Searches and the like, which nobody here asked for, and what is still to be invented.
            _ => {}
        }
    }

    fn push(&mut self, event: &Value, heard: &mut Vec<Delta>) {
        let delta = || event.get("delta").and_then(Value::as_str).unwrap_or_default().to_owned();
        match event.get("type").and_then(Value::as_str) {
            Some("response.output_text.delta") => heard.push(Delta::Text(delta())),
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                self.thinking = true;
                heard.push(Delta::Reasoning(delta()));
            }
            Some("response.reasoning_summary_part.added") if self.thinking => {
                heard.push(Delta::Reasoning("\n\n".to_owned()));
            }
            _ => {}
        }
        heard.retain(|delta| !matches!(delta, Delta::Text(text) | Delta::Reasoning(text) if text.is_empty()));
    }
}

impl Decoder for Answer {
    fn event(&mut self, data: &str, heard: &mut Vec<Delta>) -> Result<Progress, ProviderFault> {
        if data.trim() == "[DONE]" {
            return Ok(Progress::Done);
        }
        let event = parse(data)?;
        match event.get("type").and_then(Value::as_str) {
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                self.response(event.get("response").ok_or_else(garbled)?)?;
                Ok(Progress::Done)
            }
            // The vendor says what is wrong at the root, others in a block.
            Some("error") if event.get("error").is_some_and(Value::is_object) => Err(error_response::in_answer(&event)),
            Some("error") => Err(error_response::in_answer(&json!({"error": event}))),
            Some("response.output_item.done") => {
                self.done.extend(event.get("item").cloned());
                Ok(Progress::More)
            }
            Some(_) => {
                self.push(&event, heard);
                Ok(Progress::More)
            }
            None if event.get("error").is_some() => Err(error_response::in_answer(&event)),
            None => Err(garbled()),
        }
    }

    fn whole(&mut self, body: &Value) -> Result<(), ProviderFault> {
        self.response(body)
    }

    fn finish(self: Box<Self>) -> Result<ModelReply, ProviderFault> {
        let stop = self.draft.stop.ok_or_else(broken_off)?;
        Ok(self.draft.reply(&self.frame, stop))
    }

    fn usage(&self) -> Usage {
        self.draft.usage
    }

    fn refused(&self, status: u16, body: &Value) -> Option<ModelReply> {
        let code = body.pointer("/error/code").and_then(Value::as_str)?;
        let refused = status == 400 && matches!(code, "content_filter" | "content_policy_violation" | "invalid_prompt");
        refused.then(|| ModelReply {
            stop: StopReason::Refusal,
            safety_category: Some(code.to_owned()),
            ..ModelReply::text("", Usage::default())
        })
    }
}

fn list<'a>(item: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    item.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// What the vendor wants to see again: all items in their order, if a sealed thought is among them. Ids that it gave to
/// anything else lead nowhere, since it keeps nothing.
fn kept(items: &[Value], frame: &ReplyContext) -> Option<Value> {
    let is = |item: &Value, kind: &str| item.get("type").and_then(Value::as_str) == Some(kind);
    let sealed = |item: &Value| is(item, "reasoning") && item.get("encrypted_content").is_some_and(Value::is_string);
    if !items.iter().any(sealed) {
        return None;
    }
    let mut again = Vec::new();
    for item in items {
        let mut item = item.clone();
        let known = sealed(&item) || is(&item, "message") || is(&item, "function_call");
        let Some(fields) = item.as_object_mut().filter(|_| known) else { continue };
        fields.remove("status");
        if !fields.contains_key("encrypted_content") {
            fields.remove("id");
        }
        if let Some(name) = fields.get("name").and_then(Value::as_str).map(|name| frame.names.ours(name).to_owned()) {
            fields.insert("name".to_owned(), name.into());
        }
        again.push(item);
    }
    Some(echo(OPENAI_RESPONSES, again.into()))
}

fn usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(usage, "/input_tokens"),
        output_tokens: count(usage, "/output_tokens"),
        cache_read_tokens: known_count(usage, "/input_tokens_details/cached_tokens"),
        ..Usage::default()
    }
}
