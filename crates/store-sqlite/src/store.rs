use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use async_trait::async_trait;
use baton_store::archive::Entry;
use baton_store::{Commit, CommitReceipt, Error, Journal, Observer};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::cache::Places;
use crate::error::{closed, io_error};
use crate::lock::DirLock;
use crate::open;
use crate::pool::Pool;
use crate::writer::{Message, Shared, Writer};

/// How a data directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How many may read at the same time; at least one.
    pub readers: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        // Reads are short and mostly served from memory; more would only cost caches.
        Self { readers: 4 }
    }
}

/// A data directory, open for this process alone.
pub struct SqliteStore {
    queue: Sender<Message>,
    shared: Arc<Shared>,
    readers: Pool,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("readers", &self.readers).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the data in `dir`, creating what is not there yet. Blocks for a moment: call it while starting up.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_with(dir, SqliteOptions::default())
    }

    pub fn open_with(dir: &Path, options: SqliteOptions) -> Result<Self, Error> {
        open::make_dir(dir)?;
        let lock = DirLock::acquire(dir)?;
        let (path, place) = (open::file(dir), lock.place().clone());
        let mut connection = open::writer(&path)?;
        open::migrate(&mut connection)?;

        let shared = Arc::new(Shared::default());
        shared.generation.store(1, Ordering::Relaxed);
        let (queue, receiver) = mpsc::channel();
        let writer = Writer {
            queue: receiver,
            shared: Arc::clone(&shared),
            path: path.clone(),
            connection: Some(connection),
            places: Places::default(),
            ended: false,
            next: None,
            tickets: Vec::new(),
            max_pages: None,
            lock,
        };
        let thread = thread::Builder::new()
            .name("baton-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| io_error("cannot start the writer thread", error))?;
        tracing::info!(path = %path.display(), "storage is open");
        Ok(Self { queue, shared, readers: Pool::new(path, place, options.readers), writer: Mutex::new(Some(thread)) })
    }

    /// How many transactions have been committed since the store was opened; fewer than commits when it is busy.
    pub fn transactions(&self) -> u64 {
        self.shared.transactions.load(Ordering::Relaxed)
    }

    /// Lets the file grow by at most `pages` pages of 4 KB from now on, or without limit: a full disk, for tests.
    #[doc(hidden)]
    pub async fn limit_growth(&self, pages: Option<u32>) -> Result<(), Error> {
        self.ask(|reply| Message::LimitGrowth(pages, reply)).await.unwrap_or_else(|| Err(closed()))
    }

    pub(crate) async fn restore_entries(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.ask(|reply| Message::Restore(entries, reply)).await.unwrap_or_else(|| Err(closed()))
    }

    pub(crate) fn readers(&self) -> &Pool {
        &self.readers
    }

    /// `None` when the writer is gone.
    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.queue.send(message(sender)).ok()?;
        receiver.await.ok()
    }
}

#[async_trait]
impl Journal for SqliteStore {
    fn submit(&self, commit: Commit) -> CommitReceipt {
        let (sender, ticket) = CommitReceipt::new();
        // When the writer is gone the sender comes back and is dropped, which the ticket reports.
        let _ = self.queue.send(Message::Commit(commit, sender));
        ticket
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        *self.shared.observer.lock() = Some(observer);
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Relaxed)
    }

    async fn recover(&self) -> Result<u64, Error> {
        self.ask(Message::Recover).await.unwrap_or_else(|| Err(closed()))
    }

    async fn close(&self) {
        self.readers.close().await;
        // `None` means that it is closed already.
        let _ = self.ask(Message::Close).await;
        // The observer may own what owns this store.
        let observer = self.shared.observer.lock().take();
        drop(observer);
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        let _ = self.queue.send(Message::Close(reply));
        // The last owner may be the observer, dropped on the writer's own thread; that one ends by itself.
        if let Some(writer) = self.writer.get_mut().take()
            && writer.thread().id() != thread::current().id()
            && writer.join().is_err()
        {
            tracing::error!("the writer thread panicked");
        }
    }
}
