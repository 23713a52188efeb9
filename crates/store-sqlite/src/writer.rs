//! The one thread that writes.
//!
//! It takes whatever is queued, up to a bound and in turns between tenants, as one transaction. While that is being synced
//! to disk the next ones pile up, so the busier the host, the more commits share one sync.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use baton_store::archive::Entry;
use baton_store::{Commit, CommitError, Error, FairQueue, LostPart, Observer, TicketSender, panic_text};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::cache::Places;
use crate::error::{closed, read_error};
use crate::lock::DirLock;
use crate::note::Note;
use crate::open::{self, Database};
use crate::restore::restore;
use crate::shrink::{QUIET, Shrink};
use crate::transact::{Outcome, Verdict, transact};

/// Commits per transaction: beyond this a sync is shared widely enough, and the first in line should not wait longer.
const BATCH: usize = 256;
/// Bytes per transaction, for the same reason: whoever comes now waits until these are on disk.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

pub(crate) enum Message {
    Commit(Commit, TicketSender),
    Recover(oneshot::Sender<Result<u64, Error>>),
    /// See [`crate::SqliteStore::limit_growth`].
    LimitGrowth(Option<u32>, oneshot::Sender<Result<(), Error>>),
    /// See [`baton_store::archive`].
    Restore(Vec<Entry>, oneshot::Sender<Result<(), Error>>),
    Close(oneshot::Sender<()>),
}

/// What others may see of the writer.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) generation: AtomicU64,
    pub(crate) transactions: AtomicU64,
    pub(crate) observer: Mutex<Option<Arc<dyn Observer>>>,
}

pub(crate) struct Writer {
    pub(crate) queue: Receiver<Message>,
    /// Taken from the queue, and not begun.
    pub(crate) waiting: FairQueue<Message>,
    /// Of the commits that are being written: whoever waits for them is told, whatever happens.
    pub(crate) tickets: Vec<TicketSender>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) database: Database,
    /// Absent while recovery has not managed to open a new one.
    pub(crate) connection: Option<Connection>,
    pub(crate) places: Places,
    /// A commit of this generation failed; nothing more of it is taken.
    pub(crate) ended: bool,
    pub(crate) max_pages: Option<u32>,
    pub(crate) shrink: Shrink,
    pub(crate) note: Note,
    /// Whether the log is folded back at the end: not where somebody looks at what is damaged.
    pub(crate) folds: bool,
    /// Let go only once the file is closed.
    pub(crate) lock: DirLock,
}

impl Writer {
    /// Ends when told to close or when the store is dropped. A panic is a failed commit: the generation ends, whoever waits
    /// is told, and recovery begins with a new connection.
    pub(crate) fn run(mut self) {
        let closing = loop {
            match catch_unwind(AssertUnwindSafe(|| self.serve())) {
                Ok(closing) => break closing,
                Err(panic) => self.panicked(panic.as_ref()),
            }
        };
        self.finish();
        if let Some(reply) = closing {
            let _ = reply.send(());
        }
    }

    fn panicked(&mut self, panic: &(dyn Any + Send)) {
        tracing::error!(panic = %panic_text(panic), "the writer panicked; it starts over");
        metrics::counter!("baton_writer_panics_total").increment(1);
        let error = CommitError::writer_panicked();
        // Whatever it was in the middle of is undone with it.
        self.connection = None;
        self.places.clear();
        if !self.ended {
            let generation = self.shared.generation.load(Ordering::Relaxed);
            let told = catch_unwind(AssertUnwindSafe(|| self.end(generation, &error)));
            if let Err(panic) = told {
                tracing::error!(panic = %panic_text(panic.as_ref()), "nobody could be told");
            }
        }
        for ticket in std::mem::take(&mut self.tickets) {
            ticket.resolve(Err(error.clone()));
        }
    }

    /// Does what is asked until somebody closes the store, who is to be told once that is done.
    fn serve(&mut self) -> Option<oneshot::Sender<()>> {
        while self.gather() {
            let mut batch = Vec::new();
            for message in self.waiting.take(BATCH, BATCH_BYTES) {
                match message {
                    Message::Commit(commit, ticket) => batch.push((commit, ticket)),
                    // Each of these was taken by itself.
                    Message::Recover(reply) => {
                        let _ = reply.send(self.recover());
                    }
                    Message::LimitGrowth(pages, reply) => {
                        let _ = reply.send(self.limit_growth(pages));
                    }
                    Message::Restore(entries, reply) => {
                        let restored = self.connection.as_ref().map(|connection| restore(connection, &entries));
                        if let Some(Ok(number)) = restored {
                            self.note.write(number);
                        }
                        // What is remembered may not know of it.
                        self.places.clear();
                        let _ = reply.send(
                            restored.map_or_else(|| Err(closed()), |done| done.map(|_number| ()).map_err(read_error)),
                        );
                    }
                    Message::Close(reply) => return Some(reply),
                }
            }
            if !batch.is_empty() {
                self.write(batch);
            }
        }
        None
    }

    /// Takes in what was queued, waiting for something if there is nothing. False if nobody will queue anything any more.
    fn gather(&mut self) -> bool {
        if self.waiting.is_empty() {
            match self.next_message() {
                Some(message) => self.take_in(message),
                None => return false,
            }
        }
        while let Ok(message) = self.queue.try_recv() {
            self.take_in(message);
        }
        true
    }

