//! Children: creating them once, hearing of their end, ending them.

pub(crate) mod remote;
pub(crate) mod tree_sizes;

use std::collections::VecDeque;
use std::sync::Arc;

use baton_engine::{ChildOutcome, Command, RunState, Start};
use baton_model::event::{ChildPlan, ParentLink, RunSettings};
use baton_model::{Fault, Owner, RunId, RunStatus, code};
use baton_store::{RunRow, Store, VersionedStoreId};
use serde_json::Map;

use crate::clock::Clock;
use crate::journal::generation::Generation;
use crate::quarantine::service::Quarantines;
use crate::quarantine::suspect_guard::SuspectGuard;
use crate::run::eviction_queue::EvictionQueue;
use crate::run::first_row::{duration_bound, first_row, of_this_host};
use crate::run::live::{LiveRun, RunHandle};
use crate::run::load::RunLoader;
use crate::run::message::Message;
use crate::run::outcome;
use crate::run::stepper::RunStepper;
use crate::services::agents::service::Agents;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::versioned::service::VersionedStores;
use crate::services::workflows::agent_workflow::agent_of;
use crate::services::workflows::register::Workflows;
use crate::services::workflows::{PlanLoader, Plans, Whose};
use crate::steps::StepPool;
use crate::{Error, ErrorKind, Options};

/// Makes children on this host, ends them, and tells parents about them.
pub(crate) struct Children {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) eviction_queue: Arc<EvictionQueue>,
    pub(crate) options: Arc<Options>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) plan_loader: Arc<PlanLoader>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) stepper: Arc<RunStepper>,
    pub(crate) trees: Arc<TreeSizes>,
    pub(crate) suspect_guard: Arc<SuspectGuard>,
    pub(crate) versioned: Arc<VersionedStores>,
    pub(crate) workflows: Arc<Workflows>,
}

impl Children {
    /// Creates the child, unless it exists: its id names its place, so a second attempt finds the first one's child.
    #[expect(clippy::too_many_arguments, reason = "the fields of one message, unpacked")]
    pub(crate) async fn start_child(
        &self,
        live: &Generation,
        plan: ChildPlan,
        link: ParentLink,
        depth: u32,
        max_duration_ms: Option<u64>,
        look_first: bool,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        let parent = link.run.clone();
        let child = plan.run.clone();
        let exists = live.run(&child).is_some() || (look_first && self.store.run(&child).await?.is_some());
        if exists {
            self.stepper.step(live, &parent, &Command::ChildStarted { child: child.clone() }, messages).await?;
            messages.push_back(Message::CheckChild { parent, child, roll_call: false });
            return Ok(());
        }
        if let Err(fault) = self.create_child(live, plan, link, depth, max_duration_ms, messages).await? {
            self.stepper.step(live, &parent, &Command::ChildRefused { child, fault }, messages).await?;
        }
        Ok(())
    }

