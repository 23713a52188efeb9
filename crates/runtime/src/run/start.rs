//! A new top-level run: what the caller asked for, judged and bounded.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_engine::{Command, ENGINE_VERSION, Plan, RunState, Start};
use baton_model::event::{Escalation, RunSettings};
use baton_model::{Limits, Owner, Principal, RunId, RunStatus, WorkflowId, code};
use baton_store::{Store, VersionedStoreId};
use serde_json::{Map, Value};

use crate::clock::{Clock, Ids};
use crate::cluster::claims::Claims;
use crate::history::log::RunLog;
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::run::disk_is_behind;
use crate::run::first_row::{duration_bound, first_row, of_this_host};
use crate::run::live::{LiveRun, RunHandle};
use crate::run::router::Router;
use crate::run::start_barrier::Starts;
use crate::run::stepper::RunStepper;
use crate::run::stored_reply::{attach_reply, claim_name};
use crate::services::agents::service::Agents;
use crate::services::budgets::{Account, AllInFlight};
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::conversations::Conversations;
use crate::services::tree_quotas::{Admitted, TreeQuotas};
use crate::services::versioned::VersionedStore;
use crate::services::versioned::run_stores::RunStores;
use crate::services::versioned::service::VersionedStores;
use crate::services::workflows::agent_workflow::stands_for_an_agent;
use crate::services::workflows::{PlanLoader, Plans, Whose};
use crate::steps::{StepPool, Turn, WorkKind};
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Idempotent, Options, StartRun, StartedRun};

/// A run that is about to begin.
pub(crate) struct Launch<'a> {
    pub(crate) run: RunId,
    pub(crate) plan: Arc<Plan>,
    pub(crate) start: Start,
    pub(crate) idempotent: Option<Idempotent<StartedRun>>,
    /// The claim that must still be held.
    pub(crate) held: Option<&'a str>,
    /// The tenant's workspace, if it was looked for since the run was asked for.
    pub(crate) workspace: Option<(Arc<Generation>, Arc<VersionedStore>)>,
}

impl Launch<'_> {
    pub(crate) fn new(run: RunId, plan: Arc<Plan>, start: Start) -> Self {
        Self { run, plan, start, idempotent: None, held: None, workspace: None }
    }
}

/// A run that has begun, and may not be shown yet.
struct Begun {
    run: StartedRun,
    /// Where its first record is on its way to the disk.
    on_its_way: Option<(Arc<Generation>, Arc<RunHandle>)>,
    /// Its place among its tenant's trees.
    admitted: Option<Admitted>,
}

impl From<StartedRun> for Begun {
    /// One that is durable.
    fn from(run: StartedRun) -> Self {
        Self { run, on_its_way: None, admitted: None }
    }
}

impl Begun {
    /// Waits until it may be shown.
    async fn durable(self) -> Result<StartedRun, Error> {
        if let Some((live, handle)) = &self.on_its_way {
            handle.durable(&live.ending, 1).await?;
        }
        if let Some(admitted) = self.admitted {
            admitted.durable();
        }
        Ok(self.run)
    }
}

