//! Reading a node of a definition into its kind.

use baton_model::workflow::{Definition, Node};

use super::agent::Agent;
use super::approval_gate::ApprovalGate;
use super::catalog::knows;
use super::channel_write::ChannelWrite;
use super::child::SubWorkflow;
use super::clarification_gate::ClarificationGate;
use super::conditional::Conditional;
use super::config::Config;
use super::delay::Delay;
use super::dispatch::Dispatch;
use super::fail::Fail;
use super::http::Http;
use super::interrupt::GenericInterrupt;
use super::kind::Kind;
use super::loop_head::Loop;
use super::map::MapStep;
use super::memory::Memory;
use super::structured_output::StructuredOutput;
use super::supervisor::Supervisor;
use super::tool_step::ToolStep;
use super::variables::{GetVariable, SetVariable};
use super::workspace::Workspace;
use crate::expr::Strictness;
use crate::nodes::conformance;
use crate::plan::problem::Problem;

pub(in crate::plan) fn compile(
    node: &Node,
    definition: &Definition,
    place: &str,
    test_types: bool,
    live_agents: bool,
    strictness: Strictness,
) -> Result<Kind, Vec<Problem>> {
    let config = Config::new(node, place, strictness);
    let for_tests = if test_types { conformance::read(&config, node)? } else { None };
    let kind = match for_tests {
        Some(kind) => kind,
        None => read(&config, node, definition, place, test_types, live_agents)?,
    };
    match kind.fills() {
        Some((_, name)) if definition.channels.contains_key(name) && kind.live_agent().is_some() => {
            Err(config
                .problem("", format!("An agent's answer becomes the variable `{name}`, which is a channel here.")))
        }
        Some((_, name)) if definition.channels.contains_key(name) => {
            Err(config.problem("into", format!("`{name}` is a channel; write it with core.channelWrite.")))
        }
        _ => Ok(kind),
    }
}

fn read(
    config: &Config<'_>,
    node: &Node,
    definition: &Definition,
    place: &str,
    test_types: bool,
    live_agents: bool,
) -> Result<Kind, Vec<Problem>> {
    let unknown = |unknown: &str| {
        let message = format!("There is no node type `{unknown}` on this host.");
        Err(vec![Problem::at(format!("{place}/typeId"), message)])
    };
    if !knows(&node.type_id, test_types) {
        return unknown(&node.type_id);
    }
    Ok(match node.type_id.as_str() {
        "core.noop" | "core.start" | "core.parallel" => Kind::Pass,
        "core.identity" => {
            if let Some(key) = config.map.keys().find(|key| *key != "nondeterministic") {
                return Err(config.problem(key, format!("core.identity has no setting `{key}`.")));
            }
            Kind::Identity
        }
        "core.merge" => Kind::Merge,
        "core.end" => Kind::End,
        "core.delay" => Kind::Delay(Delay::compile(config)?),
        "core.fail" => Kind::Fail(Fail::compile(config)?),
        "core.conditional" => Kind::Conditional(Conditional::compile(config)?),
        "core.setVariable" => Kind::SetVariable(SetVariable::compile(config, definition)?),
        "core.getVariable" => Kind::GetVariable(GetVariable::compile(config)?),
        "core.loop" => Kind::Loop(Loop::compile(config)?),
        "core.channelWrite" => Kind::ChannelWrite(ChannelWrite::compile(config, node, definition)?),
        "core.approvalGate" => Kind::ApprovalGate(ApprovalGate::compile(config, node)?),
        "core.clarificationGate" => Kind::ClarificationGate(ClarificationGate::compile(config)?),
        "core.interrupt" => Kind::Interrupt(GenericInterrupt::compile(config, node)?),
        "core.subWorkflow" => Kind::SubWorkflow(SubWorkflow::compile(config)?),
        "core.orchestrator.supervisor" => {
            Kind::Supervisor(Supervisor::compile(config, node, definition, test_types, live_agents)?)
        }
        "core.dispatch" => Kind::Dispatch(Dispatch::compile(config)?),
        "vendor.baton.memory.put" => Kind::Memory(Memory::put(config)?),
        "vendor.baton.memory.get" => Kind::Memory(Memory::get(config)?),
        "vendor.baton.memory.list" => Kind::Memory(Memory::list(config)?),
        "vendor.baton.memory.delete" => Kind::Memory(Memory::delete(config)?),
        "vendor.baton.workspace.put" => Kind::Workspace(Workspace::put(config)?),
        "vendor.baton.workspace.get" => Kind::Workspace(Workspace::get(config)?),
        "vendor.baton.workspace.list" => Kind::Workspace(Workspace::list(config)?),
        "vendor.baton.agent" | "core.agents.run" => Kind::Agent(Agent::compile(config, node)?),
        "vendor.baton.http" => Kind::Http(Http::compile(config)?),
        "vendor.baton.tool" => Kind::Tool(ToolStep::compile(config)?),
        "vendor.baton.map" => Kind::Map(MapStep::compile(config)?),
        "core.ai.structuredOutput" => {
            Kind::StructuredOutput(StructuredOutput::compile(config, node, test_types, live_agents)?)
        }
        other => return unknown(other),
    })
}
