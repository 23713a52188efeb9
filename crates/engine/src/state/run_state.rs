//! The state itself, and what follows from it alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use baton_model::event::{Ending, RunStarted};
use baton_model::{
    AgentRef, Cost, Decision, Fault, NodeId, NodeStatus, RunId, RunStatus, TenantId, Timestamp, Versions,
};
use serde_json::{Map, Value};

use super::chunked::ChunkedList;
use super::node_run::{EdgeState, NodeRun, Ready, Verdict};
use super::parts::{Child, Interrupt, Phase, Started, Writer};
use crate::channel::ChannelState;
use crate::expr::Meter;
use crate::node_request::ReadVersion;
use crate::orchestration::{Decided, WorkerBatch};
use crate::plan::Plan;
use crate::schema::SchemaCache;
use crate::transcript::Transcript;

#[derive(Clone, Debug)]
pub struct RunState {
    pub run: RunId,
    pub(crate) plan: Arc<Plan>,
    pub(crate) next_seq: u64,
    pub(crate) last_at: Timestamp,
    pub(crate) start: Option<Arc<Started>>,
    pub(crate) phase: Phase,
    pub(crate) nodes: Vec<NodeRun>,
    pub(crate) edges: Vec<EdgeState>,
    pub(crate) ready: VecDeque<Ready>,
    /// Started and not settled.
    pub(crate) active: BTreeSet<usize>,
    pub(crate) variables: Map<String, Value>,
    /// Who wrote a variable last, where somebody has.
    pub(crate) writers: BTreeMap<String, Writer>,
    /// What the run sees of its memory scope.
    pub(crate) read_version: ReadVersion,
    /// The version of the workspace the run sees.
    pub(crate) workspace: u64,
    pub(crate) channels: BTreeMap<String, ChannelState>,
    pub(crate) executions: u64,
    /// Open questions, by node.
    pub(crate) interrupts: BTreeMap<usize, Interrupt>,
    /// Nodes that have asked something before, and it was answered or closed otherwise.
    pub(crate) settled: BTreeSet<usize>,
    /// Every child this run ever planned, in order.
    pub(crate) children: ChunkedList<Child>,
    /// Those that are known to exist, in the same order.
    pub(crate) dispatched: Vec<usize>,
    /// Those that have not ended, so that a long life does not make each step longer.
    pub(crate) live: BTreeSet<usize>,
    /// Turns taken: decisions on the log.
    pub(crate) turns: u64,
    pub(crate) decision: Option<Decided>,
    /// Every decision so far, in order of their turns.
    pub(crate) decisions: ChunkedList<Decision>,
    /// What the newest turn was told of those before it.
    pub(crate) transcript: Transcript,
    /// Where the dispatch last said what came of a decision.
    pub(crate) reported: Option<u64>,
    pub(crate) agent: Option<String>,
    /// The agent that works, or worked last.
    pub(crate) worker: Option<AgentRef>,
    /// What models have used up.
    pub(crate) cost: Option<Cost>,
    /// Dispatch executions.
    pub(crate) dispatches: u64,
    /// The workers under way.
    pub(crate) batch: Option<WorkerBatch>,
    pub(crate) error: Option<Fault>,
    pub(crate) outputs: Option<Value>,
    pub(crate) cancelled_by_parent: bool,
    /// The tree's budget is on the log.
    pub(crate) reserved: bool,
    /// About how large variables and channels are together.
    pub(crate) bytes: u64,
    /// What the expressions of the step under way have used.
    pub(crate) meter: Meter,
    /// Schemas that its agents bring with them.
    pub(crate) schemas: SchemaCache,
}

impl RunState {
    /// A run before its first record.
    pub fn new(run: RunId, plan: Arc<Plan>) -> Self {
        Self {
            run,
            nodes: vec![NodeRun::default(); plan.nodes.len()],
            edges: vec![EdgeState::default(); plan.edges.len()],
            plan,
            next_seq: 0,
            last_at: Timestamp::default(),
            start: None,
            phase: Phase::New,
            ready: VecDeque::new(),
            active: BTreeSet::new(),
            variables: Map::new(),
            writers: BTreeMap::new(),
            read_version: ReadVersion::default(),
            workspace: 0,
            channels: BTreeMap::new(),
            executions: 0,
            interrupts: BTreeMap::new(),
            settled: BTreeSet::new(),
            children: ChunkedList::default(),
            dispatched: Vec::new(),
            live: BTreeSet::new(),
            turns: 0,
            decision: None,
            decisions: ChunkedList::default(),
            transcript: Transcript::default(),
            reported: None,
            agent: None,
            worker: None,
            cost: None,
            dispatches: 0,
            batch: None,
            error: None,
            outputs: None,
            cancelled_by_parent: false,
            reserved: false,
            bytes: 0,
            meter: Meter::default(),
            schemas: SchemaCache::default(),
        }
    }

    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The log's clock never runs backwards, whatever the machine's does.
    pub fn not_before(&self, at: Timestamp) -> Timestamp {
        at.max(self.last_at)
    }

    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub fn status(&self) -> RunStatus {
        match &self.phase {
            Phase::New => RunStatus::Pending,
            Phase::Ended { status, .. } => *status,
            Phase::Paused { .. } => RunStatus::Paused,
            Phase::Ending(Ending::Cancelled(_)) => RunStatus::Cancelling,
            Phase::Active | Phase::Ending(_) => self.waiting().unwrap_or(RunStatus::Running),
        }
    }