/// Starts runs.
pub(crate) struct RunStarter {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) exclusive: Arc<LoadLocks>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) in_flight: Arc<AllInFlight>,
    pub(crate) loading: Arc<LoadLocks>,
    pub(crate) options: Arc<Options>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) starting: Arc<Starts>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) plan_loader: Arc<PlanLoader>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) router: Arc<Router>,
    pub(crate) stepper: Arc<RunStepper>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) tree_quotas: Arc<TreeQuotas>,
    pub(crate) trees: Arc<TreeSizes>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl RunStarter {
    pub(crate) async fn start_run(
        self: &Arc<Self>,
        who: &Principal,
        request: StartRun,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<StartedRun, Error> {
        let who = who.clone();
        // Judging the request is its tenant's computation already: schemas, inputs, bounds.
        let beginning =
            self.pool.on_step_threads(self, |room| async move { room.start_here(&who, request, idempotent).await });
        beginning.await?.durable().await
    }

    async fn start_here(
        self: &Arc<Self>,
        who: &Principal,
        request: StartRun,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<Begun, Error> {
        if let (Some(_), Some(asked)) = (&request.cause, &idempotent)
            && let Some(known) = self.taken_over(request.cause.as_ref(), &RunId::handed_over(&asked.key)).await?
        {
            return Ok(known.into());
        }
        let admitted = self.tree_quotas.admit(&who.tenant).await?;
        let begun = self.start_admitted(who, request, idempotent).await?;
        Ok(Begun { admitted, ..begun })
    }

    async fn start_admitted(
        self: &Arc<Self>,
        who: &Principal,
        request: StartRun,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<Begun, Error> {
        let id = WorkflowId::new(request.workflow_id.clone());
        if let Some(conversation) = &request.conversation {
            crate::services::conversations::check_id(conversation)?;
        }
        if let Some(scope) = &request.scope_id {
            crate::services::versioned::check_scope(scope, "/scopeId")?;
        }
        if request.source.is_none() && stands_for_an_agent(id.as_str()) {
            // Made here for agents that are started by their own id; there may be none yet.
            return Err(Error::workflow_not_found(id.as_str()));
        }
        let live = self.storage.live()?;
        // Both at once: on a store that hosts share these are questions to it, and other starts ask the same.
        let newest = self.plans.newest(self.store.as_ref(), &who.tenant, &id);
        let (version, workspace) = tokio::try_join!(newest, self.versioned.workspace(&live, &who.tenant))?;
        let version = version.ok_or_else(|| Error::workflow_not_found(id.as_str()))?;
        let plan = self.plan_loader.plan(Whose::Tenant(&who.tenant), &version.digest).await?;
        check_engine_version(who, request.force_engine_version)?;
        let (exclusive, conversation) = (request.exclusive, request.conversation.clone());
        let request = StartRun { scope_id: conversation.clone().or(request.scope_id), ..request };
        let scope = request.scope_id.clone();
        let turn = self.pool.turn(&who.tenant).await;
        let judge = async { self.judge(who, &plan, request) };
        let start = self.pool.compute_in(&turn, WorkKind::Judge, &who.tenant, judge).await??;
        if let Some(conversation) = conversation.filter(|_| start.settings.cause.is_none()) {
            drop(turn);
            return self.start_turn(who, conversation, plan, start, idempotent).await.map(Begun::from);
        }
        if start.settings.cause.is_none() && !exclusive {
            let workspace = Some((live, workspace));
            let launch = Launch { workspace, idempotent, ..Launch::new(self.ids.run(), plan, start) };
            return self.begin(who, launch, Some(turn)).await;
        }
        drop(turn);
        if start.settings.cause.is_some() {
            return self.take_over(who, plan, start, exclusive, idempotent).await.map(Begun::from);
        }
        let who = who.clone();
        self.tasks
            .see_through_steps(self, |room| async move {
                let name = format!("scope:{}/{}", who.tenant, scope.as_deref().unwrap_or_default());
                // Held until the run is durable, and so visible to whoever asks next. Others than its scope do not wait: it
                // has its tenant's turn to wait for.
                let _one_at_a_time = room.exclusive.lock(&name).await;
                let only = async {
                    if let Some(active) = room.store.active_run(&who.tenant, scope.as_deref()).await? {
                        return Err(already_active(&active));
                    }
                    let launch = Launch { idempotent, held: Some(&name), ..Launch::new(room.ids.run(), plan, start) };
                    room.launch(&who, launch).await
                };
                room.claims.alone(&name, Lane::Of(&who.tenant), only).await
            })
            .await
            .map(Begun::from)
    }

    /// Starts a run and waits until its beginning is durable.
    pub(crate) async fn launch(&self, who: &Principal, launch: Launch<'_>) -> Result<StartedRun, Error> {
        self.begin(who, launch, None).await?.durable().await
    }

    /// `turn` is kept if nothing has to be waited for.
    async fn begin(&self, who: &Principal, launch: Launch<'_>, turn: Option<Turn>) -> Result<Begun, Error> {
        let Launch { run, plan, start, idempotent, held, workspace } = launch;
        let live = self.storage.live()?;
        if !live.outbox.has_room(&who.tenant) {
            self.storage.flush(&live);
            return Err(disk_is_behind());
        }
        if let Some(name) = held {
            self.claims.still_holds(name)?;
        }
        if let Some(asked) = &idempotent {
            self.claims.still_holds(&claim_name(&asked.key))?;
        }
        let at = self.clock.now();
        let row = first_row(&run, &who.tenant, &plan, &start, at);
        let state = Arc::new(RunState::new(run.clone(), plan));
        let scope = VersionedStoreId::memory(&who.tenant, row.memory_scope.clone());
        let workspace = workspace.filter(|(of, _)| Arc::ptr_eq(of, &live)).map(|(_, workspace)| workspace);
        let turn = turn.filter(|_| start.settings.scope_id.is_none() && workspace.is_some());
        let memory = match start.settings.scope_id {
            Some(_) => self.versioned.ledger(&live, scope).await?,
            // A scope of the run's own: nobody can have written to it yet.
            None => live.ledgers.adopt(scope, 0),
        };
        let workspace = match workspace {
            Some(workspace) => workspace,
            None => self.versioned.workspace(&live, &who.tenant).await?,
        };
        let ledgers = RunStores { memory, workspace };
        let mut start = start;
        let budget = start.settings.budget.as_deref().cloned();
        let chain = live.chain(&run);
        let account =
            budget.map(|budget| live.budgets.open(&chain, Account::new(run.clone(), budget, self.in_flight.of(&run))));
        let handle =
            Arc::new(RunHandle::new(LiveRun { account, ..LiveRun::new(chain, state, row, ledgers, false) }, 0));
        let mut messages = VecDeque::new();
        let turn = match turn {
            Some(turn) => turn,
            None => self.pool.turn(&who.tenant).await,
        };
        let status = {
            let _starting = self.starting.begin(&who.tenant);
            let mut head = handle.head_now().ok_or_else(Error::stepping)?;
            let id = run.clone();
            start.settings.versions = head.ledgers.versions();
            head.attached = idempotent.map(|asked| attach_reply(asked, move |status, _| started(&id, status)));
            live.runs.insert(&run, &handle);
            let command = Command::Start(Box::new(start));
            if let Err(error) = self.stepper.step_guarded(&turn, &live, &mut head, 0, &command, &mut messages) {
                head.gone = true;
                live.runs.remove(&run);
                return Err(error);
            }
            head.state.status()
        };
        drop(turn);
        // Whatever is left to do goes on by itself; the caller waits only for the run's beginning to be durable.
        self.router.finish_soon(&live, messages);
        Ok(Begun { on_its_way: Some((live, handle)), ..Begun::from(started(&run, status)) })
    }

    fn escalation(&self, configurable: &Map<String, Value>) -> Result<Escalation, Error> {
        let host = self.options.escalation.clone();
        let agent_threshold = read_threshold(configurable)?.unwrap_or(host.agent_threshold);
        Ok(Escalation { agent_threshold, ..host })
    }

    fn judge(&self, who: &Principal, plan: &Plan, request: StartRun) -> Result<Start, Error> {
        let limits = &self.options.limits;
        let tool_scopes = narrowed(tool_scopes(who), request.cause.as_ref().and_then(|cause| cause.scopes.clone()));
        let (depth, simulated) = request.cause.as_ref().map_or((0, false), |cause| (cause.depth, cause.simulated));
        self.trees.check_depth(depth).map_err(|fault| {
            Error::new(ErrorKind::Unprocessable, code::NESTING_LIMIT_EXCEEDED, fault.message).with("depth", depth)
        })?;
        let configurable = request.configurable;
        check_mock_provider(who, &configurable)?;
        check_configurable(plan, &configurable)?;
        crate::services::models::check_options(&configurable)?;
        let bounds = bounds(limits, &configurable)?;
        let escalation = self.escalation(&configurable)?;
        let tool_grant = crate::services::agents::tool_grant(&configurable)?;
        crate::services::agents::check_require_tools(&configurable)?;
        let mut agents = self.agents.pins(&who.tenant, plan, &configurable).map_err(Error::from_fault)?;
        if let Some(card) = &request.card {
            agents.values_mut().for_each(|pin| pin.card = card.clone());
        }
        let models = self.agents.model_pins(plan, &configurable, &agents).map_err(Error::from_fault)?;
        let budget = self.agents.budget(plan, &configurable, &agents, &models)?;
        let settings = RunSettings {
            configurable,
            scope_id: request.scope_id,
            cause: request.cause.map(Box::new),
            trace: request.trace.map(Box::new),
            depth,
            max_node_executions: bounds.nodes.unwrap_or(limits.max_node_executions),
            max_duration_ms: duration_bound(limits, plan, bounds.duration_ms),
            max_loop_iterations: bounds.turns.unwrap_or(limits.max_loop_iterations),
            escalation: Box::new(escalation),
            agents,
            models: Box::new(models),
            source: request.source,
            tool_grant,
            tool_scopes,
            simulated,
            budget,
            ..of_this_host(&self.options)
        };
        Ok(Start {
            inputs: request.inputs,
            variables: Map::new(),
            owner: Owner {
                tenant: who.tenant.clone(),
                principal: Some(who.subject.clone()),
                subject: who.acts_for.clone(),
            },
            tags: request.tags,
            metadata: request.metadata,
            withdrawn: request.withdrawn,
            settings: Box::new(settings),
        })
    }
}

pub(crate) fn check_configurable(plan: &Plan, configurable: &Map<String, Value>) -> Result<(), Error> {
    plan.check_configurable(configurable).map_err(|(path, error)| {
        Error::invalid(format!("`configurable` does not fit the workflow's schema: {error}."))
            .with("path", format!("/configurable{path}"))
    })
}

/// The scopes that tools are called with on behalf of this caller; `None` means all.
pub(crate) fn tool_scopes(who: &Principal) -> Option<Vec<String>> {
    (!who.scopes.is_whole_tenant()).then(|| who.scopes.names())
}

/// The scopes that are in both lists, where `None` are all.
pub(crate) fn narrowed(held: Option<Vec<String>>, within: Option<Vec<String>>) -> Option<Vec<String>> {
    match (held, within) {
        (Some(held), Some(within)) => Some(within.into_iter().filter(|scope| held.contains(scope)).collect()),
        (held, within) => held.or(within),
    }
}

/// A run may set its agents' own threshold; the floor is the host's.
pub(crate) fn read_threshold(configurable: &Map<String, Value>) -> Result<Option<f64>, Error> {
    match configurable.get("escalationThreshold") {
        None => Ok(None),
        Some(value) => value.as_f64().filter(|n| (0.0..=1.0).contains(n)).map(Some).ok_or_else(|| {
            Error::invalid("`configurable.escalationThreshold` lies between 0 and 1.")
                .with("key", "escalationThreshold")
        }),
    }
}

/// The protocol promises a live status here, even to a client of a run that is already over.
pub(crate) fn started(run: &RunId, status: RunStatus) -> StartedRun {
    StartedRun { run_id: run.clone(), status: if status.is_terminal() { RunStatus::Running } else { status } }
}

/// What a caller asks for, never more than the host allows.
#[derive(Default)]
pub(crate) struct Bounds {
    pub(crate) duration_ms: Option<u64>,
    pub(crate) turns: Option<u64>,
    pub(crate) nodes: Option<u64>,
}

pub(crate) fn bounds(limits: &Limits, configurable: &Map<String, Value>) -> Result<Bounds, Error> {
    let nodes = bound(configurable, "recursionLimit", 1)?;
    let duration = bound(configurable, "runTimeoutMs", 1)?;
    let turns = bound(configurable, "maxLoopIterations", 1)?;
    if let Some(rounds) = bound(configurable, "maxToolRounds", 1)?.filter(|n| *n > Limits::MOST_TOOL_ROUNDS.into()) {
        let most = Limits::MOST_TOOL_ROUNDS;
        let message = format!("`configurable.maxToolRounds` is at most {most}.");
        return Err(Error::invalid(message).with("key", "maxToolRounds").with("value", rounds).with("max", most));
    }
    Ok(Bounds {
        duration_ms: duration.map(|ms| ms.min(limits.max_run_duration_ms)),
        turns: turns.map(|turns| turns.min(limits.max_loop_iterations)),
        nodes: nodes.map(|nodes| nodes.min(limits.max_node_executions)),
    })
}

fn bound(configurable: &Map<String, Value>, key: &str, least: u64) -> Result<Option<u64>, Error> {
    match configurable.get(key) {
        None => Ok(None),
        Some(value) => value.as_u64().filter(|n| *n >= least).map(Some).ok_or_else(|| {
            Error::invalid(format!("`configurable.{key}` is a whole number, at least {least}."))
                .with("key", key)
                .with("value", value.clone())
                .with("min", least)
        }),
    }
}

fn check_mock_provider(who: &Principal, configurable: &Map<String, Value>) -> Result<(), Error> {
    const SUPPORTED: &[&str] = &["stream-text"];
    let Some(provider) = configurable.get("mockProvider") else { return Ok(()) };
    let id = provider.get("id").and_then(Value::as_str).unwrap_or_default();
    let explain = |error: Error| {
        error
            .with("requestedProvider", id)
            .with("supportedProviders", SUPPORTED.iter().map(|s| Value::from(*s)).collect::<Vec<_>>())
    };
    if !who.test {
        let message = "Mock providers need a test key (one that starts with hk_test_).";
        return Err(explain(Error::new(ErrorKind::Forbidden, code::MOCK_PROVIDER_FORBIDDEN, message)));
    }
    if !SUPPORTED.contains(&id) {
        let message = format!("There is no mock provider `{id}`.");
        return Err(explain(Error::new(ErrorKind::Invalid, code::UNSUPPORTED_MOCK_PROVIDER, message)));
    }
    Ok(())
}

fn check_engine_version(who: &Principal, forced: Option<i64>) -> Result<(), Error> {
    let Some(version) = forced else { return Ok(()) };
    if !who.test {
        let message = "Forcing an engine version needs a test key (one that starts with hk_test_).";
        return Err(Error::new(ErrorKind::Forbidden, code::FORCE_ENGINE_VERSION_FORBIDDEN, message));
    }
    if version != i64::from(ENGINE_VERSION) {
        let message = format!("This host runs engine version {ENGINE_VERSION} only.");
        return Err(Error::new(ErrorKind::Invalid, code::UNSUPPORTED_FORCE_ENGINE_VERSION, message)
            .with("min", ENGINE_VERSION)
            .with("max", ENGINE_VERSION));
    }
    Ok(())
}

fn already_active(active: &RunId) -> Error {
    let message = "A run of this scope has not ended yet. Wait for it or cancel it.";
    Error::new(ErrorKind::Conflict, code::RUN_ALREADY_ACTIVE, message)
        .with("activeRunId", active.as_str())
        .with("activeHost", "cloud")
        .with("retryAfter", 1)
}
