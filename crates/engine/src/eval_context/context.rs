//! The view itself: the state, the node's own inputs, and what the step has written so far.

use std::collections::BTreeMap;

use baton_model::{NodeId, Timestamp, ValueBounds};
use serde_json::{Map, Value};

use super::turn_views::{Children, Memory, TranscriptView, Workspace};
use crate::channel::ChannelState;
use crate::expr::{Fields, Meter, Scope, Sequence, Val};
use crate::node_request::TurnContext;
use crate::state::RunState;
use crate::transcript::Transcript;

/// A node's view while it runs: the state, its own inputs, and what it has written so far in this very step.
pub(crate) struct EvalContext<'a> {
    pub(crate) state: &'a RunState,
    pub(crate) node: usize,
    pub(crate) visit: u32,
    pub(crate) attempt: u32,
    pub(crate) at: Timestamp,
    pub(crate) inputs: Map<String, Value>,
    /// A loop head whose body did not come back.
    pub(crate) broken: bool,
    pub(crate) written: BTreeMap<String, Value>,
    pub(crate) outputs: Option<Map<String, Value>>,
    /// For a supervisor: the turn it is in, and what a human wants changed.
    pub(crate) turn: Option<u64>,
    pub(crate) feedback: Option<Value>,
    pub(crate) turn_context: Option<&'a TurnContext>,
    /// What it is told of the turns before this one.
    pub(crate) transcript: Option<Transcript>,
    /// The item of a map that it is about.
    pub(crate) item: Option<ItemView<'a>>,
}

/// One item of a list, and what it is called besides `item`.
#[derive(Clone, Copy)]
pub(crate) struct ItemView<'a> {
    pub(crate) value: &'a Value,
    pub(crate) index: u32,
    pub(crate) name: Option<&'a str>,
}

impl<'a> EvalContext<'a> {
    pub(crate) fn new(
        state: &'a RunState,
        node: usize,
        visit: u32,
        attempt: u32,
        inputs: Map<String, Value>,
        broken: bool,
        at: Timestamp,
    ) -> Self {
        Self {
            state,
            node,
            visit,
            attempt,
            at,
            inputs,
            broken,
            written: BTreeMap::new(),
            outputs: None,
            turn: None,
            feedback: None,
            turn_context: None,
            transcript: None,
            item: None,
        }
    }
}

impl EvalContext<'_> {
    /// The workers so far, with or without what those that failed failed of.
    pub(crate) fn children(&self, errors: bool) -> Val<'_> {
        Val::sequence(Children { state: self.state, errors })
    }

    pub(crate) fn node_id(&self) -> &NodeId {
        &self.state.plan.nodes[self.node].id
    }

    /// The id of the n-th memory entry this visit writes.
    pub(crate) fn entry_id(&self, n: u32) -> String {
        baton_model::id::memory_id(&self.state.run, self.node_id(), self.visit, n)
    }
}

impl Scope for EvalContext<'_> {
    fn lookup<'a>(&'a self, name: &str) -> Option<Val<'a>> {
        Some(match name {
            "variables" => Val::view(Variables(self)),
            "inputs" => Val::view(Inputs(self)),
            "nodes" => Val::view(Outputs(self)),
            "iteration" => Val::Int(i64::try_from(self.turn?).unwrap_or(i64::MAX)),
            // Null until a human asks for something else, so that a rule can test for it.
            "feedback" => {
                self.turn?;
                self.feedback.as_ref().map_or(Val::Null, Val::from)
            }
            "children" => {
                self.turn?;
                self.children(self.state.rule() >= 4)
            }
            "transcript" => Val::sequence(TranscriptView(self.transcript.as_ref()?)),
            "memory" => Val::sequence(Memory(&self.turn_context?.memory)),
            "workspace" => Val::view(Workspace(self.turn_context?)),
            "index" => Val::Int(i64::from(self.item?.index)),
            name => Val::from(self.item.filter(|item| name == "item" || item.name == Some(name))?.value),
        })
    }

    fn meter(&self) -> &Meter {
        &self.state.meter
    }

    fn bounds(&self) -> ValueBounds {
        self.state.bounds()
    }
}

/// Names from several places, in order and once each.
fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// All variables, channels under their names, and what this step has written so far.
struct Variables<'a>(&'a EvalContext<'a>);

impl<'a> Variables<'a> {
    /// To a node that is not its reader, a channel does not exist.
    fn readable(&self, name: &str) -> bool {
        self.0.state.plan.may_read(self.0.node, name)
    }
}

