//! Telling somebody outside the host what has become durable, strictly afterwards and in order.
//!
//! ```text
//!  commit ──► note (run, from where on) ──► one task ──► reads the log from its own cursor ──► Follower::record
//! ```
//!
//! The note carries no records: whoever is slow reads more at a time and holds nothing up. A long log is read a page at a
//! time, in turn with the others. What an earlier process had
//! written is read too, so that a follower knows the whole log, and marked as old news. Replays have no side effects
//! and are not observed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use baton_model::event::RunStarted;
use baton_model::{RunId, TraceContext};
use baton_store::{Committed, RunRow, Store};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::history::log::RunLog;
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::run::live::LiveRun;
use crate::run::tree::is_replay;
use crate::services::observer::{Caller, Follower, Observer};
use crate::tasks::Tasks;

/// Records read at a time.
const PAGE: usize = 500;
/// Runs of whose log a part has been told and more is on disk. They take turns with those that have just grown; while
/// there are this many, nobody new is begun with.
const BEGUN: usize = 64;
/// Runs that are followed at the same time; one that comes back later is read again from its beginning.
const FOLLOWED: usize = 4096;
/// Runs that have been told to their end, and whose last notes may still come.
const ENDED: usize = 4096;
/// How long stopping waits for the observer.
const LAST_WORDS: Duration = Duration::from_secs(5);

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
    begun: Begun,
}

/// Runs that are being told page by page, and where the news begins; who has waited longest first.
#[derive(Default)]
struct Begun {
    order: VecDeque<(RunId, u64, Box<Following>)>,
    runs: BTreeSet<RunId>,
    /// Whose turn it is: one of these, or one that has just grown.
    is_next: bool,
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
    /// There is more on disk.
    APage(Box<Following>),
    ToItsEnd,
}

impl Observing {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, grown: Mutex::default(), work: Notify::new(), followed: tokio::sync::Mutex::default() }
    }

    /// Notes that a run has grown on disk. Called by the writer before the run's handle hears of it: what the handle knows
    /// is where the news begins. A log that grows without a handle, as replays and imports do, is nobody's news.
    pub(crate) fn grew(&self, live: &Generation, committed: &Committed) {
        let Some(known) = live.runs.get(&committed.run).map(|handle| handle.committed()) else { return };
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

    /// Of this one nothing was told after all.
    fn put_back(&self, run: &RunId, from: u64) {
        let mut grown = self.grown.lock();
        match grown.from.get_mut(run) {
            Some(known) => *known = from.min(*known),
            None => {
                grown.from.insert(run.clone(), from);
                grown.order.push_front(run.clone());
            }
        }
    }
}

/// Tells the observer what is durable.
pub(crate) struct ObserverFeed {
    pub(crate) observing: Option<Arc<Observing>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl ObserverFeed {
    pub(crate) async fn keep_observing(&self) {
        let Some(observing) = &self.observing else { return };
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = observing.work.notified() => self.report(observing, Some(&self.tasks.stop)).await,
                () = self.tasks.stop.cancelled() => {}
            }
        }
    }

    /// Tells the rest before the store closes, if that does not take long.
    pub(crate) async fn report_the_rest(&self) {
        let Some(observing) = &self.observing else { return };
        // What was queued so far is durable, and noted, when this is.
        let last = self.storage.write(self.storage.current().generation, Lane::All, Vec::new());
        let rest = async {
            // After a failure there is less to tell.
            let _ = last.await;
            self.report(observing, None).await;
        };
        if tokio::time::timeout(LAST_WORDS, rest).await.is_err() {
            tracing::warn!("stopped before the observer had heard everything");
        }
    }

    /// Tells what there is to be told, or until `stop`. What was begun then is gone on with the next time.
    async fn report(&self, observing: &Observing, stop: Option<&CancellationToken>) {
        let stopped = || stop.is_some_and(CancellationToken::is_cancelled);
        let mut followed = observing.followed.lock().await;
        while !stopped()
            && let Some((run, from, following)) = followed.next(observing)
        {
            if followed.ended.runs.contains(&run) {
                continue;
            }
            match self.report_of(observing, following, &run, from, stop).await {
                Ok(Told::SoFar(following)) => followed.put(run, *following),
                Ok(Told::APage(following)) => followed.begun.put(run, from, following),
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

    /// Tells of one run what is on disk, up to a page.
    async fn report_of(
        &self,
        observing: &Observing,
        following: Option<Box<Following>>,
        run: &RunId,
        from: u64,
        stop: Option<&CancellationToken>,
    ) -> Result<Told, Error> {
        let stopped = async {
            match stop {
                Some(stop) => stop.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(stopped);
        let mut following = match following {
            Some(following) => following,
            None => {
                let row = tokio::select! {
                    biased;
                    row = self.store.run(run) => row?,
                    () = &mut stopped => {
                        observing.put_back(run, from);
                        return Ok(Told::Nothing);
                    }
                };
                let Some(row) = row.filter(|row| !is_replay(row)) else { return Ok(Told::Nothing) };
                let follower = observing.observer.follow(run, row.origin.as_ref());
                Box::new(Following { row, next: 0, follower })
            }
        };
        let page = tokio::select! {
            biased;
            page = self.log.log(&following.row, following.next, PAGE) => page?,
            () = &mut stopped => return Ok(Told::APage(following)),
        };
        for stored in &page {
            let record = stored.decode(run)?;
            following.next = record.seq + 1;
            following.follower.record(&record, record.seq >= from);
            if record.event.is_terminal() {
                return Ok(Told::ToItsEnd);
            }
        }
        Ok(if page.len() < PAGE { Told::SoFar(following) } else { Told::APage(following) })
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
            None => started.private.trace.as_deref().cloned(),
        }
    }

    /// The same, for a run in memory.
    pub(crate) fn trace_from(&self, head: &LiveRun, caller: Caller<'_>) -> Option<TraceContext> {
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

impl Begun {
    fn put(&mut self, run: RunId, from: u64, following: Box<Following>) {
        self.runs.insert(run.clone());
        self.order.push_back((run, from, following));
    }

    fn next(&mut self) -> Option<(RunId, u64, Option<Box<Following>>)> {
        let (run, from, following) = self.order.pop_front()?;
        self.runs.remove(&run);
        Some((run, from, Some(following)))
    }
}

impl Followed {
    /// Whose turn it is, and how far it was told.
    fn next(&mut self, observing: &Observing) -> Option<(RunId, u64, Option<Box<Following>>)> {
        let full = self.begun.order.len() >= BEGUN;
        if (std::mem::replace(&mut self.begun.is_next, false) || full)
            && let Some(begun) = self.begun.next()
        {
            return Some(begun);
        }
        self.begun.is_next = true;
        while let Some((run, from)) = observing.next() {
            // One that was begun with is read to what is on disk by the time, this note's records among it.
            if !self.begun.runs.contains(&run) {
                let following = self.take(&run).map(Box::new);
                return Some((run, from, following));
            }
        }
        self.begun.next()
    }

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
