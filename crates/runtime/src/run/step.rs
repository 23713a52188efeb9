//! One command to one run: decided, folded and pushed under the run's lock, and then the run goes on by itself until
//! there is nothing left to do, or it is far enough ahead. Callers wait here until their answer may be shown.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use baton_engine::{Command, RunState, decide};
use baton_model::{RunId, RunStatus, Timestamp, UsageSummary, code};
use tokio::time::Instant;

use super::{disk_is_behind, refused};
use crate::journal::generation::Generation;
use crate::quarantine::trees::Cause;
use crate::run::batch::Batch;
use crate::run::live::{CommitHook, LiveRun, RunHandle};
use crate::run::message::Message;
use crate::run::stepper::RunStepper;
use crate::run::summary::add_usage_below;
use crate::run::tree::root_of;
use crate::services::versioned::prepared::Ready;
use crate::steps::turns::Turn;
use crate::steps::{Stepping, WorkKind, breather};
use crate::{Error, ErrorKind};

/// How many steps one run takes before others get their turn and the outbox is flushed.
const BURST: usize = 512;

/// How long a caller's command waits for a disk that is behind. It has changed nothing by then, so it may come again.
const CALLER_MS: u64 = 5_000;

/// Where a run stands after a command.
pub(crate) struct Stepped {
    /// None if it ended without being loaded.
    pub(crate) handle: Option<Arc<RunHandle>>,
    pub(crate) status: RunStatus,
    pub(crate) at: Timestamp,
    /// Records that must be on disk before the outcome may be shown.
    pub(crate) count: u64,
}

impl RunStepper {
    pub(crate) async fn step(
        &self,
        live: &Generation,
        run: &RunId,
        command: &Command,
        messages: &mut VecDeque<Message>,
    ) -> Result<Stepped, Error> {
        self.step_with(live, run, command, None, messages).await
    }

    /// `attached` becomes durable with the records of this step; a step without records drops it.
    pub(crate) async fn step_with(
        &self,
        live: &Generation,
        run: &RunId,
        command: &Command,
        mut attached: Option<CommitHook>,
        messages: &mut VecDeque<Message>,
    ) -> Result<Stepped, Error> {
        loop {
            // Before it is loaded: its log may be what a process dies of.
            let singly = self.suspect_guard.singly(live, run).await?;
            let handle = self.loader.handle_for(live, run, command).await?;
            if !live.outbox.has_room(&handle.tenant) {
                // Before anything is taken that others may want.
                self.storage.flush(live);
                self.wait_for_disk(command, live.outbox.room(&handle.tenant)).await?;
            }
            let Some(alone) = handle.stepping().await else { return Err(self.abandoned(&handle).await) };
            self.wait_for_disk(command, self.let_the_disk_catch_up(live, &handle)).await??;
            let turn = self.pool.turn(&handle.tenant).await;
            let Some(mut head) = handle.head().await else { return Err(self.abandoned(&handle).await) };
            if handle.is_lost() {
                // Loaded again from what is durable.
                continue;
            }
            let stepped = self.step_handle(&turn, live, &handle, &mut head, command, &mut attached, messages);
            let queued = head.queued;
            drop(head);
            drop(turn);
            drop(alone);
            if singly.is_some() {
                self.suspect_guard.stepped_singly(run, &handle, queued).await;
            }
            drop(singly);
            if let Some(result) = stepped {
                return result;
            }
            // What a broken head had queued must be on disk before the log is read again.
            self.storage.flush(live);
            handle.durable(&live.ending, queued).await?;
            live.drop_run(run, &handle);
        }
    }

    /// Why a run whose lock cannot be had takes no commands.
    async fn abandoned(&self, handle: &RunHandle) -> Error {
        match self.quarantine.quarantine_of(&handle.root).await {
            Ok(Some(quarantine)) => Error::quarantined(&quarantine),
            Ok(None) => Error::stepping(),
            Err(error) => error,
        }
    }

    /// Waits for the disk: a caller for as long as callers do, and what the host does by itself for as long as it takes.
    async fn wait_for_disk<T>(&self, command: &Command, caught_up: impl Future<Output = T>) -> Result<T, Error> {
        if !command.is_callers() {
            return Ok(caught_up.await);
        }
        tokio::select! {
            biased;
            done = caught_up => Ok(done),
            () = self.clock.until(self.clock.now().plus_millis(CALLER_MS)) => Err(disk_is_behind()),
        }
    }

    /// Waits while a run is too far ahead of the disk. Whoever only looks at it, and everybody else's turn, does not wait.
    async fn let_the_disk_catch_up(&self, live: &Generation, handle: &RunHandle) -> Result<(), Error> {
        let most = self.options.bytes_ahead;
        while let Some(mut head) = handle.head().await {
            let queued = head.queued;
            head.ahead.reached(handle.committed(), queued);
            let Some(count) = head.ahead.too_far(most) else { break };
            drop(head);
            self.storage.flush(live);
            handle.durable(&live.ending, count).await?;
        }
        Ok(())
    }

