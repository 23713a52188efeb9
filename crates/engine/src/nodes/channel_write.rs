//! Writing a channel: the write is judged here, so that what is recorded can always be folded.

use baton_model::{Fault, Timestamp, code};
use serde_json::Value;

use super::outcome::{Done, Outcome, Writing};
use crate::channel::{ChannelState, reduce};
use crate::eval_context::EvalContext;
use crate::plan::{ChannelWrite, ValueSource, access_denied};
use crate::state::RunState;

impl ChannelWrite {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        if let Some(allowed) = &self.denied {
            return Outcome::Failed(access_denied(&self.channel, context.node_id().as_str(), "write", allowed));
        }
        let value = match &self.source {
            ValueSource::Value(value) => value.clone(),
            ValueSource::Input => context.inputs.get("value").cloned().unwrap_or(Value::Null),
            ValueSource::Expression(expression) => match expression.evaluate(context) {
                Ok(value) => value,
                Err(error) => return Outcome::Failed(expression.fault(&error)),
            },
        };
        if let Some((place, error)) = self.schema.as_ref().and_then(|schema| schema.check(&value).err()) {
            // The validator quotes what it judges.
            let why =
                if context.state.plan.is_sensitive(&self.channel) { "its value is sensitive" } else { error.as_str() };
            return Outcome::Failed(
                Fault::new(code::VALIDATION_ERROR, format!("The value does not fit the channel's schema: {why}."))
                    .with("channel", self.channel.as_str())
                    .with("path", place),
            );
        }
        let write = Writing {
            channel: self.channel.clone(),
            value,
            reducer: self.reducer,
            ttl_ms: self.ttl_ms,
            max_size: self.max_size,
            schema_version: self.schema_version,
        };
        if let Err(fault) = check_write(context.state, &write, context.at) {
            return Outcome::Failed(fault);
        }
        let outputs = [("value".to_owned(), write.value.clone())].into_iter().collect();
        Outcome::Done(Done { outputs, write: Some(write), ..Done::default() })
    }
}

/// Whether a write can be folded; a write that cannot is refused, never recorded.
fn check_write(state: &RunState, write: &Writing, at: Timestamp) -> Result<(), Fault> {
    written(state, write, at).map(|_| ()).map_err(|reason| {
        Fault::new(code::VALIDATION_ERROR, format!("The write to `{}` was refused: {reason}.", write.channel))
            .with("channel", write.channel.as_str())
    })
}

/// The channel once this is written.
pub(crate) fn written(state: &RunState, write: &Writing, at: Timestamp) -> Result<ChannelState, String> {
    let before = state.channels.get(&write.channel);
    reduce(before, &write.value, write.reducer, write.ttl_ms, write.max_size, at)
}
