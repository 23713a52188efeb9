//! A workflow that can run: indices instead of names, expressions parsed, configuration typed, loops found.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::workflow::{Access, Definition, TriggerRule};
use baton_model::{
    AgentPin, BudgetPolicy, Digest, Fault, GateRoute, ModelChoice, ModelClass, ModelNeeds, ModelPins, NodeId,
    WorkflowId,
};
use serde_json::{Map, Value};

use super::access::{access_denied, left_out};
use super::condition::Condition;
use super::graph::LoopShape;
use super::node_config::{Kind, NamedAgent};
use super::ports::Port;
use crate::schema::Schema;

/// A workflow that can run.
#[derive(Debug)]
pub struct Plan {
    pub(crate) definition: Definition,
    pub(super) digest: Digest,
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) edges: Vec<PlanEdge>,
    pub(crate) index: BTreeMap<NodeId, usize>,
    /// Nodes that start with the run, in definition order.
    pub(crate) entries: Vec<usize>,
    pub(super) configurable: Option<Schema>,
    /// Variables and channels whose values are never shown.
    pub(crate) sensitive: BTreeSet<String>,
}

impl Plan {
    /// About how much memory it takes, in nodes, edges and what they are made of.
    pub fn weight(&self) -> u64 {
        let parts = self.nodes.iter().map(|node| 1 + node.inputs.len() + node.outgoing.len());
        parts.sum::<usize>() as u64 + 1
    }
}

#[derive(Debug)]
pub(crate) struct PlanNode {
    pub(crate) id: NodeId,
    pub(crate) type_id: String,
    pub(crate) kind: Kind,
    pub(crate) inputs: Vec<(String, Port)>,
    /// Edges into the node, except those that close a loop.
    pub(crate) incoming: Vec<usize>,
    pub(crate) outgoing: Vec<usize>,
    pub(crate) max_retries: u32,
    pub(crate) retry_delay_ms: u64,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) disabled: bool,
    pub(crate) primary: bool,
    /// Ports and outputs that carry a sensitive value under a name of their own.
    pub(crate) hidden: BTreeSet<String>,
    /// It hands something sensitive to an agent or a server, so nothing that either says is shown.
    pub(crate) sensitive: bool,
    /// For a loop head: what its rounds repeat.
    pub(crate) loop_: Option<LoopShape>,
    /// A supervisor's dispatch, and a dispatch's supervisor: each one's end starts the other.
    pub(crate) partner: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct PlanEdge {
    pub(crate) source: usize,
    pub(crate) target: usize,
    pub(crate) output: String,
    pub(crate) condition: Option<Condition>,
    pub(crate) rule: TriggerRule,
    /// Closes a loop: does not gate its target the first time.
    pub(crate) back: bool,
    /// Drawn between a supervisor and its dispatch; the pairing itself is what counts.
    pub(crate) pair: bool,
}

