//! A store without a disk, for tests: the same contract, applied at once on the caller's thread so that tests with a
//! paused clock stay deterministic. It can also fail and die on demand, which real disks do only on bad days.

mod disk;
mod ledger;
mod reader;

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
pub use disk::Disk;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{Commit, CommitError, Committed, Error, Journal, LedgerCommitted, Observer, Ticket, TicketSender};

#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    crashed: watch::Sender<bool>,
}

struct State {
    disk: Disk,
    generation: u64,
    /// A commit of this generation failed; nothing more of it is taken.
    ended: bool,
    closed: bool,
    fault: Fault,
    commits: u64,
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
        let state = State {
            disk,
            generation: 1,
            ended: false,
            closed: false,
            fault: Fault::None,
            commits: 0,
            observer: None,
            outbox: VecDeque::new(),
            delivering: false,
            held: None,
        };
        Self { state: Mutex::new(state), crashed: watch::Sender::new(false) }
    }

    /// A copy of what is durable now.
    pub fn disk(&self) -> Disk {
        self.state.lock().disk.clone()
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

    /// Takes back [`Self::fail_after`]: the disk has room again.
    pub fn heal(&self) {
        self.state.lock().fault = Fault::None;
    }

    /// From now on commits wait, as on a slow disk: queued, not durable, nobody told.
    pub fn hold(&self) {
        self.state.lock().held.get_or_insert_default();
    }

    /// Ends [`Self::hold`]: what has waited is committed in order, or fails if [`Self::fail_after`] says so.
    pub fn release(&self) {
        let mut state = self.state.lock();
        for (commit, sender) in state.held.take().unwrap_or_default() {
            state.settle(commit, sender);
        }
        drop(state);
        self.deliver();
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
            notice.ticket.resolve(notice.result);
            state = self.state.lock();
        }
        state.delivering = false;
    }
}

impl State {
    /// Commits or refuses, and notes who has to be told what.
    fn settle(&mut self, commit: Commit, ticket: TicketSender) {
        let (result, failed, (runs, ledgers)) = match self.commit(commit) {
            Ok(committed) => (Ok(()), None, committed),
            Err(CommitError::Stale) => (Err(CommitError::Stale), None, Default::default()),
            Err(error) => {
                self.ended = true;
                (Err(error.clone()), Some((self.generation, error)), Default::default())
            }
        };
        self.outbox.push_back(Notice { runs, ledgers, failed, ticket, result });
    }

    fn commit(&mut self, commit: Commit) -> Result<(Vec<Committed>, Vec<LedgerCommitted>), CommitError> {
        if self.closed || self.ended || commit.generation != self.generation {
            return Err(CommitError::Stale);
        }
        let committed = self.disk.check(&commit)?;
        match &mut self.fault {
            Fault::None => {}
            Fault::Full { left: 0 } => return Err(CommitError::Unavailable { reason: FULL.to_owned() }),
            // `submit` never brings a commit here once the process is dead.
            Fault::Crash { left: 0 } => return Err(CommitError::Stale),
            Fault::Full { left } | Fault::Crash { left } => *left -= 1,
        }
        self.disk.apply(commit);
        self.commits += 1;
        Ok(committed)
    }
}

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
            None => state.settle(commit, sender),
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
    }
}
