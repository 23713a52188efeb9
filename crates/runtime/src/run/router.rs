//! What runs say to each other, and to the shell. Messages are delivered when no run's lock is held, and what cannot be
//! delivered is asked anew later.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use baton_engine::{Command, NodeRequest};
use baton_model::event::{ChildPlan, ParentLink};
use baton_model::{RunId, code};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::inner::{Inner, RETRY_MS};
use crate::quarantine::Cause;
use crate::run::world::Generation;
use crate::steps::{Stepping, WorkKind, panic_text, pass};
use crate::{Error, Kind};

/// Something one run says to another, or to the shell on its behalf.
pub(crate) enum Message {
    To {
        run: RunId,
        command: Command,
    },
    StartChild {
        plan: ChildPlan,
        link: Box<ParentLink>,
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
    NodeRequest {
        run: RunId,
        consult: Box<NodeRequest>,
    },
    /// The same, by whoever has nothing else to deliver.
    ConsultHere {
        run: RunId,
        consult: Box<NodeRequest>,
    },
}

impl Message {
    /// The run that is asked anew if this cannot be delivered.
    fn about(&self) -> &RunId {
        match self {
            Self::To { run, .. } | Self::NodeRequest { run, .. } | Self::ConsultHere { run, .. } => run,
            Self::StartChild { link, .. } => &link.run,
            Self::CheckChild { parent, .. } | Self::CancelChild { parent, .. } => parent,
        }
    }
}

impl Inner {
    /// Delivers in the background; the caller waits only for what it needs.
    pub(crate) fn finish_soon(&self, world: &Arc<Generation>, messages: VecDeque<Message>) {
        if messages.is_empty() {
            self.flush(world);
        } else {
            let world = Arc::clone(world);
            self.spawn_step(|inner| async move { inner.finish(&world, messages).await });
        }
    }

    /// Delivers what a step left to say, flushing at the end.
    pub(super) async fn finish(&self, world: &Generation, messages: VecDeque<Message>) {
        self.deliver(world, messages).await;
        self.flush(world);
    }

    /// Says everything there is to say. Failures to reach a run are tried again by its timer.
    async fn deliver(&self, world: &Generation, mut messages: VecDeque<Message>) {
        while let Some(message) = messages.pop_front() {
            if world.is_dead() || self.stop.is_cancelled() {
                // None of this can become durable any more, or nobody waits for it: a run that goes on for an hour must
                // not keep the host from stopping. Recovery asks everything anew.
                return;
            }
            if let Message::To { command: Command::Advance, .. } = &message {
                // A run that is far ahead lets the disk and the others catch up.
                self.flush(world);
                pass().await;
            }
            let about = message.about().clone();
            let said = messages.len();
            let delivering = AssertUnwindSafe(self.deliver_one(world, message, &mut messages)).catch_unwind();
            let result = match delivering.await {
                Ok(result) => result,
                Err(panic) => {
                    // What follows for others is not lost with it.
                    messages.truncate(said);
                    self.delivery_broke(world, &about, &panic_text(panic.as_ref())).await
                }
            };
            if let Err(error) = result {
                if error.is_elsewhere() || error.is_quarantined() {
                    // Whoever drives it, or releases it, asks everything anew.
                    continue;
                }
                tracing::warn!(run = %about, %error, "could not reach a run; trying again shortly");
                self.forget(world, &about).await;
                self.timers.set(&about, self.clock.now().plus_millis(RETRY_MS));
            }
        }
    }

    async fn deliver_one(
        &self,
        world: &Generation,
        message: Message,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        match message {
            Message::To { run, command } => self.step(world, &run, &command, messages).await.map(|_| ()),
            Message::StartChild { plan, link, depth, max_duration_ms, look_first } => {
                self.start_child(world, plan, *link, depth, max_duration_ms, look_first, messages).await
            }
            Message::CheckChild { parent, child, roll_call } => {
                let result = self.check_child(world, &parent, &child, messages).await;
                if roll_call {
                    self.heard(world, &parent).await;
                }
                result
            }
            Message::NodeRequest { run, consult } if self.shared().is_some() => {
                self.consult_apart(run, consult);
                Ok(())
            }
            Message::NodeRequest { run, consult } | Message::ConsultHere { run, consult } => {
                self.read_for(world, &run, consult, messages).await
            }
            Message::CancelChild { parent, child } => self.cancel_child(world, &parent, &child, messages).await,
        }
    }

