//! Telling somebody outside the host what has become durable, strictly afterwards and in order.
//!
//! ```text
//!  commit ──► note (run, from where on) ──► one task ──► reads the log from its own cursor ──► Follower::record
//! ```
//!
//! The note carries no records: whoever is slow reads more at a time and holds nothing up. What an earlier process had
//! written is read too, so that a follower knows the whole log, and marked as old news. Replays have no side effects
//! and are not observed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_model::event::{RunStarted, TraceContext};
use baton_model::{NodeId, Origin, Record, RunId};
use baton_store::{Commit, Committed, RunRow};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Error;
use crate::fork::is_replay;
use crate::inner::Inner;
use crate::world::{Head, World};

/// Records read at a time.
const PAGE: usize = 500;
/// Runs that are followed at the same time; one that comes back later is read again from its beginning.
const FOLLOWED: usize = 4096;
/// Runs that have been told to their end, and whose last notes may still come.
const ENDED: usize = 4096;
/// How long stopping waits for the observer.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Somebody who is told what runs do. Nothing here may fail or wait: runs do not depend on it.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Begins to follow a run. Its whole log follows, from the first record on; what comes before a fork is its source's.
    fn follow(&self, run: &RunId, origin: Option<&Origin>) -> Box<dyn Follower>;

    /// What a run sends along when it calls somebody, in place of what it was itself started under.
    fn trace(&self, run: &RunId, started: &RunStarted, forked: bool, caller: Caller<'_>) -> TraceContext;
}

/// What of a run calls somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller<'a> {
    /// The run as a whole, or nobody knows more closely.
    Run,
    Node {
        node: &'a NodeId,
        visit: u32,
    },
}

/// One run, seen from outside.
pub trait Follower: Send {
    /// The next record. It is durable. If it is not `fresh`, it was told before, perhaps by another process.
    fn record(&mut self, record: &Record, fresh: bool);
}

pub(crate) struct Observing {
    observer: Arc<dyn Observer>,
    grown: Mutex<Grown>,
    work: Notify,
    followed: tokio::sync::Mutex<Followed>,
}

/// Runs that have grown, who has waited longest first, and the first record that is news.
#[derive(Default)]
struct Grown {
    order: VecDeque<RunId>,
    from: BTreeMap<RunId, u64>,
}

/// The runs that are followed, and when each was last heard of.
#[derive(Default)]
struct Followed {
    runs: BTreeMap<RunId, (u64, Following)>,
    order: BTreeMap<u64, RunId>,
    now: u64,
    ended: Ended,
}

/// Runs that were lately told to their end. What is on disk may be ahead of the notes: those of a run's last records may
/// come when everything has been told, and are no news.
#[derive(Default)]
struct Ended {
    runs: BTreeSet<RunId>,
    order: VecDeque<RunId>,
}

struct Following {
    row: RunRow,
    next: u64,
    follower: Box<dyn Follower>,
}

/// What has been told of a run.
enum Told {
    /// It is nobody's news.
    Nothing,
    SoFar(Box<Following>),
    ToItsEnd,
}

impl Observing {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, grown: Mutex::default(), work: Notify::new(), followed: tokio::sync::Mutex::default() }
    }

    /// Notes that a run has grown on disk. Called by the writer before the run's slot hears of it: what the slot knows
    /// is where the news begins. A log that grows without a slot, as replays and imports do, is nobody's news.
    pub(crate) fn grew(&self, world: &World, committed: &Committed) {
        let Some(known) = world.slots.get(&committed.run).map(|slot| slot.committed()) else { return };
        if known >= committed.next_seq {
            return;
        }
        let mut grown = self.grown.lock();
        if !grown.from.contains_key(&committed.run) {
            grown.from.insert(committed.run.clone(), known);
            grown.order.push_back(committed.run.clone());
        }
        drop(grown);
        self.work.notify_one();
    }

    fn next(&self) -> Option<(RunId, u64)> {
        let mut grown = self.grown.lock();
        let run = grown.order.pop_front()?;
        let from = grown.from.remove(&run)?;
        Some((run, from))
    }
}

