//! A store without a disk, for tests: the same contract, applied at once on the caller's thread so that tests with a
//! paused clock stay deterministic. It can also fail and die on demand, which real disks do only on bad days.

mod cluster;
mod disk;
mod ledger;
mod letters;
mod members;
mod ownership;
mod reader;

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{RunId, Timestamp, WorkflowId};
pub use cluster::Cluster;
use cluster::Member;
pub use disk::Disk;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::{
    COMMIT_BYTES, Commit, CommitError, Committed, Error, Journal, LedgerCommitted, News, Observer, Shared, Ticket,
    TicketSender,
};

#[derive(Debug)]
pub struct MemoryStore {
    /// Locked after `state`, where both are needed.
    disk: Arc<Mutex<Disk>>,
    state: Mutex<State>,
    crashed: watch::Sender<bool>,
    frozen: watch::Sender<bool>,
    /// How many reads have failed since reading does; `None` while it works.
    blind: Mutex<Option<u64>>,
    /// How many may read at the same time; `None` for any number.
    readers: Mutex<Option<Arc<Semaphore>>>,
    /// Set if the disk is shared with others.
    member: Option<Member>,
}

struct State {
    generation: u64,
    /// A commit of this generation failed; nothing more of it is taken.
    ended: bool,
    closed: bool,
    fault: Fault,
    commits: u64,
    /// The largest commit that is taken.
    most_bytes: usize,
    observer: Option<Arc<dyn Observer>>,
    outbox: VecDeque<Notice>,
    delivering: bool,
    /// Commits on their way to a disk that takes its time; `None` while it does not.
    held: Option<Vec<(Commit, TicketSender)>>,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
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
    ledgers: Vec<LedgerCommitted>,
    failed: Option<(u64, CommitError)>,
    ticket: TicketSender,
    result: Result<(), CommitError>,
    news: Vec<News>,
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

    fn on(disk: Arc<Mutex<Disk>>, member: Option<Member>) -> Self {
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

    /// The next `commits` succeed; the one after them, and all that follow, fail until [`Self::heal`] and `recover`.
    pub fn fail_after(&self, commits: u64) {
        self.state.lock().fault = Fault::Full { left: commits };
    }

    /// The next `commits` succeed; everything after them is lost without a word, as when the process is killed: no
    /// ticket resolves to `Ok`, the observer hears nothing, and there is no recovery.
    pub fn crash_after(&self, commits: u64) {
        self.state.lock().fault = Fault::Crash { left: commits };
    }

    /// The process is killed now, whatever it is at.
    pub fn die(&self) {
        self.crash_after(0);
        self.crashed.send_replace(true);
    }

    /// The process stops in the middle of everything, and does not know it: nothing it says reaches the disk, nor does it
    /// hear anything, until [`Self::thaw`].
    pub fn freeze(&self) {
        self.hold();
        self.frozen.send_replace(true);
    }

    /// Ends [`Self::freeze`].
    pub fn thaw(&self) {
        self.frozen.send_replace(false);
        self.release();
    }

    /// Takes back [`Self::fail_after`]: the disk has room again.
    pub fn heal(&self) {
        self.state.lock().fault = Fault::None;
    }

    /// From now on runs, their records and their questions cannot be read, until [`Self::regain_sight`].
    pub fn lose_sight(&self) {
        self.blind.lock().get_or_insert_default();
    }

    pub fn regain_sight(&self) {
        *self.blind.lock() = None;
    }

    /// How often somebody has tried to read since [`Self::lose_sight`].
    pub fn refused_reads(&self) -> u64 {
        self.blind.lock().unwrap_or(0)
    }

    /// From now on every commit with records of this run in it is refused ([`CommitError::Refused`]), as by a database that
    /// does not take one of its values: by this store, by others on the same disk, and by those who open it later.
    pub fn refuse_run(&self, run: &RunId) {
        self.disk.lock().refused.insert(run.clone());
    }

    /// The same for every run of this workflow, those among them that do not exist yet.
    pub fn refuse_workflow(&self, workflow: &WorkflowId) {
        self.disk.lock().refused_workflows.insert(workflow.clone());
    }

    /// Takes back [`Self::refuse_run`].
    pub fn accept_run(&self, run: &RunId) {
        self.disk.lock().refused.remove(run);
    }

    /// From now on no commit may have more than so many bytes: what a real store says of hundreds of megabytes, for tests
    /// that have less.
    pub fn limit_commits(&self, bytes: usize) {
        self.state.lock().most_bytes = bytes;
    }

    /// From now on at most so many may read at the same time, and others wait their turn in the order they came, as for the
    /// connections of a database. A read lets everybody else run once before it is done.
    pub fn limit_readers(&self, readers: usize) {
        *self.readers.lock() = Some(Arc::new(Semaphore::new(readers)));
    }

    /// From now on nobody gets to read, until [`Self::give_readers_back`]: all connections are taken.
    pub fn take_readers(&self) {
        self.limit_readers(0);
    }

    /// Ends [`Self::take_readers`], and any limit.
    pub fn give_readers_back(&self) {
        if let Some(readers) = self.readers.lock().take() {
            // Whoever waits holds it still.
            readers.add_permits(Semaphore::MAX_PERMITS - readers.available_permits());
        }
    }

    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let readers = self.readers.lock().clone()?;
        // It is never closed.
        let permit = readers.acquire_owned().await.ok();
        tokio::task::yield_now().await;
        permit
    }