impl Plan {
    pub fn id(&self) -> &WorkflowId {
        &self.definition.id
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether runs of it may have children.
    pub fn has_children(&self) -> bool {
        self.nodes.iter().any(|node| node.kind.has_children())
    }

    /// Checks `configurable` against the workflow's own schema, if it has one.
    pub fn check_configurable(&self, configurable: &Map<String, Value>) -> Result<(), (String, String)> {
        match &self.configurable {
            Some(schema) => schema.check(&Value::Object(configurable.clone())),
            None => Ok(()),
        }
    }

    pub fn has_configurable_schema(&self) -> bool {
        self.configurable.is_some()
    }

    /// The live agents it names, each with the node that does.
    pub fn agents(&self) -> impl Iterator<Item = (&str, NamedAgent<'_>)> {
        self.nodes.iter().filter_map(|node| Some((node.id.as_str(), node.kind.live_agent()?)))
    }

    /// The nodes that ask a model by themselves, each with the class of model that stands in where nothing else is said.
    pub fn model_nodes(&self) -> impl Iterator<Item = (&str, ModelClass)> {
        let own = |node: &&PlanNode| node.kind.live_agent().is_none();
        self.nodes.iter().filter(own).filter_map(|node| Some((node.id.as_str(), node.kind.model_preference()?.class)))
    }

    /// The model that a node wants to ask: what the node says, else the run, else the host.
    pub fn model_choice(
        &self,
        node: &str,
        configurable: &Map<String, Value>,
        pinned: Option<&ModelChoice>,
    ) -> Option<ModelChoice> {
        let node = *self.index.get(&NodeId::new(node))?;
        self.nodes[node].kind.model_preference()?.choice(configurable, pinned)
    }

    /// What a node needs of its model.
    pub fn model_needs(&self, node: &str) -> Option<&ModelNeeds> {
        let node = *self.index.get(&NodeId::new(node))?;
        self.nodes[node]
            .kind
            .model_preference()
            .map(|preference| &preference.needs)
            .filter(|needs| !needs.required.is_empty())
    }

    /// The models that its nodes ask, by themselves or as agents.
    pub fn models(
        &self,
        configurable: &Map<String, Value>,
        agents: &BTreeMap<String, AgentPin>,
        pins: &ModelPins,
    ) -> impl Iterator<Item = ModelChoice> {
        self.nodes.iter().filter_map(|node| {
            let preference = node.kind.model_preference()?;
            let pinned = match node.kind.live_agent() {
                Some(agent) => agent.pin(agents).and_then(|pin| pin.model.as_ref()),
                None => pins.classes.get(&preference.class),
            };
            let wanted = preference.choice(configurable, pinned)?;
            Some(match preference.needs.route(&wanted, |model| pins.offered(model)) {
                GateRoute::Substitute { fallback, .. } => fallback,
                GateRoute::Dispatch | GateRoute::Refuse { .. } => wanted,
            })
        })
    }

    /// What its author lets a run of it, and the runs below, spend.
    pub fn budget(&self) -> Option<BudgetPolicy> {
        // It was read when the plan was compiled.
        self.definition.budget().and_then(|budget| BudgetPolicy::read(budget).ok())
    }

    pub(crate) fn is_sensitive(&self, name: &str) -> bool {
        self.sensitive.contains(name)
    }

    /// Whether this node says of itself that doing it twice may come out differently.
    pub(crate) fn is_nondeterministic(&self, node: &NodeId) -> bool {
        let config = self.index.get(node).map(|&node| &self.definition.nodes[node].config);
        config.and_then(|config| config.get("nondeterministic")) == Some(&Value::Bool(true))
    }

    /// Whether somebody takes over when this node fails.
    pub(crate) fn failure_is_handled(&self, node: usize) -> bool {
        self.nodes[node]
            .outgoing
            .iter()
            .any(|&edge| matches!(self.edges[edge].rule, TriggerRule::AnyFailed | TriggerRule::AllComplete))
    }

    /// Whether a node may read this name, as far as channels go.
    pub(crate) fn may_read(&self, node: usize, channel: &str) -> bool {
        let reader = &self.nodes[node];
        left_out(self.readers(channel), reader.id.as_str(), &reader.type_id).is_none()
    }

    fn readers(&self, channel: &str) -> Option<&Vec<String>> {
        match self.definition.channels.get(channel).and_then(|channel| channel.access.as_ref()) {
            Some(Access::Listed { readers, .. }) => readers.as_ref(),
            Some(Access::Named(_)) | None => None,
        }
    }

    /// Refuses a node that reads a channel it is not a reader of.
    pub(crate) fn check_read(&self, node: usize, channel: &str) -> Result<(), Fault> {
        let reader = &self.nodes[node];
        match left_out(self.readers(channel), reader.id.as_str(), &reader.type_id) {
            None => Ok(()),
            Some(allowed) => Err(access_denied(channel, reader.id.as_str(), "read", allowed)),
        }
    }
}
