//! One command to one run: decided, folded and pushed under the run's lock, and then the run goes on by itself until
//! there is nothing left to do, or it is far enough ahead. Callers wait here until their answer may be shown.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use baton_engine::{Command, RunState, decide};
use baton_model::{RunId, RunStatus, Timestamp, UsageSummary};

use super::{Batch, Message, refused};
use crate::Error;
use crate::inner::Inner;
use crate::run::summary::add_usage_below;
use crate::run::world::{CommitHook, Generation, LiveRun, RunHandle};
use crate::services::versioned::Ready;
use crate::steps::{Turn, breather};

/// How many steps one run takes before others get their turn and the outbox is flushed.
const BURST: usize = 512;

/// Where a run stands after a command.
pub(crate) struct Stepped {
    /// None if it ended without being loaded.
    slot: Option<Arc<RunHandle>>,
    pub(crate) status: RunStatus,
    pub(crate) at: Timestamp,
    /// Records that must be on disk before the outcome may be shown.
    count: u64,
}

impl Inner {
    /// Applies one command on behalf of a caller and waits until the answer may be shown. What follows from it in other
    /// runs goes on by itself: a caller that hangs up must not take half of it along.
    pub(crate) async fn command(
        &self,
        world: &Arc<Generation>,
        run: &RunId,
        command: Command,
        attached: Option<CommitHook>,
    ) -> Result<Stepped, Error> {
        let (here, named) = (Arc::clone(world), run.clone());
        let stepping = self.on_step_threads(|inner| async move {
            let mut messages = VecDeque::new();
            let result = inner.step_with(&here, &named, &command, attached, &mut messages).await;
            inner.finish_soon(&here, messages);
            match result {
                Err(error) if inner.cancelled_by_hand(&named, &command, &error).await? => {
                    Ok(Ok(Stepped { slot: None, status: RunStatus::Cancelled, at: inner.clock.now(), count: 0 }))
                }
                result => Ok(result),
            }
        });
        // The disk is waited for by whoever asked: no step thread is woken for it.
        let result = stepping.await?;
        match &result {
            Ok(Stepped { slot: Some(slot), count, .. }) => slot.durable(world, *count).await?,
            Ok(Stepped { slot: None, .. }) => {}
            // A refusal, too, may only speak of what can no longer be lost.
            Err(_) => {
                let slot = world.slots.get(run).map(|slot| Arc::clone(&slot));
                if let Some(slot) = slot
                    && let Some(queued) = slot.head().await.map(|head| head.queued)
                {
                    slot.durable(world, queued).await?;
                }
            }
        }
        result
    }

    /// Lets a run go on from where it is, and sees through everything that follows.
    pub(crate) async fn advance(&self, run: &RunId) -> Result<(), Error> {
        let (world, run) = (self.world()?, run.clone());
        self.on_step_threads(|inner| async move {
            let mut messages = VecDeque::new();
            inner.step(&world, &run, &Command::Advance, &mut messages).await?;
            inner.finish(&world, messages).await;
            Ok(())
        })
        .await
    }

    /// Lets a run take one step; what follows goes on by itself.
    pub(crate) async fn advance_once(&self, run: &RunId) -> Result<(), Error> {
        let (world, run) = (self.world()?, run.clone());
        self.on_step_threads(|inner| async move {
            let mut messages = VecDeque::new();
            let stepped = inner.step(&world, &run, &Command::Advance, &mut messages).await;
            inner.finish_soon(&world, messages);
            stepped.map(drop)
        })
        .await
    }

    pub(crate) async fn step(
        &self,
        world: &Generation,
        run: &RunId,
        command: &Command,
        messages: &mut VecDeque<Message>,
    ) -> Result<Stepped, Error> {
        self.step_with(world, run, command, None, messages).await
    }

    /// `attached` becomes durable with the records of this step; a step without records drops it.
    async fn step_with(
        &self,
        world: &Generation,
        run: &RunId,
        command: &Command,
        mut attached: Option<CommitHook>,
        messages: &mut VecDeque<Message>,
    ) -> Result<Stepped, Error> {
        loop {
            // Before it is loaded: its log may be what a process dies of.
            let singly = self.singly(world, run).await?;
            let slot = self.slot_for(world, run, command).await?;
            let Some(alone) = slot.stepping().await else { return Err(self.abandoned(&slot).await) };
            self.let_the_disk_catch_up(world, &slot).await?;
            let turn = self.turn(&slot.tenant).await;
            let Some(mut head) = slot.head().await else { return Err(self.abandoned(&slot).await) };
            let stepped = self.step_slot(&turn, world, &slot, &mut head, command, &mut attached, messages);
            let queued = head.queued;
            drop(head);
            drop(turn);
            drop(alone);
            if singly.is_some() {
                self.stepped_singly(run, &slot, queued).await;
            }
            drop(singly);
            if let Some(result) = stepped {
                return result;
            }
            // What a broken head had queued must be on disk before the log is read again.
            self.flush(world);
            slot.durable(world, queued).await?;
            world.slots.remove_if(run, |_, current| Arc::ptr_eq(current, &slot));
        }
    }

    /// Why a run whose lock cannot be had takes no commands.
    async fn abandoned(&self, slot: &RunHandle) -> Error {
        match self.quarantine_of(&slot.root).await {
            Ok(Some(quarantine)) => Error::quarantined(&quarantine),
            Ok(None) => Error::stepping(),
            Err(error) => error,
        }
    }

    /// Waits while a run is too far ahead of the disk. Whoever only looks at it, and everybody else's turn, does not wait.
    async fn let_the_disk_catch_up(&self, world: &Generation, slot: &RunHandle) -> Result<(), Error> {
        let most = self.options.bytes_ahead;
        while let Some(mut head) = slot.head().await {
            let queued = head.queued;
            head.ahead.reached(slot.committed(), queued);
            let Some(count) = head.ahead.too_far(most) else { break };
            drop(head);
            self.flush(world);
            slot.durable(world, count).await?;
        }
        Ok(())
    }

    /// `None` if this slot is no longer the run's.
    #[expect(clippy::too_many_arguments, reason = "what one step needs, all of it borrowed")]
    fn step_slot(
        &self,
        turn: &Turn,
        world: &Generation,
        slot: &Arc<RunHandle>,
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
        let judged = self.step_guarded(turn, world, head, slot.committed(), command, messages);
        head.attached = None;
        // Put in quarantine while it was being stepped: whoever comes next finds it gone and reads it from the disk.
        head.gone |= slot.is_abandoned();
        let (status, count) = (head.state.status(), head.state.next_seq());
        if count == before {
            // No commit will send the janitor here, and the head may have been loaded for this alone.
            self.janitor().visit([head.row.id.clone()]);
        }
        Some(judged.map(|at| Stepped { slot: Some(Arc::clone(slot)), status, at, count }))
    }

    /// Decides, folds and pushes. Returns the instant the command was judged at.
    pub(crate) fn step_locked(
        &self,
        world: &Generation,
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
        let mut batch = Batch::new(head.state.next_seq());
        self.fold_in(head, drafts, at, &mut batch, outside)?;
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
                self.fold_in(head, drafts, at, &mut batch, false)?;
            } else if !matches!(self.consult(world, head, &mut batch, at)?, Ready::Answered) {
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
            self.mandates.look_again(&head.row.id);
        }
        if !batch.records.is_empty() {
            self.push_records(world, head, &mut batch, at);
        }
        if batch.made > 0 {
            self.tell_parent(head, before, messages);
        }
        self.see_to_effects(world.generation, head, messages, at);
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
