use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::Problem;
use baton_model::{AgentCard, Digest, InvocationSource, ModelChoice, Principal, TenantId, ToolSpec, WorkflowId, code};
use baton_store::Page;
use serde_json::Value;

use crate::services::conversations::{ConversationView, TurnView};
use crate::services::workflows::Plans;
use crate::services::workflows::agent_workflow::stands_for_an_agent;
use crate::services::workflows::register::registered;
use crate::services::workflows::shared::SHARED;
use crate::steps::WorkKind;
use crate::{AgentRegistry, Error, Host, Idempotent, RegisteredWorkflow, StartRun, StartedRun};

const AGENTS_OWN: &str = "An id `agent:…` is this host's own: start the agent by its id instead.";

impl Host {
    /// Registers a workflow for one tenant. The same content again changes nothing.
    pub async fn register_workflow(&self, tenant: &TenantId, definition: Value) -> Result<RegisteredWorkflow, Error> {
        let compiled = self.rooms.workflows.compile(tenant, definition, Plans::compile).await?;
        if stands_for_an_agent(compiled.plan.id().as_str()) {
            return Err(Error::invalid(AGENTS_OWN));
        }
        let tenant = tenant.clone();
        self.rooms
            .tasks
            .see_through(&self.rooms, |rooms| async move { rooms.workflows.register(&tenant, compiled).await })
            .await
    }

    /// Registers a workflow every tenant can start.
    pub async fn register_shared_workflow(&self, definition: Value) -> Result<RegisteredWorkflow, Error> {
        let registered = self.register_workflow(&TenantId::new(SHARED), definition).await?;
        if let Some(hooks) = &self.rooms.options.test_hooks {
            hooks.registered(&registered.id);
        }
        Ok(registered)
    }

    /// The newest version of everything that was registered for the tenant, by id; its own before the shared ones.
    pub async fn workflows(&self, tenant: &TenantId) -> Result<Vec<RegisteredWorkflow>, Error> {
        let mut all = BTreeMap::new();
        for owner in [TenantId::new(SHARED), tenant.clone()] {
            let registered_ones = self.rooms.store.workflows(&owner).await?;
            for version in registered_ones.into_iter().filter(|version| !stands_for_an_agent(version.id.as_str())) {
                all.insert(version.id.clone(), registered(version, false));
            }
        }
        Ok(all.into_values().collect())
    }

    /// Every version of a workflow that the tenant sees, newest first: its own, or else the shared one's.
    pub async fn workflow_versions(&self, tenant: &TenantId, id: &str) -> Result<Vec<RegisteredWorkflow>, Error> {
        let known = self.rooms.workflows.versions(tenant, id).await?;
        Ok(known.into_iter().map(|version| registered(version, false)).collect())
    }

    /// One of them and its definition, verbatim.
    pub async fn workflow_version(
        &self,
        tenant: &TenantId,
        id: &str,
        number: u32,
    ) -> Result<(RegisteredWorkflow, Value), Error> {
        let known = self.rooms.workflows.versions(tenant, id).await?;
        let version = known.into_iter().find(|version| version.version == number);
        let version = version.ok_or_else(|| Error::workflow_not_found(id))?;
        let definition = self.rooms.plans.definition(self.rooms.store.as_ref(), &version.digest).await?;
        Ok((registered(version, false), definition))
    }

    /// Whether a definition could be registered, and everything that is wrong with it otherwise.
    pub async fn validate_workflow(
        &self,
        tenant: &TenantId,
        definition: Value,
    ) -> Result<Result<(WorkflowId, Digest), Vec<Problem>>, Error> {
        let judged =
            self.rooms.pool.compute(&self.rooms, WorkKind::Compile, tenant, |rooms| rooms.plans.judge(definition));
        Ok(judged.await?.and_then(|plan| {
            if stands_for_an_agent(plan.id().as_str()) {
                return Err(vec![Problem {
                    pointer: "/id".to_owned(),
                    message: AGENTS_OWN.to_owned(),
                    code: code::VALIDATION_ERROR,
                    details: serde_json::Map::new(),
                }]);
            }
            Ok((plan.id().clone(), plan.digest().clone()))
        }))
    }

