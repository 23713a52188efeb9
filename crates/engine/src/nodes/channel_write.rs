use baton_model::workflow::{Definition, Node, Reducer};
use baton_model::{Fault, code};
use serde_json::Value;

use super::config::Config;
use super::{Done, Outcome};
use crate::access::{denied, write_denied};
use crate::eval_context::EvalContext;
use crate::expr::Expression;
use crate::plan::{Origin, Problem};
use crate::schema::Schema;

/// `core.channelWrite`: writes one value through the channel's reducer.
#[derive(Debug)]
pub(crate) struct ChannelWrite {
    channel: String,
    source: Source,
    reducer: Reducer,
    ttl_ms: Option<u64>,
    max_size: Option<usize>,
    schema: Option<Schema>,
    schema_version: Option<u32>,
    denied: Option<Vec<String>>,
}

#[derive(Debug)]
enum Source {
    Value(Value),
    Expression(Expression),
    Input,
}

/// A write that was judged fine.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) channel: String,
    pub(crate) value: Value,
    pub(crate) reducer: Reducer,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) max_size: Option<usize>,
    pub(crate) schema_version: Option<u32>,
}

impl ChannelWrite {
    pub(super) fn compile(config: &Config<'_>, node: &Node, definition: &Definition) -> Result<Self, Vec<Problem>> {
        config.only(&["channelName", "channel", "reducer", "ttlMs", "maxSize", "value", "expression"])?;
        let channel = match config.text("channelName")? {
            Some(name) => name,
            None => config.required_text("channel")?,
        };
        let declared = definition.channels.get(&channel);
        if declared.is_none() && definition.variables.iter().any(|variable| variable.name == channel) {
            return Err(config.problem("channelName", format!("`{channel}` is a variable, not a channel.")));
        }
        let words = "replace, append, merge, counter, votes, feedback, message";
        let own: Option<Reducer> = config.choice("reducer", words)?;
        let source = match (config.expression("expression")?, config.get("value")) {
            (Some(expression), _) => Source::Expression(expression),
            (None, Some(value)) => Source::Value(value.clone()),
            (None, None) => Source::Input,
        };
        let schema = declared.and_then(|channel| channel.schema.as_ref());
        let schema = schema.map(|schema| Schema::compile(schema, config.strictness)).transpose();
        let schema = schema
            .map_err(|error| config.problem("channelName", format!("The channel's schema is not valid: {error}")))?;
        let ttl = config.whole("ttlMs", 1, 31_536_000_000)?;
        let size = config.whole("maxSize", 1, u64::MAX >> 1)?.map(|size| size as usize);
        Ok(Self {
            source,
            reducer: declared.map(|channel| channel.reducer).or(own).unwrap_or(Reducer::Append),
            ttl_ms: declared.and_then(|channel| channel.ttl_ms).or(ttl),
            max_size: declared.and_then(|channel| channel.max_size).or(size),
            // An array schema describes the folded state of an appending channel, so it is not for single writes.
            schema: schema.filter(|_| declared.is_some_and(|c| matches!(c.reducer, Reducer::Replace))),
            schema_version: declared.map(|channel| channel.schema_version.unwrap_or(1)),
            denied: declared.and_then(|channel| write_denied(channel.access.as_ref(), node)),
            channel,
        })
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    pub(super) fn stores(&self) -> Option<(&str, Origin<'_>)> {
        match &self.source {
            Source::Value(_) => None,
            Source::Expression(expression) => Some((&self.channel, Origin::Expression(expression))),
            Source::Input => Some((&self.channel, Origin::Port("value"))),
        }
    }

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        if let Some(allowed) = &self.denied {
            return Outcome::Failed(denied(&self.channel, scene.node_id().as_str(), "write", allowed));
        }
        let value = match &self.source {
            Source::Value(value) => value.clone(),
            Source::Input => scene.inputs.get("value").cloned().unwrap_or(Value::Null),
            Source::Expression(expression) => match expression.evaluate(scene) {
                Ok(value) => value,
                Err(error) => return Outcome::Failed(expression.fault(&error)),
            },
        };
        if let Some((place, error)) = self.schema.as_ref().and_then(|schema| schema.check(&value).err()) {
            // The validator quotes what it judges.
            let why =
                if scene.state.plan.is_sensitive(&self.channel) { "its value is sensitive" } else { error.as_str() };
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
        if let Err(fault) = scene.state.check_write(&write, scene.at) {
            return Outcome::Failed(fault);
        }
        let outputs = [("value".to_owned(), write.value.clone())].into_iter().collect();
        Outcome::Done(Done { outputs, write: Some(write), ..Done::default() })
    }
}
