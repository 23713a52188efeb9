//! What can go wrong on demand: a disk that is full, slow or out of sight, a process that is frozen or killed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_model::{RunId, WorkflowId};
use tokio::sync::Semaphore;

use super::line::Line;
use super::store::{Fault, MemoryStore};
use crate::FairQueue;

impl MemoryStore {
    /// The next `commits` succeed; the one after them, and all that follow, fail until [`Self::heal`] and `recover`.
    pub fn fail_after(&self, commits: u64) {
        self.state.lock().fault = Fault::Full { left: commits };
    }

    /// From now on there is no room for checkpoints, and for everything else there is.
    pub fn refuse_checkpoints(&self) {
        self.state.lock().no_room_for_checkpoints = true;
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

    /// What all records that were read so far weighed together.
    pub fn record_bytes_read(&self) -> u64 {
        self.record_bytes_read.load(Ordering::Acquire)
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

    /// How many commits wait for [`Self::release`].
    pub fn waiting(&self) -> usize {
        self.state.lock().held.as_ref().map_or(0, FairQueue::len)
    }

    /// From now on commits wait, as on a slow disk: queued, not durable, nobody told.
    pub fn hold(&self) {
        self.state.lock().held.get_or_insert_default();
    }

    /// Ends [`Self::hold`]: what has waited is committed in turns, as a writer does, or fails if [`Self::fail_after`] says so.
    pub fn release(&self) {
        let mut state = self.state.lock();
        for (commit, sender) in state.held.take().unwrap_or_default().take_all() {
            self.settle(&mut state, commit, sender);
        }
        drop(state);
        self.deliver();
    }

    /// Makes the first of what has waited since [`Self::hold`] durable. Says how many that were.
    pub fn release_some(&self, most: usize) -> usize {
        let mut state = self.state.lock();
        let Some(held) = state.held.as_mut().filter(|_| most > 0) else { return 0 };
        let some = held.take(most, usize::MAX);
        let count = some.len();
        for (commit, sender) in some {
            self.settle(&mut state, commit, sender);
        }
        drop(state);
        self.deliver();
        count
    }

    /// The next `commits` become durable, but whoever asked for them is told that they failed: the connection broke before
    /// the answer came.
    pub fn lose_answers(&self, commits: u64) {
        self.state.lock().unheard = commits;
    }

    /// Puts something between this host and its disk. Once, before the store is used.
    pub fn put_on_line(&self, line: Arc<dyn Line>) {
        let _ = self.line.set(line);
    }

    pub fn has_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Resolves once a commit has been lost to [`Self::crash_after`].
    pub async fn crashed(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.crashed.subscribe().wait_for(|crashed| *crashed).await;
    }
}
