//! What a finished visit writes, on the log: variables, a channel, outputs, each without what is sensitive.

use baton_model::event::{ChannelWritten, ChannelWrittenFacts, REDACTED, VariableChanged, VariableChangedFacts};
use baton_model::{Draft, Event, Timestamp};
use serde_json::{Map, Value};

use crate::nodes::Writing;
use crate::state::RunState;

/// A write that changes nothing is not news.
pub(super) fn variable_changed(state: &RunState, node: Option<usize>, name: &str, value: &Value) -> Option<Draft> {
    let previous = state.variables.get(name);
    if previous == Some(value) {
        return None;
    }
    let sensitive = state.plan.is_sensitive(name);
    let shown = |value: &Value| if sensitive { REDACTED.into() } else { value.clone() };
    let event = VariableChanged {
        name: name.to_owned(),
        previous: previous.map(shown),
        next: shown(value),
        node_id: node.map(|node| state.plan.nodes[node].id.clone()),
        private: VariableChangedFacts { hidden: sensitive.then(|| value.clone()) },
    };
    Some(Event::from(event).into())
}

pub(super) fn channel_written(state: &RunState, node: usize, write: Writing, at: Timestamp) -> Draft {
    let sensitive = state.plan.is_sensitive(&write.channel);
    let event = ChannelWritten {
        channel: write.channel,
        value: if sensitive { REDACTED.into() } else { write.value.clone() },
        reducer: write.reducer,
        written_at: at,
        node_id: Some(state.plan.nodes[node].id.clone()),
        schema_version: write.schema_version,
        private: ChannelWrittenFacts {
            ttl_ms: write.ttl_ms,
            max_size: write.max_size,
            hidden: sensitive.then_some(write.value),
        },
    };
    Event::from(event).into()
}

/// Values of sensitive variables never show up in a public payload, not even as an output of the node that set them.
pub(super) fn mask_outputs(state: &RunState, node: usize, outputs: Map<String, Value>) -> Map<String, Value> {
    let sensitive = state.plan.definition.nodes[node].output_sensitivity.as_ref();
    outputs
        .into_iter()
        .map(|(name, value)| {
            let hide = state.plan.is_sensitive(&name)
                || state.plan.nodes[node].hidden.contains(&name)
                || sensitive.is_some_and(|map| map.get(&name) == Some(&true));
            (name, if hide { REDACTED.into() } else { value })
        })
        .collect()
}
