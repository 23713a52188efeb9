//! Whose words a value is. Only what the workflow itself says is told to models as it stands; everything else stands in a
//! fence that says where it is from. A value is as old as its last writer: the node that wrote a variable answers for what
//! it made of others' words, so that nothing is trusted because it was copied.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::{Decision, Entrance, InvocationSource, NodeId, Origins, Provenance};
use serde_json::{Map, Value};

use crate::plan::Kind;
use crate::plan::{Port, Work};
use crate::state::{RunState, Writer};

/// Runs that began under an earlier rule are told everything as it stands.
const SINCE: u32 = 4;

impl RunState {
    /// Whether this run's models are told whose words they read.
    pub(crate) fn fences(&self) -> bool {
        self.rule() >= SINCE
    }

    /// What the run was started with, by whom.
    pub(crate) fn given(&self) -> Provenance {
        let Some(started) = self.started() else { return Provenance::new(Entrance::Input) };
        match (&started.private.parent, &started.causation_host_id, started.private.source) {
            (Some(_), _, _) => Provenance::new(Entrance::Parent),
            (None, Some(host), _) => Provenance::of(Entrance::Remote, host),
            (None, None, Some(InvocationSource::ChatMention)) => Provenance::new(Entrance::Chat),
            (None, None, _) => Provenance::new(Entrance::Input),
        }
    }

    /// Who writes a variable in the name of this node.
    pub(crate) fn writer(&self, node: Option<&NodeId>) -> Writer {
        let Some(&node) = node.and_then(|node| self.plan.index.get(node)) else { return Writer::Hand };
        let asked = matches!(self.decisions.last(), Some(Decision::AskUser { .. }));
        match &self.plan.nodes[node].kind {
            Kind::Dispatch(_) if asked => Writer::Answer(node),
            _ => Writer::Node(node),
        }
    }

    /// What a node made.
    fn made_by(&self, node: usize) -> Provenance {
        let plan = &self.plan.nodes[node];
        let source = match &plan.kind {
            Kind::Agent(agent) => return Provenance::of(Entrance::Agent, &agent.agent_id),
            Kind::Supervisor(supervisor) => return Provenance::of(Entrance::Agent, &supervisor.agent_id),
            Kind::SubWorkflow(_) | Kind::Dispatch(_) => Entrance::Child,
            Kind::Memory(_) => Entrance::Memory,
            Kind::Workspace(_) => Entrance::Workspace,
            Kind::Http(_) => Entrance::Http,
            Kind::Tool(_) => Entrance::Tool,
            Kind::Map(map) => match &map.work {
                Work::Tool { .. } => Entrance::Tool,
                Work::Agent { agent_id, .. } => return Provenance::of(Entrance::Agent, agent_id),
                Work::Workflow { .. } => Entrance::Child,
            },
            Kind::ApprovalGate(_) | Kind::ClarificationGate(_) | Kind::Interrupt(_) => Entrance::Answer,
            Kind::StructuredOutput(_) => Entrance::Model,
            Kind::Pass
            | Kind::Identity
            | Kind::Merge
            | Kind::End
            | Kind::Delay(_)
            | Kind::Fail(_)
            | Kind::Conditional(_)
            | Kind::SetVariable(_)
            | Kind::GetVariable(_)
            | Kind::Loop(_)
            | Kind::ChannelWrite(_) => Entrance::Node,
            Kind::Test(test) => match test.makes() {
                (entrance, Some(agent)) => return Provenance::of(entrance, agent),
                (entrance, None) => entrance,
            },
        };
        Provenance::of(source, plan.id.as_str())
    }

    /// What a variable or a channel holds; none where it is still what the workflow says.
    fn held_by(&self, name: &str) -> Option<Provenance> {
        if self.channels.contains_key(name) {
            return Some(Provenance::of(Entrance::Channel, name));
        }
        match self.writers.get(name) {
            Some(Writer::Node(node)) => Some(self.made_by(*node)),
            Some(Writer::Answer(node)) => Some(Provenance::of(Entrance::Answer, self.plan.nodes[*node].id.as_str())),
            Some(Writer::Hand) => Some(Provenance::new(Entrance::Change)),
            None => {
                let declared = self.plan.definition.variables.iter().find(|variable| variable.name == name);
                let default = declared.and_then(|variable| variable.default_value.as_ref());
                (default.is_none() || self.variables.get(name) != default).then(|| self.given())
            }
        }
    }

    /// What a port brings; none where the workflow says it word for word.
    pub(crate) fn brought_by(&self, port: &Port) -> Option<Provenance> {
        match port {
            Port::Static(_) => None,
            Port::Connection { node, .. } => Some(self.made_by(*node)),
            Port::Variable { name, .. } => self.held_by(name),
            Port::Expression(expression) => Some(self.computed_from(expression.source())),
        }
    }

    /// What an expression makes is from everything that it names.
    fn computed_from(&self, source: &str) -> Provenance {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let words: BTreeSet<&str> = source.split(|c| !part(c)).collect();
        let named = |name: &str| match name.chars().all(part) {
            true => words.contains(name),
            false => source.contains(name),
        };
        let variables = self.variables.keys().chain(self.channels.keys()).filter(|name| named(name));
        let nodes = self.plan.index.iter().filter(|(id, _)| named(id.as_str()));
        let mut all: BTreeSet<Provenance> = variables.filter_map(|name| self.held_by(name)).collect();
        all.extend(nodes.map(|(_, node)| self.made_by(*node)));
        all.extend(words.contains("inputs").then(|| self.given()));
        let ledgers = [Entrance::Memory, Entrance::Workspace].into_iter();
        all.extend(ledgers.filter(|ledger| words.contains(ledger.as_str())).map(Provenance::new));
        match all.len() {
            0 => Provenance::new(Entrance::Expression),
            1 => all.into_iter().next().unwrap_or_else(|| Provenance::new(Entrance::Expression)),
            _ => {
                let sources: BTreeSet<&str> = all.iter().map(|origin| origin.source.as_str()).collect();
                let names: BTreeSet<&str> = all.iter().filter_map(|origin| origin.name.as_deref()).collect();
                let joined = |words: BTreeSet<&str>, by: &str| words.into_iter().collect::<Vec<_>>().join(by);
                let name = (!names.is_empty()).then(|| joined(names, ", "));
                Provenance { source: joined(sources, "+"), name }
            }
        }
    }

    /// Where the task of a node's agent and the variables are from; none for a run of an earlier rule.
    pub(crate) fn origins(&self, node: usize, task: &Value) -> Option<Box<Origins>> {
        if !self.fences() {
            return None;
        }
        let plan = &self.plan.nodes[node];
        let ports: BTreeMap<&str, &Port> = plan.inputs.iter().map(|(name, port)| (name.as_str(), port)).collect();
        let names = task.as_object().into_iter().flat_map(Map::keys);
        let task = names
            .filter_map(|name| {
                let origin = match ports.get(name.as_str()) {
                    Some(port) => self.brought_by(port)?,
                    None => self.given(),
                };
                Some((name.clone(), origin))
            })
            .collect();
        Some(Box::new(Origins { task, variables: self.origins_of(self.variables.keys()) }))
    }

    /// The same for variables and channels, by name.
    pub(crate) fn origins_of<'a>(&self, names: impl Iterator<Item = &'a String>) -> BTreeMap<String, Provenance> {
        names.filter_map(|name| Some((name.clone(), self.held_by(name)?))).collect()
    }
}
