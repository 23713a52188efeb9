//! Registered workflows, compiled and remembered. A run is pinned to a digest; the newest version of an id is only
//! what the next run starts with.

pub(crate) mod agent_workflow;
pub(crate) mod register;
pub(crate) mod shared;

use crate::services::workflows::shared::SHARED;
use std::convert::Infallible;
use std::sync::Arc;

use baton_engine::{Features, Plan, Problem};
use baton_model::{Digest, TenantId, Timestamp, WorkflowId, code};
use baton_store::{Store, WorkflowVersion};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::{Value, json};

use crate::steps::{StepPool, Stepping, WorkKind};
use crate::{Error, ErrorKind, TestHooks};

pub(crate) struct Plans {
    features: Features,
    /// Who may switch capabilities off and on again.
    hooks: Option<Arc<dyn TestHooks>>,
    by_digest: Cache<Digest, Arc<Plan>, PlanWeight>,
    newest: Cache<(TenantId, WorkflowId), WorkflowVersion>,
    /// Which version a digest is to a tenant.
    numbers: Cache<(Digest, TenantId), u32>,
    /// What a tenant's workers were started with lately, and when the store was asked; for stores that hosts share.
    lately: Cache<(TenantId, WorkflowId), (WorkflowVersion, Timestamp)>,
}

/// How many nodes, edges and inputs are kept compiled: some hundred megabytes at most. Live runs hold their own plans, so
/// what leaves is compiled again for the next run that needs it.
const KEPT_PLAN_PARTS: u64 = 200_000;
/// How many plans that is, about.
const KEPT_PLANS: usize = 4096;
/// How many names of workflows are known without asking the store.
const KEPT_NAMES: usize = 16 * 1024;

#[derive(Clone)]
struct PlanWeight;

impl Weighter<Digest, Arc<Plan>> for PlanWeight {
    fn weight(&self, _: &Digest, plan: &Arc<Plan>) -> u64 {
        plan.weight()
    }
}

/// How long a worker may be started with a version that another host has replaced.
const LATELY_MS: u64 = 1000;

impl Plans {
    pub(crate) fn new(features: Features, hooks: Option<Arc<dyn TestHooks>>) -> Self {
        Self {
            features,
            hooks,
            by_digest: Cache::with_weighter(KEPT_PLANS, KEPT_PLAN_PARTS, PlanWeight),
            newest: Cache::new(KEPT_NAMES),
            numbers: Cache::new(KEPT_NAMES),
            lately: Cache::new(KEPT_NAMES),
        }
    }

    pub(crate) fn compile(&self, definition: Value) -> Result<Arc<Plan>, Error> {
        Plan::compile(definition, self.features()).map(Arc::new).map_err(|problems| refused(&problems))
    }

    /// The same, with every problem as it is.
    pub(crate) fn judge(&self, definition: Value) -> Result<Plan, Vec<Problem>> {
        Plan::compile(definition, self.features())
    }

    /// For a definition that a test wrote.
    pub(crate) fn compile_for_test(&self, definition: Value) -> Result<Arc<Plan>, Error> {
        let features = Features { for_test_endpoint: true, ..self.features() };
        Plan::compile(definition, features).map(Arc::new).map_err(|problems| refused(&problems))
    }

    fn features(&self) -> Features {
        self.hooks.as_ref().map_or(self.features, |hooks| hooks.features(self.features))
    }

    /// The plan of a digest, if it is in memory.
    fn known(&self, digest: &Digest) -> Option<Arc<Plan>> {
        self.by_digest.get(digest)
    }

    /// Compiles what was accepted once. Test-only node types stay readable when the mode is off, so that old runs can
    /// still be looked at.
    fn compile_again(&self, digest: &Digest, bytes: &[u8]) -> Result<Arc<Plan>, Error> {
        let features = Features {
            conformance: true,
            for_test_endpoint: true,
            live_agents: true,
            recorded: true,
            ..Features::default()
        };
        let plan = Plan::compile(parse(bytes)?, features).map(Arc::new).map_err(|problems| refused(&problems))?;
        self.by_digest.insert(digest.clone(), Arc::clone(&plan));
        Ok(plan)
    }

    pub(crate) async fn definition(&self, store: &dyn Store, digest: &Digest) -> Result<Value, Error> {
        parse(&store.blob(digest).await?.ok_or_else(lost)?)
    }

