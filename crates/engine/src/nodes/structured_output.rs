//! Asking a model for a value that fits a schema.

use baton_model::cache_key::{self, Message};
use baton_model::{Fault, ModelChoice, ModelReply, Provenance, SemanticRequest, code};
use serde_json::Value;

use super::outcome::Outcome;
use crate::envelope::{self, Verdict};
use crate::eval_context::EvalContext;
use crate::plan::StructuredOutput;

impl StructuredOutput {
    /// Asks with what its ports say: `messages`, or a single `prompt`.
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        let Some(ModelChoice { provider, model }) = context.state.model(context.node) else {
            let message = "No model is configured for this node.";
            return Outcome::Failed(Fault::new(code::CAPABILITY_NOT_PROVIDED, message));
        };
        match self.conversation(context) {
            Ok(messages) => {
                let request = SemanticRequest { provider, model, messages, ..self.request.clone() };
                Outcome::Call(Box::new(context.state.with_run_options(request)))
            }
            Err(fault) => Outcome::Failed(fault),
        }
    }

    fn conversation(&self, context: &EvalContext<'_>) -> Result<Vec<Message>, Fault> {
        let inputs = &context.inputs;
        let said = match (inputs.get("messages"), inputs.get("prompt")) {
            (Some(list), None) => cache_key::messages(list, "messages")
                .map_err(|error| Fault::new(code::VALIDATION_ERROR, format!("The input {error}.")))?,
            (None, Some(Value::String(prompt))) => vec![Message::new("user", prompt.as_str())],
            (None, Some(_)) => return Err(Fault::new(code::VALIDATION_ERROR, "The input `prompt` is a text.")),
            _ => {
                let message = "A model is asked with one of the inputs `messages` and `prompt`.";
                return Err(Fault::new(code::INPUT_MISSING, message).with("input", "messages"));
            }
        };
        let said = match origin(context) {
            None => said,
            Some(origin) => said.into_iter().map(|message| fenced(message, &origin)).collect(),
        };
        let system = self.system_prompt.iter().map(|text| Message::new("system", text.as_str()));
        Ok(system.chain(said).collect())
    }

    pub(crate) fn judge(&self, reply: &ModelReply, rule: u32) -> Verdict {
        envelope::judge(reply, &self.schema, rule)
    }
}

/// Whose words the messages are, unless they are the workflow's own. A port that brings nothing is not asked.
fn origin(context: &EvalContext<'_>) -> Option<Provenance> {
    let asked = |name: &str| matches!(name, "messages" | "prompt") && context.inputs.contains_key(name);
    let port = context.state.plan.nodes[context.node].inputs.iter().find(|(name, _)| asked(name));
    let (_, port) = port.filter(|_| context.state.fences())?;
    context.state.brought_by(port)
}

/// A message that somebody else wrote: its texts are fenced, and it speaks for nobody but whoever asks.
fn fenced(message: Message, origin: &Provenance) -> Message {
    let content = match message.content() {
        Value::String(text) => Value::String(origin.fence(text)),
        Value::Array(parts) => {
            let part = |part: &Value| match part.get("text") {
                Some(Value::String(text)) => {
                    let mut part = part.clone();
                    part["text"] = origin.fence(text).into();
                    part
                }
                _ => part.clone(),
            };
            parts.iter().map(part).collect()
        }
        other => other.clone(),
    };
    Message::new(if message.role() == "assistant" { "assistant" } else { "user" }, content)
}
