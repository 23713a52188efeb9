//! What comes back from a model, whoever the vendor is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::ToolUse;

/// What a model said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelReply {
    pub content: String,
    pub stop: StopReason,
    /// Tools it wants called before it goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// What it thought aloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What the vendor wants to see again, word for word, when the conversation goes on (signed thoughts, say).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Value>,
    /// What it said instead of an answer. It may repeat the prompt, so it stays off the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The vendor's own word for why it refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_category: Option<String>,
    /// The model that really answered, where it is another than the one asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub usage: Usage,
}

impl ModelReply {
    /// An ordinary answer.
    pub fn text(content: impl Into<String>, usage: Usage) -> Self {
        Self {
            content: content.into(),
            stop: StopReason::EndTurn,
            tools: Vec::new(),
            reasoning: None,
            echo: None,
            refusal: None,
            safety_category: None,
            model: None,
            usage,
        }
    }

    /// Some vendors say that they refuse in the reason, some only in a text beside it.
    pub fn is_refusal(&self) -> bool {
        self.stop == StopReason::Refusal || self.refusal.as_ref().is_some_and(|text| !text.is_empty())
    }

    /// The answer stops where the room ended.
    pub fn is_cut_off(&self) -> bool {
        self.stop == StopReason::MaxTokens
    }
}

/// Why a model stopped, in one vocabulary for all vendors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    StopSequence,
    MaxTokens,
    ToolUse,
    Refusal,
    Other,
}

impl StopReason {
    /// Reads a vendor's word.
    pub fn read(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "end_turn" | "stop" => Self::EndTurn,
            "stop_sequence" => Self::StopSequence,
            "max_tokens" | "length" => Self::MaxTokens,
            "tool_use" | "tool_calls" => Self::ToolUse,
            "refusal" | "safety" | "content_filter" | "recitation" => Self::Refusal,
            _ => Self::Other,
        }
    }
}

/// What a call cost, as the vendor counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Of the input, what the vendor had in its cache, and what it put there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Nobody counted, or not all of it: some of this was estimated from what was said.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_may_come_with_an_ordinary_stop() {
        let reply = ModelReply {
            refusal: Some("I would rather not.".to_owned()),
            stop: StopReason::read("stop"),
            ..ModelReply::text("", Usage::default())
        };
        assert!(reply.is_refusal());
        assert!(!ModelReply { refusal: Some(String::new()), ..reply.clone() }.is_refusal());
        assert!(ModelReply { refusal: None, stop: StopReason::read("SAFETY"), ..reply.clone() }.is_refusal());
        assert!(ModelReply { stop: StopReason::read("length"), ..reply }.is_cut_off());
    }
}