    /// `None` if this handle is no longer the run's.
    #[expect(clippy::too_many_arguments, reason = "what one step needs, all of it borrowed")]
    fn step_handle(
        &self,
        turn: &Turn,
        live: &Generation,
        handle: &Arc<RunHandle>,
        head: &mut LiveRun,
        command: &Command,
        attached: &mut Option<CommitHook>,
        messages: &mut VecDeque<Message>,
    ) -> Option<Result<Stepped, Error>> {
        if head.gone {
            return None;
        }
        let before = head.state.next_seq();
        head.attached = attached.take();
        let judged = self.step_guarded(turn, live, head, handle.committed(), command, messages);
        head.attached = None;
        // Put in quarantine while it was being stepped: whoever comes next finds it gone and reads it from the disk.
        head.gone |= handle.is_abandoned();
        let (status, count) = (head.state.status(), head.state.next_seq());
        if count == before {
            // No commit will send the evictor here, and the live run may have been loaded for this alone.
            self.eviction_queue.visit([head.row.id.clone()]);
        }
        Some(judged.map(|at| Stepped { handle: Some(Arc::clone(handle)), status, at, count }))
    }

    /// Decides, folds and pushes. Returns the instant the command was judged at.
    pub(crate) fn step_locked(
        &self,
        live: &Generation,
        head: &mut LiveRun,
        command: &Command,
        messages: &mut VecDeque<Message>,
    ) -> Result<Timestamp, Error> {
        let at = self.clock.now();
        let before = head.state.status();
        let outside = !matches!(command, Command::Advance);
        let open = matches!(command, Command::Resume { .. }).then(|| wanted_calls(&head.state));
        let told = usage_told(&head.state, command);
        let drafts = decide(&head.state, command, at).map_err(refused)?;
        let mut batch = Batch { asked: command.is_callers(), ..Batch::new(head.state.next_seq()) };
        self.fold_drafts(head, drafts, at, &mut batch, outside)?;
        if let Some((child, usage)) = told
            && !head.state.awaits_child(child)
        {
            // With the records that say so: told again after a crash, it is counted once all the same.
            add_usage_below(&mut head.row, usage);
        }
        if let Some(open) = &open {
            // What was held back until now nobody has called.
            batch.intents.extend(wanted_calls(&head.state).into_iter().filter(|call| !open.contains(call)));
        }
        let (mut steps, began) = (0, Instant::now());
        while !head.state.status().is_terminal() {
            let far = batch.made >= self.options.records_ahead || batch.bytes >= self.options.bytes_ahead;
            let long = self.options.longest_burst.is_some_and(|longest| steps > 0 && began.elapsed() >= longest);
            if steps == BURST || far || long {
                messages.push_back(Message::To { run: head.row.id.clone(), command: Command::Advance });
                break;
            }
            let drafts = decide(&head.state, &Command::Advance, at).map_err(refused)?;
            if !drafts.is_empty() {
                self.fold_drafts(head, drafts, at, &mut batch, false)?;
            } else if !matches!(self.node_request(live, head, &mut batch, at)?, Ready::Answered) {
                break;
            }
            steps += 1;
            breather();
        }
        if open.is_some() {
            // While paused, the ends of children were not taken in.
            head.awaiting.clear();
            head.recovered = true;
            head.asks_children = true;
            self.remote_actions.look_again(&head.row.id);
        }
        if !batch.records.is_empty() {
            self.push_records(live, head, &mut batch, at);
        }
        if batch.made > 0 {
            self.tell_parent(head, before, messages);
        }
        self.see_to_effects(head, messages, at);
        Ok(at)
    }
}

/// What a child that is awaited has used, if this is its end.
fn usage_told<'a>(state: &RunState, command: &'a Command) -> Option<(&'a RunId, UsageSummary)> {
    let Command::ChildEnded { child, outcome } = command else { return None };
    let usage = outcome.usage?;
    state.awaits_child(child).then_some((child, usage))
}

/// The tool calls that a run wants made, by their ids.
fn wanted_calls(state: &RunState) -> BTreeSet<String> {
    state.wanted_tool_calls().into_iter().map(|call| call.call_id).collect()
}

impl RunStepper {
    /// Steps a run whose lock is held. `durable` says how many of its records are on disk.
    pub(crate) fn step_guarded(
        &self,
        turn: &Turn,
        live: &Generation,
        head: &mut LiveRun,
        durable: u64,
        command: &Command,
        messages: &mut VecDeque<Message>,
    ) -> Result<Timestamp, Error> {
        let root = root_of(&head.row).clone();
        // One that is being cancelled goes on to its end.
        if !matches!(command, Command::Cancel { .. })
            && head.state.status() != RunStatus::Cancelling
            && let Some(quarantine) = self.quarantined.of(&root)
        {
            return Err(Error::quarantined(&quarantine));
        }
        let said = messages.len();
        let (run, tenant) = (head.row.id.clone(), head.row.tenant.clone());
        let what = Stepping { kind: WorkKind::Step, root: &root, run: &run, tenant: &tenant, durable, tags: &[] };
        let stepped = self.pool.guarded(turn, what, || {
            if let Some(before) = &self.options.before_step {
                before.0(&head.row, matches!(command, Command::Advance));
            }
            self.step_locked(live, head, command, messages)
        });
        match stepped {
            Ok(result) => {
                if head.gone {
                    self.quarantine.broke(
                        live,
                        &head.row,
                        Cause::StepFailed,
                        "the engine drafted a record that its log cannot have",
                    );
                }
                result
            }
            Err(panic) => {
                // The live run may be torn. What it had queued before is on its way; the rest nobody has seen.
                head.gone = true;
                messages.truncate(said);
                self.quarantine.broke(live, &head.row, Cause::StepFailed, &panic);
                Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The run could not go on."))
            }
        }
    }
}
