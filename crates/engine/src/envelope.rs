//! Answers that must have a shape: what an answer counts as, and when a model is asked again.
//!
//! ```text
//!  answer ──► refused ──────────────────────────────────────► the node fails, nobody asks again
//!     ├─────► cut off ──► more room, asked again ───────────┐
//!     ├─────► no JSON, or not the shape ──► told what is    │ attempts spent ──► the node fails
//!     │       wrong, asked again ───────────────────────────┤        ▲
//!     │                       prose, attempts spent ──► once more, to put it into shape
//!     └─────► fits
//! ```

use std::sync::Arc;

use baton_model::cache_key::Message;
use baton_model::event::{
    CapBreached, CapKind, EnvelopeNlToFormat, EnvelopeRefusal, EnvelopeRetryAttempted, EnvelopeRetryExhausted,
    EnvelopeTruncated, RecoveryPath, RetryReason,
};
use baton_model::{Draft, Event, Fault, ModelReply, NodeId, SemanticRequest, code};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::depth;
use crate::recover::{NO_JSON, ambiguity, recover, sole};
use crate::schema::Schema;

/// Calls of one model for one answer, before the one that puts prose into shape.
pub(crate) const MAX_ATTEMPTS: u32 = 3;
/// An answer that was cut off gets this many times the room, up to the most any vendor gives.
const MORE_ROOM: u64 = 2;
const MOST_ROOM: u64 = 65_536;

/// What an answer counts as.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Fits { value: Value, recovered: Option<RecoveryPath> },
    Refused,
    Unfit(Unfit),
}

/// Why an answer does not count. Says nothing of what the model said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unfit {
    pub(crate) reason: RetryReason,
    pub(crate) error: String,
    pub(crate) rule: Option<String>,
}

impl Unfit {
    pub(crate) fn cut_off() -> Self {
        let error = "The answer was cut off before it was whole.".to_owned();
        Self { reason: RetryReason::Truncation, error, rule: None }
    }

    pub(crate) fn misshapen(error: impl Into<String>) -> Self {
        Self { reason: RetryReason::SchemaViolation, error: error.into(), rule: None }
    }
}

/// How often a model has been asked for one answer, and what it is told this time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Attempts before this one.
    before: u32,
    /// Room for the answer, where it is not what the request says.
    room: Option<u64>,
    /// What was wrong with the last answer.
    nudge: Option<String>,
    /// The prose that is to be put into shape: the last thing that is tried.
    prose: Option<Arc<ModelReply>>,
}

/// The answer under judgement, and what it was an answer to.
pub(crate) struct Answered<'a> {
    pub(crate) node: &'a NodeId,
    pub(crate) request: &'a SemanticRequest,
    pub(crate) reply: &'a ModelReply,
    pub(crate) asked: &'a Asked,
    /// What an answer of that shape is called.
    pub(crate) shape: &'a str,
    pub(crate) rule: u32,
}

pub(crate) fn judge(reply: &ModelReply, schema: &Schema, rule: u32) -> Verdict {
    if reply.is_refusal() {
        return Verdict::Refused;
    }
    if rule >= 5
        && let Some(why) = ambiguity(&reply.content, |value| schema.broken_rule(value).is_none())
    {
        return Verdict::Unfit(Unfit::misshapen(why));
    }
    let (value, recovered) = match serde_json::from_str::<Value>(&reply.content) {
        Ok(value) => (value, None),
        Err(_) if reply.is_cut_off() => return Verdict::Unfit(Unfit::cut_off()),
        Err(_) => match recover(&reply.content) {
            Some(found) => (found.value, Some(found.path)),
            None => {
                return Verdict::Unfit(Unfit {
                    reason: RetryReason::ParseError,
                    error: NO_JSON.to_owned(),
                    rule: None,
                });
            }
        },
    };
    fits(value, recovered, schema)
}

