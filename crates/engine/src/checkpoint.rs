//! A run's state as bytes, and back: what a host keeps beside a log so that it need not fold all of it again. Never
//! authoritative. What a state is derived from (the plan) is not in it, nor what it only remembers for speed.
//!
//! The long lists of a state are named by their chunks, which are stored once each ([`crate::state::Chunk`]).
//!
//! **New state**: a field of [`RunState`] that is missing here does not compile. What is kept otherwise changes, and a test
//! asks for a new [`CHECKPOINT_FORMAT`] (`checkpoint_shape.rs`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use baton_model::event::{RunSettings, RunStarted};
use baton_model::{AgentRef, Cost, Decision, Digest, Fault, RunId, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::ChannelState;
use crate::expr::Meter;
use crate::node_request::ReadVersion;
use crate::orchestration::{Decided, WorkerBatch};
use crate::plan::Plan;
use crate::schema::SchemaCache;
use crate::state::{
    Child, Chunk, ChunkedList, EdgeState, Interrupt, ItemEnd, MapRun, NodeRun, Phase, Ready, RunState, Started, Writer,
};
use crate::transcript::Transcript;

/// The layout of a checkpoint. One of another layout is as good as none.
pub const CHECKPOINT_FORMAT: u32 = 2;

/// A state that can be written down.
pub struct Checkpoint {
    /// All but what is in the chunks.
    pub body: Vec<u8>,
    /// The chunks that the body names, in the order in which [`Checkpoint::restore`] asks for them.
    pub chunks: Vec<CheckpointChunk>,
}

/// Part of a long list. The same name always stands for the same bytes.
pub struct CheckpointChunk {
    pub name: Digest,
    part: Arc<dyn Part>,
}

impl CheckpointChunk {
    pub fn bytes(&self) -> Vec<u8> {
        self.part.bytes()
    }
}

trait Part: Send + Sync {
    fn bytes(&self) -> Vec<u8>;
}

impl<T: Serialize + Send + Sync> Part for Chunk<T> {
    fn bytes(&self) -> Vec<u8> {
        Self::bytes(self)
    }
}

/// Why there is no state in these bytes. Whoever reads it folds the log instead.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("it does not read back: {0}")]
    Json(#[from] serde_json::Error),
    #[error("part of it is missing or damaged")]
    Chunk,
    #[error("it is of another plan")]
    Plan,
}

/// The first record, whose private part is not written with it.
#[derive(Serialize)]
struct Beginning<'a> {
    at: Timestamp,
    event: &'a RunStarted,
    settings: &'a RunSettings,
}

#[derive(Deserialize)]
struct BeginningRead {
    at: Timestamp,
    event: RunStarted,
    settings: RunSettings,
}

#[derive(Serialize)]
struct List<'a, T> {
    full: Vec<&'a Digest>,
    open: &'a [T],
}

#[derive(Deserialize)]
struct ListRead<T> {
    full: Vec<Digest>,
    open: Vec<T>,
}

impl<'a, T: Serialize> List<'a, T> {
    fn of(list: &'a ChunkedList<T>) -> Self {
        Self { full: list.full().iter().map(|chunk| chunk.name()).collect(), open: list.open() }
    }
}

impl<T: DeserializeOwned> ListRead<T> {
    fn list(self, chunk: &mut impl FnMut(&Digest) -> Option<Vec<u8>>) -> Result<ChunkedList<T>, Unusable> {
        let read = self.full.iter().map(|name| Chunk::read(name, &chunk(name)?));
        let full = read.collect::<Option<Vec<_>>>().ok_or(Unusable::Chunk)?;
        ChunkedList::restore(full, self.open).ok_or(Unusable::Chunk)
    }
}

/// The lists of a map under way.
#[derive(Serialize)]
struct MapLists<'a> {
    node: usize,
    items: List<'a, Value>,
    ends: List<'a, Option<ItemEnd>>,
}

#[derive(Deserialize)]
struct MapListsRead {
    node: usize,
    items: ListRead<Value>,
    ends: ListRead<Option<ItemEnd>>,
}

fn maps(nodes: &[NodeRun]) -> impl Iterator<Item = (usize, &MapRun)> {
    nodes.iter().enumerate().filter_map(|(node, run)| Some((node, run.map.as_deref()?)))
}

/// Gives the maps their lists back: each its own.
fn put_back(
    nodes: &mut [NodeRun],
    lists: Vec<MapListsRead>,
    chunk: &mut impl FnMut(&Digest) -> Option<Vec<u8>>,
) -> Result<(), Unusable> {
    if !maps(nodes).map(|(node, _)| node).eq(lists.iter().map(|lists| lists.node)) {
        return Err(Unusable::Chunk);
    }
    for MapListsRead { node, items, ends } in lists {
        if let Some(map) = nodes.get_mut(node).and_then(|run| run.map.as_deref_mut()) {
            (map.items, map.ends) = (Arc::new(items.list(chunk)?), ends.list(chunk)?);
        }
    }
    Ok(())
}

