//! An answer of Anthropic: blocks, one after the other, and then the reason why there are no more.

use std::collections::BTreeMap;

use baton_model::{ModelReply, StopReason, Usage};
use serde_json::{Map, Value};

use super::blocks;
use crate::conversation::echo;
use crate::draft::{Draft, DraftCall, ReplyContext, arguments, known_count};
use crate::vendor_names::ANTHROPIC;
use crate::wire::{Decoder, Progress, broken_off, garbled, parse};
use crate::{Delta, ProviderFault, error_response};

#[derive(Debug)]
pub(super) struct Answer {
    frame: ReplyContext,
    draft: Draft,
    blocks: BTreeMap<u64, Block>,
    usage: Counts,
    ended: bool,
}

#[derive(Debug)]
struct Block {
    fields: Map<String, Value>,
    /// A call's input, which comes in pieces of JSON.
    input: String,
}

/// Reported at the beginning, and some of it again at the end.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    input: u64,
    output: u64,
    read: Option<u64>,
    written: Option<u64>,
}

impl Answer {
    pub(super) fn new(frame: ReplyContext) -> Self {
        Self { frame, draft: Draft::default(), blocks: BTreeMap::new(), usage: Counts::default(), ended: false }
    }

    fn message(&mut self, message: &Value) {
        if let Some(model) = message.get("model").and_then(Value::as_str) {
            self.draft.model = Some(model.to_owned());
        }
        self.count(message);
        self.stop(message);
    }

    fn count(&mut self, message: &Value) {
        let Some(usage) = message.get("usage") else { return };
        let counts = &mut self.usage;
        counts.input = known_count(usage, "/input_tokens").unwrap_or(counts.input);
        counts.output = known_count(usage, "/output_tokens").unwrap_or(counts.output);
        counts.read = known_count(usage, "/cache_read_input_tokens").or(counts.read);
        counts.written = known_count(usage, "/cache_creation_input_tokens").or(counts.written);
    }

    fn stop(&mut self, message: &Value) {
        let Some(reason) = message.get("stop_reason").and_then(Value::as_str) else { return };
        self.draft.stop = Some(stop(reason));
        let detail = |field: &str| message.get("stop_details")?.get(field)?.as_str().map(str::to_owned);
        self.draft.safety_category = detail("category");
        self.draft.refusal = detail("explanation").filter(|_| reason == "refusal").unwrap_or_default();
    }

    fn begin(&mut self, index: u64, block: &Value) -> Result<(), ProviderFault> {
        let fields = block.as_object().ok_or_else(garbled)?.clone();
        self.blocks.insert(index, Block { fields, input: String::new() });
        Ok(())
    }

    fn piece(&mut self, index: u64, delta: &Value, heard: &mut Vec<Delta>) -> Result<(), ProviderFault> {
        let block = self.blocks.get_mut(&index).ok_or_else(garbled)?;
        let text = |field: &str| delta.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text_delta" => {
                block.add("text", text("text"));
                heard.push(Delta::Text(text("text").to_owned()));
            }
            "thinking_delta" => {
                block.add("thinking", text("thinking"));
                heard.push(Delta::Reasoning(text("thinking").to_owned()));
            }
            "signature_delta" => block.add("signature", text("signature")),
            "input_json_delta" => block.input.push_str(text("partial_json")),
            _ => {}
        }
        Ok(())
    }

    /// What the blocks say, once all of them are there.
    fn read_blocks(&mut self) {
        let mut thought = false;
        for block in self.blocks.values_mut() {
            if blocks::is_call(&block.fields) && !block.input.is_empty() {
                block.fields.insert("input".to_owned(), arguments(&block.input));
            }
            let text = |field: &str| block.fields.get(field).and_then(Value::as_str).unwrap_or_default();
            match text("type") {
                "text" => self.draft.content.push_str(text("text")),
                "thinking" => {
                    thought = true;
                    self.draft.reasoning.push_str(text("thinking"));
                }
                "redacted_thinking" => thought = true,
                "tool_use" => {
                    let arguments = block.fields.get("input").cloned().unwrap_or_default();
                    let (id, name) = (text("id").to_owned(), text("name").to_owned());
                    self.draft.calls.push(DraftCall { id, name, arguments });
                }
                _ => {}
            }
        }
        if thought {
            self.draft.echo = Some(echo(ANTHROPIC, self.blocks.values().map(|block| self.kept(block)).collect()));
        }
    }

    /// A block as it is shown again, with the canonical id of a tool and not its name of today.
    fn kept(&self, block: &Block) -> Value {
        let mut fields = block.fields.clone();
        if blocks::is_call(&fields)
            && let Some(name) = block.fields.get("name").and_then(Value::as_str)
        {
            fields.insert("name".to_owned(), self.frame.names.ours(name).into());
        }
        Value::Object(fields)
    }
}

impl Block {
    fn add(&mut self, field: &str, more: &str) {
        match self.fields.get_mut(field) {
            Some(Value::String(text)) => text.push_str(more),
            _ => {
                self.fields.insert(field.to_owned(), more.into());
            }
        }
    }
}

impl Decoder for Answer {
    fn event(&mut self, data: &str, heard: &mut Vec<Delta>) -> Result<Progress, ProviderFault> {
        let event = parse(data)?;
        let index = || event.get("index").and_then(Value::as_u64).ok_or_else(garbled);
        let field = |name: &str| event.get(name).ok_or_else(garbled);
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => self.message(field("message")?),
            Some("content_block_start") => self.begin(index()?, field("content_block")?)?,
            Some("content_block_delta") => self.piece(index()?, field("delta")?, heard)?,
            Some("message_delta") => {
                self.count(&event);
                self.stop(field("delta")?);
            }
            Some("message_stop") => {
                self.ended = true;
                return Ok(Progress::Done);
            }
            Some("error") => return Err(error_response::in_answer(&event)),
            // Pings, the ends of blocks, and what is still to be invented.
            Some(_) => {}
            None => return Err(garbled()),
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, body: &Value) -> Result<(), ProviderFault> {
        if body.get("type").and_then(Value::as_str) == Some("error") {
            return Err(error_response::in_answer(body));
        }
        self.message(body);
        for (i, block) in body.get("content").and_then(Value::as_array).ok_or_else(garbled)?.iter().enumerate() {
            self.begin(i as u64, block)?;
        }
        self.ended = true;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<ModelReply, ProviderFault> {
        let stop = self.draft.stop.filter(|_| self.ended).ok_or_else(broken_off)?;
        self.read_blocks();
        self.draft.usage = self.usage();
        Ok(self.draft.reply(&self.frame, stop))
    }

    fn usage(&self) -> Usage {
        let Counts { input, output, read, written } = self.usage;
        Usage {
            // The vendor counts apart what its cache had and got; we count all that was read.
            input_tokens: input.saturating_add(read.unwrap_or(0)).saturating_add(written.unwrap_or(0)),
            output_tokens: output,
            cache_read_tokens: read,
            cache_write_tokens: written,
            ..Usage::default()
        }
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" => StopReason::EndTurn,
        "stop_sequence" => StopReason::StopSequence,
        // Whether it is the bound of the answer or of all the model can read, the room has ended.
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::Refusal,
        _ => StopReason::Other,
    }
}
