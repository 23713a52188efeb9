use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use baton_store::codec::integer;
use baton_store::{Commit, CommitReceipt, Error, FairQueue, Journal, Observer, Shared};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;

use crate::connect::{Connector, Use};
use crate::error::unavailable;
use crate::gather::Gather;
use crate::lookups::Lookups;
use crate::news::Desk;
use crate::questions::{Questions, policy};
use crate::run_counts::Counted;
use crate::settings::Settings;
use crate::statement::Statements;
use crate::writer::{Message, Public, Writer};

/// A database that several hosts share, open for one of them.
pub struct PostgresStore {
    queue: UnboundedSender<Message>,
    pub(crate) public: Arc<Public>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) questions: Questions,
    /// For the lease alone: a host that is alive says so, however many others wait to read.
    pub(crate) renewals: Questions,
    pub(crate) lookups: Gather<Lookups>,
    pub(crate) counted: Counted,
    /// `None`: what is written here is nobody's, and nobody else may write; see [`PostgresStore::open_alone`].
    pub(crate) lease: Option<Duration>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("place", &self.questions.place).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects, migrates what is older, and opens a session for this host.
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        Self::begin(settings, Some((settings.host.clone(), settings.lease))).await
    }

    /// The same without a session: the runs it writes are owned by nobody until a host takes them over. For copying, and
    /// for tests of what one writer does.
    pub async fn open_alone(settings: &Settings) -> Result<Self, Error> {
        Self::begin(settings, None).await
    }

    async fn begin(settings: &Settings, session: Option<(String, Duration)>) -> Result<Self, Error> {
        let connector = Connector::new(settings)?;
        connector.migrate().await?;
        let used = if session.is_some() { Use::Reads } else { Use::Copies };
        let pool = connector.pool(settings.pool_size, used)?;
        let lookups = connector.pool(1, Use::Lookups)?;
        let renewals = connector.pool(1, Use::Lease)?;
        let place = connector.address.place();
        let public = Arc::new(Public::default());
        public.generation.store(1, Ordering::Relaxed);
        #[expect(
            clippy::disallowed_methods,
            reason = "submit() is called under a run's lock and cannot wait; the runtime bounds what waits here (`Outbox::room`)"
        )]
        let (queue, receiver) = mpsc::unbounded_channel();
        let (ready, is_ready) = oneshot::channel();
        let (seen, lease) = (Arc::clone(&public), session.as_ref().map(|(_, lease)| *lease));
        let listen = settings.listen && session.is_some();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unavailable(format!("cannot start the writer: {error}")))?;
        // Its own thread: whatever keeps the host busy does not keep commits waiting.
        thread::Builder::new()
            .name("baton-writer".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    let desk = Desk::open(connector.clone(), listen);
                    let mut writer = Writer {
                        queue: receiver,
                        waiting: FairQueue::default(),
                        tickets: Vec::new(),
                        public: seen,
                        connector,
                        desk: Arc::clone(&desk),
                        session,
                        client: None,
                        statements: Statements::default(),
                        ended: false,
                    };
                    let begun = writer.begin_in_time().await;
                    let failed = begun.is_err();
                    if ready.send(begun.map(|()| desk)).is_ok() && !failed {
                        writer.run().await;
                    }
                });
            })
            .map_err(|error| unavailable(format!("cannot start the writer: {error}")))?;
        let desk = is_ready.await.unwrap_or_else(|_| Err(unavailable("the writer did not start")))?;
        tracing::info!(%place, epoch = public.epoch(), "storage is open");
        let questions = |pool, policy| Questions { pool, place: place.clone(), policy };
        let lookups = Gather::new(Lookups(questions(lookups, policy(lease))));
        // One that is not answered in time is asked again while the lease is still good.
        let renewals = questions(renewals, policy(lease.map(|lease| lease / 3)));
        let questions = questions(pool, policy(lease));
        Ok(Self { queue, public, desk, questions, renewals, lookups, counted: Counted::default(), lease })
    }

    /// How many transactions have been committed since the store was opened; fewer than commits when it is busy.
    pub fn transactions(&self) -> u64 {
        self.public.transactions.load(Ordering::Relaxed)
    }

    pub(crate) fn me(&self) -> i64 {
        integer(self.public.epoch())
    }

    /// `None` when the writer is gone.
    async fn tell<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.queue.send(message(sender)).ok()?;
        receiver.await.ok()
    }
}

#[async_trait]
impl Journal for PostgresStore {
    fn submit(&self, commit: Commit) -> CommitReceipt {
        let (sender, ticket) = CommitReceipt::new();
        // When the writer is gone the sender comes back and is dropped, which the ticket reports.
        let _ = self.queue.send(Message::Commit(commit, sender));
        ticket
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        *self.public.observer.lock() = Some(observer);
    }

    fn generation(&self) -> u64 {
        self.public.generation.load(Ordering::Relaxed)
    }

    async fn recover(&self) -> Result<u64, Error> {
        self.tell(Message::Recover).await.unwrap_or_else(|| Err(unavailable("the store is closed")))
    }

    async fn close(&self) {
        // `None` means that it is closed already.
        let _ = self.tell(Message::Close).await;
        // The observer may own what owns this store.
        let observer = self.public.observer.lock().take();
        drop(observer);
        self.questions.pool.close();
        self.renewals.pool.close();
        self.lookups.lookup().0.pool.close();
    }

    fn shared(&self) -> Option<&dyn Shared> {
        self.lease.map(|_| self as &dyn Shared)
    }
}
