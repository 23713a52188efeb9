//! Runs that are one agent and nothing else, and who there is to be called.

use std::sync::Arc;

use baton_model::{AgentCard, Digest, InvocationSource, ModelChoice, Principal, TenantId, ToolSpec, WorkflowId};
use serde_json::{Value, json};

use crate::inner::Inner;
use crate::services::workflows::Plans;
use crate::{Error, Host, Idempotent, Roster, StartRun, StartedRun};

/// The node of a run that is one agent.
const AGENT_NODE: &str = "agent";

/// What the workflow of such a run begins with; the agent's id follows.
const PREFIX: &str = "agent:";

/// Whether a workflow stands for one agent: made here, and nobody's to register.
pub(crate) fn stands_for_an_agent(workflow: &str) -> bool {
    workflow.starts_with(PREFIX)
}

/// The model that stands for an agent's class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRoute {
    pub choice: ModelChoice,
    /// The host knows its provider.
    pub configured: bool,
    /// It has a price.
    pub priced: bool,
}

impl Host {
    /// The agents a tenant may call, by id.
    pub fn agents(&self, tenant: &TenantId) -> Vec<Arc<AgentCard>> {
        self.inner.roster.load().visible(tenant)
    }

    /// All agents there are, and the packs they come from.
    pub fn roster(&self) -> Arc<Roster> {
        self.inner.roster.load_full()
    }

    /// One of them. Another tenant's is as unknown as one that does not exist.
    pub fn agent(&self, tenant: &TenantId, id: &str) -> Option<Arc<AgentCard>> {
        self.inner.roster.load().get(tenant, id).cloned()
    }

    /// What an agent may call where each of `grants` narrows its manifest.
    pub fn tool_surface(&self, tenant: &TenantId, card: &AgentCard, grants: &[Vec<String>]) -> Vec<ToolSpec> {
        self.inner.surface(tenant, card, grants)
    }

    /// What its manifest names, the grants leave, and nothing here answers to.
    pub fn missing_tools(&self, tenant: &TenantId, card: &AgentCard, grants: &[Vec<String>]) -> Vec<String> {
        self.inner.missing_tools(tenant, card, grants)
    }

    /// Which model an agent of this class gets.
    pub fn model_route(&self, card: &AgentCard) -> Option<ModelRoute> {
        let options = &self.inner.options;
        let choice = options.model_table.get(card.model_class)?.clone();
        Some(ModelRoute {
            configured: self.inner.models.names().any(|name| name == choice.provider),
            priced: crate::services::budgets::has_price(&options.prices, &choice.provider, &choice.model),
            choice,
        })
    }

    /// Starts a run that is this agent and nothing else: `inputs` are its task. It goes the way of every other run; only
    /// the log says through which door the agent was called.
    pub async fn start_agent(
        &self,
        who: &Principal,
        agent_id: &str,
        source: InvocationSource,
        request: StartRun,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<StartedRun, Error> {
        let workflow_id = self.inner.workflow_of_agent(&who.tenant, agent_id).await?;
        let request = StartRun { workflow_id, source: Some(source), ..request };
        self.inner.start_run(who, request, idempotent).await
    }
}

impl Inner {
    /// The id of the workflow that is one agent. It is registered when somebody first asks for it.
    async fn workflow_of_agent(&self, tenant: &TenantId, agent_id: &str) -> Result<String, Error> {
        let card = self.roster.load().get(tenant, agent_id).cloned().ok_or_else(|| no_such_agent(agent_id))?;
        let definition = definition(&card);
        let id = format!("{PREFIX}{agent_id}");
        let known = self.plans.newest(self.store.as_ref(), tenant, &WorkflowId::new(id.as_str())).await?;
        if known.is_none_or(|known| known.digest != Digest::of_json(&definition)) {
            let compiled = self.compile(tenant, definition, Plans::compile).await?;
            let tenant = tenant.clone();
            self.see_through(|inner| async move { inner.register(&tenant, compiled).await }).await?;
        }
        Ok(id)
    }
}

/// A workflow of one node, without ports: the agent is given what the run is given.
fn definition(card: &AgentCard) -> Value {
    let id = card.agent_id.as_str();
    let node = json!({
        "id": AGENT_NODE, "typeId": "vendor.baton.agent", "name": card.label, "position": {"x": 0, "y": 0},
        "config": {"agentId": id}, "inputs": {}, "agent": {"agentId": id}, "outputRole": "primary",
    });
    json!({
        "id": format!("{PREFIX}{id}"), "name": card.label, "version": "1", "nodes": [node], "edges": [],
        "triggers": [], "variables": [], "metadata": {}, "settings": {},
    })
}

fn no_such_agent(id: &str) -> Error {
    let message = "There is no such agent here. GET /v1/agents lists those that are.";
    Error::invalid(message).with("agentId", id)
}
