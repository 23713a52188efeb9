//! Settings of a write to a channel; what the channel declares goes before what the node says.

use baton_model::workflow::{Definition, Node, Reducer};

use super::config::Config;
use super::source::ValueSource;
use crate::plan::access::write_denied;
use crate::plan::ports::Origin;
use crate::plan::problem::Problem;
use crate::schema::Schema;

/// `core.channelWrite`: writes one value through the channel's reducer.
#[derive(Debug)]
pub(crate) struct ChannelWrite {
    pub(crate) channel: String,
    pub(crate) source: ValueSource,
    pub(crate) reducer: Reducer,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) max_size: Option<usize>,
    pub(crate) schema: Option<Schema>,
    pub(crate) schema_version: Option<u32>,
    pub(crate) denied: Option<Vec<String>>,
}

impl ChannelWrite {
    pub(crate) fn compile(config: &Config<'_>, node: &Node, definition: &Definition) -> Result<Self, Vec<Problem>> {
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
            (Some(expression), _) => ValueSource::Expression(expression),
            (None, Some(value)) => ValueSource::Value(value.clone()),
            (None, None) => ValueSource::Input,
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

    pub(crate) fn stores(&self) -> Option<(&str, Origin<'_>)> {
        match &self.source {
            ValueSource::Value(_) => None,
            ValueSource::Expression(expression) => Some((&self.channel, Origin::Expression(expression))),
            ValueSource::Input => Some((&self.channel, Origin::Port("value"))),
        }
    }
}
