//! What runs say to each other, and to the shell. Messages are delivered when no run's lock is held, and what cannot be
//! delivered is asked anew later.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use baton_engine::{Command, NodeRequest};
use baton_model::{RunId, code};
use baton_store::Store;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::clock::{Clock, RETRY_MS};
use crate::journal::generation::Generation;
use crate::journal::storage::Storage;
use crate::panics::panic_text;
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::Cause;
use crate::run::eviction_queue::EvictionQueue;
use crate::run::load::RunLoader;
use crate::run::message::Message;
use crate::run::requests_read::NodeRequests;
use crate::run::stepper::RunStepper;
use crate::services::agents::service::Agents;
use crate::services::children::Children;
use crate::services::timers::Timers;
use crate::services::versioned::service::VersionedStores;
use crate::steps::{Stepping, WorkKind, pass};
use crate::tasks::Tasks;
use crate::{Error, ErrorKind};

/// Delivers what runs say to each other.
pub(crate) struct Router {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) eviction_queue: Arc<EvictionQueue>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) children: Arc<Children>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) requests: Arc<NodeRequests>,
    pub(crate) stepper: Arc<RunStepper>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl Router {
    /// Delivers in the background; the caller waits only for what it needs.
    pub(crate) fn finish_soon(self: &Arc<Self>, live: &Arc<Generation>, messages: VecDeque<Message>) {
        if messages.is_empty() {
            self.storage.flush(live);
        } else {
            let live = Arc::clone(live);
            self.tasks.spawn_step(self, |room| async move { room.finish(&live, messages).await });
        }
    }

    /// Delivers what a step left to say, flushing at the end.
    pub(super) async fn finish(self: &Arc<Self>, live: &Generation, messages: VecDeque<Message>) {
        self.deliver(live, messages).await;
        self.storage.flush(live);
    }

    /// Says everything there is to say. Failures to reach a run are tried again by its timer.
    async fn deliver(self: &Arc<Self>, live: &Generation, mut messages: VecDeque<Message>) {
        while let Some(message) = messages.pop_front() {
            if live.is_dead() || self.tasks.stop.is_cancelled() {
                // None of this can become durable any more, or nobody waits for it: a run that goes on for an hour must
                // not keep the host from stopping. Recovery asks everything anew.
                return;
            }
            if let Message::To { command: Command::Advance, .. } = &message {
                // A run that is far ahead lets the disk and the others catch up.
                self.storage.flush(live);
                pass().await;
            }
            let about = message.about().clone();
            let said = messages.len();
            let delivering = AssertUnwindSafe(self.deliver_one(live, message, &mut messages)).catch_unwind();
            let result = match delivering.await {
                Ok(result) => result,
                Err(panic) => {
                    // What follows for others is not lost with it.
                    messages.truncate(said);
                    self.delivery_broke(live, &about, &panic_text(panic.as_ref())).await
                }
            };
            if let Err(error) = result {
                if error.is_elsewhere() || error.is_quarantined() {
                    // Whoever drives it, or releases it, asks everything anew.
                    continue;
                }
                tracing::warn!(run = %about, %error, "could not reach a run; trying again shortly");
                self.forget(live, &about).await;
                self.timers.set(&about, self.clock.now().plus_millis(RETRY_MS));
            }
        }
    }

    async fn deliver_one(
        self: &Arc<Self>,
        live: &Generation,
        message: Message,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        match message {
            Message::To { run, command } => self.stepper.step(live, &run, &command, messages).await.map(|_| ()),
            Message::StartChild { plan, link, depth, max_duration_ms, look_first } => {
                self.children.start_child(live, plan, *link, depth, max_duration_ms, look_first, messages).await
            }
            Message::CheckChild { parent, child, roll_call } => {
                let result = self.children.check_child(live, &parent, &child, messages).await;
                if roll_call {
                    self.heard(live, &parent).await;
                }
                result
            }
            Message::NodeRequest { run, node_request } if self.storage.shared().is_some() => {
                self.request_apart(run, node_request);
                Ok(())
            }
            Message::NodeRequest { run, node_request } | Message::NodeRequestHere { run, node_request } => {
                self.read_for(live, &run, node_request, messages).await
            }
            Message::CancelChild { parent, child } => self.children.cancel_child(live, &parent, &child, messages).await,
        }
    }

    /// A panic beside the steps of a run, such as while an answer is put together for it, counts as one of its steps.
    async fn delivery_broke(&self, live: &Generation, run: &RunId, panic: &str) -> Result<(), Error> {
        tracing::error!(%run, %panic, "what a run asked for panicked");
        metrics::counter!("baton_step_panics_total").increment(1);
        let handle = live.run(run);
        let head = match &handle {
            Some(handle) => handle.head().await,
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
            self.quarantine.broke(live, &row, Cause::StepFailed, panic);
        }
        Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The run could not go on."))
    }

    /// A question that may have to wait for another host is asked in a task of its own: nobody else waits with it.
    fn request_apart(self: &Arc<Self>, run: RunId, node_request: Arc<NodeRequest>) {
        self.tasks.spawn_step(self, |room| async move {
            if let Ok(live) = room.storage.live() {
                room.finish(&live, VecDeque::from([Message::NodeRequestHere { run, node_request }])).await;
            }
        });
    }

    /// One child less that a loaded parent has to hear of. With the last one it may leave again: before, it would only
    /// come back and ask about all of them from the beginning.
    async fn heard(&self, live: &Generation, parent: &RunId) {
        let Some(handle) = live.run(parent) else { return };
        let Some(mut head) = handle.head().await else { return };
        head.checking = head.checking.saturating_sub(1);
        if head.checking == 0 {
            self.eviction_queue.visit([parent.clone()]);
        }
    }

    /// Drops a live run whose bookkeeping may be wrong, once nothing of it is in flight; its next load asks everything anew.
    async fn forget(&self, live: &Generation, run: &RunId) {
        if let Some(handle) = live.run(run)
            && let Some(mut head) = handle.head().await
        {
            head.recovered = true;
            head.asks_children = true;
            head.starting.clear();
            head.awaiting.clear();
            head.checking = 0;
            head.cancelling.clear();
            head.requesting = None;
        }
    }

    /// Lets an agent begin once its tools are known, or not worth waiting for. In a task of its own: whatever else this
    /// step leaves to say, and the records of others behind it, do not wait.
    fn read_later(
        self: &Arc<Self>,
        live: &Generation,
        run: &RunId,
        node_request: Arc<NodeRequest>,
        pending: BoxFuture<'static, ()>,
    ) {
        let (generation, run) = (live.generation, run.clone());
        self.tasks.spawn_step(self, move |room| async move {
            tokio::select! {
                biased;
                () = pending => {}
                () = room.tasks.stop.cancelled() => return,
            }
            let live = room.storage.current();
            if live.generation == generation {
                room.finish(&live, VecDeque::from([Message::NodeRequest { run, node_request }])).await;
            }
        });
    }

    /// Reads what a node asks for and lets its run go on with it.
    async fn read_for(
        self: &Arc<Self>,
        live: &Generation,
        run: &RunId,
        node_request: Arc<NodeRequest>,
        messages: &mut VecDeque<Message>,
    ) -> Result<(), Error> {
        let handle = self.loader.handle(live, run).await?;
        let ledgers = handle.head().await.ok_or_else(Error::stepping)?.ledgers.clone();
        if let Some(pending) = self.agents.tools_pending(&ledgers.memory.id.tenant, &node_request) {
            self.read_later(live, run, node_request, pending);
            return Ok(());
        }
        let _held = self.versioned.hold_for(live, &ledgers, &node_request.request).await?;
        let (root, tenant, durable) = (&handle.root, &handle.tenant, handle.committed());
        let what = Stepping { kind: WorkKind::Prepare, root, run, tenant, durable, tags: &[] };
        let prepared = self.requests.prepare(what, &ledgers, &node_request).await?;
        {
            let mut head = handle.head().await.ok_or_else(Error::stepping)?;
            head.requesting = None;
            head.prepared = Some((node_request, prepared));
        }
        self.stepper.step(live, run, &Command::Advance, messages).await.map(|_| ())
    }
}
