//! Forks. Making one is one commit, however long the source's log: the new run's row says where it comes from, and
//! what came before is read from there.

mod answers;
mod approval;
mod inherited;
mod overlay;
mod point;
pub(crate) mod service;
mod workers;

use std::sync::Arc;

use baton_engine::{Command, RunState, Start};
use baton_model::event::{Escalation, RunSettings};
use baton_model::{Event, ForkMode, Origin, Overlay, Principal, Record, RunId, RunStatus, Timestamp, Versions};
use baton_store::{CommitError, InterruptRow, LogChain, Reply, RunRow, StoredRecord, VersionedStoreId, Write};

use self::point::Point;
use crate::history::fork::service::Forks;
use crate::history::log::pinned;
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::run::live::LiveRun;
use crate::run::stored_reply::{REPLY_TTL_MS, claim_name};
use crate::run::tree::{is_replay, root_of};
use crate::services::workflows::Whose;
use crate::steps::WorkKind;
use crate::{Error, ForkRun, ForkedRun, Idempotent};

impl Forks {
    pub(crate) async fn fork_run(
        self: &Arc<Self>,
        who: &Principal,
        source: &RunId,
        request: ForkRun,
        idempotent: Option<Idempotent<ForkedRun>>,
    ) -> Result<ForkedRun, Error> {
        let source = self.store.run(source).await?.filter(|row| row.tenant == who.tenant);
        let source = source.ok_or_else(Error::run_not_found)?;
        let admitted = self.tree_quotas.admit(&who.tenant).await?;
        let at = self.clock.now();
        let ForkRun { mode, from_seq: asked, .. } = request;
        let run = self.ids.run();
        let Point { seq: from_seq, begun } = match mode {
            ForkMode::Branch => self.branch_point(&source, asked).await?,
            ForkMode::Replay => Point { seq: asked, ..Point::default() },
        };
        let requested = (from_seq != asked).then_some(asked);
        let request = ForkRun { from_seq, ..request };
        let before =
            self.log.log(&source, from_seq.saturating_sub(1), 1).await?.pop().ok_or_else(Error::run_not_found)?;
        let origin = Origin {
            source: source.id.clone(),
            seq: from_seq,
            requested,
            mode,
            at,
            moment: Some(before.at),
            length: (mode == ForkMode::Replay).then_some(source.next_seq),
            versions: before.versions,
            overlay: match mode {
                ForkMode::Branch => self.overlay(who, &source, &request).await?,
                ForkMode::Replay => Overlay::default(),
            },
            side_effects: request.side_effects,
            workers: match mode {
                ForkMode::Branch => self.worker_versions(&source, &begun, at).await?,
                ForkMode::Replay => None,
            },
        };
        let approved = match mode {
            ForkMode::Branch => self.approved(who, &source, &request, &origin.overlay, &before).await?,
            ForkMode::Replay => None,
        };
        let mut row = fork_row(&run, &source, origin.clone(), at);
        // One that shares nothing begins a chain of its own.
        row.chain = LogChain::after(before.sum.filter(|_| from_seq > 0));
        let mut writes = Vec::new();
        match mode {
            ForkMode::Replay => {
                // Whoever looks at it finds a beginning, even before it has gone anywhere.
                let first = match from_seq {
                    0 => self.log.log(&source, 0, 1).await?,
                    _ => Vec::new(),
                };
                let first = first.iter().map(|stored| Ok(StoredRecord::encode(&run, &stored.decode(&source.id)?)));
                let records: Vec<StoredRecord> = first.collect::<Result<_, Error>>()?;
                writes.push(Write::CreateRun(row.clone()));
                writes.push(begun_log(&mut row, from_seq, records));
            }
            ForkMode::Branch => {
                let mut records = match from_seq {
                    0 => vec![self.beginning(&run, &source, &origin).await?],
                    _ => Vec::new(),
                };
                let seq = from_seq + records.len() as u64;
                records.extend(approved.map(|event| approval::recorded(&run, seq, &origin, event)));
                writes.push(Write::CreateRun(row.clone()));
                writes.push(begun_log(&mut row, from_seq, records));
                writes.extend(fork_versioned_stores(&source, &row, origin.versions));
            }
        }
        let claimed = idempotent.as_ref().map(|asked| claim_name(&asked.key));
        let forked = ForkedRun {
            run_id: run.clone(),
            source_run_id: source.id.clone(),
            from_seq,
            requested_from_seq: requested,
            mode,
        };
        writes.extend(idempotent.map(|Idempotent { key, request, render }| {
            let (status, body) = render(&forked);
            Write::PutReply(Reply { key, request, status, body, expires_at: at.plus_millis(REPLY_TTL_MS) })
        }));
        let live = self.storage.live()?;
        if let Some(name) = claimed {
            self.claims.still_holds(&name)?;
        }
        match self.storage.write(live.generation, Lane::Of(&row.tenant), writes).await {
            Err(CommitError::LogGone { run: gone }) => {
                let now = self.store.run(&gone).await?.and_then(|row| row.pruned);
                return Err(Error::run_pruned(now.map_or(at, |pruned| pruned.at)));
            }
            submitted => submitted?,
        }
        if let Some(admitted) = admitted {
            admitted.durable();
        }
        self.tasks.spawn_step(self, |room| async move { room.set_going(&run).await });
        Ok(forked)
    }

