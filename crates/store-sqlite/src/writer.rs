//! The one thread that writes.
//!
//! It takes whatever is queued, up to a bound, as one transaction. While that is being synced to disk the next ones
//! pile up, so the busier the host, the more commits share one sync.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use baton_store::archive::Entry;
use baton_store::{Commit, CommitError, Error, Observer, TicketSender, panic_text};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::cache::Places;
use crate::error::{closed, read_error};
use crate::lock::DirLock;
use crate::open;
use crate::restore::restore;
use crate::transact::{Outcome, Verdict, transact};

/// Commits per transaction: beyond this a sync is shared widely enough, and the first in line should not wait longer.
const BATCH: usize = 256;
/// Bytes per transaction, for the same reason.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

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
    pub(crate) next: Option<Message>,
    /// Of the commits that are being written: whoever waits for them is told, whatever happens.
    pub(crate) tickets: Vec<TicketSender>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) path: PathBuf,
    /// Absent while recovery has not managed to open a new one.
    pub(crate) connection: Option<Connection>,
    pub(crate) places: Places,
    /// A commit of this generation failed; nothing more of it is taken.
    pub(crate) ended: bool,
    pub(crate) max_pages: Option<u32>,
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
        while let Some(message) = self.next.take().or_else(|| self.queue.recv().ok()) {
            match message {
                Message::Commit(commit, ticket) => {
                    let mut bytes = commit.bytes();
                    let mut batch = vec![(commit, ticket)];
                    while batch.len() < BATCH {
                        match self.queue.try_recv() {
                            Ok(Message::Commit(commit, ticket)) => {
                                bytes = bytes.saturating_add(commit.bytes());
                                if bytes > BATCH_BYTES {
                                    self.next = Some(Message::Commit(commit, ticket));
                                    break;
                                }
                                batch.push((commit, ticket));
                            }
                            Ok(other) => {
                                self.next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.write(batch);
                }
                Message::Recover(reply) => {
                    let _ = reply.send(self.recover());
                }
                Message::LimitGrowth(pages, reply) => {
                    let _ = reply.send(self.limit_growth(pages));
                }
                Message::Restore(entries, reply) => {
                    let restored = self.connection.as_ref().map(|connection| restore(connection, &entries));
                    // What is remembered may not know of it.
                    self.places.clear();
                    let _ = reply.send(restored.map_or_else(|| Err(closed()), |done| done.map_err(read_error)));
                }
                Message::Close(reply) => return Some(reply),
            }
        }
        None
    }

    fn write(&mut self, batch: Vec<(Commit, TicketSender)>) {
        let generation = self.shared.generation.load(Ordering::Relaxed);
        let (batch, stale): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|(commit, _)| !self.ended && commit.generation == generation);
        if let Some(connection) = self.connection.as_ref().filter(|_| !batch.is_empty()) {
            let commits: Vec<_>;
            (commits, self.tickets) = batch.into_iter().unzip();
            let outcome = transact(connection, &mut self.places, &commits);
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
            let connection = open::writer(&self.path)?;
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
        if let Some(connection) = self.connection {
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
