use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{RunId, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::cluster::{Member, news_of};
use super::disk::Disk;
use crate::{
    COMMIT_BYTES, ClusterEvent, Commit, CommitError, CommitReceipt, Committed, Error, Journal, Observer, Shared,
    TicketSender, VersionedStoreCommitted,
};

#[derive(Debug)]
pub struct MemoryStore {
    /// Locked after `state`, where both are needed.
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) state: Mutex<State>,
    pub(super) crashed: watch::Sender<bool>,
    pub(super) frozen: watch::Sender<bool>,
    /// How many reads have failed since reading does; `None` while it works.
    pub(super) blind: Mutex<Option<u64>>,
    /// How many may read at the same time; `None` for any number.
    pub(super) readers: Mutex<Option<Arc<Semaphore>>>,
    /// Set if the disk is shared with others.
    pub(super) member: Option<Member>,
}

pub(super) struct State {
    pub(super) generation: u64,
    /// A commit of this generation failed; nothing more of it is taken.
    pub(super) ended: bool,
    pub(super) closed: bool,
    pub(super) fault: Fault,
    pub(super) commits: u64,
    /// The largest commit that is taken.
    pub(super) most_bytes: usize,
    observer: Option<Arc<dyn Observer>>,
    outbox: VecDeque<Notice>,
    delivering: bool,
    /// Commits on their way to a disk that takes its time; `None` while it does not.
    pub(super) held: Option<Vec<(Commit, TicketSender)>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    None,
    /// Writes fail once this many more have succeeded.
    Full {
        left: u64,
    },
    /// The process dies once this many more have succeeded.
    Crash {
        left: u64,
    },
}

/// What a commit's outcome tells the observer and the waiter, in this order.
struct Notice {
    runs: Vec<Committed>,
    ledgers: Vec<VersionedStoreCommitted>,
    failed: Option<(u64, CommitError)>,
    ticket: TicketSender,
    result: Result<(), CommitError>,
    news: Vec<ClusterEvent>,
}

const FULL: &str = "no space left on the simulated disk";

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("generation", &self.generation)
            .field("ended", &self.ended)
            .field("fault", &self.fault)
            .field("commits", &self.commits)
            .finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::from_disk(Disk::default())
    }

    /// What a new process finds after the one that wrote `disk` is gone.
    pub fn from_disk(disk: Disk) -> Self {
        Self::on(Arc::new(Mutex::new(disk)), None)
    }

    pub(super) fn on(disk: Arc<Mutex<Disk>>, member: Option<Member>) -> Self {
        let state = State {
            generation: 1,
            ended: false,
            closed: false,
            fault: Fault::None,
            commits: 0,
            most_bytes: COMMIT_BYTES,
            observer: None,
            outbox: VecDeque::new(),
            delivering: false,
            held: None,
        };
        let (crashed, frozen) = (watch::Sender::new(false), watch::Sender::new(false));
        Self {
            disk,
            state: Mutex::new(state),
            crashed,
            frozen,
            blind: Mutex::new(None),
            readers: Mutex::default(),
            member,
        }
    }

    /// A copy of what is durable now.
    pub fn disk(&self) -> Disk {
        self.disk.lock().clone()
    }

    /// How many commits this store has made durable since it was opened.
    pub fn commits(&self) -> u64 {
        self.state.lock().commits
    }

    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let readers = self.readers.lock().clone()?;
        // It is never closed.
        let permit = readers.acquire_owned().await.ok();
        tokio::task::yield_now().await;
        permit
    }

    pub(super) fn look(&self) -> Result<(), Error> {
        match &mut *self.blind.lock() {
            Some(refused) => {
                *refused += 1;
                Err(Error::Unavailable { reason: "the simulated disk cannot be read".to_owned(), source: None })
            }
            None => Ok(()),
        }
    }

    /// Tells observer and waiters what happened, in commit order and outside the lock. Whoever comes while another
    /// thread (or an outer frame of this one) is delivering leaves its notice to it.
    pub(super) fn deliver(&self) {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.delivering, true) {
            return;
        }
        while let Some(notice) = state.outbox.pop_front() {
            let observer = state.observer.clone();
            drop(state);
            if let Some(observer) = observer {
                if !notice.runs.is_empty() || !notice.ledgers.is_empty() {
                    observer.committed(&notice.runs, &notice.ledgers);
                }
                if let Some((generation, error)) = &notice.failed {
                    observer.failed(*generation, error);
                }
            }
            if let Some(member) = &self.member {
                notice.news.into_iter().for_each(|news| member.cluster.tell(news));
            }
            notice.ticket.resolve(notice.result);
            state = self.state.lock();
        }
        state.delivering = false;
    }
}

