//! One server: its connection, made and kept in a task of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use baton_model::{Connection, Secret};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::ProtocolVersion;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::backoff::wait_after;
use super::complaints::Complaints;
use super::dial::{InProcess, NoSession, Session, Way};
use super::lane::Lane;
use super::listing::{self, Listed};
use super::settings::{McpSettings, WrongSettings};
use super::starts;
use super::status::{Failure, History, Link, McpStatus, now};
use super::stdio::{Child, in_words};
use super::tool::McpTool;
use crate::secrets::Secrets;
use crate::{Supply, Tool};

/// Connecting, agreeing and listing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that lasted this long was a good one: losing it is not the next failure in a row.
const STEADY: Duration = Duration::from_secs(60);
/// How long whoever needs tools waits for a server that was only just started: programs take a few seconds to come up,
/// and agents that begin meanwhile should have their tools. Counted from the start of the server, so that a mute one holds
/// up nobody afterwards.
pub(super) const FIRST_CONNECTION: Duration = Duration::from_secs(10);
/// How long a session may take to end in an orderly way. Its process gets time of its own.
const CLOSING: Duration = Duration::from_secs(2);
/// How long a stop waits for a server and its process, all steps together.
const STOPPING: Duration = Duration::from_secs(8);
/// How long a supervisor that broke rests before it begins again.
const BROKEN: Duration = Duration::from_secs(5);
/// The least time between two warnings about what a server lists.
const BETWEEN_REMARKS: Duration = Duration::from_secs(60);
/// How many of the last lines of standard error a warning repeats.
const WARNED_LINES: usize = 5;

/// A server and its tools. Its connection ends when the last clone of the `Arc` is gone, and a process with it.
pub struct McpServer {
    shared: Arc<Shared>,
    stop: CancellationToken,
    stopped: CancellationToken,
    task: AbortOnDropHandle<()>,
}

/// What calls and the supervising task both need.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) settings: McpSettings,
    pub(super) link: watch::Sender<Link>,
    pub(super) lane: Lane,
    way: Way,
    pinned: Option<ProtocolVersion>,
    secrets: Arc<dyn Secrets>,
    /// Secrets that the present connection was made with.
    used: ArcSwap<Vec<Secret>>,
    tools: ArcSwap<Vec<Arc<McpTool>>>,
    /// It has said at least once what it has.
    listed: AtomicBool,
    generations: AtomicU64,
    history: Mutex<History>,
    /// The last remark about what it lists, and when it was made.
    remarked: Mutex<Option<(String, Instant)>>,
    /// What the process of the latest attempt wrote to its standard error.
    complaints: Mutex<Complaints>,
    started: Instant,
    /// Cancelled when the first attempt is over.
    tried: CancellationToken,
}

impl McpServer {
    /// Starts to connect to a server of the operator's configuration, and returns at once. Wrong settings are an error; a
    /// server that is not there is not: it is tried again, and its tools appear when it comes up.
    pub fn start(name: &str, settings: McpSettings, secrets: Arc<dyn Secrets>) -> Result<Arc<Self>, WrongSettings> {
        let way = Way::read(name, &settings)?;
        Self::begin(name, settings, secrets, way)
    }

    /// The same for a server in this process. `command` and `url` mean nothing here.
    pub fn in_process(
        name: &str,
        settings: McpSettings,
        secrets: Arc<dyn Secrets>,
        server: Arc<dyn InProcess>,
    ) -> Result<Arc<Self>, WrongSettings> {
        Self::begin(name, settings, secrets, Way::InProcess(server))
    }

    fn begin(
        name: &str,
        settings: McpSettings,
        secrets: Arc<dyn Secrets>,
        way: Way,
    ) -> Result<Arc<Self>, WrongSettings> {
        settings.check(name)?;
        let pinned = settings.pinned().map_err(|unknown| WrongSettings::new(name, format!("`revision` {unknown}")))?;
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            settings,
            link: watch::Sender::new(Link::Connecting),
            lane: Lane::default(),
            way,
            pinned,
            secrets,
            used: ArcSwap::default(),
            tools: ArcSwap::default(),
            listed: AtomicBool::new(false),
            generations: AtomicU64::new(0),
            history: Mutex::default(),
            remarked: Mutex::default(),
            complaints: Mutex::default(),
            started: Instant::now(),
            tried: CancellationToken::new(),
        });
        let (stop, stopped) = (CancellationToken::new(), CancellationToken::new());
        let task = tokio::spawn(own(Arc::clone(&shared), stop.clone(), stopped.clone()));
        Ok(Arc::new(Self { shared, stop, stopped, task: AbortOnDropHandle::new(task) }))
    }

    pub fn status(&self) -> McpStatus {
        McpStatus::from(&*self.shared.link.borrow())
    }

    /// Resolves when the first attempt to connect is over, however it went.
    pub async fn tried(&self) {
        self.shared.tried.cancelled().await;
    }

    /// Ends the connection and lets a process end by itself, within reason.
    pub async fn close(&self) {
        self.stop.cancel();
        let _ = timeout(STOPPING, self.stopped.cancelled()).await;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.link.send_replace(Link::Down { reason: TAKEN_OUT.to_owned() });
        self.shared.tried.cancel();
    }
}

