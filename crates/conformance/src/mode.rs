//! Conformance mode: what a host brings along for a suite that drives it from outside, and what it remembers between two
//! of the suite's requests. One for each host.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use baton_engine::{Features, Probe};
use baton_model::tool::{ToolOutcome, ToolRequest};
use baton_model::{ModelChoice, ModelReply, NodeId, RunId, Timestamp, WorkflowId, code, native};
use baton_provider::{MockProvider, Provider};
use baton_runtime::{Error, ErrorKind, Host, Note, Readback, TestEquipment, TestHooks};
use baton_tool::Called;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::calls::Calls;
use crate::journal::Journal;
use crate::switches::Switches;
use crate::{agents, memory_checks, prompts, workflows};

/// What a suite's own workflows are called, ours among them.
const PREFIXES: [&str; 2] = ["conformance-", "openwop-smoke-"];

#[derive(Debug, Default)]
pub struct Conformance {
    mock: Arc<MockProvider>,
    pub(crate) calls: Calls,
    switches: Switches,
    fixtures: Mutex<Vec<String>>,
    pub(crate) journal: Journal,
}

impl Conformance {
    /// A mode for one host: its `test_hooks`.
    pub fn hooks() -> Option<Arc<dyn TestHooks>> {
        Some(Arc::new(Self::default()))
    }

    /// The mode that a host is in.
    pub fn of(host: &Host) -> Result<Arc<Self>, Error> {
        let hooks = host.options().test_hooks.clone().map(|hooks| hooks as Arc<dyn Any + Send + Sync>);
        let mode = hooks.and_then(|hooks| hooks.downcast().ok());
        mode.ok_or_else(|| {
            Error::new(ErrorKind::Forbidden, code::FORBIDDEN, "This needs a host that is in conformance mode.")
        })
    }

    /// Ids of the test workflows that are loaded and can run.
    pub fn fixtures(&self) -> Vec<String> {
        self.fixtures.lock().clone()
    }

    /// Switches a capability that registration consults; `None` clears every switch. Returns the switches in force.
    pub fn toggle_capability(&self, name: Option<(String, Option<bool>)>) -> BTreeMap<String, bool> {
        self.switches.set(name)
    }

    /// Whether a test has switched the capability off.
    pub fn is_off(&self, capability: &str) -> bool {
        self.switches.is_off(capability)
    }

    /// Tells the mock provider what to answer the calls of one node, instead of whatever it had left to say.
    pub fn program_mock(&self, node: NodeId, replies: Vec<ModelReply>) {
        self.mock.program(node, replies);
    }

    /// The room that the last call of a node left for its answer, if there was a call and it had a bound.
    pub fn mock_budget(&self, node: &NodeId) -> Option<u64> {
        self.mock.last_budget(node)
    }

    /// Lets the mock provider forget what it was told.
    pub fn reset_mock(&self) {
        self.mock.reset();
    }
}

#[async_trait]
impl TestHooks for Conformance {
    fn equipment(&self) -> TestEquipment {
        TestEquipment {
            agents: agents::agents(),
            prompts: prompts::library(),
            model: ModelChoice { provider: "mock".to_owned(), model: "mock-mini".to_owned() },
            secrets: vec![memory_checks::secret()],
        }
    }

    fn workflows(&self) -> Vec<Value> {
        workflows::all()
    }

    fn registered(&self, workflow: &WorkflowId) {
        let id = workflow.as_str();
        let mut fixtures = self.fixtures.lock();
        if PREFIXES.iter().any(|prefix| id.starts_with(prefix)) && !fixtures.iter().any(|known| known == id) {
            fixtures.push(id.to_owned());
            fixtures.sort();
        }
    }

    fn features(&self, offered: Features) -> Features {
        self.switches.features(offered)
    }

    fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.mock) as _
    }

    fn count_call(&self, run: &RunId) {
        self.calls.count(run);
    }

    /// The one tool that conformance mode has. What it does to the world is a line for the operator.
    async fn tool_call(&self, run: &RunId, request: &ToolRequest) -> Option<Called> {
        if request.tool != native::CONFORMANCE_EFFECT {
            return None;
        }
        self.calls.pass(run, &request.key).await;
        tracing::info!(%run, key = request.key, "a conformance workflow has its effect");
        Some(Called::Done(ToolOutcome::ok(json!({"emitted": true}))))
    }

    fn memory_notes(&self, check: &Probe, at: Timestamp) -> Result<Vec<Note>, String> {
        memory_checks::notes(check, at)
    }

    fn memory_readback(&self, check: &Probe, seen: &Readback<'_>) -> Map<String, Value> {
        memory_checks::readback(check, seen)
    }
}