impl MemoryStore {
    /// Commits or refuses, and notes who has to be told what.
    pub(super) fn settle(&self, state: &mut State, commit: Commit, ticket: TicketSender) {
        let alone = commit.alone;
        let (result, failed, (runs, ledgers), news) = match self.commit(state, commit) {
            Ok((committed, news)) => (Ok(()), None, committed, news),
            Err(error) if error == CommitError::Stale || (alone && error.is_refusal()) => {
                (Err(error), None, Default::default(), Vec::new())
            }
            Err(error) => {
                state.ended = true;
                (Err(error.clone()), Some((state.generation, error)), Default::default(), Vec::new())
            }
        };
        state.outbox.push_back(Notice { runs, ledgers, failed, ticket, result, news });
    }

    fn commit(&self, state: &mut State, commit: Commit) -> Result<(Made, Vec<ClusterEvent>), CommitError> {
        if state.closed || state.ended || commit.generation != state.generation {
            return Err(CommitError::Stale);
        }
        commit.check_size_within(state.most_bytes)?;
        let mut disk = self.disk.lock();
        let (me, now) = (self.epoch_now(), self.now());
        if self.member.is_some() {
            disk.check_owner(&commit, me)?;
        }
        let committed = disk.check(&commit)?;
        match &mut state.fault {
            Fault::None => {}
            Fault::Full { left: 0 } => return Err(CommitError::Unavailable { reason: FULL.to_owned() }),
            // `submit` never brings a commit here once the process is dead.
            Fault::Crash { left: 0 } => return Err(CommitError::Stale),
            Fault::Full { left } | Fault::Crash { left } => *left -= 1,
        }
        let news = if self.member.is_some() { news_of(&commit, &committed.0) } else { Vec::new() };
        disk.apply(commit, me, now);
        state.commits += 1;
        Ok((committed, news))
    }

    /// The session whose commits these are; 0 if the disk is not shared.
    pub(super) fn epoch_now(&self) -> u64 {
        self.member.as_ref().map_or(0, Member::epoch)
    }

    pub(super) fn is_mine(&self, disk: &Disk, run: &RunId) -> bool {
        self.member.is_none() || disk.log(run).is_some_and(|log| log.owner == self.epoch_now())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.member.as_ref().map_or_else(Timestamp::default, |member| member.cluster.now())
    }
}

type Made = (Vec<Committed>, Vec<VersionedStoreCommitted>);

#[async_trait]
impl Journal for MemoryStore {
    fn submit(&self, commit: Commit) -> CommitReceipt {
        let (sender, ticket) = CommitReceipt::new();
        let mut state = self.state.lock();
        if matches!(state.fault, Fault::Crash { left: 0 }) {
            drop(state);
            self.crashed.send_replace(true);
            return ticket;
        }
        match &mut state.held {
            Some(held) => held.push((commit, sender)),
            None => self.settle(&mut state, commit, sender),
        }
        drop(state);
        self.deliver();
        ticket
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.state.lock().observer = Some(observer);
    }

    fn generation(&self) -> u64 {
        self.state.lock().generation
    }

    async fn recover(&self) -> Result<u64, Error> {
        let mut state = self.state.lock();
        let unavailable = |reason: &str| Err(Error::Unavailable { reason: reason.to_owned(), source: None });
        match state.fault {
            _ if state.closed => return unavailable("the store is closed"),
            Fault::Crash { left: 0 } => return unavailable("the process is gone"),
            Fault::Full { left: 0 } if state.ended => return unavailable(FULL),
            _ => {}
        }
        if state.ended {
            state.ended = false;
            state.generation += 1;
            if let Some(member) = &self.member {
                member.start_over(&mut self.disk.lock());
            }
        }
        Ok(state.generation)
    }

    async fn close(&self) {
        self.release();
        let mut state = self.state.lock();
        state.closed = true;
        // The observer may own what owns this store.
        let observer = state.observer.take();
        drop(state);
        drop(observer);
        if let Some(member) = self.member.as_ref().filter(|_| !*self.crashed.borrow()) {
            member.leave(&mut self.disk.lock());
        }
    }

    fn shared(&self) -> Option<&dyn Shared> {
        self.member.as_ref().map(|_| self as &dyn Shared)
    }
}