    /// The newest version that `tenant` sees under this id.
    pub(crate) async fn newest(
        &self,
        store: &dyn Store,
        tenant: &TenantId,
        id: &WorkflowId,
    ) -> Result<Option<WorkflowVersion>, Error> {
        let shared = TenantId::new(SHARED);
        if store.shared().is_some() {
            // Another host may have registered a newer one a moment ago.
            let (own, common) = tokio::try_join!(store.workflow(tenant, id), store.workflow(&shared, id))?;
            return Ok(own.or(common));
        }
        for owner in [tenant, &shared] {
            let key = (owner.clone(), id.clone());
            if let Some(version) = self.newest.get(&key) {
                return Ok(Some(version));
            }
            if let Some(version) = store.workflow(owner, id).await? {
                // A registration may have finished since the store was asked; what it noted is newer.
                let kept = self.newest.get_or_insert_with(&key, || Ok::<_, Infallible>(version));
                return Ok(kept.ok());
            }
        }
        Ok(None)
    }

    pub(crate) fn number(&self, digest: &Digest, tenant: &TenantId) -> Option<u32> {
        self.numbers.get(&(digest.clone(), tenant.clone()))
    }

    pub(crate) fn note_number(&self, digest: &Digest, tenant: &TenantId, number: u32) {
        self.numbers.insert((digest.clone(), tenant.clone()), number);
    }

    /// The same for a child, where a moment does not matter: a team's workers do not ask the store one by one which version
    /// other hosts may have registered.
    pub(crate) async fn newest_lately(
        &self,
        store: &dyn Store,
        tenant: &TenantId,
        id: &WorkflowId,
        now: Timestamp,
    ) -> Result<Option<WorkflowVersion>, Error> {
        if store.shared().is_none() {
            return self.newest(store, tenant, id).await;
        }
        let key = (tenant.clone(), id.clone());
        if let Some(seen) = self.lately.get(&key)
            && now.millis_since(seen.1) < LATELY_MS
        {
            return Ok(Some(seen.0));
        }
        let newest = self.newest(store, tenant, id).await?;
        if let Some(version) = &newest {
            self.lately.insert(key, (version.clone(), now));
        }
        Ok(newest)
    }

    pub(crate) fn remember(&self, version: WorkflowVersion, plan: Arc<Plan>) {
        self.by_digest.insert(version.digest.clone(), plan);
        // A tenant's own comes before the shared one of that name, whoever has been started with that.
        self.lately.retain(|(_, id), _| *id != version.id);
        self.newest.insert((version.tenant.clone(), version.id.clone()), version);
    }
}

/// On whose behalf a plan is compiled.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    Tenant(&'a TenantId),
    /// For a run that is on disk: if it does not end, that run is what is stuck.
    Run(Stepping<'a>),
}

/// Finds the plan that a run is pinned to.
pub(crate) struct PlanLoader {
    pub(crate) plans: Arc<Plans>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) pool: Arc<StepPool>,
}

impl PlanLoader {
    /// The plan that a digest names. Compiled in the tenant's turn, on the step thread that asks.
    pub(crate) async fn plan(&self, whose: Whose<'_>, digest: &Digest) -> Result<Arc<Plan>, Error> {
        if let Some(plan) = self.plans.known(digest) {
            return Ok(plan);
        }
        let bytes = self.store.blob(digest).await?.ok_or_else(lost)?;
        let compile = || self.plans.compile_again(digest, &bytes);
        match whose {
            Whose::Tenant(tenant) => self.pool.compute_here(WorkKind::Compile, tenant, compile).await?,
            Whose::Run(what) => {
                let turn = self.pool.turn(what.tenant).await;
                let compiled = self.pool.guarded(&turn, Stepping { kind: WorkKind::Compile, ..what }, compile);
                compiled.unwrap_or_else(|panic| {
                    let message = "A workflow's definition could not be compiled.";
                    let error = Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, message);
                    Err(error.because(std::io::Error::other(panic)))
                })
            }
        }
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "A workflow's definition is missing.")
}

fn parse(bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map_err(|error| lost().because(error))
}

/// Every problem at once; the first one leads.
fn refused(problems: &[Problem]) -> Error {
    let Some(first) = problems.first() else {
        return Error::invalid("The workflow definition is not valid.");
    };
    let lead = problems.iter().find(|problem| problem.code == code::CAPABILITY_REQUIRED).unwrap_or(first);
    let more = match problems.len() {
        1 => String::new(),
        n => format!(" ({} more)", n - 1),
    };
    let place = if lead.pointer.is_empty() { String::new() } else { format!("{}: ", lead.pointer) };
    let kind = if lead.code == code::CAPABILITY_REQUIRED { ErrorKind::Unprocessable } else { ErrorKind::Invalid };
    let mut error = Error::new(kind, lead.code, format!("{place}{}{more}", lead.message));
    error.details = lead.details.clone();
    let list: Vec<Value> = problems
        .iter()
        .map(|problem| json!({"pointer": problem.pointer, "message": problem.message, "code": problem.code}))
        .collect();
    error.with("problems", list)
}
