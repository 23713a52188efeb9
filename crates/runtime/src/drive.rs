//! Running ahead. A command is decided and folded under the run's lock, its records are pushed to the outbox in the
//! same breath, and what it means for other runs becomes messages that are delivered next. No run's lock is held while
//! that of another run that is at work is taken; a ledger's comes second and the outbox's last.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use baton_engine::{
    ChildOutcome, Command, Consult, Effect, Phase, Refusal, RefusalKind, RunState, ToolCall, apply, decide, outstanding,
};
use baton_model::event::{ChildPlan, ParentLink, TraceContext};
use baton_model::{Event, Part, Record, RunId, RunStatus, SideEffects, Timestamp, code};

use crate::inner::{Inner, RETRY_MS};
use crate::ledgers::Ready;
use crate::models::Wanted;
use crate::observe::Caller;
use crate::timers::HORIZON_MS;
use crate::tools::Errand;
use crate::world::{Attached, Head, Slot, World};
use crate::{Error, Kind};

/// How many steps one run takes before others get their turn and the outbox is flushed.
const BURST: usize = 512;

/// Something one run says to another, or to the shell on its behalf.
pub(crate) enum Message {
    To {
        run: RunId,
        command: Command,
    },
    StartChild {
        plan: ChildPlan,
        link: ParentLink,
        depth: u32,
        max_duration_ms: Option<u64>,
        look_first: bool,
    },
    /// Find out where this child stands and tell its parent.
    CheckChild {
        parent: RunId,
        child: RunId,
        /// The parent was loaded and asks about all its children; it stays until it has heard of them.
        roll_call: bool,
    },
    CancelChild {
        parent: RunId,
        child: RunId,
    },
    /// Read what a node asks for, then let its run go on.
    Consult {
        run: RunId,
        consult: Box<Consult>,
    },
}

/// Records of one step that are not queued yet.
pub(crate) struct Batch {
    /// The sequence of the first of them.
    pub(crate) expected: u64,
    pub(crate) records: Vec<Record>,
    /// How many the step has made in all.
    made: usize,
    /// Tool calls that the step has announced, by their ids.
    intents: BTreeSet<String>,
}

impl Batch {
    fn new(expected: u64) -> Self {
        Self { expected, records: Vec::new(), made: 0, intents: BTreeSet::new() }
    }