    /// Lets a fork go on, at first and after a restart.
    pub(crate) async fn set_going(self: &Arc<Self>, run: &RunId) {
        let fork = run.clone();
        match self.pool.on_step_threads(self, |room| async move { room.go_on_with_fork(&fork).await }).await {
            Ok(()) => {}
            // Whoever releases it asks anew.
            Err(error) if error.is_quarantined() => {}
            Err(error) => {
                tracing::warn!(%run, %error, "a fork could not go on; trying again shortly");
                self.timers.set(run, self.clock.now().plus_millis(crate::clock::RETRY_MS));
            }
        }
    }

    async fn go_on_with_fork(&self, run: &RunId) -> Result<(), Error> {
        let Some(row) = self.store.run(run).await? else { return Ok(()) };
        if !is_replay(&row) {
            return self.begin_branch(run).await;
        }
        // A replay has no live run whose loading would ask.
        match self.quarantine.quarantine_of(root_of(&row)).await? {
            Some(quarantine) => Err(Error::quarantined(&quarantine)),
            None => self.replays.replay(run).await,
        }
    }

    /// What a branch inherits that is not its log: open questions get rows of their own.
    async fn begin_branch(&self, run: &RunId) -> Result<(), Error> {
        let live = self.storage.live()?;
        let handle = self.loader.handle(&live, run).await?;
        {
            let mut head = handle.head().await.ok_or_else(Error::stepping)?;
            self.refresh(&live, &mut head);
        }
        live.outbox.flush(self.store.as_ref(), live.generation);
        self.commands.advance(run).await
    }

    fn refresh(&self, live: &Generation, head: &mut LiveRun) {
        let open = head.state.interrupts().map(|interrupt| {
            Write::OpenInterrupt(InterruptRow {
                run: head.row.id.clone(),
                tenant: head.row.tenant.clone(),
                workflow: head.row.workflow.clone(),
                node: interrupt.node.clone(),
                interrupt_id: interrupt.interrupt_id.clone(),
                key: interrupt.key.clone(),
                kind: interrupt.kind.clone(),
                data: interrupt.data.clone(),
                requested_at: interrupt.requested_at,
                expires_at: interrupt.expires_at,
            })
        });
        let mut writes: Vec<Write> = open.collect();
        let expected = head.state.next_seq();
        self.stepper.update_row(head, self.clock.now());
        crate::run::summary::summarise(&mut head.row, &head.state, &[], head.account.as_deref(), 0);
        writes.push(Write::Append { row: head.row.clone(), expected, records: Vec::new() });
        live.outbox.push(&head.row.tenant, writes, head.chains(None));
    }

