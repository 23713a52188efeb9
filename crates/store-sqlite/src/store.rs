use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use async_trait::async_trait;
use baton_store::archive::Entry;
use baton_store::{Commit, CommitReceipt, Error, FairQueue, Journal, Observer};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::cache::Places;
use crate::damage;
use crate::error::{closed, io_error};
use crate::lock::DirLock;
use crate::note::Note;
use crate::open::{self, Database};
use crate::permissions::{DataAccess, prepare_folder};
use crate::pool::Pool;
use crate::shrink::Shrink;
use crate::writer::{Message, Shared, Writer};

/// How a data directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How many may read at the same time; at least one.
    pub readers: u32,
    /// Whom the folder may be open to.
    pub access: DataAccess,
    /// Whether a file that is damaged is not opened. Without it, what can be read of it is.
    pub refuse_damage: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        // Reads are short and mostly served from memory; more would only cost caches.
        Self { readers: 4, access: DataAccess::Owner, refuse_damage: true }
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

/// The connection that writes, to a file that holds together if that is asked for, and is of this version.
fn begin(database: &Database, dir: &Path, refuse_damage: bool) -> Result<Connection, Error> {
    let mut connection = open::writer(database)?;
    if refuse_damage {
        damage::refuse(&connection, dir)?;
        open::fold_log(&connection)?;
    } else {
        damage::refuse_nothing_left(&connection, dir)?;
    }
    open::migrate(&mut connection)?;
    if refuse_damage {
        damage::refuse_migrated(&connection, dir)?;
        open::fold_on_close(&connection, true)?;
    }
    Ok(connection)
}

impl SqliteStore {
    /// Opens the data in `dir`, creating what is not there yet. Blocks for a moment: call it while starting up.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_with(dir, SqliteOptions::default())
    }

    pub fn open_with(dir: &Path, options: SqliteOptions) -> Result<Self, Error> {
        Self::open_database(dir, options, None)
    }

    /// The same through a file system that SQLite knows by this name: a disk that fails, for tests.
    #[doc(hidden)]
    pub fn open_on(dir: &Path, options: SqliteOptions, vfs: &'static str) -> Result<Self, Error> {
        Self::open_database(dir, options, Some(vfs))
    }

    fn open_database(dir: &Path, options: SqliteOptions, vfs: Option<&'static str>) -> Result<Self, Error> {
        prepare_folder(dir, options.access, &[])?;
        let lock = DirLock::acquire(dir)?;
        if options.refuse_damage {
            damage::refuse_gone(dir)?;
        }
        let (database, place) = (Database { vfs, ..Database::of(dir) }, lock.place().clone());
        let connection = begin(&database, dir, options.refuse_damage).map_err(|error| damage::named(error, dir))?;
        // Whoever only looks at what is damaged takes nothing of it for granted.
        let note = if options.refuse_damage { Note::begin(dir, &connection)? } else { Note::none(dir) };

        let shared = Arc::new(Shared::default());
        shared.generation.store(1, Ordering::Relaxed);
        #[expect(
            clippy::disallowed_methods,
            reason = "submit() is called under a run's lock and cannot wait; the runtime bounds what waits here (`Outbox::room`)"
        )]
        let (queue, receiver) = mpsc::channel();
        let writer = Writer {
            queue: receiver,
            shared: Arc::clone(&shared),
            database: database.clone(),
            connection: Some(connection),
            places: Places::default(),
            ended: false,
            waiting: FairQueue::default(),
            tickets: Vec::new(),
            max_pages: None,
            shrink: if options.refuse_damage { Shrink::at_start() } else { Shrink::default() },
            note,
            folds: options.refuse_damage,
            lock,
        };
        let thread = thread::Builder::new()
            .name("baton-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| io_error("cannot start the writer thread", error))?;
        tracing::info!(path = %database.path.display(), "storage is open");
        Ok(Self {
            queue,
            shared,
            readers: Pool::new(database, place, options.readers),
            writer: Mutex::new(Some(thread)),
        })
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