    /// What is to be queued now, and where it begins.
    pub(crate) fn take(&mut self) -> (u64, Vec<Record>) {
        let (expected, records) = (self.expected, std::mem::take(&mut self.records));
        self.expected += records.len() as u64;
        (expected, records)
    }
}

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

    /// Delivers in the background; the caller waits only for what it needs.
    pub(crate) fn finish_soon(&self, world: &Arc<World>, messages: VecDeque<Message>) {
        if messages.is_empty() {
            world.outbox.flush(self.store.as_ref(), world.generation);
        } else {
            let world = Arc::clone(world);
            self.spawn(|inner| async move { inner.finish(&world, messages).await });
        }
    }

    /// Delivers what a step left to say, flushing at the end.
    async fn finish(&self, world: &World, messages: VecDeque<Message>) {
        self.deliver(world, messages).await;
        world.outbox.flush(self.store.as_ref(), world.generation);
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
        let drafts = decide(&head.state, command, at).map_err(refused)?;
        let mut batch = Batch::new(head.state.next_seq());
        self.fold_in(head, drafts, at, &mut batch, outside)?;
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

    pub(crate) fn fold_in(
        &self,
        head: &mut Head,
        drafts: Vec<baton_model::Draft>,
        at: Timestamp,
        batch: &mut Batch,
        outside: bool,
    ) -> Result<(), Error> {
        if drafts.is_empty() {
            return Ok(());
        }
        self.pay_and_fold(head, drafts, at, batch, outside)
    }

    /// Folds what costs nothing, or has been paid for.
    pub(crate) fn fold_paid(
        &self,
        head: &mut Head,
        drafts: Vec<baton_model::Draft>,
        at: Timestamp,
        batch: &mut Batch,
        outside: bool,
    ) -> Result<(), Error> {
        let mut versions = head.ledgers.versions();
        // Folded in place; a reader that holds a clone of the state keeps its own.
        match apply(Arc::make_mut(&mut head.state), drafts, at) {
            Ok(new) => {
                batch.made += new.len();
                batch.records.extend(new.into_iter().enumerate().map(|(place, record)| {
                    // A write counts from its own record on, not from the ones before it in the same step.
                    match &record.event {
                        // What the run sees from its start, though others may have written since it was asked:
                        // retention keeps what first records look back to.
                        Event::RunStarted(event) => versions = event.private.versions,
                        Event::MemoryWritten(event) => versions.memory = event.private.version,
                        Event::MemoryDeleted(event) => versions.memory = event.private.version,
                        Event::WorkspaceUpdated(event) => versions.workspace = event.private.version,
                        Event::AgentToolCalled(event) => drop(batch.intents.insert(event.call_id.clone())),
                        Event::EffectRetried(event) => drop(batch.intents.insert(event.call_id.clone())),
                        _ => {}
                    }
                    let part = Some(Part { outside, first: place == 0 });
                    Record { versions, part, ..record }
                }));
                Ok(())
            }
            Err(illegal) => {
                // A defect of ours: nothing was pushed, so dropping the head loses nothing that anybody has seen.
                head.gone = true;
                tracing::error!(run = %head.row.id, %illegal, "the engine drafted an illegal record");
                Err(Error::new(Kind::Internal, code::INTERNAL_ERROR, "The run could not go on.").because(illegal))
            }
        }
    }

    /// Notes which calls this process is going to make. Before their intents are queued: from then on somebody else may
    /// find them on disk, and must be able to tell.
    pub(crate) fn note_intents(&self, generation: u64, head: &Head, batch: &mut Batch) {
        let intents = std::mem::take(&mut batch.intents);
        if intents.is_empty() {
            return;
        }
        for effect in outstanding(&head.state) {
            if let Effect::CallTool(call) = effect
                && intents.contains(&call.call_id)
            {
                self.calls.intend(&head.row.id, generation, &call);
            }
        }
    }

    /// A child's end, and its waiting for somebody, are its parent's business.
    fn tell_parent(&self, head: &Head, before: RunStatus, messages: &mut VecDeque<Message>) {
        let state = &head.state;
        let Some(parent) = state.started().and_then(|started| started.private.parent.as_ref()) else { return };
        let status = state.status();
        let (run, child) = (parent.run.clone(), head.row.id.clone());
        if status.is_terminal() {
            messages.push_back(Message::To { run, command: Command::ChildEnded { child, outcome: outcome(state) } });
        } else if status != before && (status.is_waiting() || before.is_waiting()) {
            // The child may have moved on before this is delivered; the parent must hear what is true then.
            messages.push_back(Message::CheckChild { parent: run, child, roll_call: false });
        }
    }

    fn see_to_effects(&self, generation: u64, head: &mut Head, messages: &mut VecDeque<Message>, at: Timestamp) {
        // Every way into the world begins here, and a replay has none: what the world said is on record.
        if crate::fork::is_replay(&head.row) {
            return;
        }
        let run = head.row.id.clone();
        let (mut wakes, mut calls, mut mandates) = (false, Vec::new(), Vec::new());
        for effect in outstanding(&head.state) {
            match effect {
                Effect::StartChild { plan, link, depth, max_duration_ms } => {
                    if head.starting.insert(plan.run.clone()) {
                        let look_first = head.recovered;
                        messages.push_back(Message::StartChild { plan, link, depth, max_duration_ms, look_first });
                    }
                }
                Effect::AwaitChild { child } => {
                    if head.recovered && head.awaiting.insert(child.clone()) {
                        head.checking += 1;
                        messages.push_back(Message::CheckChild { parent: run.clone(), child, roll_call: true });
                    }
                }
                Effect::CancelChild { child } => {
                    if head.cancelling.insert(child.clone()) {
                        messages.push_back(Message::CancelChild { parent: run.clone(), child });
                    }
                }
                Effect::Remote(mandate) => mandates.push(*mandate),
                Effect::Consult(consult) => {
                    if head.consulting.as_ref() != Some(&consult) {
                        head.consulting = Some(consult.clone());
                        messages.push_back(Message::Consult { run: run.clone(), consult });
                    }
                }
                Effect::CallModel { node, visit, attempt, call, mut request, hears } => {
                    request.trace = self.trace_from(head, Caller::Node { node: &node, visit });
                    calls.push(Wanted::Model { node, visit, attempt, call, request, hears });
                }
                Effect::CallTool(call) => {
                    let trace = self.trace_from(head, Caller::Run);
                    calls.push(Wanted::Tool(errand(head, call, trace)));
                }
                Effect::WakeAt { at: due } => {
                    wakes = true;
                    if due <= at.plus_millis(HORIZON_MS) {
                        self.timers.set(&run, due);
                    } else {
                        self.timers.clear(&run);
                    }
                }
            }
        }
        if !wakes {
            self.timers.clear(&run);
        }
        self.see_to_calls(generation, &run, head.state.next_seq(), calls);
        let paused = matches!(head.state.phase(), Phase::Paused { .. });
        self.see_to_mandates(generation, &run, head.state.next_seq(), paused, mandates);
    }

    /// Says everything there is to say. Failures to reach a run are tried again by its timer.
    async fn deliver(&self, world: &World, mut messages: VecDeque<Message>) {
        while let Some(message) = messages.pop_front() {
            if world.is_dead() {
                // None of this can become durable any more; recovery asks everything anew.
                return;
            }
            if let Message::To { command: Command::Advance, .. } = &message {
                // A run that is far ahead lets the disk and the others catch up.
                world.outbox.flush(self.store.as_ref(), world.generation);
                tokio::task::yield_now().await;
            }
            let (about, result) = match message {
                Message::To { run, command } => {
                    let result = self.step(world, &run, &command, &mut messages).await.map(|_| ());
                    (run, result)
                }
                Message::StartChild { plan, link, depth, max_duration_ms, look_first } => {
                    let parent = link.run.clone();
                    let started =
                        self.start_child(world, plan, link, depth, max_duration_ms, look_first, &mut messages);
                    (parent, started.await)
                }
                Message::CheckChild { parent, child, roll_call } => {
                    let result = self.check_child(world, &parent, &child, &mut messages).await;
                    if roll_call {
                        self.heard(world, &parent);
                    }
                    (parent, result)
                }
                Message::Consult { run, consult } => {
                    let result = self.read_for(world, &run, consult, &mut messages).await;
                    (run, result)
                }
                Message::CancelChild { parent, child } => {
                    let result = self.cancel_child(world, &parent, &child, &mut messages).await;
                    (parent, result)
                }
            };
            if let Err(error) = result {
                if error.is_elsewhere() {
                    // Whoever drives it asks everything anew.
                    continue;
                }
                tracing::warn!(run = %about, %error, "could not reach a run; trying again shortly");
                self.forget(world, &about);
                self.timers.set(&about, self.clock.now().plus_millis(RETRY_MS));
            }
        }
    }

    /// One child less that a loaded parent has to hear of. With the last one it may leave again: before, it would only
    /// come back and ask about all of them from the beginning.
    fn heard(&self, world: &World, parent: &RunId) {
        let Some(slot) = world.slots.get(parent).map(|slot| Arc::clone(&slot)) else { return };
        let mut head = slot.head.lock();
        head.checking = head.checking.saturating_sub(1);
        if head.checking == 0 {
            self.janitor().visit([parent.clone()]);
        }
    }

    /// Drops a head whose bookkeeping may be wrong, once nothing of it is in flight; its next load asks everything anew.
    fn forget(&self, world: &World, run: &RunId) {
        if let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot)) {
            let mut head = slot.head.lock();
            head.recovered = true;
            head.starting.clear();
            head.awaiting.clear();
            head.checking = 0;
            head.cancelling.clear();
            head.consulting = None;
        }
    }

    /// Reads what a node asks for and lets its run go on with it.
    async fn read_for(
        &self,
        world: &World,
        run: &RunId,
        consult: Box<Consult>,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        let slot = self.slot(world, run).await?;
        let ledgers = slot.head.lock().ledgers.clone();
        let _held = self.hold_for(world, &ledgers, &consult.request).await?;
        let prepared = self.prepare(run, &ledgers, &consult).await?;
        {
            let mut head = slot.head.lock();
            head.consulting = None;
            head.prepared = Some((*consult, prepared));
        }
        self.step(world, run, &Command::Advance, messages).await.map(|_| ())
    }
}

