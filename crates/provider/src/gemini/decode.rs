//! An answer of Gemini: parts, in one piece or in many, all of the same form.

use baton_model::{ModelReply, StopReason, Usage};
use serde_json::{Value, json};

use crate::conversation::echo;
use crate::draft::{Draft, DraftCall, ReplyContext, count, known_count};
use crate::vendor_names::GEMINI;
use crate::wire::{Decoder, Progress, broken_off, garbled, parse};
use crate::{Delta, ProviderFault, error_response};

#[derive(Debug)]
pub(super) struct Answer {
    frame: ReplyContext,
    draft: Draft,
    /// What the vendor may want to see again.
    parts: Vec<Value>,
}

impl Answer {
    pub(super) fn new(frame: ReplyContext) -> Self {
        Self { frame, draft: Draft::default(), parts: Vec::new() }
    }

    fn take(&mut self, body: &Value, heard: &mut Vec<Delta>) -> Result<(), ProviderFault> {
        if body.get("error").is_some() {
            return Err(error_response::in_answer(body));
        }
        if let Some(model) = body.get("modelVersion").and_then(Value::as_str) {
            self.draft.model = Some(model.to_owned());
        }
        if let Some(usage) = body.get("usageMetadata") {
            self.draft.usage = self::usage(usage);
        }
        if let Some(reason) = body.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            self.draft.stop = Some(StopReason::Refusal);
            let rated = body.get("promptFeedback").and_then(category);
            self.draft.safety_category = Some(rated.unwrap_or(reason).to_owned());
        }
        let Some(candidate) = body.pointer("/candidates/0") else { return Ok(()) };
        for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            self.part(part, heard);
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.draft.stop = Some(stop(reason));
            self.draft.safety_category = Some(category(candidate).unwrap_or(reason).to_owned());
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, heard: &mut Vec<Delta>) {
        let thought = part.get("thought") == Some(&Value::Bool(true));
        if let Some(text) = part.get("text").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            let (place, delta) = if thought {
                (&mut self.draft.reasoning, Delta::Reasoning(text.to_owned()))
            } else {
                (&mut self.draft.content, Delta::Text(text.to_owned()))
            };
            place.push_str(text);
            heard.push(delta);
        }
        if let Some(call) = part.get("functionCall") {
            let text = |field: &str| call.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            let arguments = call.get("args").cloned().unwrap_or_else(|| json!({}));
            self.draft.calls.push(DraftCall { id: text("id"), name: text("name"), arguments });
        }
        self.keep(part, thought);
    }

    /// Thoughts are kept for their signatures alone; pieces of one text are one text.
    fn keep(&mut self, part: &Value, thought: bool) {
        let signed = part.get("thoughtSignature").is_some();
        if thought && !signed {
            return;
        }
        let mut part = part.clone();
        if let Some(name) = part.pointer_mut("/functionCall/name")
            && let Some(theirs) = name.as_str()
        {
            *name = self.frame.names.ours(theirs).into();
        }
        let text = |part: &Value| {
            let plain = part.as_object().is_some_and(|fields| fields.len() == 1);
            part.get("text").and_then(Value::as_str).filter(|_| plain).map(str::to_owned)
        };
        if let (Some(last), Some(more)) = (self.parts.last_mut(), text(&part))
            && let Some(so_far) = text(last)
        {
            *last = json!({"text": so_far + &more});
        } else {
            self.parts.push(part);
        }
    }
}

impl Decoder for Answer {
    fn event(&mut self, data: &str, heard: &mut Vec<Delta>) -> Result<Progress, ProviderFault> {
        self.take(&parse(data)?, heard)?;
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &Value) -> Result<(), ProviderFault> {
        // Without `alt=sse`, a stream is a list.
        let bodies = body.as_array().map_or(std::slice::from_ref(body), Vec::as_slice);
        for body in bodies {
            self.take(body, &mut Vec::new())?;
        }
        let known = |body: &Value| body.get("candidates").is_some() || body.get("promptFeedback").is_some();
        if bodies.iter().any(known) { Ok(()) } else { Err(garbled()) }
    }

    fn finish(mut self: Box<Self>) -> Result<ModelReply, ProviderFault> {
        let stop = self.draft.stop.ok_or_else(broken_off)?;
        if self.parts.iter().any(|part| part.get("thoughtSignature").is_some()) {
            self.draft.echo = Some(echo(GEMINI, self.parts.into()));
        }
        Ok(self.draft.reply(&self.frame, stop))
    }

    fn usage(&self) -> Usage {
        self.draft.usage
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => StopReason::Refusal,
        _ => StopReason::Other,
    }
}

/// What struck, where the vendor says so.
fn category(rated: &Value) -> Option<&str> {
    let ratings = rated.get("safetyRatings")?.as_array()?;
    ratings.iter().find(|rating| rating.get("blocked") == Some(&Value::Bool(true)))?.get("category")?.as_str()
}

fn usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(usage, "/promptTokenCount").saturating_add(count(usage, "/toolUsePromptTokenCount")),
        // What was thought is paid for like what was said.
        output_tokens: count(usage, "/candidatesTokenCount").saturating_add(count(usage, "/thoughtsTokenCount")),
        cache_read_tokens: known_count(usage, "/cachedContentTokenCount"),
        ..Usage::default()
    }
}
