//! Connects to one server, stays connected, and connects again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rmcp::model::ProtocolVersion;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::backoff::wait_after;
use super::dial::{Endpoint, NoSession, Session};
use super::handle::ServerHandle;
use super::listing::{self, Listed};
use super::start_queue;
use super::status::{Failure, History, Link, now};
use super::stderr_tail::StderrTail;
use super::stdio::{Child, in_words};
use super::tool::McpTool;

/// Connecting, agreeing and listing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that lasted this long was a good one: losing it is not the next failure in a row.
const STEADY: Duration = Duration::from_secs(60);
/// How long a session may take to end in an orderly way. Its process gets time of its own.
const CLOSING: Duration = Duration::from_secs(2);
/// How long a supervisor that broke rests before it begins again.
const BROKEN: Duration = Duration::from_secs(5);
/// The least time between two warnings about what a server lists.
const BETWEEN_REMARKS: Duration = Duration::from_secs(60);
/// How many of the last lines of standard error a warning repeats.
const WARNED_LINES: usize = 5;
/// Why a server that was taken out of the configuration has no connection.
pub(super) const REMOVED: &str = "it was taken out of use";

/// Makes and keeps the connection to one server.
pub(super) struct Supervisor {
    pub(super) handle: Arc<ServerHandle>,
    endpoint: Endpoint,
    pinned: Option<ProtocolVersion>,
    pub(super) tools: ArcSwap<Vec<Arc<McpTool>>>,
    /// It has said at least once what it has.
    pub(super) listed: AtomicBool,
    generations: AtomicU64,
    pub(super) history: Mutex<History>,
    /// The last remark about what it lists, and when it was made.
    remarked: Mutex<Option<(String, Instant)>>,
    /// What the process of the latest attempt wrote to its standard error.
    stderr: Mutex<StderrTail>,
    pub(super) started: Instant,
    /// Cancelled when the first attempt is over.
    pub(super) tried: CancellationToken,
}

/// Owns the supervisor: one that broke is begun again, and a stop is told when it is over.
pub(super) async fn keep_running(shared: Arc<Supervisor>, stop: CancellationToken, stopped: CancellationToken) {
    let _told = stopped.drop_guard();
    loop {
        let supervisor = AbortOnDropHandle::new(tokio::spawn(supervise(Arc::clone(&shared), stop.clone())));
        match supervisor.await {
            Ok(()) => return,
            Err(error) => {
                tracing::error!(server = shared.handle.name, %error, "the supervisor of an MCP server broke; it begins again");
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
async fn supervise(shared: Arc<Supervisor>, stop: CancellationToken) {
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
            shared.history.lock().lost(failure, shared.stderr.lock().lines());
            continue;
        }
        let wait = wait_after(failures);
        shared.failed(failure, failures, wait);
        tokio::select! {
            () = sleep(wait) => {}
            () = stop.cancelled() => break,
        }
    }
    shared.turn(Link::Down { reason: REMOVED.to_owned() });
    shared.tried.cancel();
}

impl Supervisor {
    pub(super) fn new(handle: Arc<ServerHandle>, endpoint: Endpoint, pinned: Option<ProtocolVersion>) -> Self {
        Self {
            handle,
            endpoint,
            pinned,
            tools: ArcSwap::default(),
            listed: AtomicBool::new(false),
            generations: AtomicU64::new(0),
            history: Mutex::default(),
            remarked: Mutex::default(),
            stderr: Mutex::default(),
            started: Instant::now(),
            tried: CancellationToken::new(),
        }
    }

    /// One attempt to connect, in time. A program waits for its turn to be started, and not in its own time.
    async fn attempt(self: &Arc<Self>) -> Result<Session, Failure> {
        let connecting = timeout(CONNECT_TIMEOUT, self.connect());
        let connected = match &self.endpoint {
            Endpoint::Program { .. } => start_queue::in_turn(connecting).await,
            Endpoint::Http { .. } | Endpoint::InProcess(_) => connecting.await,
        };
        connected.unwrap_or_else(|_| Err(Failure::from("it did not answer in time".to_owned())))
    }

    async fn connect(self: &Arc<Self>) -> Result<Session, Failure> {
        let stderr_tail = StderrTail::default();
        *self.stderr.lock() = stderr_tail.clone();
        let (name, secrets, follows) = (&self.handle.name, &*self.handle.source, &self.handle.follows);
        let dial = |revision| self.endpoint.dial(name, revision, secrets, &stderr_tail, follows);
        let session = match dial(self.pinned.as_ref()).await {
            Err(NoSession::Older(revision)) => dial(Some(&revision)).await,
            other => other,
        };
        let session = session.map_err(|problem| match problem {
            NoSession::Because(failure) => failure,
            NoSession::Older(_) => "it cannot decide on a revision of the protocol".to_owned().into(),
        })?;
        self.handle.used.store(Arc::new(session.used.clone()));
        match listing::list(&self.handle, session.service.peer()).await {
            Some(listed) => self.has(listed),
            None => return Err(self.over(session, "its tools cannot be listed").await),
        }
        Ok(session)
    }

    /// These are its tools from now on.
    fn has(&self, listed: Listed) {
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
    fn remark(&self, what: &str) {
        let mut last = self.remarked.lock();
        let again = last.as_ref().is_some_and(|(last, at)| last == what || at.elapsed() < BETWEEN_REMARKS);
        if !again {
            tracing::warn!(server = self.handle.name, "{what}");
            *last = Some((what.to_owned(), Instant::now()));
        }
    }

    /// Stays with a connection as long as it lasts, and says why it did not last longer.
    async fn attend(self: &Arc<Self>, session: Session, stop: &CancellationToken) -> Failure {
        let Session { service, revision, changed, stuck, mut child, used: _ } = session;
        let peer = service.peer().clone();
        let own = Arc::clone(self);
        let update = move |listed: Option<Listed>| match listed {
            Some(listed) => own.has(listed),
            None => own.remark("the tools of the MCP server cannot be listed again"),
        };
        let keep = listing::keep(Arc::clone(&self.handle), peer.clone(), revision.clone(), changed, update);
        let mut listing = AbortOnDropHandle::new(tokio::spawn(keep));
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let mut link = self.handle.link.subscribe();
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
                    () = stop.cancelled() => REMOVED,
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
        self.handle.link.send_replace(link);
    }

    /// There is no connection, and there will be none for a while.
    fn failed(&self, failure: Failure, failures: u32, wait: Duration) {
        let reason = failure.reason.clone();
        {
            let mut history = self.history.lock();
            history.turned(false);
            history.failures = failures;
            history.next_attempt = Some(now().plus_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)));
            history.lost(failure, self.stderr.lock().lines());
        }
        self.handle.link.send_replace(Link::Down { reason });
        self.tried.cancel();
    }

    fn warn(&self, Failure { reason, exit }: &Failure, failures: u32) {
        let stderr = self.stderr.lock().lines();
        let stderr = stderr[stderr.len().saturating_sub(WARNED_LINES)..].join("\n");
        let (server, exit) = (&self.handle.name, exit.as_deref().unwrap_or_default());
        tracing::warn!(server, reason, exit, stderr, failures, "the MCP server is not connected");
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
