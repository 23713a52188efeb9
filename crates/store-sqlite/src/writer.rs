//! The one thread that writes.
//!
//! It takes whatever is queued, up to a bound, as one transaction. While that is being synced to disk the next ones
//! pile up, so the busier the host, the more commits share one sync.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use baton_store::archive::Entry;
use baton_store::{Commit, CommitError, Committed, Error, LedgerCommitted, Observer, TicketSender};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::apply::{Transaction, roll_back};
use crate::archive;
use crate::cache::Places;
use crate::error::{Failure, closed, read_error, unwritable};
use crate::lock::DirLock;
use crate::open;

/// Commits per transaction: beyond this a sync is shared widely enough, and the first in line should not wait longer.
const BATCH: usize = 256;

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
    /// Ends when told to close or when the store is dropped.
    pub(crate) fn run(mut self) {
        let mut next = None;
        while let Some(message) = next.take().or_else(|| self.queue.recv().ok()) {
            match message {
                Message::Commit(commit, ticket) => {
                    let mut batch = vec![(commit, ticket)];
                    while batch.len() < BATCH {
                        match self.queue.try_recv() {
                            Ok(Message::Commit(commit, ticket)) => batch.push((commit, ticket)),
                            Ok(other) => {
                                next = Some(other);
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
                    let restored = self.connection.as_ref().map(|connection| archive::restore(connection, &entries));
                    // What is remembered may not know of it.
                    self.places.clear();
                    let _ = reply.send(restored.map_or_else(|| Err(closed()), |done| done.map_err(read_error)));
                }
                Message::Close(reply) => {
                    self.finish();
                    let _ = reply.send(());
                    return;
                }
            }
        }
        self.finish();
    }

    fn write(&mut self, batch: Vec<(Commit, TicketSender)>) {
        let generation = self.shared.generation.load(Ordering::Relaxed);
        let (batch, stale): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|(commit, _)| !self.ended && commit.generation == generation);
        if let Some(connection) = self.connection.as_ref().filter(|_| !batch.is_empty()) {
            let outcome = transact(connection, &mut self.places, batch);
            self.tell(generation, outcome);
        }
        for (_, ticket) in stale {
            ticket.resolve(Err(CommitError::Stale));
        }
    }

    fn tell(&mut self, generation: u64, outcome: Outcome) {
        if !outcome.written.is_empty() {
            self.shared.transactions.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("baton_commits_total").increment(1);
        }
        let (runs, ledgers) = (&outcome.runs, &outcome.ledgers);
        if let Some(observer) = self.observer().filter(|_| !runs.is_empty() || !ledgers.is_empty()) {
            observer.committed(runs, ledgers);
        }
        for ticket in outcome.written {
            ticket.resolve(Ok(()));
        }
        for (ticket, error) in outcome.refused {
            ticket.resolve(Err(error));
        }
        if let Some(error) = outcome.error {
            self.end(generation, &error);
            for ticket in outcome.failed {
                ticket.resolve(Err(error.clone()));
            }
        }
        for ticket in outcome.not_attempted {
            ticket.resolve(Err(CommitError::Stale));
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

#[derive(Default)]
struct Outcome {
    written: Vec<TicketSender>,
    runs: Vec<Committed>,
    ledgers: Vec<LedgerCommitted>,
    error: Option<CommitError>,
    failed: Vec<TicketSender>,
    /// Each for a reason of its own, which is nobody else's business.
    refused: Vec<(TicketSender, CommitError)>,
    not_attempted: Vec<TicketSender>,
}

fn transact(connection: &Connection, places: &mut Places, batch: Vec<(Commit, TicketSender)>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut lost = None;
    match Transaction::begin(connection, places) {
        Ok(mut transaction) => {
            for (commit, ticket) in batch {
                if !outcome.failed.is_empty() {
                    outcome.not_attempted.push(ticket);
                    continue;
                }
                let alone = commit.alone;
                match transaction.apply(commit) {
                    Ok((runs, ledgers)) => {
                        outcome.written.push(ticket);
                        outcome.runs.extend(runs);
                        outcome.ledgers.extend(ledgers);
                    }
                    Err(Failure::Refused(error)) if alone => outcome.refused.push((ticket, error)),
                    Err(Failure::Refused(error)) => {
                        outcome.error = Some(error);
                        outcome.failed.push(ticket);
                    }
                    Err(Failure::Disk(error)) => {
                        lost = Some(error);
                        outcome.failed.push(ticket);
                    }
                }
            }
            lost = lost.or_else(|| transaction.commit().err());
        }
        Err(error) => {
            lost = Some(error);
            outcome.failed.extend(batch.into_iter().map(|(_, ticket)| ticket));
        }
    }
    if let Some(error) = lost {
        roll_back(connection);
        outcome.error = Some(unwritable(&error));
        outcome.failed.append(&mut outcome.written);
        outcome.runs.clear();
        outcome.ledgers.clear();
    }
    outcome
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
