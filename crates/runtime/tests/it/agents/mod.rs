//! Agents over a host in memory: a brain that answers as the test says, tools that count, and witnesses that look at
//! the disk whenever somebody is called.
#![allow(dead_code, unused_imports, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../../engine/tests/it/support/agent_audit.rs"]
pub mod agent_audit;
mod brain;
mod sink;
mod witness;
mod worlds;

use std::sync::Arc;

use baton_model::{AgentCard, MemoryShape, ModelChoice, ModelClass};
use baton_runtime::{AgentRegistry, ModelTable, Models, Options};
use baton_testkit::Flow;
use baton_tool::{Tool, ToolSet, Toolbox};
use serde_json::{Value, json};

pub use brain::{Brain, heard, says, says_json, told, wants};
pub use sink::Sink;
pub use worlds::{Calls, UNKNOWN, call_again, it_failed, was_done};

pub const AGENT: &str = "local.test.helper";
pub const REMEMBER: &str = "openwop:memory.put";

pub fn card(id: &str) -> AgentCard {
    AgentCard {
        agent_id: id.to_owned(),
        persona: "Helper".to_owned(),
        label: "Helper".to_owned(),
        description: None,
        pack_name: "local.test".to_owned(),
        pack_version: "1.0.0".to_owned(),
        model_class: ModelClass::General,
        system_prompt: "You help.".to_owned(),
        tools: Vec::new(),
        memory: MemoryShape::default(),
        threshold: None,
        task_schema: None,
        return_schema: None,
        prompt_overrides: Default::default(),
        prompt_library: None,
    }
}

/// One that may call these tools.
pub fn armed(id: &str, tools: &[&str]) -> AgentCard {
    AgentCard { tools: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..card(id) }
}

/// A workflow that is one agent node, `work`.
pub fn asks(id: &str, agent: &str) -> Flow {
    Flow::new(id).node_with("work", "vendor.baton.agent", json!({"agentId": agent}), task("Do it."))
}

/// What an agent node is given to do.
pub fn task(text: &str) -> Value {
    json!({"inputs": {"task": {"type": "static", "value": text}}})
}

/// A host with these agents, this brain and these tools.
pub fn options(cards: Vec<AgentCard>, brain: &Arc<Brain>, tools: Vec<Arc<dyn Tool>>, ahead: usize) -> Options {
    let agent_registry =
        cards.into_iter().fold(AgentRegistry::default(), |agent_registry, card| agent_registry.with(None, card));
    let mut shelf = ToolSet::default();
    for tool in tools.into_iter().chain(baton_tool::native::tools()) {
        shelf = shelf.tool(tool).unwrap();
    }
    Options {
        models: Models::default().with("brain", Arc::clone(brain) as _),
        model_table: ModelTable::default().otherwise(model("big")),
        agent_registry,
        tools: Toolbox::new(shelf),
        ..crate::common::options(ahead)
    }
}

pub fn model(name: &str) -> ModelChoice {
    ModelChoice { provider: "brain".to_owned(), model: name.to_owned() }
}
