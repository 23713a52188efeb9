//! How much a run keeps, and what it has room for.

use baton_model::{Fault, json};
use serde_json::{Map, Value};

use super::run_state::RunState;
use crate::channel::ChannelState;
use crate::size::{Copies, one, together};

/// What naming a chunk takes: its digest, in the body and beside it.
const CHUNK_NAME: u64 = 2 * 67;

/// Bytes of named values together.
pub(crate) fn size_of_all(outputs: &Map<String, Value>) -> u64 {
    outputs.iter().map(|(name, value)| json::named_size(name, value)).fold(0, u64::saturating_add)
}

impl RunState {
    /// How large the value is that a node would read under this name, without reading it.
    pub(crate) fn size_of(&self, name: &str) -> u64 {
        let variable = self.variables.get(name).map(json::size);
        variable.or_else(|| self.channels.get(name).map(ChannelState::size)).unwrap_or(0)
    }

    /// Reads values for one node, adding up what is copied before it is.
    pub(crate) fn copy_all<'n>(
        &self,
        what: &'static str,
        names: impl Iterator<Item = (&'n str, &'n str)>,
    ) -> Result<Map<String, Value>, Fault> {
        let mut copies = Copies::new(what, self.bounds());
        let mut all = Map::new();
        for (to, from) in names {
            copies.add(to, self.size_of(from))?;
            all.extend(self.value(from).map(|value| (to.to_owned(), value)));
        }
        Ok(all)
    }

    /// Judges new values of variables; what they and the rest come to.
    pub(crate) fn room_for<'v>(&self, variables: impl Iterator<Item = (&'v str, &'v Value)>) -> Result<u64, Fault> {
        let bounds = self.bounds();
        let (mut all, mut grown) = (self.bytes, false);
        for (name, value) in variables {
            one(name, json::size(value), bounds)?;
            let (before, size) = (self.variable_size(name), json::named_size(name, value));
            grown |= size > before;
            all = all.saturating_sub(before).saturating_add(size);
        }
        if grown {
            together(all, bounds)?;
        }
        Ok(all)
    }

    /// What a variable takes, its name included; nothing if there is none.
    pub(crate) fn variable_size(&self, name: &str) -> u64 {
        self.variables.get(name).map_or(0, |value| json::named_size(name, value))
    }

    /// Replaces a node's outputs.
    pub(crate) fn set_outputs(&mut self, node: usize, outputs: Map<String, Value>) {
        let (before, after) = (size_of_all(&self.nodes[node].outputs), size_of_all(&outputs));
        self.note_size(before, after);
        self.nodes[node].outputs = outputs;
    }

    /// About how much of it is written each time it is written down: what variables, channels and outputs have together,
    /// and the names of the chunks of its long lists.
    pub fn weight(&self) -> u64 {
        let maps = self.nodes.iter().filter_map(|node| node.map.as_deref());
        let of_maps: usize = maps.map(|map| map.items.full().len() + map.ends.full().len()).sum();
        let chunks = self.children.full().len() + self.decisions.full().len() + of_maps;
        self.bytes.saturating_add(chunks as u64 * CHUNK_NAME)
    }

    /// Notes that something of this size has taken the place of something of that size.
    pub(crate) fn note_size(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
    }

    /// Adds up what is there, when much has changed at once.
    pub(crate) fn count_bytes(&mut self) {
        let variables = size_of_all(&self.variables);
        let channels: u64 = self.channels.values().map(ChannelState::size).sum();
        let outputs: u64 = self.nodes.iter().map(|node| size_of_all(&node.outputs)).sum();
        self.bytes = variables.saturating_add(channels).saturating_add(outputs);
    }
}
