//! Node types, one file each. A node is pure: given its resolved inputs and the run's state it says how its visit
//! goes on. Whatever takes time or touches the world comes back as an [`Outcome`] that the engine records first.

mod approval_gate;
mod channel_write;
mod child;
mod clarification_gate;
mod conditional;
mod config;
mod delay;
mod dispatch;
mod fail;
mod interrupt;
mod loop_head;
mod stream_text;
mod supervisor;
mod variables;

pub(crate) use approval_gate::{ApprovalGate, Rejection};
pub(crate) use channel_write::{ChannelWrite, Writing};
pub(crate) use child::{OnFailure, SubWorkflow};
pub(crate) use clarification_gate::{ClarificationGate, read_answers};
pub(crate) use dispatch::{Dispatch, FanOutPolicy, OnWorkerFailure};
pub(crate) use interrupt::{Ask, Doubt, GenericInterrupt};
pub(crate) use loop_head::Loop;
pub(crate) use stream_text::{Chunks, StreamText, chunks};
pub(crate) use supervisor::Supervisor;

use baton_model::event::ChildPlan;
use baton_model::workflow::{Definition, Node};
use baton_model::{Fault, code};
use serde_json::{Map, Value};

use crate::plan::{Origin, Port, Problem};
use crate::state::Scene;

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
    ) -> Result<Self, Vec<Problem>> {
        let config = config::Config::new(node, place);
        Ok(match node.type_id.as_str() {
            "core.noop" | "core.start" | "core.parallel" => Self::Pass,
            "core.identity" => {
                // Probes that other hosts hide in here are not this host's to fake.
                if let Some(key) = config.map.keys().next() {
                    return Err(config.problem(key, format!("core.identity has no setting `{key}`.")));
                }
                Self::Identity
            }
            "core.merge" => Self::Merge,
            "core.end" => Self::End,
            "core.delay" => Self::Delay(delay::Delay::compile(&config)?),
            "core.fail" => Self::Fail(fail::Fail::compile(&config)?),
            "core.conditional" => Self::Conditional(conditional::Conditional::compile(&config)?),
            "core.setVariable" => Self::SetVariable(variables::SetVariable::compile(&config, definition)?),
            "core.getVariable" => Self::GetVariable(variables::GetVariable::compile(&config)?),
            "core.loop" => Self::Loop(Loop::compile(&config)?),
            "core.channelWrite" => Self::ChannelWrite(ChannelWrite::compile(&config, node, definition)?),
            "core.approvalGate" => Self::ApprovalGate(ApprovalGate::compile(&config, node)?),
            "core.clarificationGate" => Self::ClarificationGate(ClarificationGate::compile(&config)?),
            "core.interrupt" => Self::Interrupt(GenericInterrupt::compile(&config, node)?),
            "core.subWorkflow" => Self::SubWorkflow(SubWorkflow::compile(&config)?),
            "core.orchestrator.supervisor" => {
                Self::Supervisor(Supervisor::compile(&config, node, definition, test_types, live_agents)?)
            }
            "core.dispatch" => Self::Dispatch(Dispatch::compile(&config)?),
            "core.ai.callPrompt" if test_types => {
                if config.get("mcp").is_some() {
                    return Err(config.problem("mcp", "This host has no MCP client yet."));
                }
                Self::StreamText(StreamText)
            }
            "conformance.requiresMissing" if test_types => {
                Self::Missing { capability: "conformance.never-provided".to_owned() }
            }
            unknown => {
                return Err(vec![Problem::at(
                    format!("{place}/typeId"),
                    format!("There is no node type `{unknown}` on this host."),
                )]);
            }
        })
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
            _ => Vec::new(),
        }
    }

    /// Runs a visit's first step.
    pub(crate) fn run(&self, scene: &Scene<'_>) -> Outcome {
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
            // These two are state machines of their own: see `decide::turn` and `decide::wave`.
            Self::Supervisor(_) | Self::Dispatch(_) => Outcome::Done(Done::default()),
            Self::StreamText(_) => StreamText::run(scene),
            Self::Missing { capability } => Outcome::Failed(Fault::new(
                code::CAPABILITY_NOT_PROVIDED,
                format!("This host does not provide the capability `{capability}`."),
            )),
        }
    }
}

pub(crate) fn expression_fault(source: &str, error: &str) -> Fault {
    Fault::new(code::EXPRESSION_ERROR, format!("The expression `{source}` failed: {error}")).with("expression", source)
}