/// The tool calls that a run wants made, by their ids.
fn wanted_calls(state: &RunState) -> BTreeSet<String> {
    let calls = outstanding(state).into_iter().filter_map(|effect| match effect {
        Effect::CallTool(call) => Some(call.call_id),
        _ => None,
    });
    calls.collect()
}

/// A tool call on behalf of a run.
fn errand(head: &Head, call: Box<ToolCall>, trace: Option<TraceContext>) -> Errand {
    let (principal, scopes) = on_behalf(head);
    Errand { call, tenant: head.row.tenant.clone(), principal, scopes, trace, simulated: simulates(head) }
}

/// On whose behalf a run calls tools, and with which scopes; `None` means all.
pub(crate) fn on_behalf(head: &Head) -> (String, Option<Vec<String>>) {
    let started = head.state.started();
    let principal = started.and_then(|started| started.owner.principal.clone()).unwrap_or_default();
    (principal, started.and_then(|started| started.private.tool_scopes.clone()))
}

/// Whether calls of this run are answered from the record: it, or the run it descends from, is such a branch.
pub(crate) fn simulates(head: &Head) -> bool {
    match &head.row.origin {
        Some(origin) => origin.side_effects == SideEffects::Simulated,
        None => head.state.started().is_some_and(|started| started.private.simulated),
    }
}

