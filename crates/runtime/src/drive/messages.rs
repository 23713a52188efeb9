//! What runs say to each other, and to the shell. Messages are delivered when no run's lock is held, and what cannot be
//! delivered is asked anew later.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_engine::{Command, Consult};
use baton_model::RunId;
use baton_model::event::{ChildPlan, ParentLink};

use crate::Error;
use crate::inner::{Inner, RETRY_MS};
use crate::world::World;

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

impl Inner {
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
    pub(super) async fn finish(&self, world: &World, messages: VecDeque<Message>) {
        self.deliver(world, messages).await;
        world.outbox.flush(self.store.as_ref(), world.generation);
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
