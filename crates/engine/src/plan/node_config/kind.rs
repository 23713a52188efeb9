//! What kind of node something is, with its configuration read: facts that hold before any run.

use super::agent::{Agent, AgentOptions, NamedAgent};
use super::approval_gate::ApprovalGate;
use super::called_tool::CalledTool;
use super::channel_write::ChannelWrite;
use super::child::SubWorkflow;
use super::clarification_gate::ClarificationGate;
use super::conditional::Conditional;
use super::delay::Delay;
use super::dispatch::Dispatch;
use super::fail::Fail;
use super::http::Http;
use super::interrupt::GenericInterrupt;
use super::loop_head::Loop;
use super::map::MapStep;
use super::memory::Memory;
use super::model_preference::ModelPreference;
use super::structured_output::StructuredOutput;
use super::supervisor::Supervisor;
use super::tool_step::ToolStep;
use super::variables::{GetVariable, SetVariable};
use super::workspace::Workspace;
use crate::nodes::conformance::TestKind;
use crate::plan::ports::{Origin, Port};

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
    Delay(Delay),
    Fail(Fail),
    Conditional(Conditional),
    SetVariable(SetVariable),
    GetVariable(GetVariable),
    Loop(Loop),
    ChannelWrite(ChannelWrite),
    ApprovalGate(ApprovalGate),
    ClarificationGate(ClarificationGate),
    Interrupt(GenericInterrupt),
    SubWorkflow(SubWorkflow),
    Supervisor(Supervisor),
    Dispatch(Dispatch),
    StructuredOutput(StructuredOutput),
    Memory(Memory),
    Workspace(Workspace),
    Agent(Agent),
    Http(Http),
    Tool(ToolStep),
    Map(MapStep),
    /// Of test workflows only.
    #[cfg_attr(not(feature = "conformance"), expect(dead_code, reason = "there are none"))]
    Test(TestKind),
}

impl Kind {
    /// The output that also goes to a variable, and that variable.
    pub(crate) fn fills(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Memory(memory) => memory.fills(),
            Self::Workspace(workspace) => workspace.fills(),
            Self::Http(http) => http.fills(),
            Self::Tool(step) => step.fills(),
            Self::Map(map) => map.fills(),
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
            Self::Tool(step) => step.stores(inputs),
            Self::Map(map) => map.stores(),
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
    pub(crate) fn agent_options(&self) -> Option<&AgentOptions> {
        match self {
            Self::Agent(agent) => Some(&agent.options),
            Self::Supervisor(supervisor) => Some(&supervisor.options),
            _ => None,
        }
    }

    /// The model it wants to ask, where it asks one.
    pub(crate) fn model_preference(&self) -> Option<&ModelPreference> {
        match self {
            Self::StructuredOutput(call) => Some(call.model_preference()),
            kind => kind.live_agent().and(kind.agent_options()).map(|options| &options.preference),
        }
    }

    /// The tool of the catalogue that it calls by itself.
    pub(crate) fn called_tool(&self) -> Option<&CalledTool> {
        match self {
            Self::Tool(step) => Some(&step.tool),
            Self::Map(map) => map.tool(),
            _ => None,
        }
    }

    /// How long one call or child of it may take, where a whole visit may take this long.
    pub(crate) fn call_timeout_ms(&self, visit_ms: Option<u64>) -> Option<u64> {
        match self {
            Self::Map(map) => map.item_timeout_ms.into_iter().chain(visit_ms).min(),
            _ => visit_ms,
        }
    }

    /// Whether it may have child runs.
    pub(crate) fn has_children(&self) -> bool {
        match self {
            Self::SubWorkflow(_) | Self::Dispatch(_) => true,
            Self::Map(map) => map.tool().is_none(),
            _ => false,
        }
    }

    /// How long a visit may take at most, where its own settings say so.
    pub(crate) fn timeout_ms(&self) -> Option<u64> {
        match self {
            Self::Tool(step) => step.timeout_ms,
            _ => None,
        }
    }

    /// Whether the shell has to be asked before a visit can start.
    pub(crate) fn asks_first(&self) -> bool {
        match self {
            Self::Supervisor(_) | Self::Memory(_) | Self::Workspace(_) | Self::Agent(_) => true,
            Self::Test(test) => test.asks_first(),
            _ => false,
        }
    }

    /// Whether another attempt may mend a failure. What asks first fails only for good reasons; agents have bad days.
    pub(crate) fn retries(&self) -> bool {
        match self {
            Self::Supervisor(supervisor) => supervisor.is_agent(),
            Self::Agent(_) => true,
            // Its items have attempts of their own.
            Self::Map(_) => false,
            kind => !kind.asks_first(),
        }
    }
}
