//! Node types, one file each. A node is pure: given its resolved inputs and the run's state it says how its visit
//! goes on. Whatever takes time or touches the world comes back as an [`Outcome`] that the engine records first.

mod agent;
mod approval_gate;
mod catalog;
mod channel_write;
mod child;
mod clarification_gate;
mod conditional;
mod config;
mod delay;
mod dispatch;
mod fail;
mod http;
mod interrupt;
mod loop_head;
mod memory;
mod mock_agent;
mod model_wish;
mod probe;
mod stream_text;
mod structured_output;
mod supervisor;
mod variables;
mod workspace;

pub(crate) use agent::AgentOptions;
pub use agent::NamedAgent;
pub(crate) use approval_gate::{ApprovalGate, Rejection};
pub use catalog::node_types;
pub(crate) use channel_write::{ChannelWrite, Writing};
pub(crate) use child::{OnFailure, SubWorkflow};
pub(crate) use clarification_gate::{ClarificationGate, read_answers};
pub(crate) use dispatch::{Dispatch, FanOutPolicy, OnWorkerFailure};
pub(crate) use interrupt::{Ask, GenericInterrupt, LowConfidence};
pub(crate) use loop_head::Loop;
pub(crate) use memory::wrong_answer;
pub(crate) use mock_agent::MockAgent;
pub(crate) use model_wish::ModelWish;
pub(crate) use stream_text::{Chunks, StreamText, chunks};
pub(crate) use structured_output::StructuredOutput;
pub(crate) use supervisor::{Supervisor, decision_schema, read_agent_decision};

use baton_model::event::ChildPlan;
use baton_model::workflow::{Definition, Node};
use baton_model::{Fault, SemanticRequest, ToolUse, code};
use serde_json::{Map, Value};

use crate::eval_context::EvalContext;
use crate::expr::Strictness;
use crate::node_request::{Found, Probe, Request};
use crate::plan::{Origin, Port, Problem};

/// A node type with its configuration read.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Completes at once: `core.noop`, `core.start`, `core.parallel`.
    Pass,
    /// Hands its inputs on and shows them as variables.
    Identity,
    /// Hands its inputs on: `core.merge`.
    Merge,
    /// Like merge; what it receives is the run's result.
    End,
    Delay(delay::Delay),
    Fail(fail::Fail),
    Conditional(conditional::Conditional),
    SetVariable(variables::SetVariable),
    GetVariable(variables::GetVariable),
    Loop(Loop),
    ChannelWrite(ChannelWrite),
    ApprovalGate(ApprovalGate),
    ClarificationGate(ClarificationGate),
    Interrupt(GenericInterrupt),
    SubWorkflow(SubWorkflow),
    Supervisor(Supervisor),
    Dispatch(Dispatch),
    StreamText(StreamText),
    StructuredOutput(StructuredOutput),
    Memory(memory::Memory),
    Workspace(workspace::Workspace),
    Probe(Probe),
    Agent(agent::Agent),
    Http(http::Http),
    MockAgent(MockAgent),
    /// Needs a runtime capability that no host provides: refused before it starts.
    Missing {
        capability: String,
    },
}

/// How a visit goes on.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Done),
    Failed(Fault),
    /// Completes by itself after this long.
    Sleep {
        ms: u64,
    },
    /// Waits for an answer.
    Ask(Ask),
    /// Starts a child run and waits for its end.
    Child(ChildPlan),
    /// Asks a model and waits for its answer.
    Call(Box<SemanticRequest>),
    /// Calls a tool and waits for what comes of it.
    Effect(Box<ToolUse>),
    /// Emits chunks, then completes.
    Stream(Chunks),
}

/// A finished visit.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) outputs: Map<String, Value>,
    pub(crate) variables: Vec<(String, Value)>,
    pub(crate) write: Option<channel_write::Writing>,
    /// The output port taken. Edges that name another port of this node's kind stay closed.
    pub(crate) port: Option<&'static str>,
    /// A loop head going round again.
    pub(crate) again: bool,
    /// How far the child this node waited for had written the memory they share.
    pub(crate) child_memory: Option<u64>,
}