/// The same for an answer that is acted upon: it counts only where the whole of it is one value.
pub(crate) fn judge_sole(reply: &ModelReply, schema: &Schema) -> Verdict {
    if reply.is_refusal() {
        return Verdict::Refused;
    }
    match sole(&reply.content) {
        Ok(found) => {
            let recovered = Some(found.path).filter(|path| *path != RecoveryPath::Direct);
            fits(found.value, recovered, schema)
        }
        Err(_) if reply.is_cut_off() => Verdict::Unfit(Unfit::cut_off()),
        Err(NO_JSON) => {
            Verdict::Unfit(Unfit { reason: RetryReason::ParseError, error: NO_JSON.to_owned(), rule: None })
        }
        Err(why) => Verdict::Unfit(Unfit::misshapen(why)),
    }
}

fn fits(value: Value, recovered: Option<RecoveryPath>, schema: &Schema) -> Verdict {
    if depth::check("answer", &value).is_err() {
        return Verdict::Unfit(Unfit::misshapen("The answer nests too deeply."));
    }
    match schema.broken_rule(&value) {
        None => Verdict::Fits { value, recovered },
        Some(rule) => {
            let unfit = Unfit::misshapen(format!("The answer breaks the schema's rule {rule}."));
            Verdict::Unfit(Unfit { rule: Some(rule), ..unfit })
        }
    }
}

impl Answered<'_> {
    fn model(&self) -> String {
        self.reply.model.clone().unwrap_or_else(|| self.request.model.clone())
    }

    /// A refusal on the log, and the fault it is. Neither repeats what the model said.
    pub(crate) fn refused(&self) -> (Draft, Fault) {
        let event = EnvelopeRefusal {
            node_id: self.node.clone(),
            provider: self.request.provider.clone(),
            model: self.model(),
            safety_category: self.reply.safety_category.clone(),
        };
        let fault = self.blame(Fault::new(code::ENVELOPE_REFUSAL, "The model refused to answer."));
        let fault = match &self.reply.safety_category {
            Some(category) => fault.with("safetyCategory", category.as_str()),
            None => fault,
        };
        (Event::from(event).into(), fault)
    }

    fn blame(&self, fault: Fault) -> Fault {
        fault.with("provider", self.request.provider.as_str()).with("model", self.model())
    }

    /// What follows from an answer that does not count: the model is asked again, or the fault that ends it.
    pub(crate) fn again(&self, unfit: &Unfit) -> (Vec<Draft>, Option<Fault>) {
        let mut drafts: Vec<Draft> = Vec::new();
        if unfit.reason == RetryReason::Truncation {
            let event = EnvelopeTruncated {
                node_id: self.node.clone(),
                provider: self.request.provider.clone(),
                model: self.model(),
                stop_reason: "max_tokens".to_owned(),
                partial_payload_available: (self.rule >= 4).then(|| !self.reply.content.trim().is_empty()),
                output_token_count: Some(self.reply.usage.output_tokens),
            };
            drafts.push(Event::from(event).into());
        }
        let attempts = self.asked.attempts();
        let coercing = self.asked.prose.is_some();
        let hopeless = unfit.reason == RetryReason::Truncation
            && self.asked.room(self.request.max_output_tokens, self.reply) >= MOST_ROOM;
        if attempts < MAX_ATTEMPTS && !hopeless && !coercing {
            let event = EnvelopeRetryAttempted {
                node_id: self.node.clone(),
                attempt: attempts + 1,
                reason: unfit.reason,
                previous_error: Some(unfit.error.clone()),
            };
            drafts.push(Event::from(event).into());
            return (drafts, None);
        }
        if unfit.reason == RetryReason::ParseError && !coercing && is_prose(&self.reply.content) {
            let event = EnvelopeNlToFormat {
                node_id: self.node.clone(),
                original_envelope_type: self.shape.to_owned(),
                fallback_calls: Some(1),
            };
            drafts.push(Event::from(event).into());
            return (drafts, None);
        }
        let fault = self.exhausted(unfit, attempts, &mut drafts);
        (drafts, Some(fault))
    }

    fn exhausted(&self, unfit: &Unfit, attempts: u32, drafts: &mut Vec<Draft>) -> Fault {
        let exhausted = EnvelopeRetryExhausted {
            node_id: self.node.clone(),
            total_attempts: attempts,
            final_reason: unfit.reason,
            final_error: Some(unfit.error.clone()),
        };
        drafts.push(Event::from(exhausted).into());
        let (limit, node_id) = (u64::from(attempts), Some(self.node.clone()));
        let observed = (limit + 1).into();
        drafts.push(Event::from(CapBreached { kind: CapKind::Schema, limit: limit.into(), observed, node_id }).into());
        let code = match unfit.reason {
            RetryReason::Truncation => code::ENVELOPE_TRUNCATION_UNRECOVERABLE,
            RetryReason::SchemaViolation | RetryReason::ParseError => code::ENVELOPE_INVALID,
        };
        let message = format!("{} It was asked for {attempts} times.", unfit.error);
        let fault = self.blame(Fault::new(code, message)).with("attempts", attempts);
        match &unfit.rule {
            Some(rule) => fault.with("rule", rule.as_str()),
            None => fault,
        }
    }
}