impl Inner {
    pub(crate) async fn keep_observing(&self) {
        let Some(observing) = &self.observing else { return };
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = observing.work.notified() => self.report(observing, || self.stop.is_cancelled()).await,
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Tells the rest before the store closes, if that does not take long.
    pub(crate) async fn report_the_rest(&self) {
        let Some(observing) = &self.observing else { return };
        // What was queued so far is durable, and noted, when this is.
        let last = self.store.submit(Commit::new(self.current_world().generation, Vec::new()));
        let rest = async {
            // After a failure there is less to tell.
            let _ = last.await;
            self.report(observing, || false).await;
        };
        if tokio::time::timeout(LAST_WORDS, rest).await.is_err() {
            tracing::warn!("stopped before the observer had heard everything");
        }
    }

    async fn report(&self, observing: &Observing, enough: impl Fn() -> bool) {
        let mut followed = observing.followed.lock().await;
        while !enough()
            && let Some((run, from)) = observing.next()
        {
            if followed.ended.runs.contains(&run) {
                continue;
            }
            let following = followed.take(&run);
            match self.report_of(observing, following, &run, from).await {
                Ok(Told::SoFar(following)) => followed.put(run, *following),
                Ok(Told::ToItsEnd) => followed.ended.put(run),
                Ok(Told::Nothing) => {}
                Err(error) => {
                    // It is followed again, from its beginning, when it grows again.
                    metrics::counter!("baton_observer_gaps_total").increment(1);
                    tracing::debug!(%run, %error, "a run could not be read for its observer");
                }
            }
        }
    }

    /// Tells of one run what is on disk.
    async fn report_of(
        &self,
        observing: &Observing,
        following: Option<Following>,
        run: &RunId,
        from: u64,
    ) -> Result<Told, Error> {
        let mut following = match following {
            Some(following) => following,
            None => {
                let Some(row) = self.store.run(run).await?.filter(|row| !is_replay(row)) else {
                    return Ok(Told::Nothing);
                };
                let follower = observing.observer.follow(run, row.origin.as_ref());
                Following { row, next: 0, follower }
            }
        };
        loop {
            let page = self.log(&following.row, following.next, PAGE).await?;
            for stored in &page {
                let record = stored.decode(run)?;
                following.next = record.seq + 1;
                following.follower.record(&record, record.seq >= from);
                if record.event.is_terminal() {
                    return Ok(Told::ToItsEnd);
                }
            }
            if page.len() < PAGE {
                return Ok(Told::SoFar(Box::new(following)));
            }
        }
    }

    /// What a run sends along when it calls somebody: what it was started under, unless an observer knows better.
    pub(crate) fn outbound_trace(
        &self,
        run: &RunId,
        started: &RunStarted,
        forked: bool,
        caller: Caller<'_>,
    ) -> Option<TraceContext> {
        match &self.observing {
            Some(observing) => Some(observing.observer.trace(run, started, forked, caller)),
            None => started.private.trace.clone(),
        }
    }

    /// The same, for a run in memory.
    pub(crate) fn trace_from(&self, head: &Head, caller: Caller<'_>) -> Option<TraceContext> {
        self.outbound_trace(&head.row.id, head.state.started()?, head.row.origin.is_some(), caller)
    }
}

impl Ended {
    fn put(&mut self, run: RunId) {
        if !self.runs.insert(run.clone()) {
            return;
        }
        self.order.push_back(run);
        if self.order.len() > ENDED
            && let Some(oldest) = self.order.pop_front()
        {
            self.runs.remove(&oldest);
        }
    }
}

impl Followed {
    fn take(&mut self, run: &RunId) -> Option<Following> {
        let (heard, following) = self.runs.remove(run)?;
        self.order.remove(&heard);
        Some(following)
    }

    fn put(&mut self, run: RunId, following: Following) {
        self.now += 1;
        self.order.insert(self.now, run.clone());
        self.runs.insert(run, (self.now, following));
        if self.runs.len() > FOLLOWED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.runs.remove(&oldest);
        }
    }
}