impl Done {
    pub(crate) fn with(outputs: Map<String, Value>) -> Self {
        Self { outputs, ..Self::default() }
    }
}

impl Kind {
    pub(crate) fn compile(
        node: &Node,
        definition: &Definition,
        place: &str,
        test_types: bool,
        live_agents: bool,
        strictness: Strictness,
    ) -> Result<Self, Vec<Problem>> {
        let config = config::Config::new(node, place, strictness);
        let kind = Self::read(&config, node, definition, place, test_types, live_agents)?;
        match kind.fills() {
            Some((_, name)) if definition.channels.contains_key(name) && kind.live_agent().is_some() => Err(config
                .problem("", format!("An agent's answer becomes the variable `{name}`, which is a channel here."))),
            Some((_, name)) if definition.channels.contains_key(name) => {
                Err(config.problem("into", format!("`{name}` is a channel; write it with core.channelWrite.")))
            }
            _ => Ok(kind),
        }
    }

    fn read(
        config: &config::Config<'_>,
        node: &Node,
        definition: &Definition,
        place: &str,
        test_types: bool,
        live_agents: bool,
    ) -> Result<Self, Vec<Problem>> {
        let unknown = |unknown: &str| {
            let message = format!("There is no node type `{unknown}` on this host.");
            Err(vec![Problem::at(format!("{place}/typeId"), message)])
        };
        if !catalog::knows(&node.type_id, test_types) {
            return unknown(&node.type_id);
        }
        Ok(match node.type_id.as_str() {
            "core.noop" | "core.start" | "core.parallel" => Self::Pass,
            "core.identity" => {
                if test_types && config.get("memoryAction").is_some() {
                    return Ok(Self::Probe(probe::compile(config)?));
                }
                if let Some(key) = config.map.keys().find(|key| *key != "nondeterministic") {
                    return Err(config.problem(key, format!("core.identity has no setting `{key}`.")));
                }
                Self::Identity
            }
            "core.merge" => Self::Merge,
            "core.end" => Self::End,
            "core.delay" => Self::Delay(delay::Delay::compile(config)?),
            "core.conformance.hold" if test_types => Self::Delay(delay::Delay::compile(config)?),
            "core.fail" => Self::Fail(fail::Fail::compile(config)?),
            "core.conditional" => Self::Conditional(conditional::Conditional::compile(config)?),
            "core.setVariable" => Self::SetVariable(variables::SetVariable::compile(config, definition)?),
            "core.getVariable" => Self::GetVariable(variables::GetVariable::compile(config)?),
            "core.loop" => Self::Loop(Loop::compile(config)?),
            "core.channelWrite" => Self::ChannelWrite(ChannelWrite::compile(config, node, definition)?),
            "core.approvalGate" => Self::ApprovalGate(ApprovalGate::compile(config, node)?),
            "core.clarificationGate" => Self::ClarificationGate(ClarificationGate::compile(config)?),
            "core.interrupt" => Self::Interrupt(GenericInterrupt::compile(config, node)?),
            "core.subWorkflow" => Self::SubWorkflow(SubWorkflow::compile(config)?),
            "core.orchestrator.supervisor" => {
                Self::Supervisor(Supervisor::compile(config, node, definition, test_types, live_agents)?)
            }
            "core.dispatch" => Self::Dispatch(Dispatch::compile(config)?),
            "vendor.baton.memory.put" => Self::Memory(memory::Memory::put(config)?),
            "vendor.baton.memory.get" => Self::Memory(memory::Memory::get(config)?),
            "vendor.baton.memory.list" => Self::Memory(memory::Memory::list(config)?),
            "vendor.baton.memory.delete" => Self::Memory(memory::Memory::delete(config)?),
            "vendor.baton.workspace.put" => Self::Workspace(workspace::Workspace::put(config)?),
            "vendor.baton.workspace.get" => Self::Workspace(workspace::Workspace::get(config)?),
            "vendor.baton.workspace.list" => Self::Workspace(workspace::Workspace::list(config)?),
            "vendor.baton.agent" | "core.agents.run" => Self::Agent(agent::Agent::compile(config, node)?),
            "vendor.baton.http" => Self::Http(http::Http::compile(config)?),
            "core.ai.structuredOutput" => {
                Self::StructuredOutput(StructuredOutput::compile(config, node, test_types, live_agents)?)
            }
            "conformance.modelCapability.insufficient" if test_types => {
                Self::StructuredOutput(StructuredOutput::unattainable(config)?)
            }
            "core.ai.callPrompt" if test_types => {
                if config.get("mcp").is_some() {
                    return Err(config
                        .problem("mcp", "Tools are called by agents here; give one the tool in its `toolAllowlist`."));
                }
                Self::StreamText(StreamText)
            }
            "conformance.effect.emit" | "core.conformance.side-effect" if test_types => {
                Self::Http(http::Http::effect(config)?)
            }
            "core.conformance.mock-agent" if test_types => Self::MockAgent(MockAgent::compile(config, node)?),
            "conformance.requiresMissing" if test_types => {
                Self::Missing { capability: "conformance.never-provided".to_owned() }
            }
            other => return unknown(other),
        })
    }