    /// A question is what a client must see first, so one open question makes the run waiting even while another
    /// branch still works.
    fn waiting(&self) -> Option<RunStatus> {
        let own = self.interrupts.values().min_by_key(|interrupt| interrupt.requested_at);
        own.map(Interrupt::waiting_status)
            .or_else(|| self.live_children().find(|child| child.status.is_waiting()).map(|child| child.status))
    }

    /// The node to look at: the one that waits, else the one that works.
    pub fn current_node(&self) -> Option<&NodeId> {
        let waiting = self.interrupts.iter().min_by_key(|(_, i)| i.requested_at).map(|(node, _)| *node);
        let mirrored = || self.live_children().find(|child| child.status.is_waiting()).map(|child| child.node);
        waiting.or_else(mirrored).or_else(|| self.active.first().copied()).map(|node| &self.plan.nodes[node].id)
    }

    pub fn interrupt_at(&self, node: &NodeId) -> Option<&Interrupt> {
        self.interrupts.get(self.plan.index.get(node)?)
    }

    pub fn interrupts(&self) -> impl Iterator<Item = &Interrupt> {
        self.interrupts.values()
    }

    pub fn started_at(&self) -> Option<Timestamp> {
        self.start.as_ref().map(|start| start.at)
    }

    pub fn tenant(&self) -> Option<&TenantId> {
        self.start.as_ref().map(|start| start.event.tenant())
    }

    pub fn started(&self) -> Option<&RunStarted> {
        self.start.as_ref().map(|start| &start.event)
    }

    pub fn error(&self) -> Option<&Fault> {
        self.error.as_ref()
    }

    pub fn variables(&self) -> &Map<String, Value> {
        &self.variables
    }

    /// Something can run right now, without the world saying anything.
    pub fn has_ready_work(&self) -> bool {
        match &self.phase {
            Phase::New | Phase::Paused { .. } | Phase::Ended { .. } => false,
            Phase::Ending(_) => true,
            Phase::Active => {
                self.next_ready().is_some()
                    || self.active.is_empty()
                    || self.batch_can_go_on()
                    || self.refining().is_some()
                    || self.replied().is_some()
                    || self.returned().is_some()
                    || self.unknown_call().is_some()
                    || self.maps_can_go_on()
            }
        }
    }

    /// The workers under way wait for nobody: there is something to begin, harvest or report.
    fn batch_can_go_on(&self) -> bool {
        self.batch
            .as_ref()
            .is_some_and(|batch| !self.has_live_child(batch.node) && !self.interrupts.contains_key(&batch.node))
    }

    /// What runs next. A loop does not go round while something its body started is still under way: resetting a node
    /// that waits for an answer or a child would forget both.
    pub(crate) fn next_ready(&self) -> Option<Ready> {
        let busy = |node: &usize| self.active.contains(node) || self.ready.iter().any(|ready| ready.node == *node);
        let free = |ready: &&Ready| match (ready.verdict, &self.plan.nodes[ready.node].loop_) {
            (Verdict::Run | Verdict::Again { .. }, Some(shape)) => !shape.body.iter().any(busy),
            (Verdict::Skip, _) | (_, None) => true,
        };
        self.ready.iter().find(free).copied()
    }

    /// A variable, or a channel's folded state under the same name.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        self.variables.get(name).cloned().or_else(|| self.channels.get(name).map(ChannelState::value))
    }

    /// The same, on behalf of a node: a channel shows itself to its readers only.
    pub(crate) fn value_for(&self, node: usize, name: &str) -> Result<Option<Value>, Fault> {
        self.plan.check_read(node, name)?;
        Ok(self.value(name))
    }

    /// The supervisor that a human sent back to decide again.
    pub(crate) fn refining(&self) -> Option<usize> {
        self.active.iter().copied().find(|&node| self.nodes[node].refine.is_some())
    }

    /// The node whose model has answered, and which has not said yet what becomes of it.
    pub(crate) fn replied(&self) -> Option<usize> {
        let judged = |run: &NodeRun| run.reply.is_some() && run.is_running();
        self.active.iter().copied().find(|&node| judged(&self.nodes[node]))
    }

    /// A node is at work. A turn that is to be taken again has not begun, so a drain does not wait for it.
    pub(crate) fn is_busy(&self) -> bool {
        // Between two items nobody is at work, so a map may be stopped there.
        let rests = |run: &NodeRun| run.map.as_deref().is_some_and(|map| !map.is_busy() && !map.is_over());
        let works = |run: &NodeRun| run.status() == NodeStatus::Running && run.refine.is_none() && !rests(run);
        self.active.iter().any(|&node| works(&self.nodes[node]))
    }

    /// What an ordinary node of this run sees right now.
    pub fn read_version(&self) -> ReadVersion {
        self.read_version
    }

    /// The versions of memory and workspace the run looks at: those of its start or of its latest turn.
    pub fn seen(&self) -> Versions {
        Versions { memory: self.read_version.version, workspace: self.workspace }
    }
}
