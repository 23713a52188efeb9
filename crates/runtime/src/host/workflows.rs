use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{Plan, Problem};
use baton_model::{Digest, TenantId, WorkflowId, code, json};
use baton_store::{Commit, WorkflowVersion, Write};
use serde_json::Value;

use super::agents::stands_for_an_agent;
use crate::inner::Inner;
use crate::services::workflows::{Plans, SHARED};
use crate::steps::WorkKind;
use crate::{Error, Host, RegisteredWorkflow};

const AGENTS_OWN: &str = "An id `agent:…` is this host's own: start the agent by its id instead.";

impl Host {
    /// Registers a workflow for one tenant. The same content again changes nothing.
    pub async fn register_workflow(&self, tenant: &TenantId, definition: Value) -> Result<RegisteredWorkflow, Error> {
        let compiled = self.inner.compile(tenant, definition, Plans::compile).await?;
        if stands_for_an_agent(compiled.plan.id().as_str()) {
            return Err(Error::invalid(AGENTS_OWN));
        }
        let tenant = tenant.clone();
        self.inner.see_through(|inner| async move { inner.register(&tenant, compiled).await }).await
    }

    /// Registers a workflow every tenant can start.
    pub async fn register_shared_workflow(&self, definition: Value) -> Result<RegisteredWorkflow, Error> {
        let registered = self.register_workflow(&TenantId::new(SHARED), definition).await?;
        if let Some(hooks) = &self.inner.options.test_hooks {
            hooks.registered(&registered.id);
        }
        Ok(registered)
    }

    /// The newest version of everything that was registered for the tenant, by id; its own before the shared ones.
    pub async fn workflows(&self, tenant: &TenantId) -> Result<Vec<RegisteredWorkflow>, Error> {
        let mut all = BTreeMap::new();
        for owner in [TenantId::new(SHARED), tenant.clone()] {
            let registered_ones = self.inner.store.workflows(&owner).await?;
            for version in registered_ones.into_iter().filter(|version| !stands_for_an_agent(version.id.as_str())) {
                all.insert(version.id.clone(), registered(version, false));
            }
        }
        Ok(all.into_values().collect())
    }

    /// Every version of a workflow that the tenant sees, newest first: its own, or else the shared one's.
    pub async fn workflow_versions(&self, tenant: &TenantId, id: &str) -> Result<Vec<RegisteredWorkflow>, Error> {
        let known = self.inner.versions(tenant, id).await?;
        Ok(known.into_iter().map(|version| registered(version, false)).collect())
    }

    /// One of them and its definition, verbatim.
    pub async fn workflow_version(
        &self,
        tenant: &TenantId,
        id: &str,
        number: u32,
    ) -> Result<(RegisteredWorkflow, Value), Error> {
        let known = self.inner.versions(tenant, id).await?;
        let version = known.into_iter().find(|version| version.version == number);
        let version = version.ok_or_else(|| Error::workflow_not_found(id))?;
        let definition = self.inner.plans.definition(self.inner.store.as_ref(), &version.digest).await?;
        Ok((registered(version, false), definition))
    }

    /// Whether a definition could be registered, and everything that is wrong with it otherwise.
    pub async fn validate_workflow(
        &self,
        tenant: &TenantId,
        definition: Value,
    ) -> Result<Result<(WorkflowId, Digest), Vec<Problem>>, Error> {
        let judged = self.inner.compute(WorkKind::Compile, tenant, |inner| inner.plans.judge(definition));
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
        let inner = &self.inner;
        let version = inner.plans.newest(inner.store.as_ref(), tenant, &WorkflowId::new(id)).await?;
        let version = version.ok_or_else(|| Error::workflow_not_found(id))?;
        let definition = inner.plans.definition(inner.store.as_ref(), &version.digest).await?;
        Ok((registered(version, false), definition))
    }
}

/// A definition that may be registered.
pub(crate) struct Compiled {
    pub(crate) plan: Arc<Plan>,
    /// The definition as it is stored.
    bytes: Vec<u8>,
}

/// One host at a time gives version numbers.
pub(crate) const REGISTERING: &str = "registering";

impl Inner {
    async fn versions(&self, tenant: &TenantId, id: &str) -> Result<Vec<WorkflowVersion>, Error> {
        for owner in [tenant, &TenantId::new(SHARED)] {
            let known = self.store.workflow_versions(owner, &WorkflowId::new(id)).await?;
            if !known.is_empty() {
                return Ok(known);
            }
        }
        Err(Error::workflow_not_found(id))
    }

    /// Compiles a definition in the tenant's turn: it may be megabytes, and nobody else waits for it.
    pub(super) async fn compile(
        &self,
        tenant: &TenantId,
        definition: Value,
        compile: fn(&Plans, Value) -> Result<Arc<Plan>, Error>,
    ) -> Result<Compiled, Error> {
        let work = move |inner: &Self| {
            let bytes = json::canonical(&definition);
            Ok(Compiled { plan: compile(&inner.plans, definition)?, bytes })
        };
        self.compute(WorkKind::Compile, tenant, work).await?
    }

    /// A new version, unless the content is the newest one's.
    pub(super) async fn register(&self, tenant: &TenantId, compiled: Compiled) -> Result<RegisteredWorkflow, Error> {
        let plan = &compiled.plan;
        let _one_at_a_time = self.registering.lock().await;
        let known = self.store.workflow(tenant, plan.id()).await?;
        if known.is_none_or(|version| version.digest != *plan.digest()) {
            return self.alone(REGISTERING, self.register_next(tenant, compiled)).await;
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
        let version = WorkflowVersion {
            tenant: tenant.clone(),
            id: plan.id().clone(),
            version: known.map_or(1, |known| known.version + 1),
            digest: plan.digest().clone(),
            name: plan.definition().name.clone(),
            created_at: self.clock.now(),
        };
        let world = self.world()?;
        self.still_holds(REGISTERING)?;
        let ticket = self.store.submit(Commit::new(
            world.generation,
            vec![Write::PutBlob { digest: version.digest.clone(), bytes }, Write::PutWorkflow(version.clone())],
        ));
        ticket.await?;
        self.plans.remember(version.clone(), plan);
        Ok(registered(version, true))
    }
}

fn registered(version: WorkflowVersion, created: bool) -> RegisteredWorkflow {
    RegisteredWorkflow {
        id: version.id,
        version: version.version,
        digest: version.digest,
        name: version.name,
        created,
        registered_at: version.created_at,
    }
}