    /// The output that also goes to a variable, and that variable.
    pub(crate) fn fills(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Memory(memory) => memory.fills(),
            Self::Workspace(workspace) => workspace.fills(),
            Self::Http(http) => http.fills(),
            Self::Agent(_) => Some(("result", "result")),
            _ => None,
        }
    }

    /// Whether an edge leaving through `output` is open once the node took `port`. Nodes with named ports close the
    /// ones they did not take; every other output name is open. `routed` says that some edge names `port` itself.
    pub(crate) fn port_open(&self, output: &str, port: Option<&str>, routed: bool) -> bool {
        match self {
            Self::Conditional(_) if ["true", "false"].contains(&output) => port == Some(output),
            Self::ApprovalGate(_) | Self::Interrupt(GenericInterrupt::Approval(_)) => match output {
                "accept" | "reject" | "refine" | "edit-accept" => port == Some(output),
                // The plain way out is the way of consent, unless nobody drew another one.
                _ => matches!(port, Some("accept" | "edit-accept")) || !routed,
            },
            // A loop leaves either into its body or through everything else.
            Self::Loop(_) => (output == "body") == (port == Some("body")),
            _ => true,
        }
    }

    /// Variables and channels this node writes, each with where the value comes from.
    pub(crate) fn stores<'a>(&'a self, inputs: &'a [(String, Port)]) -> Vec<(&'a str, Origin<'a>)> {
        match self {
            Self::Identity => inputs.iter().map(|(name, _)| (name.as_str(), Origin::Port(name))).collect(),
            Self::SetVariable(set) => set.stores(),
            Self::ChannelWrite(write) => write.stores().into_iter().collect(),
            Self::Loop(head) => head.stores().into_iter().collect(),
            // What a model makes of a secret may repeat it, and so may whoever is sent one.
            Self::Agent(_) => inputs.iter().map(|(name, _)| ("result", Origin::Port(name))).collect(),
            Self::Http(http) => http.stores(),
            _ => Vec::new(),
        }
    }

    /// The live agent that works here.
    pub(crate) fn live_agent(&self) -> Option<NamedAgent<'_>> {
        let (id, version) = match self {
            Self::Agent(agent) => (&agent.agent_id, &agent.version),
            Self::Supervisor(supervisor) if supervisor.is_agent() => (&supervisor.agent_id, &supervisor.version),
            _ => return None,
        };
        Some(NamedAgent { id, version: version.as_deref() })
    }

    /// How that agent is asked.
    pub(crate) fn manner(&self) -> Option<&AgentOptions> {
        match self {
            Self::Agent(agent) => Some(&agent.manner),
            Self::Supervisor(supervisor) => Some(&supervisor.manner),
            _ => None,
        }
    }

    /// The model it wants to ask, where it asks one.
    pub(crate) fn wish(&self) -> Option<&ModelWish> {
        match self {
            Self::StructuredOutput(call) => Some(call.wish()),
            kind => kind.live_agent().and(kind.manner()).map(|manner| &manner.wish),
        }
    }

    /// Whether the shell has to be asked before a visit can start.
    pub(crate) fn consults(&self) -> bool {
        matches!(self, Self::Supervisor(_) | Self::Memory(_) | Self::Workspace(_) | Self::Probe(_) | Self::Agent(_))
    }

    /// Whether another attempt may mend a failure. What asks first fails only for good reasons; agents have bad days.
    pub(crate) fn retries(&self) -> bool {
        match self {
            Self::Supervisor(supervisor) => supervisor.is_agent(),
            Self::Agent(_) => true,
            kind => !kind.consults(),
        }
    }

    /// What a memory or workspace node asks the shell.
    pub(crate) fn request(&self, scene: &EvalContext<'_>) -> Result<Request, Fault> {
        match self {
            Self::Memory(memory) => memory.request(scene),
            Self::Workspace(workspace) => workspace.request(scene),
            Self::Probe(probe) => Ok(Request::Probe(probe.clone())),
            _ => Err(memory::wrong_answer()),
        }
    }

    /// What such a node makes of the answer.
    pub(crate) fn finish(&self, found: Found, scene: &EvalContext<'_>) -> Result<Done, Fault> {
        match self {
            Self::Memory(memory) => memory.finish(found, scene),
            Self::Workspace(workspace) => workspace.finish(found),
            Self::Probe(_) => probe::finish(found),
            _ => Err(memory::wrong_answer()),
        }
    }

    /// Runs a visit's first step.
    pub(crate) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        match self {
            Self::Pass => Outcome::Done(Done::default()),
            Self::Merge | Self::End => Outcome::Done(Done::with(scene.inputs.clone())),
            Self::Identity => Outcome::Done(Done {
                outputs: scene.inputs.clone(),
                variables: scene.inputs.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
                ..Done::default()
            }),
            Self::Delay(delay) => delay.run(scene),
            Self::Fail(fail) => fail.run(),
            Self::Conditional(conditional) => conditional.run(scene),
            Self::SetVariable(set) => set.run(scene),
            Self::GetVariable(get) => get.run(scene),
            Self::Loop(head) => head.run(scene),
            Self::ChannelWrite(write) => write.run(scene),
            Self::ApprovalGate(gate) => gate.run(scene),
            Self::ClarificationGate(gate) => gate.run(scene),
            Self::Interrupt(interrupt) => interrupt.run(scene),
            Self::SubWorkflow(call) => call.run(scene),
            // These are state machines of their own: see `decide::turn`, `decide::wave` and `decide::mock_agent`.
            Self::Supervisor(_) | Self::Dispatch(_) | Self::MockAgent(_) => Outcome::Done(Done::default()),
            // These have asked before they start: see `decide::consult`.
            Self::Memory(_) | Self::Workspace(_) | Self::Probe(_) | Self::Agent(_) => Outcome::Done(Done::default()),
            Self::Http(http) => http.run(scene),
            Self::StreamText(_) => StreamText::run(scene),
            Self::StructuredOutput(call) => call.run(scene),
            Self::Missing { capability } => Outcome::Failed(Fault::new(
                code::CAPABILITY_NOT_PROVIDED,
                format!("This host does not provide the capability `{capability}`."),
            )),
        }
    }
}
