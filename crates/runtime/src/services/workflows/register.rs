//! Registering workflows: compiled first, numbered one after the other, the same content once.

use std::sync::Arc;

use arc_swap::ArcSwap;
use baton_engine::Plan;
use baton_model::{Digest, TenantId, WorkerVersions, WorkflowId};
use baton_store::{Store, WorkflowVersion, Write};
use serde_json::Value;

use crate::clock::Clock;
use crate::cluster::claims::Claims;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::services::stored_bytes::StoredBytes;
use crate::services::workflows::Plans;
use crate::services::workflows::agent_workflow::{PREFIX, definition, no_such_agent};
use crate::services::workflows::shared::SHARED;
use crate::steps::{StepPool, WorkKind};
use crate::tasks::Tasks;
use crate::{AgentRegistry, Error, RegisteredWorkflow};

/// Registers workflows.
pub(crate) struct Workflows {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) registering: Arc<tokio::sync::Mutex<()>>,
    pub(crate) agent_registry: Arc<ArcSwap<AgentRegistry>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) stored_bytes: Arc<StoredBytes>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Workflows {
    /// The version that a child below a branch is started with. A digest that a file or a log names counts only if the
    /// tenant has it under that id, so that nobody runs what is another's.
    pub(crate) async fn version_for_branch(
        &self,
        tenant: &TenantId,
        id: &WorkflowId,
        versions: &WorkerVersions,
    ) -> Result<Option<Digest>, Error> {
        let shared = TenantId::new(crate::services::workflows::SHARED);
        let mut known = self.store.workflow_versions(tenant, id).await?;
        known.extend(self.store.workflow_versions(&shared, id).await?);
        let used = versions.used.get(id).filter(|used| known.iter().any(|version| version.digest == **used));
        let newest = || known.iter().find(|version| version.created_at <= versions.as_of).or(known.first());
        Ok(used.cloned().or_else(|| newest().map(|version| version.digest.clone())))
    }

    /// The id of the workflow that is one agent. It is registered when somebody first asks for it.
    pub(crate) async fn workflow_of_agent(
        self: &Arc<Self>,
        tenant: &TenantId,
        agent_id: &str,
    ) -> Result<String, Error> {
        let card = self.agent_registry.load().get(tenant, agent_id).cloned().ok_or_else(|| no_such_agent(agent_id))?;
        let definition = definition(&card);
        let id = format!("{PREFIX}{agent_id}");
        let known = self.plans.newest(self.store.as_ref(), tenant, &WorkflowId::new(id.as_str())).await?;
        if known.is_none_or(|known| known.digest != Digest::of_json(&definition)) {
            let compiled = self.compile(tenant, definition, Plans::compile).await?;
            let tenant = tenant.clone();
            self.tasks.see_through(self, |room| async move { room.register(&tenant, compiled).await }).await?;
        }
        Ok(id)
    }

    pub(crate) async fn versions(&self, tenant: &TenantId, id: &str) -> Result<Vec<WorkflowVersion>, Error> {
        for owner in [tenant, &TenantId::new(SHARED)] {
            let known = self.store.workflow_versions(owner, &WorkflowId::new(id)).await?;
            if !known.is_empty() {
                return Ok(known);
            }
        }
        Err(Error::workflow_not_found(id))
    }

    /// Compiles a definition in the tenant's turn: it may be megabytes, and nobody else waits for it.
    pub(crate) async fn compile(
        self: &Arc<Self>,
        tenant: &TenantId,
        definition: Value,
        compile: fn(&Plans, Value) -> Result<Arc<Plan>, Error>,
    ) -> Result<Compiled, Error> {
        let work = move |room: &Self| {
            let bytes = baton_model::json::canonical(&definition);
            Ok(Compiled { plan: compile(&room.plans, definition)?, bytes })
        };
        self.pool.compute(self, WorkKind::Compile, tenant, work).await?
    }

    /// A new version, unless the content is the newest one's.
    pub(crate) async fn register(&self, tenant: &TenantId, compiled: Compiled) -> Result<RegisteredWorkflow, Error> {
        let plan = &compiled.plan;
        let _one_at_a_time = self.registering.lock().await;
        let known = self.store.workflow(tenant, plan.id()).await?;
        if known.is_none_or(|version| version.digest != *plan.digest()) {
            return self.claims.alone(REGISTERING, Lane::Of(tenant), self.register_next(tenant, compiled)).await;
        }
        self.register_next(tenant, compiled).await
    }

    async fn register_next(&self, tenant: &TenantId, compiled: Compiled) -> Result<RegisteredWorkflow, Error> {
        let Compiled { plan, bytes } = compiled;
        let known = self.store.workflow(tenant, plan.id()).await?;
        if let Some(version) = &known
            && version.digest == *plan.digest()
        {
            self.plans.remember(version.clone(), plan);
            return Ok(registered(version.clone(), false));
        }
        if tenant.as_str() != SHARED {
            self.stored_bytes.admit(tenant)?;
        }
        let version = WorkflowVersion {
            tenant: tenant.clone(),
            id: plan.id().clone(),
            version: known.map_or(1, |known| known.version + 1),
            digest: plan.digest().clone(),
            name: plan.definition().name.clone(),
            created_at: self.clock.now(),
        };
        let live = self.storage.live()?;
        self.claims.still_holds(REGISTERING)?;
        let blob = Write::PutBlob { digest: version.digest.clone(), bytes };
        let writes = vec![blob, Write::PutWorkflow(version.clone())];
        self.storage.write(live.generation, Lane::Of(tenant), writes).await?;
        self.plans.remember(version.clone(), plan);
        Ok(registered(version, true))
    }
}

/// One host at a time gives version numbers.
pub(crate) const REGISTERING: &str = "registering";

/// A definition that may be registered.
pub(crate) struct Compiled {
    pub(crate) plan: Arc<Plan>,
    /// The definition as it is stored.
    bytes: Vec<u8>,
}

pub(crate) fn registered(version: WorkflowVersion, created: bool) -> RegisteredWorkflow {
    RegisteredWorkflow {
        id: version.id,
        version: version.version,
        digest: version.digest,
        name: version.name,
        created,
        registered_at: version.created_at,
    }
}
