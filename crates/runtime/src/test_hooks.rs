//! What a test mode may bring along. The host asks at these places and nowhere else, and without hooks it behaves as if
//! they did not exist. Who implements them lives in a crate of its own, which this one does not know.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use baton_agent::prompts::Library;
use baton_engine::{Features, Probe};
use baton_model::tool::ToolRequest;
use baton_model::{AgentCard, MemoryEntry, ModelChoice, RunId, Secret, Timestamp, WorkflowId};
use baton_provider::Provider;
use baton_tool::Called;
use serde_json::{Map, Value};

/// The name by which workflows reach the model provider of a test mode.
pub(crate) const TEST_PROVIDER: &str = "mock";

#[async_trait]
pub trait TestHooks: Any + Debug + Send + Sync {
    /// What there is beside what was configured.
    fn equipment(&self) -> TestEquipment;

    /// Workflows that every tenant can start.
    fn workflows(&self) -> Vec<Value>;

    /// A workflow that every tenant can start was registered.
    fn registered(&self, workflow: &WorkflowId);

    /// What definitions may have from now on, given what the host offers.
    fn features(&self, offered: Features) -> Features;

    /// Answers for the models of `mock`, unless the operator has configured a provider of that name.
    fn provider(&self) -> Arc<dyn Provider>;

    /// Something is on its way out on behalf of this run; whether it arrives does not matter.
    fn count_call(&self, run: &RunId);

    /// A tool that only the test mode has. None: the call is for the host's own tools.
    async fn tool_call(&self, run: &RunId, request: &ToolRequest) -> Option<Called>;

    /// What a memory check writes, or why it cannot be made.
    fn memory_notes(&self, check: &Probe, at: Timestamp) -> Result<Vec<Note>, String>;

    /// The variables that a memory check leaves behind.
    fn memory_readback(&self, check: &Probe, seen: &Readback<'_>) -> Map<String, Value>;
}

/// What a host has in a test mode beside what was configured.
#[derive(Debug)]
pub struct TestEquipment {
    pub agents: Vec<AgentCard>,
    pub prompts: Library,
    /// For every class of model that the operator says nothing about.
    pub model: ModelChoice,
    /// Kept out of memory and workspace like the operator's own.
    pub secrets: Vec<Secret>,
}

/// One entry that a memory check writes.
#[derive(Debug)]
pub struct Note {
    pub content: String,
    pub tags: Vec<String>,
    /// May have passed, unlike that of an entry which a workflow writes.
    pub expires_at: Option<Timestamp>,
}

/// What a memory check saw once its notes were written.
#[derive(Debug)]
pub struct Readback<'a> {
    /// What its own scope shows of the notes.
    pub shown: &'a [MemoryEntry],
    /// The ids of the notes, in their order.
    pub ids: &'a [String],
    /// What the handle of another scope showed.
    pub foreign: &'a [MemoryEntry],
}