    /// A panic beside the steps of a run, such as while an answer is put together for it, counts as one of its steps.
    async fn delivery_broke(&self, world: &Generation, run: &RunId, panic: &str) -> Result<(), Error> {
        tracing::error!(%run, %panic, "what a run asked for panicked");
        metrics::counter!("baton_step_panics_total").increment(1);
        let slot = world.slots.get(run).map(|slot| Arc::clone(&slot));
        let head = match &slot {
            Some(slot) => slot.head().await,
            None => None,
        };
        let in_memory = head.map(|mut head| {
            // It may be torn: the next step loads it anew.
            head.gone = true;
            head.row.clone()
        });
        let row = match in_memory {
            Some(row) => Some(row),
            None => self.store.run(run).await?,
        };
        if let Some(row) = row {
            self.broke(world, &row, Cause::StepFailed, panic);
        }
        Err(Error::new(Kind::Internal, code::INTERNAL_ERROR, "The run could not go on."))
    }

    /// A question that may have to wait for another host is asked in a task of its own: nobody else waits with it.
    fn consult_apart(&self, run: RunId, consult: Box<NodeRequest>) {
        self.spawn_step(|inner| async move {
            if let Ok(world) = inner.world() {
                inner.finish(&world, VecDeque::from([Message::ConsultHere { run, consult }])).await;
            }
        });
    }

    /// One child less that a loaded parent has to hear of. With the last one it may leave again: before, it would only
    /// come back and ask about all of them from the beginning.
    async fn heard(&self, world: &Generation, parent: &RunId) {
        let Some(slot) = world.slots.get(parent).map(|slot| Arc::clone(&slot)) else { return };
        let Some(mut head) = slot.head().await else { return };
        head.checking = head.checking.saturating_sub(1);
        if head.checking == 0 {
            self.janitor().visit([parent.clone()]);
        }
    }

    /// Drops a head whose bookkeeping may be wrong, once nothing of it is in flight; its next load asks everything anew.
    async fn forget(&self, world: &Generation, run: &RunId) {
        if let Some(slot) = world.slots.get(run).map(|slot| Arc::clone(&slot))
            && let Some(mut head) = slot.head().await
        {
            head.recovered = true;
            head.asks_children = true;
            head.starting.clear();
            head.awaiting.clear();
            head.checking = 0;
            head.cancelling.clear();
            head.consulting = None;
        }
    }

    /// Lets an agent begin once its tools are known, or not worth waiting for. In a task of its own: whatever else this
    /// step leaves to say, and the records of others behind it, do not wait.
    fn read_later(&self, world: &Generation, run: &RunId, consult: Box<NodeRequest>, pending: BoxFuture<'static, ()>) {
        let (generation, run) = (world.generation, run.clone());
        self.spawn_step(move |inner| async move {
            tokio::select! {
                () = pending => {}
                () = inner.stop.cancelled() => return,
            }
            let world = inner.current_world();
            if world.generation == generation {
                inner.finish(&world, VecDeque::from([Message::NodeRequest { run, consult }])).await;
            }
        });
    }

    /// Reads what a node asks for and lets its run go on with it.
    async fn read_for(
        &self,
        world: &Generation,
        run: &RunId,
        consult: Box<NodeRequest>,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        let slot = self.slot(world, run).await?;
        let ledgers = slot.head().await.ok_or_else(Error::stepping)?.ledgers.clone();
        if let Some(pending) = self.tools_pending(&ledgers.memory.id.tenant, &consult) {
            self.read_later(world, run, consult, pending);
            return Ok(());
        }
        let _held = self.hold_for(world, &ledgers, &consult.request).await?;
        let (root, tenant, durable) = (&slot.root, &slot.tenant, slot.committed());
        let what = Stepping { kind: WorkKind::Prepare, root, run, tenant, durable, tags: &[] };
        let prepared = self.prepare(what, &ledgers, &consult).await?;
        {
            let mut head = slot.head().await.ok_or_else(Error::stepping)?;
            head.consulting = None;
            head.prepared = Some((*consult, prepared));
        }
        self.step(world, run, &Command::Advance, messages).await.map(|_| ())
    }
}
