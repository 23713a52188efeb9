//! A definition, compiled: indices instead of names, expressions parsed, configuration typed, loops found.
//!
//! Compiling is the only judge of whether a workflow can run. It reports every problem at once, each with the JSON
//! pointer of the place to mend.

mod access;
mod compile;
mod compiled;
mod condition;
mod features;
mod graph;
mod header;
pub(crate) mod node_config;
mod ports;
mod problem;
mod quorum;
mod sensitive;
mod wiring;

pub(crate) use access::access_denied;
pub use compiled::Plan;
pub use features::Features;
pub(crate) use node_config::{
    AgentOptions, ApprovalGate, CalledTool, ChannelWrite, ClarificationGate, Conditional, Custom, Decider, Delay,
    Dispatch, External, FanOutPolicy, GenericInterrupt, GetVariable, Given, Http, HttpBody, Items, Kind,
    LONGEST_DELAY_MS, Loop, MOST_ITEMS, MapStep, Memory, OnFailure, OnItemError, OnToolError, OnWorkerFailure,
    Rejection, Rounds, SetVariable, StructuredOutput, SubWorkflow, Supervisor, ToolStep, ValueSource, Work, Workspace,
    decision_schema,
};
pub use node_config::{NamedAgent, node_types};
pub(crate) use ports::Port;
pub use problem::Problem;