    /// What is asked next. While nobody asks for anything, the file becomes smaller, and the note of the last commit
    /// catches up.
    fn next_message(&mut self) -> Option<Message> {
        while let Some(wait) = if self.shrink.is_due() { Some(QUIET) } else { self.note.waits() } {
            match self.queue.recv_timeout(wait) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if self.shrink.is_due() {
                        self.shrink.step(self.connection.as_ref().filter(|_| !self.ended));
                    }
                    self.note.catch_up();
                }
            }
        }
        self.queue.recv().ok()
    }

    fn take_in(&mut self, message: Message) {
        match &message {
            Message::Commit(commit, _) => {
                let (tenant, bytes) = (commit.tenant.clone(), commit.bytes());
                self.waiting.push(tenant.as_ref(), bytes, message);
            }
            _ => self.waiting.push_alone(message),
        }
    }

    fn write(&mut self, batch: Vec<(Commit, TicketSender)>) {
        let generation = self.shared.generation.load(Ordering::Relaxed);
        let (batch, stale): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|(commit, _)| !self.ended && commit.generation == generation);
        if let Some(connection) = self.connection.as_ref().filter(|_| !batch.is_empty()) {
            let commits: Vec<_>;
            (commits, self.tickets) = batch.into_iter().unzip();
            self.shrink.note(&commits);
            let outcome = transact(connection, &mut self.places, &commits);
            // Before anybody is told: what is acknowledged from here on is missed should it be gone.
            if let Some(number) = outcome.number {
                self.note.write(number);
            }
            self.tell(generation, outcome);
        }
        for (_, ticket) in stale {
            ticket.resolve(Err(CommitError::Stale));
        }
    }

    fn tell(&mut self, generation: u64, outcome: Outcome) {
        self.shared.transactions.fetch_add(outcome.transactions, Ordering::Relaxed);
        metrics::counter!("baton_commits_total").increment(outcome.transactions);
        let (runs, ledgers) = (&outcome.runs, &outcome.ledgers);
        if let Some(observer) = self.observer().filter(|_| !runs.is_empty() || !ledgers.is_empty()) {
            observer.committed(runs, ledgers);
        }
        LostPart::tell(&outcome.lost);
        if let Some(observer) = self.observer().filter(|_| !outcome.lost.is_empty()) {
            for lost in outcome.lost.iter().filter(|lost| lost.error != CommitError::Stale) {
                tracing::error!(error = %lost.error, "a part of a commit was refused; the rest goes on");
            }
            metrics::counter!("baton_lost_writes_total").increment(outcome.lost.len() as u64);
            observer.lost(&outcome.lost);
        }
        let mut failed = Vec::new();
        for (ticket, verdict) in std::mem::take(&mut self.tickets).into_iter().zip(outcome.verdicts) {
            match verdict {
                Verdict::Written => ticket.resolve(Ok(())),
                Verdict::Refused(error) => ticket.resolve(Err(error)),
                Verdict::Failed(error) => failed.push((ticket, error)),
                Verdict::NotAttempted => failed.push((ticket, CommitError::Stale)),
            }
        }
        // Those that fail are told last: by then the generation has ended.
        if let Some((_, error)) = failed.first() {
            self.end(generation, error);
        }
        for (ticket, error) in failed {
            ticket.resolve(Err(error));
        }
    }

    fn end(&mut self, generation: u64, error: &CommitError) {
        self.ended = true;
        tracing::error!(generation, %error, "a commit failed; writes stop until recovery");
        if let Some(observer) = self.observer() {
            observer.failed(generation, error);
        }
    }

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.shared.observer.lock().clone()
    }

    fn recover(&mut self) -> Result<u64, Error> {
        if self.ended {
            // After an I/O error nothing that is remembered can be trusted: not by the connection, and not here.
            self.connection = None;
            self.places.clear();
            self.lock.place().check()?;
            let connection = open::writer(&self.database)?;
            // What was acknowledged before may have gone with what failed.
            if let Some(reason) = self.note.missing(&connection)? {
                return Err(Error::Corrupt { reason });
            }
            open::fold_log(&connection)?;
            open::fold_on_close(&connection, self.folds)?;
            prove_writable(&connection, self.max_pages).map_err(read_error)?;
            self.connection = Some(connection);
            self.ended = false;
            let generation = self.shared.generation.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::info!(generation, "storage takes writes again");
        }
        Ok(self.shared.generation.load(Ordering::Relaxed))
    }

    fn limit_growth(&mut self, pages: Option<u32>) -> Result<(), Error> {
        self.max_pages = None;
        if let (Some(pages), Some(connection)) = (pages, &self.connection) {
            let now: u32 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(read_error)?;
            self.max_pages = Some(now + pages);
        }
        self.connection.as_ref().map_or(Ok(()), |c| apply_limit(c, self.max_pages)).map_err(read_error)
    }

    fn finish(self) {
        if let Some(connection) = self.connection.filter(|_| self.folds) {
            // Leaves one plain file behind. Not needed for safety: the next open would do it.
            let folded = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            if let Err(error) = folded.and_then(|()| connection.close().map_err(|(_, error)| error)) {
                tracing::warn!(%error, "the write-ahead log was not folded back");
            }
        }
        drop(self.lock);
    }
}

fn apply_limit(connection: &Connection, max_pages: Option<u32>) -> rusqlite::Result<()> {
    // The largest the file format allows.
    let pages = max_pages.unwrap_or(u32::MAX - 1);
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
}

/// Writes and syncs new pages, then gives them back. Changing a row in place would prove nothing on a full disk.
fn prove_writable(connection: &Connection, max_pages: Option<u32>) -> rusqlite::Result<()> {
    apply_limit(connection, max_pages)?;
    connection.execute("INSERT INTO probe (filler) VALUES (zeroblob(65536))", [])?;
    connection.execute("DELETE FROM probe", [])?;
    Ok(())
}