    fn look(&self) -> Result<(), Error> {
        match &mut *self.blind.lock() {
            Some(refused) => {
                *refused += 1;
                Err(Error::Unavailable { reason: "the simulated disk cannot be read".to_owned(), source: None })
            }
            None => Ok(()),
        }
    }

    /// How many commits wait for [`Self::release`].
    pub fn waiting(&self) -> usize {
        self.state.lock().held.as_ref().map_or(0, Vec::len)
    }

    /// From now on commits wait, as on a slow disk: queued, not durable, nobody told.
    pub fn hold(&self) {
        self.state.lock().held.get_or_insert_default();
    }

    /// Ends [`Self::hold`]: what has waited is committed in order, or fails if [`Self::fail_after`] says so.
    pub fn release(&self) {
        let mut state = self.state.lock();
        for (commit, sender) in state.held.take().unwrap_or_default() {
            self.settle(&mut state, commit, sender);
        }
        drop(state);
        self.deliver();
    }

    pub fn has_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Resolves once a commit has been lost to [`Self::crash_after`].
    pub async fn crashed(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.crashed.subscribe().wait_for(|crashed| *crashed).await;
    }

    /// Tells observer and waiters what happened, in commit order and outside the lock. Whoever comes while another
    /// thread (or an outer frame of this one) is delivering leaves its notice to it.
    fn deliver(&self) {
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
    fn settle(&self, state: &mut State, commit: Commit, ticket: TicketSender) {
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

    fn commit(&self, state: &mut State, commit: Commit) -> Result<(Made, Vec<News>), CommitError> {
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
        let news = if self.member.is_some() { cluster::news_of(&commit, &committed.0) } else { Vec::new() };
        disk.apply(commit, me, now);
        state.commits += 1;
        Ok((committed, news))
    }

    /// The session whose commits these are; 0 if the disk is not shared.
    fn epoch_now(&self) -> u64 {
        self.member.as_ref().map_or(0, Member::epoch)
    }

    fn is_mine(&self, disk: &Disk, run: &RunId) -> bool {
        self.member.is_none() || disk.log(run).is_some_and(|log| log.owner == self.epoch_now())
    }

    fn now(&self) -> Timestamp {
        self.member.as_ref().map_or_else(Timestamp::default, |member| member.cluster.now())
    }
}

type Made = (Vec<Committed>, Vec<LedgerCommitted>);

#[async_trait]
impl Journal for MemoryStore {
    fn submit(&self, commit: Commit) -> Ticket {
        let (sender, ticket) = Ticket::new();
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