const TAKEN_OUT: &str = "it was taken out of use";

impl Supply for McpServer {
    fn name(&self) -> &str {
        &self.shared.name
    }

    /// What the server listed last. A server that is away keeps its tools, so that agents do not change with the weather;
    /// calling one says what is the matter.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.shared.tools.load().iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn pending(&self) -> Option<BoxFuture<'static, ()>> {
        let (tried, until) = (self.shared.tried.clone(), self.shared.started + FIRST_CONNECTION);
        if tried.is_cancelled() || Instant::now() >= until {
            return None;
        }
        let settled = async move {
            tokio::select! {
                () = tried.cancelled() => {}
                () = sleep_until(until) => {}
            }
        };
        Some(settled.boxed())
    }

    fn absence(&self) -> Option<String> {
        if self.shared.listed.load(Ordering::Acquire) {
            return None;
        }
        Some(match &*self.shared.link.borrow() {
            Link::Down { reason } => reason.clone(),
            Link::Connecting | Link::Up { .. } => "it has not answered yet".to_owned(),
        })
    }

    fn connection(&self) -> Option<Connection> {
        let history = self.shared.history.lock().clone();
        Some(history.connection(&self.shared.name, &self.shared.link.borrow(), self.shared.tools.load().len()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.close().boxed()
    }
}

/// Owns the supervisor: one that broke is begun again, and a stop is told when it is over.
async fn own(shared: Arc<Shared>, stop: CancellationToken, stopped: CancellationToken) {
    let _told = stopped.drop_guard();
    loop {
        let supervisor = AbortOnDropHandle::new(tokio::spawn(supervise(Arc::clone(&shared), stop.clone())));
        match supervisor.await {
            Ok(()) => return,
            Err(error) => {
                tracing::error!(server = shared.name, %error, "the supervisor of an MCP server broke; it begins again");
                shared.failed(Failure::from("the host has a fault".to_owned()), 1, BROKEN);
            }
        }
        tokio::select! {
            () = sleep(BROKEN) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Connects, stays, and connects again.
async fn supervise(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0;
    loop {
        shared.turn(Link::Connecting);
        let connected = tokio::select! {
            connected = shared.attempt() => connected,
            () = stop.cancelled() => break,
        };
        let connected_at = Instant::now();
        let (failure, was_up) = match connected {
            Ok(session) => (shared.attend(session, &stop).await, true),
            Err(failure) => (failure, false),
        };
        if stop.is_cancelled() {
            break;
        }
        failures = if was_up && connected_at.elapsed() >= STEADY { 1 } else { failures + 1 };
        shared.warn(&failure, failures);
        // Whoever waits for a connection that was lost once need not wait longer than for a new one.
        if was_up && failures == 1 {
            shared.history.lock().lost(failure, shared.complaints.lock().lines());
            continue;
        }
        let wait = wait_after(failures);
        shared.failed(failure, failures, wait);
        tokio::select! {
            () = sleep(wait) => {}
            () = stop.cancelled() => break,
        }
    }
    shared.turn(Link::Down { reason: TAKEN_OUT.to_owned() });
    shared.tried.cancel();
}

impl Shared {
    /// One attempt to connect, in time. A program waits for its turn to be started, and not in its own time.
    async fn attempt(self: &Arc<Self>) -> Result<Session, Failure> {
        let connecting = timeout(CONNECT_TIMEOUT, self.connect());
        let connected = match &self.way {
            Way::Program { .. } => starts::in_turn(connecting).await,
            Way::Http { .. } | Way::InProcess(_) => connecting.await,
        };
        connected.unwrap_or_else(|_| Err(Failure::from("it did not answer in time".to_owned())))
    }

    async fn connect(self: &Arc<Self>) -> Result<Session, Failure> {
        let complaints = Complaints::default();
        *self.complaints.lock() = complaints.clone();
        let dial = |revision| self.way.dial(&self.name, revision, &*self.secrets, &complaints);
        let session = match dial(self.pinned.as_ref()).await {
            Err(NoSession::Older(revision)) => dial(Some(&revision)).await,
            other => other,
        };
        let session = session.map_err(|problem| match problem {
            NoSession::Because(failure) => failure,
            NoSession::Older(_) => "it cannot decide on a revision of the protocol".to_owned().into(),
        })?;
        self.used.store(Arc::new(session.used.clone()));
        match listing::list(self, session.service.peer()).await {
            Some(listed) => self.has(listed),
            None => return Err(self.over(session, "its tools cannot be listed").await),
        }
        Ok(session)
    }

    /// These are its tools from now on.
    pub(super) fn has(&self, listed: Listed) {
        let left_out = listed.left_out();
        if let Some(left_out) = &left_out {
            self.remark(left_out);
        }
        self.history.lock().left_out = left_out;
        self.tools.store(Arc::new(listed.tools));
        self.listed.store(true, Ordering::Release);
    }

    /// Warns of something that the server does, unless that was the last warning of this kind, or only just there was
    /// another one: a server can change its list as often as it likes.
    pub(super) fn remark(&self, what: &str) {
        let mut last = self.remarked.lock();
        let again = last.as_ref().is_some_and(|(last, at)| last == what || at.elapsed() < BETWEEN_REMARKS);
        if !again {
            tracing::warn!(server = self.name, "{what}");
            *last = Some((what.to_owned(), Instant::now()));
        }
    }

    /// Stays with a connection as long as it lasts, and says why it did not last longer.
    async fn attend(self: &Arc<Self>, session: Session, stop: &CancellationToken) -> Failure {
        let Session { service, revision, changed, stuck, mut child, used: _ } = session;
        let peer = service.peer().clone();
        let keep = listing::keep(Arc::clone(self), peer.clone(), revision.clone(), changed);
        let mut listing = AbortOnDropHandle::new(tokio::spawn(keep));
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let mut link = self.link.subscribe();
        self.turn(Link::Up { peer, revision: revision.to_string(), generation });
        self.tried.cancel();
        let end = service.cancellation_token();
        let mut closed = std::pin::pin!(service.waiting());
        let (mut is_closed, mut by_itself) = (false, true);
        let reason = tokio::select! {
            _ = &mut closed => {
                is_closed = true;
                "it closed the connection"
            }
            () = ended(&mut child) => "its process ended",
            // Everything below is our doing: how the process ends then says nothing.
            other = async {
                tokio::select! {
                    _ = &mut listing => "its tools could not be kept current",
                    () = given_up(&mut link, generation) => "the connection does not work any more",
                    () = stuck.cancelled() => "it does not read what it is sent",
                    () = stop.cancelled() => TAKEN_OUT,
                }
            } => {
                by_itself = false;
                other
            }
        };
        if !stop.is_cancelled() {
            // Who calls from now on waits for the next connection, not for the end of this one.
            self.turn(Link::Connecting);
        }
        drop(listing);
        end.cancel();
        if !is_closed {
            let _ = timeout(CLOSING, closed).await;
        }
        let exit = match child {
            Some(child) => child.end().await.filter(|_| by_itself).map(in_words),
            None => None,
        };
        Failure::new(reason, exit)
    }

    /// Ends a session that cannot be used.
    async fn over(&self, session: Session, reason: &str) -> Failure {
        let closed = session.service.is_transport_closed();
        drop(session.service);
        let exit = match session.child {
            Some(child) => child.end().await.filter(|_| closed).map(in_words),
            None => None,
        };
        Failure::new(reason, exit)
    }

    fn turn(&self, link: Link) {
        self.history.lock().turned(matches!(link, Link::Up { .. }));
        self.link.send_replace(link);
    }

    /// There is no connection, and there will be none for a while.
    fn failed(&self, failure: Failure, failures: u32, wait: Duration) {
        let reason = failure.reason.clone();
        {
            let mut history = self.history.lock();
            history.turned(false);
            history.failures = failures;
            history.next_attempt = Some(now().plus_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
            history.lost(failure, self.complaints.lock().lines());
        }
        self.link.send_replace(Link::Down { reason });
        self.tried.cancel();
    }

    fn warn(&self, Failure { reason, exit }: &Failure, failures: u32) {
        let stderr = self.complaints.lock().lines();
        let stderr = stderr[stderr.len().saturating_sub(WARNED_LINES)..].join("\n");
        let (server, exit) = (&self.name, exit.as_deref().unwrap_or_default());
        tracing::warn!(server, reason, exit, stderr, failures, "the MCP server is not connected");
    }

    /// Everything that must not show in a result.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.secrets.known();
        secrets.extend(self.used.load().iter().cloned());
        secrets
    }
}

/// Resolves when somebody who called found out that a connection is dead.
async fn given_up(link: &mut watch::Receiver<Link>, generation: u64) {
    // An error means that nobody calls any more.
    let _ = link.wait_for(|link| !link.is_generation(generation)).await;
}

/// Resolves when a process has ended. There need not be one.
async fn ended(child: &mut Option<Child>) {
    match child {
        Some(child) => child.ended().await,
        None => std::future::pending().await,
    }
}
