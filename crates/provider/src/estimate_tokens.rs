//! Servers that do not say what an answer took. Somebody has to count, or no budget would ever bind: tokens are estimated
//! from what was asked and what was said, and the reply says that they were.

use baton_model::{ModelReply, ModelRequest, SemanticRequest, Usage};

/// Bytes of text that make a token, roughly, whoever counts.
const BYTES_PER_TOKEN: u64 = 4;
/// The same for plain letters where too few must not be counted, and how many tokens any other letter may take.
const CAREFUL_BYTES: u64 = 3;
const CAREFUL_LETTER: u64 = 2;
/// What vendors add around a message, and to explain tools to their models.
const FRAME: u64 = 8;
const TOOL_PROMPT: u64 = 350;

/// About how many tokens a model reads of this request.
pub fn estimated_input(request: &SemanticRequest) -> u64 {
    let mut bytes = Bytes(0);
    // Counting cannot fail.
    drop(serde_json::to_writer(&mut bytes, &(&request.messages, &request.tools)));
    bytes.0.div_ceil(BYTES_PER_TOKEN)
}

/// How many tokens a model reads of this request, if it counts as finely as any: for what is set aside before a call.
pub fn upper_bound_input(request: &SemanticRequest) -> u64 {
    let mut letters = Letters::default();
    let asked = (&request.messages, &request.tools, &request.response_format);
    drop(serde_json::to_writer(&mut letters, &asked));
    let words = letters.plain.div_ceil(CAREFUL_BYTES).saturating_add(letters.other.saturating_mul(CAREFUL_LETTER));
    let tools = if request.tools.is_empty() { 0 } else { TOOL_PROMPT };
    words.saturating_add(tools).saturating_add(FRAME.saturating_mul(request.messages.len() as u64 + 1))
}

/// The reply with what the server left uncounted. No request is empty, and whoever said something used something.
pub(crate) fn with_estimates(reply: ModelReply, request: &ModelRequest) -> ModelReply {
    let mut usage = reply.usage;
    if usage.input_tokens == 0 {
        let input_tokens = estimated_input(&request.semantic);
        usage = Usage { input_tokens, estimated: true, ..usage };
    }
    let output_tokens = estimated_output(&reply, &request.semantic);
    if usage.output_tokens == 0 && output_tokens > 0 {
        usage = Usage { output_tokens, estimated: true, ..usage };
    }
    ModelReply { usage, ..reply }
}

fn estimated_output(reply: &ModelReply, request: &SemanticRequest) -> u64 {
    let mut bytes = Bytes(0);
    for call in &reply.tools {
        bytes.0 += call.name.len() as u64;
        drop(serde_json::to_writer(&mut bytes, &call.arguments));
    }
    let texts = [Some(&reply.content), reply.reasoning.as_ref(), reply.refusal.as_ref()];
    let said = bytes.0 + texts.into_iter().flatten().map(|text| text.len() as u64).sum::<u64>();
    let said = said.div_ceil(BYTES_PER_TOKEN);
    // All the room was used, whatever is left of what was said in it.
    let room = request.max_output_tokens.filter(|_| reply.is_cut_off());
    said.max(room.unwrap_or(0))
}

/// Counts what is written to it.
struct Bytes(u64);

impl std::io::Write for Bytes {
    fn write(&mut self, written: &[u8]) -> std::io::Result<usize> {
        self.0 += written.len() as u64;
        Ok(written.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Counts letters that are written to it.
#[derive(Default)]
struct Letters {
    plain: u64,
    other: u64,
}

impl std::io::Write for Letters {
    fn write(&mut self, written: &[u8]) -> std::io::Result<usize> {
        for byte in written {
            self.plain += u64::from(byte.is_ascii());
            // The first byte of any other letter.
            self.other += u64::from(*byte >= 0xC0);
        }
        Ok(written.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use baton_model::{StopReason, ToolUse};
    use serde_json::json;

    use super::*;
    use crate::testing::request;

    fn asked() -> ModelRequest {
        request("p", json!({"messages": [{"role": "user", "content": "x".repeat(400)}], "maxOutputTokens": 50}))
    }

    fn usage(reply: ModelReply) -> (u64, u64, bool) {
        let usage = with_estimates(reply, &asked()).usage;
        (usage.input_tokens, usage.output_tokens, usage.estimated)
    }

    #[test]
    fn only_what_nobody_counted_is_estimated() {
        let of = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        let input = estimated_input(&asked().semantic);
        assert!((100..130).contains(&input), "{input}");
        assert_eq!(usage(ModelReply::text("12345678", of(7, 3))), (7, 3, false));
        assert_eq!(usage(ModelReply::text("12345678", of(0, 0))), (input, 2, true));
        assert_eq!(usage(ModelReply::text("12345678", of(7, 0))), (7, 2, true));
        assert_eq!(usage(ModelReply::text("", of(7, 0))), (7, 0, false), "nothing was said");
        let cut = ModelReply { stop: StopReason::MaxTokens, ..ModelReply::text("", of(7, 0)) };
        assert_eq!(usage(cut), (7, 50, true));
        let tools = vec![ToolUse { id: "1".to_owned(), name: "find".to_owned(), arguments: json!({"q": "1"}) }];
        let calls = ModelReply { tools, reasoning: Some("hm".to_owned()), ..ModelReply::text("", of(7, 0)) };
        assert_eq!(usage(calls), (7, 4, true));
    }
}