macro_rules! kept {
    ($($field:ident: $type:ty,)*) => {
        #[derive(Serialize)]
        struct Kept<'a> {
            start: Option<Beginning<'a>>,
            /// In brackets, for it may be null.
            outputs: Option<[&'a Value; 1]>,
            children: List<'a, Child>,
            decisions: List<'a, Decision>,
            maps: Vec<MapLists<'a>>,
            nodes: &'a [NodeRun],
            $($field: &'a $type,)*
        }

        #[derive(Deserialize)]
        struct KeptRead {
            start: Option<BeginningRead>,
            outputs: Option<[Value; 1]>,
            children: ListRead<Child>,
            decisions: ListRead<Decision>,
            maps: Vec<MapListsRead>,
            nodes: Vec<NodeRun>,
            $($field: $type,)*
        }

        impl<'a> Kept<'a> {
            fn of(state: &'a RunState) -> Self {
                let RunState {
                    start,
                    outputs,
                    children,
                    decisions,
                    nodes,
                    // Compiled again from the definition.
                    plan: _,
                    // Follows from the children.
                    dispatched: _,
                    // Of the step under way only.
                    meter: _,
                    // Compiled again when they are needed.
                    schemas: _,
                    $($field,)*
                } = state;
                let beginning = |start: &'a Arc<Started>| {
                    let Started { at, event } = &**start;
                    Beginning { at: *at, event, settings: &event.private }
                };
                Self {
                    start: start.as_ref().map(beginning),
                    outputs: outputs.as_ref().map(|outputs| [outputs]),
                    children: List::of(children),
                    decisions: List::of(decisions),
                    maps: maps(nodes)
                        .map(|(node, map)| MapLists { node, items: List::of(&map.items), ends: List::of(&map.ends) })
                        .collect(),
                    nodes,
                    $($field,)*
                }
            }
        }

        impl KeptRead {
            fn state(
                self,
                plan: Arc<Plan>,
                mut chunk: impl FnMut(&Digest) -> Option<Vec<u8>>,
            ) -> Result<RunState, Unusable> {
                let Self { start, outputs, children, decisions, maps, mut nodes, $($field,)* } = self;
                let children = children.list(&mut chunk)?;
                let decisions = decisions.list(&mut chunk)?;
                put_back(&mut nodes, maps, &mut chunk)?;
                let exists = |(position, child): (usize, &Child)| child.dispatched.then_some(position);
                let beginning = |BeginningRead { at, event, settings }: BeginningRead| {
                    Arc::new(Started { at, event: RunStarted { private: settings, ..event } })
                };
                Ok(RunState {
                    start: start.map(beginning),
                    outputs: outputs.map(|[outputs]| outputs),
                    dispatched: children.iter().enumerate().filter_map(exists).collect(),
                    children,
                    decisions,
                    nodes,
                    plan,
                    meter: Meter::default(),
                    schemas: SchemaCache::default(),
                    $($field,)*
                })
            }
        }
    };
}

kept! {
    run: RunId,
    next_seq: u64,
    last_at: Timestamp,
    phase: Phase,
    edges: Vec<EdgeState>,
    ready: VecDeque<Ready>,
    active: BTreeSet<usize>,
    variables: Map<String, Value>,
    writers: BTreeMap<String, Writer>,
    read_version: ReadVersion,
    workspace: u64,
    channels: BTreeMap<String, ChannelState>,
    executions: u64,
    interrupts: BTreeMap<usize, Interrupt>,
    settled: BTreeSet<usize>,
    live: BTreeSet<usize>,
    turns: u64,
    decision: Option<Decided>,
    transcript: Transcript,
    reported: Option<u64>,
    agent: Option<String>,
    worker: Option<AgentRef>,
    cost: Option<Cost>,
    dispatches: u64,
    batch: Option<WorkerBatch>,
    error: Option<Fault>,
    cancelled_by_parent: bool,
    reserved: bool,
    bytes: u64,
}

impl Checkpoint {
    /// Writes a state down. Costs as much as what has changed since it was last written, and what is always written.
    pub fn of(state: &RunState) -> Self {
        // Like records, a state holds only what JSON can say; serialisation cannot fail.
        let body = serde_json::to_vec(&Kept::of(state)).unwrap_or_default();
        let mut chunks: Vec<CheckpointChunk> = Vec::new();
        chunks.extend(state.children.full().iter().map(part));
        chunks.extend(state.decisions.full().iter().map(part));
        for (_, map) in maps(&state.nodes) {
            chunks.extend(map.items.full().iter().map(part));
            chunks.extend(map.ends.full().iter().map(part));
        }
        Self { body, chunks }
    }

    /// Reads back what [`Checkpoint::of`] wrote, for the same plan. `chunk` finds the bytes of a chunk.
    pub fn restore(
        body: &[u8],
        plan: Arc<Plan>,
        chunk: impl FnMut(&Digest) -> Option<Vec<u8>>,
    ) -> Result<RunState, Unusable> {
        let kept: KeptRead = serde_json::from_slice(body)?;
        if (kept.nodes.len(), kept.edges.len()) != (plan.nodes.len(), plan.edges.len()) {
            return Err(Unusable::Plan);
        }
        kept.state(plan, chunk)
    }
}

fn part<T: Serialize + Send + Sync + 'static>(chunk: &Arc<Chunk<T>>) -> CheckpointChunk {
    CheckpointChunk { name: chunk.name().clone(), part: Arc::clone(chunk) as Arc<dyn Part> }
}

#[cfg(test)]
#[path = "checkpoint_shape.rs"]
mod shape;