/// What a parent hears of a child that has ended.
pub(crate) fn outcome(state: &RunState) -> ChildOutcome {
    ChildOutcome {
        status: state.status(),
        variables: state.variables().clone(),
        error: state.error().cloned(),
        memory: state.sight().reach(),
    }
}

pub(crate) fn refused(refusal: Refusal) -> Error {
    let kind = match refusal.kind {
        RefusalKind::Invalid => Kind::Invalid,
        RefusalKind::Forbidden => Kind::Forbidden,
        RefusalKind::NotFound => Kind::NotFound,
        RefusalKind::Conflict => Kind::Conflict,
        RefusalKind::Gone => Kind::Gone,
        RefusalKind::Unprocessable => Kind::Unprocessable,
    };
    let mut error = Error::new(kind, static_code(&refusal.fault.code), refusal.fault.message);
    error.details = refusal.fault.details.unwrap_or_default();
    error
}

/// The engine's refusal codes are constants; this gives them back their lifetime.
fn static_code(text: &str) -> &'static str {
    [
        code::VALIDATION_ERROR,
        code::FORBIDDEN,
        code::INTERRUPT_NOT_FOUND,
        code::INTERRUPT_ALREADY_RESOLVED,
        code::INTERRUPT_CANCELLED,
        code::INTERRUPT_GONE,
        code::RUN_CONFLICT,
    ]
    .into_iter()
    .find(|code| *code == text)
    .unwrap_or(code::VALIDATION_ERROR)
}
