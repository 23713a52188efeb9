//! One command to one run: decided, folded and pushed under the run's lock, and then the run goes on by itself until
//! there is nothing left to do, or it is far enough ahead. Callers wait here until their answer may be shown.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use baton_engine::{Command, Effect, RunState, decide, outstanding};
use baton_model::{RunId, RunStatus, Timestamp, UsageSummary};

use super::{Batch, Message, refused};
use crate::Error;
use crate::inner::Inner;
use crate::ledgers::Ready;
use crate::summary::add_usage_below;
use crate::world::{Attached, Head, Slot, World};

/// How many steps one run takes before others get their turn and the outbox is flushed.
const BURST: usize = 512;

/// Where a run stands after a command.
pub(crate) struct Stepped {
    slot: Arc<Slot>,
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
        world: &Arc<World>,
        run: &RunId,
        command: Command,
        attached: Option<Attached>,
    ) -> Result<Stepped, Error> {
        let mut messages = VecDeque::new();
        let result = self.step_with(world, run, &command, attached, &mut messages).await;
        self.finish_soon(world, messages);
        match &result {
            Ok(stepped) => stepped.slot.durable(world, stepped.count).await?,
            // A refusal, too, may only speak of what can no longer be lost.
            Err(_) => {
                if let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot)) {
                    let queued = slot.head.lock().row.next_seq;
                    slot.durable(world, queued).await?;
                }
            }
        }
        result
    }

    /// Lets a run go on from where it is, and sees through everything that follows.
    pub(crate) async fn advance(&self, run: &RunId) -> Result<(), Error> {
        let world = self.world()?;
        let mut messages = VecDeque::new();
        self.step(&world, run, &Command::Advance, &mut messages).await?;
        self.finish(&world, messages).await;
        Ok(())
    }

    pub(crate) async fn step(
        &self,
        world: &World,
        run: &RunId,
        command: &Command,
        messages: &mut VecDeque<Message>,
    ) -> Result<Stepped, Error> {
        self.step_with(world, run, command, None, messages).await
    }

    /// `attached` becomes durable with the records of this step; a step without records drops it.
    async fn step_with(
        &self,
        world: &World,
        run: &RunId,
        command: &Command,
        mut attached: Option<Attached>,
        messages: &mut VecDeque<Message>,
    ) -> Result<Stepped, Error> {
        loop {
            let slot = self.slot(world, run).await?;
            if let Some(result) = self.step_slot(world, &slot, command, &mut attached, messages) {
                return result;
            }
            // What a broken head had queued must be on disk before the log is read again.
            let queued = slot.head.lock().row.next_seq;
            world.outbox.flush(self.store.as_ref(), world.generation);
            slot.durable(world, queued).await?;
            world.slots.remove_if(run, |_, current| Arc::ptr_eq(current, &slot));
        }
    }

    /// `None` if this slot is no longer the run's.
    fn step_slot(
        &self,
        world: &World,
        slot: &Arc<Slot>,
        command: &Command,
        attached: &mut Option<Attached>,
        messages: &mut VecDeque<Message>,
    ) -> Option<Result<Stepped, Error>> {
        let mut head = slot.head.lock();
        if head.gone {
            return None;
        }
        let before = head.state.next_seq();
        head.attached = attached.take();
        let judged = self.step_locked(world, &mut head, command, messages);
        head.attached = None;
        let (status, count) = (head.state.status(), head.state.next_seq());
        if count == before {
            // No commit will send the janitor here, and the head may have been loaded for this alone.
            self.janitor().visit([head.row.id.clone()]);
        }
        Some(judged.map(|at| Stepped { slot: Arc::clone(slot), status, at, count }))
    }

    /// Decides, folds and pushes. Returns the instant the command was judged at.
    pub(crate) fn step_locked(
        &self,
        world: &World,
        head: &mut Head,
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
        let mut steps = 0;
        while !head.state.status().is_terminal() {
            if steps == BURST || batch.made >= self.options.records_ahead {
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
        }
        if open.is_some() {
            // While paused, the ends of children were not taken in.
            head.awaiting.clear();
            head.recovered = true;
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
    let calls = outstanding(state).into_iter().filter_map(|effect| match effect {
        Effect::CallTool(call) => Some(call.call_id),
        _ => None,
    });
    calls.collect()
}
