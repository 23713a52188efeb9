use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use baton_model::{RunId, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::cluster::{Member, news_of};
use super::disk::Disk;
use super::line::Line;
use crate::{
    Breaks, COMMIT_BYTES, ClusterEvent, Commit, CommitError, CommitPart, CommitReceipt, Committed, Error, FairQueue,
    Journal, LostPart, Observer, Shared, TicketSender, VersionedStoreCommitted,
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
    /// What the records that were read weighed.
    pub(super) record_bytes_read: AtomicU64,
    /// How many may read at the same time; `None` for any number.
    pub(super) readers: Mutex<Option<Arc<Semaphore>>>,
    /// What every question to the disk goes over, if somebody has put something there.
    pub(super) line: OnceLock<Arc<dyn Line>>,
    /// Set if the disk is shared with others.
    pub(super) member: Option<Member>,
}

pub(super) struct State {
    pub(super) generation: u64,
    /// A commit of this generation failed; nothing more of it is taken.
    pub(super) ended: bool,
    pub(super) closed: bool,
    pub(super) fault: Fault,
    /// How many of the next commits are made durable and reported as failed.
    pub(super) unheard: u64,
    pub(super) commits: u64,
    /// How many parts were refused, or lost with something that they build on.
    lost: u64,
    /// The largest commit that is taken.
    pub(super) most_bytes: usize,
    pub(super) no_room_for_checkpoints: bool,
    observer: Option<Arc<dyn Observer>>,
    outbox: VecDeque<Notice>,
    delivering: bool,
    /// Commits on their way to a disk that takes its time; `None` while it does not.
    pub(super) held: Option<FairQueue<(Commit, TicketSender)>>,
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
    lost: Vec<LostPart>,
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
            unheard: 0,
            commits: 0,
            lost: 0,
            most_bytes: COMMIT_BYTES,
            no_room_for_checkpoints: false,
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
            record_bytes_read: AtomicU64::new(0),
            readers: Mutex::default(),
            line: OnceLock::new(),
            member,
        }
    }

    /// A copy of what is durable now.
    pub fn disk(&self) -> Disk {
        self.disk.lock().clone()
    }

    /// What another process sees on the same disk, as a store of one host.
    #[must_use]
    pub fn reopen(&self) -> Self {
        Self::on(Arc::clone(&self.disk), None)
    }

    /// How many commits this store has made durable since it was opened.
    pub fn commits(&self) -> u64 {
        self.state.lock().commits
    }

    /// How many parts of commits were not written while others were.
    pub fn lost(&self) -> u64 {
        self.state.lock().lost
    }

    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        if let Some(line) = self.line.get() {
            line.wait().await;
        }
        let readers = self.readers.lock().clone()?;
        // It is never closed.
        let permit = readers.acquire_owned().await.ok();
        tokio::task::yield_now().await;
        permit
    }

    pub(super) fn look(&self) -> Result<(), Error> {
        self.reach()?;
        match &mut *self.blind.lock() {
            Some(refused) => {
                *refused += 1;
                Err(Error::Unavailable { reason: "the simulated disk cannot be read".to_owned(), source: None })
            }
            None => Ok(()),
        }
    }

    /// Whether a question reaches the disk.
    pub(super) fn reach(&self) -> Result<(), Error> {
        match self.line.get().and_then(|line| line.cut()) {
            Some(reason) => Err(Error::Unavailable { reason, source: None }),
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
            if let Some(observer) = &observer
                && (!notice.runs.is_empty() || !notice.ledgers.is_empty())
            {
                observer.committed(&notice.runs, &notice.ledgers);
            }
            LostPart::tell(&notice.lost);
            if let Some(observer) = observer {
                if !notice.lost.is_empty() {
                    observer.lost(&notice.lost);
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
        let notice = match self.commit(state, &commit) {
            Ok(Made { news, .. }) if state.unheard > 0 => {
                state.unheard -= 1;
                state.ended = true;
                let error = CommitError::Unavailable { reason: "the answer was lost".to_owned() };
                let failed = Some((state.generation, error.clone()));
                let (runs, ledgers, lost) = Default::default();
                Notice { runs, ledgers, lost, failed, ticket, result: Err(error), news }
            }
            Ok(Made { runs, ledgers, breaks, news, refused }) => {
                let (result, lost) = (refused.map_or(Ok(()), Err), breaks.settle());
                state.lost += lost.len() as u64;
                Notice { runs, ledgers, lost, failed: None, ticket, result, news }
            }
            // As on a real disk: what can be made again may find no room where everything else does.
            Err(error @ CommitError::Unavailable { .. }) if commit.is_disposable() => {
                let (runs, ledgers, lost, news) = Default::default();
                Notice { runs, ledgers, lost, failed: None, ticket, result: Err(error), news }
            }
            Err(error) => {
                let failed = (error != CommitError::Stale).then(|| {
                    state.ended = true;
                    (state.generation, error.clone())
                });
                let (runs, ledgers, lost, news) = Default::default();
                Notice { runs, ledgers, lost, failed, ticket, result: Err(error), news }
            }
        };
        state.outbox.push_back(notice);
    }

    fn commit(&self, state: &mut State, commit: &Commit) -> Result<Made, CommitError> {
        if state.closed || state.ended || commit.generation != state.generation {
            return Err(CommitError::Stale);
        }
        let mut disk = self.disk.lock();
        let (me, now) = (self.epoch_now(), self.now());
        if self.member.is_some() && disk.members.has_ended(me) {
            return Err(CommitError::Fenced);
        }
        if state.no_room_for_checkpoints && commit.is_disposable() {
            return Err(CommitError::Unavailable { reason: FULL.to_owned() });
        }
        match &mut state.fault {
            Fault::None => {}
            Fault::Full { left: 0 } => return Err(CommitError::Unavailable { reason: FULL.to_owned() }),
            // `submit` never brings a commit here once the process is dead.
            Fault::Crash { left: 0 } => return Err(CommitError::Stale),
            Fault::Full { left } | Fault::Crash { left } => *left -= 1,
        }
        let mut made = Made::default();
        for part in commit.parts() {
            let judged = if made.breaks.is_whole(part.chains) {
                self.judge(&disk, part, me, state.most_bytes)
            } else {
                Err(CommitError::Stale)
            };
            match judged {
                Ok((runs, ledgers)) => {
                    if self.member.is_some() {
                        made.news.extend(news_of(part, &runs));
                    }
                    disk.apply(part, me, now);
                    made.runs.extend(runs);
                    made.ledgers.extend(ledgers);
                }
                Err(error) => {
                    made.breaks.lose(part.chains, part.run().cloned(), error.clone());
                    made.refused.get_or_insert(error);
                }
            }
        }
        state.commits += 1;
        Ok(made)
    }

    fn judge(
        &self,
        disk: &Disk,
        part: CommitPart<'_>,
        me: u64,
        most_bytes: usize,
    ) -> Result<(Vec<Committed>, Vec<VersionedStoreCommitted>), CommitError> {
        part.check_size_within(most_bytes)?;
        if self.member.is_some() {
            disk.check_owner(part, me)?;
        }
        disk.check(part)
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

/// What a commit brought about.
#[derive(Default)]
struct Made {
    runs: Vec<Committed>,
    ledgers: Vec<VersionedStoreCommitted>,
    breaks: Breaks,
    news: Vec<ClusterEvent>,
    /// Why the first of its parts that was lost was lost.
    refused: Option<CommitError>,
}

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
            Some(held) => held.push(commit.tenant.clone().as_ref(), commit.bytes(), (commit, sender)),
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
            _ if self.line.get().is_some_and(|line| line.cut().is_some()) => return unavailable("out of reach"),
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