    /// `Ok(Err(fault))` when the child cannot exist, which is the parent's problem and not the host's.
    async fn create_child(
        &self,
        live: &Generation,
        plan: ChildPlan,
        link: ParentLink,
        depth: u32,
        max_duration_ms: Option<u64>,
        messages: &mut VecDeque<Message>,
    ) -> Result<Result<(), Fault>, Error> {
        let limits = &self.options.limits;
        let root = link.root.clone();
        if let Err(fault) = self.trees.room_in_tree(depth, &root).await? {
            return Ok(Err(fault));
        }
        let parent_slot = self.loader.handle(live, &link.run).await?;
        let (owner, configurable, handed_down, mut ledgers, account) = {
            let head = parent_slot.head().await.ok_or_else(Error::stepping)?;
            let started = head.state.started().ok_or_else(Error::run_not_found)?;
            // Somebody of another tenant, whom only a file speaks of, is nobody here.
            let tenant = head.row.tenant.clone();
            let owner = match started.owner.tenant == tenant {
                true => started.owner.clone(),
                false => Owner { tenant, principal: None, subject: None },
            };
            let configurable = crate::services::agents::inherited(&started.private.configurable);
            let handed_down = RunSettings { simulated: crate::run::simulates(&head), ..started.private.handed_down() };
            (owner, configurable, handed_down, head.ledgers.clone(), head.account.clone())
        };
        let tenant = owner.tenant.clone();
        if plan.isolated {
            ledgers.memory = self.versioned.ledger(live, VersionedStoreId::memory(&tenant, plan.run.as_str())).await?;
        }
        // An agent by itself is a workflow of this host's making, which may not be there yet.
        if handed_down.workers.is_none()
            && let Some(agent) = agent_of(plan.workflow.as_str())
            && let Err(error) = self.workflows.workflow_of_agent(&tenant, agent).await
        {
            if error.kind == ErrorKind::Invalid {
                return Ok(Err(error.fault()));
            }
            return Err(error);
        }
        let version = match &handed_down.workers {
            Some(versions) => self.workflows.version_for_branch(&tenant, &plan.workflow, versions).await?,
            None => {
                let now = self.clock.now();
                let newest = self.plans.newest_lately(self.store.as_ref(), &tenant, &plan.workflow, now);
                newest.await?.map(|version| version.digest)
            }
        };
        let Some(digest) = version else {
            let message = format!("There is no workflow `{}` to run as a child.", plan.workflow);
            return Ok(Err(Fault::new(code::UNKNOWN_CHILD_WORKFLOW, message)));
        };
        let compiled = self.plan_loader.plan(Whose::Tenant(&tenant), &digest).await?;
        let parent = link.run.clone();
        let agents = match self.agents.pins(&tenant, &compiled, &configurable) {
            Ok(agents) => agents,
            Err(fault) => return Ok(Err(fault)),
        };
        let models = match self.agents.model_pins(&compiled, &configurable, &agents) {
            Ok(models) => models,
            Err(fault) => return Ok(Err(fault)),
        };
        let host = of_this_host(&self.options);
        let isolated = plan.isolated.then(|| plan.run.to_string());
        let settings = RunSettings {
            configurable,
            memory_scope: isolated.or_else(|| handed_down.memory_scope.clone()),
            parent: Some(link),
            depth,
            max_node_executions: host.max_node_executions,
            max_duration_ms: duration_bound(limits, &compiled, max_duration_ms),
            max_loop_iterations: host.max_loop_iterations,
            max_fan_out: host.max_fan_out,
            escalation: host.escalation,
            values: host.values,
            context: host.context,
            agents,
            models: Box::new(models),
            ..handed_down
        };
        let mut start = Start {
            inputs: plan.inputs,
            variables: plan.variables,
            owner,
            tags: Vec::new(),
            metadata: Map::new(),
            withdrawn: false,
            settings: Box::new(settings),
        };
        let at = self.clock.now();
        let workspace_scope = ledgers.workspace.id.scope.clone();
        let row = RunRow { workspace_scope, ..first_row(&plan.run, &tenant, &compiled, &start, at) };
        let state = Arc::new(RunState::new(plan.run.clone(), compiled));
        let handle = Arc::new(RunHandle::new(
            LiveRun { account, ..LiveRun::new(Arc::clone(&parent_slot.chain), state, row, ledgers, false) },
            0,
        ));
        let singly = self.suspect_guard.singly_of(&root).await?;
        // Nobody waits for a run that is being stepped while they hold a place to step in.
        let parent_alone = parent_slot.stepping().await.ok_or_else(Error::stepping)?;
        let turn = self.pool.turn(&tenant).await;
        {
            // Under the parent's lock, so that a cancellation of the parent either sees the child or prevents it.
            // Nobody else can hold the new child's lock yet.
            let parent_head = parent_slot.head().await.ok_or_else(Error::stepping)?;
            if !parent_head.state.wants_child(&plan.run) || live.run(&plan.run).is_some() {
                return Ok(Ok(()));
            }
            // Counted only once nothing else stands in the way: a child that was not made must not use up the bound.
            if let Err(fault) = self.trees.grow_tree(&root) {
                return Ok(Err(fault));
            }
            let mut head = handle.head_now().ok_or_else(Error::stepping)?;
            // Read as late as can be: what the parent has seen, its child sees too.
            start.settings.versions = head.ledgers.versions();
            live.runs.insert(&plan.run, &handle);
            drop(parent_head);
            drop(parent_alone);
            // The parent hears that the child exists before it hears anything the child did.
            messages.push_back(Message::To { run: parent, command: Command::ChildStarted { child: plan.run.clone() } });
            let command = Command::Start(Box::new(start));
            if let Err(error) = self.stepper.step_guarded(&turn, live, &mut head, 0, &command, messages) {
                head.gone = true;
                live.runs.remove(&plan.run);
                messages.retain(|message| !matches!(message, Message::To { command: Command::ChildStarted { child }, .. } if *child == plan.run));
                return Ok(Err(error.fault()));
            }
        }
        drop(turn);
        if singly.is_some() {
            let queued = handle.head().await.map_or(0, |head| head.queued);
            self.suspect_guard.stepped_singly(&plan.run, &handle, queued).await;
        }
        Ok(Ok(()))
    }

