//! How large values may be: each one, what one node takes or makes at once, and everything that a run keeps together. A value that only grows would
//! one day take the host's memory with it, and every record that carries it.

use baton_model::{Fault, Timestamp, ValueBounds, code, json};
use serde_json::{Map, Value};

use crate::channel::ChannelState;
use crate::nodes::Done;
use crate::state::RunState;

/// Refuses one value of this size; `name` says which.
pub(crate) fn one(name: &str, size: u64, bounds: ValueBounds) -> Result<(), Fault> {
    let most = bounds.max_value_bytes;
    if size <= bounds.largest_value() {
        return Ok(());
    }
    let message =
        format!("The value of `{name}` has about {size} bytes; at most {most} are allowed (`max_value_bytes`).");
    Err(Fault::new(code::EXPRESSION_TOO_COSTLY, message)
        .with("name", name)
        .with("bytes", size)
        .with("limit", most)
        .with("bound", "max_value_bytes"))
}

/// Refuses that many bytes for one node at once; `what` says what they are.
pub(crate) fn at_once(what: &str, size: u64, bounds: ValueBounds) -> Result<(), Fault> {
    let most = bounds.most_at_once();
    if size <= most {
        return Ok(());
    }
    let message = format!("{what} have more than {most} bytes together, twice `max_value_bytes`.");
    Err(Fault::new(code::EXPRESSION_TOO_COSTLY, message).with("limit", most).with("bound", "max_value_bytes"))
}

/// Adds up what is about to be copied for one node.
pub(crate) struct Copies {
    what: &'static str,
    size: u64,
    bounds: ValueBounds,
}

impl Copies {
    pub(crate) fn new(what: &'static str, bounds: ValueBounds) -> Self {
        Self { what, size: 0, bounds }
    }

    /// Notes one more before it is copied.
    pub(crate) fn add(&mut self, name: &str, size: u64) -> Result<(), Fault> {
        self.size = self.size.saturating_add(name.len() as u64).saturating_add(size);
        at_once(self.what, self.size, self.bounds)
    }
}

/// Refuses that many bytes of everything that a run keeps.
pub(crate) fn together(size: u64, bounds: ValueBounds) -> Result<(), Fault> {
    let most = bounds.max_run_bytes;
    if size <= most {
        return Ok(());
    }
    let message = format!(
        "The run's variables, channels and outputs would have about {size} bytes; at most {most} are allowed \
         (`max_run_bytes`)."
    );
    Err(Fault::new(code::EXPRESSION_TOO_COSTLY, message)
        .with("bytes", size)
        .with("limit", most)
        .with("bound", "max_run_bytes"))
}

fn size_of(outputs: &Map<String, Value>) -> u64 {
    outputs.iter().map(|(name, value)| json::named_size(name, value)).fold(0, u64::saturating_add)
}

/// What stands around a value that expires: `{"value": …, "_ts": …}`.
const TIMED_BYTES: u64 = 28;

impl ChannelState {
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Single(value) => json::size(value),
            Self::List { entries, timed } => {
                let around = if *timed { TIMED_BYTES } else { 1 };
                entries.iter().map(|(_, value)| json::size(value) + around).sum::<u64>() + 2
            }
        }
    }
}

impl RunState {
    /// The bounds on this run's values; those of a run that began before there were any are the usual ones.
    pub(crate) fn bounds(&self) -> ValueBounds {
        self.start.as_ref().and_then(|start| start.event.private.values.as_deref().copied()).unwrap_or_default()
    }

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

    /// Judges everything that a finished visit of a node leaves behind.
    pub(crate) fn check_room(&self, node: usize, done: &Done, at: Timestamp) -> Result<(), Fault> {
        let bounds = self.bounds();
        let mut outputs = Copies::new("The node's outputs", bounds);
        for (name, value) in &done.outputs {
            let size = json::size(value);
            one(name, size, bounds)?;
            outputs.add(name, size)?;
        }
        let mut all = self.room_for(done.variables.iter().map(|(name, value)| (name.as_str(), value)))?;
        if let Some(write) = &done.write
            && let Ok(after) = self.written(write, at)
        {
            let size = after.size();
            // What was there before this bound may shrink, and does not stop a run that leaves it alone.
            let before = self.channels.get(&write.channel).map_or(0, ChannelState::size);
            if size > before {
                one(&write.channel, size, bounds)?;
                all = all.saturating_sub(before).saturating_add(size);
                together(all, bounds)?;
            }
        }
        let (before, after) = (size_of(&self.nodes[node].outputs), size_of(&done.outputs));
        if after > before {
            together(all.saturating_sub(before).saturating_add(after), bounds)?;
        }
        Ok(())
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
        let (before, after) = (size_of(&self.nodes[node].outputs), size_of(&outputs));
        self.note_size(before, after);
        self.nodes[node].outputs = outputs;
    }

    /// Notes that something of this size has taken the place of something of that size.
    pub(crate) fn note_size(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
    }

    /// Adds up what is there, when much has changed at once.
    pub(crate) fn count_bytes(&mut self) {
        let variables = size_of(&self.variables);
        let channels: u64 = self.channels.values().map(ChannelState::size).sum();
        let outputs: u64 = self.nodes.iter().map(|node| size_of(&node.outputs)).sum();
        self.bytes = variables.saturating_add(channels).saturating_add(outputs);
    }
}