impl<'a> Fields<'a> for Variables<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        let context = self.0;
        if let Some(value) = context.written.get(name) {
            return Some(Val::from(value));
        }
        let channel = context.state.channels.get(name).filter(|_| self.readable(name));
        channel.map(channel_value).or_else(|| context.state.variables.get(name).map(Val::from))
    }

    fn names(&self) -> Vec<&'a str> {
        let context = self.0;
        let variables = context.state.variables.keys().map(String::as_str);
        let channels = context.state.channels.keys().map(String::as_str).filter(|name| self.readable(name));
        sorted(variables.chain(channels).chain(context.written.keys().map(String::as_str)))
    }

    fn len(&self) -> usize {
        let state = self.0.state;
        let variable = |name: &str| state.variables.contains_key(name);
        let channel = |name: &str| state.channels.contains_key(name) && self.readable(name);
        let channels = state.channels.keys().filter(|name| !variable(name) && self.readable(name)).count();
        let written = self.0.written.keys().filter(|name| !variable(name) && !channel(name)).count();
        state.variables.len() + channels + written
    }

    fn most(&self) -> usize {
        self.0.state.variables.len() + self.0.state.channels.len() + self.0.written.len()
    }
}

fn channel_value(channel: &ChannelState) -> Val<'_> {
    match channel {
        ChannelState::Single(value) => Val::from(value),
        ChannelState::List { entries, timed } => Val::sequence(Appended { entries, timed: *timed }),
    }
}

/// A channel's entries; `{value, _ts}` each where they expire.
struct Appended<'a> {
    entries: &'a [(i64, Value)],
    timed: bool,
}

impl<'a> Sequence<'a> for Appended<'a> {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn get(&self, index: usize) -> Option<Val<'a>> {
        let entry = self.entries.get(index)?;
        Some(if self.timed { Val::view(Timed(entry)) } else { Val::from(&entry.1) })
    }
}

struct Timed<'a>(&'a (i64, Value));

impl<'a> Fields<'a> for Timed<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        match name {
            "value" => Some(Val::from(&self.0.1)),
            "_ts" => Some(Val::Int(self.0.0)),
            _ => None,
        }
    }

    fn names(&self) -> Vec<&'a str> {
        vec!["_ts", "value"]
    }

    fn len(&self) -> usize {
        2
    }

    fn most(&self) -> usize {
        2
    }
}

/// The run's inputs, with the node's own laid over them.
struct Inputs<'a>(&'a EvalContext<'a>);

impl<'a> Inputs<'a> {
    fn layers(&self) -> impl Iterator<Item = &'a Map<String, Value>> + use<'a> {
        let start = self.0.state.start.as_ref().map(|start| &start.event);
        let given = start.into_iter().flat_map(|start| [&start.private.hidden_inputs, &start.inputs]);
        std::iter::once(&self.0.inputs).chain(given)
    }
}

impl<'a> Fields<'a> for Inputs<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        self.layers().find_map(|layer| layer.get(name)).map(Val::from)
    }

    fn names(&self) -> Vec<&'a str> {
        sorted(self.layers().flat_map(|layer| layer.keys().map(String::as_str)))
    }

    fn len(&self) -> usize {
        let above = |depth: usize, name: &str| self.layers().take(depth).any(|layer| layer.contains_key(name));
        let own =
            |(depth, layer): (usize, &Map<String, Value>)| layer.keys().filter(|name| !above(depth, name)).count();
        self.layers().enumerate().map(own).sum()
    }

    fn most(&self) -> usize {
        self.layers().map(Map::len).sum()
    }
}

/// Outputs by node id; a node without any is not there.
struct Outputs<'a>(&'a EvalContext<'a>);

impl<'a> Outputs<'a> {
    fn of(&self, node: usize) -> Option<&'a Map<String, Value>> {
        let own = self.0.outputs.as_ref().filter(|_| node == self.0.node);
        own.or_else(|| self.0.state.nodes.get(node).map(|run| &run.outputs).filter(|outputs| !outputs.is_empty()))
    }
}

impl<'a> Fields<'a> for Outputs<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        let node = *self.0.state.plan.index.get(name)?;
        self.of(node).map(Val::object)
    }

    fn names(&self) -> Vec<&'a str> {
        let index = self.0.state.plan.index.iter();
        sorted(index.filter(|(_, node)| self.of(**node).is_some()).map(|(id, _)| id.as_str()))
    }

    fn len(&self) -> usize {
        self.0.state.plan.index.values().filter(|node| self.of(**node).is_some()).count()
    }

    fn most(&self) -> usize {
        self.0.state.plan.index.len()
    }
}