    /// The newest registered version and its definition, verbatim.
    pub async fn workflow(&self, tenant: &TenantId, id: &str) -> Result<(RegisteredWorkflow, Value), Error> {
        let rooms = &self.rooms;
        let version = rooms.plans.newest(rooms.store.as_ref(), tenant, &WorkflowId::new(id)).await?;
        let version = version.ok_or_else(|| Error::workflow_not_found(id))?;
        let definition = rooms.plans.definition(rooms.store.as_ref(), &version.digest).await?;
        Ok((registered(version, false), definition))
    }

    /// The agents a tenant may call, by id.
    pub fn agents(&self, tenant: &TenantId) -> Vec<Arc<AgentCard>> {
        self.rooms.agent_registry.load().visible(tenant)
    }

    /// All agents there are, and the packs they come from.
    pub fn agent_registry(&self) -> Arc<AgentRegistry> {
        self.rooms.agent_registry.load_full()
    }

    /// Replaces all agents. Runs that are pinned to a version keep it.
    pub async fn replace_agents(&self, agents: AgentRegistry) -> Result<(), Error> {
        self.rooms.agent_registry.store(Arc::new(agents));
        self.rooms.agents.keep_versions().await
    }

    /// One of them. Another tenant's is as unknown as one that does not exist.
    pub fn agent(&self, tenant: &TenantId, id: &str) -> Option<Arc<AgentCard>> {
        self.rooms.agent_registry.load().get(tenant, id).cloned()
    }

    /// What an agent may call where each of `grants` narrows its manifest.
    pub fn tool_surface(&self, tenant: &TenantId, card: &AgentCard, grants: &[Vec<String>]) -> Vec<ToolSpec> {
        self.rooms.agents.surface(tenant.into(), card, grants)
    }

    /// What its manifest names, the grants leave, and nothing here answers to.
    pub fn missing_tools(&self, tenant: &TenantId, card: &AgentCard, grants: &[Vec<String>]) -> Vec<String> {
        self.rooms.agents.missing_tools(tenant.into(), card, grants)
    }

    /// Which model an agent of this class gets.
    pub fn model_route(&self, card: &AgentCard) -> Option<ModelRoute> {
        let options = &self.rooms.options;
        let choice = options.model_table.get(card.model_class)?.clone();
        Some(ModelRoute {
            configured: self.rooms.models.names().any(|name| name == choice.provider),
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
        let workflow_id = self.rooms.workflows.workflow_of_agent(&who.tenant, agent_id).await?;
        let request = StartRun { workflow_id, source: Some(source), ..request };
        self.rooms.starter.start_run(who, request, idempotent).await
    }

    /// The conversations of a tenant, by name, after this one; and whether there are more.
    pub async fn conversations(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<ConversationView>, bool), Error> {
        self.rooms.conversations.conversations(tenant, after, limit).await
    }

    /// The turns of one, newest first, before this one.
    pub async fn conversation(
        &self,
        tenant: &TenantId,
        id: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<TurnView>, Error> {
        self.rooms.conversations.turns_of(tenant, id, before, limit).await
    }

    /// A conversation that begins with the turns of another up to this one. Without a name it gets one.
    pub async fn fork_conversation(
        &self,
        tenant: &TenantId,
        id: &str,
        turn: Option<u64>,
        new: Option<String>,
    ) -> Result<ConversationView, Error> {
        let new = new.unwrap_or_else(|| self.rooms.ids.run().as_str().replacen("run_", "conv_", 1));
        self.rooms.conversations.fork_conversation(tenant, id, turn, new).await
    }
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