    pub(crate) async fn check_child(
        &self,
        live: &Generation,
        parent: &RunId,
        child: &RunId,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        let Some((mut state, mut row)) = self.peek(live, child).await? else { return Ok(()) };
        loop {
            let (child_run, status) = (child.clone(), state.status());
            let command = if status.is_terminal() {
                Command::ChildEnded { child: child_run, outcome: outcome(&state, &row) }
            } else {
                Command::ChildStatus { child: child_run, status }
            };
            self.stepper.step(live, parent, &command, messages).await?;
            // Whoever tells the parent last has looked last: old news is never what stays.
            match self.peek(live, child).await? {
                Some((now, shown)) if now.status() != status => (state, row) = (now, shown),
                _ => return Ok(()),
            }
        }
    }

    /// Where a run stands, if it exists.
    async fn peek(&self, live: &Generation, run: &RunId) -> Result<Option<(Arc<RunState>, RunRow)>, Error> {
        match self.loader.handle(live, run).await {
            Ok(handle) => {
                let seen = {
                    let head = handle.head().await.ok_or_else(Error::stepping)?;
                    (Arc::clone(&head.state), head.row.clone())
                };
                self.eviction_queue.visit([run.clone()]);
                Ok(Some(seen))
            }
            Err(error) if error.code == code::RUN_NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn cancel_child(
        &self,
        live: &Generation,
        parent: &RunId,
        child: &RunId,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        let command =
            Command::Cancel { reason: Some("parent-cancelled".to_owned()), by: None, parent: Some(parent.clone()) };
        match self.stepper.step(live, child, &command, messages).await {
            Ok(stepped) if stepped.status.is_terminal() => {
                // It may have ended before this cancel, and then nobody told the parent in this life.
                let (parent, child) = (parent.clone(), child.clone());
                messages.push_back(Message::CheckChild { parent, child, roll_call: false });
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) if error.code == code::RUN_NOT_FOUND => {
                // Planned but never created, and now never will be. The end is for a parent that believes otherwise.
                let fault = Fault::new(code::CHILD_CANCELLED, "The child was cancelled before it was created.");
                let outcome = ChildOutcome {
                    status: RunStatus::Cancelled,
                    variables: Map::new(),
                    error: None,
                    memory: 0,
                    usage: None,
                };
                let refused = Command::ChildRefused { child: child.clone(), fault };
                let ended = Command::ChildEnded { child: child.clone(), outcome };
                messages.extend([refused, ended].map(|command| Message::To { run: parent.clone(), command }));
                Ok(())
            }
            Err(error) if self.quarantine.ended_by_hand(live, child, &command, &error).await? => {
                let (parent, child) = (parent.clone(), child.clone());
                let outcome = ChildOutcome {
                    status: RunStatus::Cancelled,
                    variables: Map::new(),
                    error: None,
                    memory: 0,
                    usage: None,
                };
                messages.push_back(Message::To { run: parent, command: Command::ChildEnded { child, outcome } });
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