impl Asked {
    /// How much room the answer had, given what was said of it.
    fn room(&self, said: Option<u64>, reply: &ModelReply) -> u64 {
        self.room.or(said).unwrap_or(reply.usage.output_tokens).max(1)
    }

    /// The next attempt, after an answer that does not count.
    pub(crate) fn next(&self, event: &EnvelopeRetryAttempted, said: Option<u64>, reply: &ModelReply) -> Self {
        let before = event.attempt.saturating_sub(1);
        match event.reason {
            RetryReason::Truncation => {
                let more = self.room(said, reply).saturating_mul(MORE_ROOM).min(MOST_ROOM);
                Self { before, room: Some(more), nudge: None, prose: None }
            }
            RetryReason::SchemaViolation | RetryReason::ParseError => {
                Self { before, room: self.room, nudge: event.previous_error.clone(), prose: None }
            }
        }
    }

    /// How often the model has been asked by now, this attempt included.
    fn attempts(&self) -> u32 {
        if self.prose.is_some() { self.before } else { self.before + 1 }
    }

    /// The attempt that puts this prose into shape.
    pub(crate) fn coercion(&self, prose: Arc<ModelReply>) -> Self {
        Self { before: self.attempts(), room: self.room, nudge: None, prose: Some(prose) }
    }

    /// What the model is asked this time. It is told in the host's words what was wrong, never in its own.
    pub(crate) fn ask(&self, base: Arc<SemanticRequest>) -> Arc<SemanticRequest> {
        if *self == Self::default() {
            return base;
        }
        let mut request = Arc::unwrap_or_clone(base);
        request.max_output_tokens = self.room.or(request.max_output_tokens);
        if let Some(nudge) = &self.nudge {
            let told = format!("Your last answer could not be used. {nudge} Answer with JSON of the asked shape only.");
            request.messages.push(Message::new("user", told));
        }
        if let Some(prose) = &self.prose {
            request.messages.push(Message::new("assistant", prose.content.as_str()));
            let told = "Put that answer into JSON of the asked shape. Change nothing else, and answer with JSON only.";
            request.messages.push(Message::new("user", told));
        }
        Arc::new(request)
    }
}

/// Whether a text looks like somebody talking, rather than like data that is broken.
fn is_prose(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(char::is_alphabetic) && text.split_whitespace().nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_words_and_not_broken_data() {
        for (text, prose) in [
            ("The result is ok.", true),
            ("  Ja, gern!", true),
            ("prose", false),
            ("{\"result\": \"ok", false),
            ("[1, 2", false),
            ("```json\n{", false),
            ("", false),
        ] {
            assert_eq!(is_prose(text), prose, "{text:?}");
        }
    }
}