    /// The first record of a branch from the very beginning: the source's start with the overlay laid over it.
    async fn beginning(&self, run: &RunId, source: &RunRow, origin: &Origin) -> Result<StoredRecord, Error> {
        let first = self.log.log(source, 0, 1).await?.pop().ok_or_else(Error::run_not_found)?.decode(&source.id)?;
        let Event::RunStarted(started) = &first.event else { return Err(Error::run_not_found()) };
        let facts = &started.private;
        let plan = self.plan_loader.plan(Whose::Tenant(&source.tenant), &pinned(&first.event)?).await?;
        let mut inputs = started.full_inputs();
        inputs.extend(origin.overlay.inputs.clone());
        let mut configurable = facts.configurable.clone();
        configurable.extend(origin.overlay.configurable.clone());
        let overlay = &origin.overlay;
        let settings = RunSettings {
            configurable,
            scope_id: None,
            memory_scope: None,
            versions: origin.versions,
            parent: None,
            cause: None,
            depth: 0,
            max_node_executions: overlay.max_node_executions.unwrap_or(facts.max_node_executions),
            max_duration_ms: overlay.max_duration_ms.unwrap_or(facts.max_duration_ms),
            max_loop_iterations: overlay.max_loop_iterations.unwrap_or(facts.max_loop_iterations),
            max_fan_out: overlay.max_fan_out.unwrap_or(facts.max_fan_out),
            escalation: Box::new(Escalation {
                agent_threshold: overlay.agent_threshold.unwrap_or(facts.escalation.agent_threshold),
                floor: overlay.decision_floor.unwrap_or(facts.escalation.floor),
                ..(*facts.escalation).clone()
            }),
            models: Box::new((*facts.models).clone().overlaid(&overlay.models)),
            tool_grant: overlay.tool_grant.clone().or_else(|| facts.tool_grant.clone()),
            tool_scopes: overlay.tool_scopes.clone().or_else(|| facts.tool_scopes.clone()),
            budget: overlay.budget.clone().or_else(|| facts.budget.clone()),
            workers: origin.workers.clone(),
            values: Some(Box::new(facts.value_bounds())),
            // One that begins anew begins under today's rules.
            context: Some(facts.context.unwrap_or(self.options.context)),
            ..facts.clone()
        };
        let start = Start {
            inputs,
            variables: overlay.variables.clone(),
            owner: overlay.owner.clone().unwrap_or_else(|| started.owner.clone()),
            tags: started.tags.clone(),
            metadata: started.metadata.clone(),
            withdrawn: false,
            settings: Box::new(settings),
        };
        let begin = || {
            let mut state = RunState::new(run.clone(), plan);
            let drafts = baton_engine::decide(&state, &Command::Start(Box::new(start)), origin.at);
            let drafts = drafts.map_err(crate::run::refused)?;
            let made = baton_engine::apply(&mut state, drafts, origin.at);
            let record = made.ok().and_then(|mut records| records.pop()).ok_or_else(Error::run_not_found)?;
            let part = Some(baton_model::Part { outside: true, first: true });
            Ok(StoredRecord::encode(run, &Record { versions: origin.versions, part, ..record }))
        };
        self.pool.compute_here(WorkKind::Judge, &source.tenant, begin).await?
    }
}

/// The first records of a fork, and its row behind them.
fn begun_log(row: &mut RunRow, from_seq: u64, mut records: Vec<StoredRecord>) -> Write {
    row.next_seq = from_seq + records.len() as u64;
    row.seal(&mut records);
    Write::Append { row: row.clone(), expected: from_seq, records }
}

fn fork_row(run: &RunId, source: &RunRow, origin: Origin, at: Timestamp) -> RunRow {
    let branch = origin.mode == ForkMode::Branch;
    let own = |scope: &str| if branch { run.to_string() } else { scope.to_owned() };
    RunRow {
        id: run.clone(),
        status: RunStatus::Pending,
        created_at: at,
        updated_at: at,
        next_seq: origin.seq,
        wake_at: None,
        busy: true,
        parent: None,
        root: None,
        scope: None,
        current_node: None,
        error_code: None,
        memory_scope: own(&source.memory_scope),
        workspace_scope: own(&source.workspace_scope),
        origin: Some(origin),
        pruned: None,
        summary: None,
        chain: LogChain::default(),
        ..source.clone()
    }
}

/// What the source's memory and workspace were at the fork point, the branch's are.
fn fork_versioned_stores(source: &RunRow, row: &RunRow, versions: Versions) -> Vec<Write> {
    let tenant = &row.tenant;
    let ledgers = [
        (
            VersionedStoreId::memory(tenant, &row.memory_scope),
            VersionedStoreId::memory(tenant, &source.memory_scope),
            versions.memory,
        ),
        (
            VersionedStoreId::workspace(tenant, &row.workspace_scope),
            VersionedStoreId::workspace(tenant, &source.workspace_scope),
            versions.workspace,
        ),
    ];
    let written = ledgers.into_iter().filter(|(.., version)| *version > 0);
    written.map(|(ledger, base, version)| Write::ForkVersionedStore { ledger, base, version }).collect()
}
