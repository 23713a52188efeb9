//! One server: its connection, kept up, and its tools, kept current.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use baton_model::Secret;
use rmcp::model::{PaginatedRequestParams, ProtocolVersion, SubscriptionFilter};
use rmcp::service::Subscription;
use rmcp::{Peer, RoleClient};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::dial::{InProcess, NoSession, Session, Way};
use super::settings::{McpSettings, WrongSettings};
use super::status::{Link, McpStatus};
use super::stdio::Child;
use super::tool::McpTool;
use crate::secrets::Secrets;
use crate::{Supply, Tool};

/// Connecting, agreeing and listing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that lasted this long was a good one: losing it is not the next failure in a row.
const STEADY: Duration = Duration::from_secs(60);
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// The list is not asked for again sooner than this, however often a server says it changed.
const BETWEEN_LISTS: Duration = Duration::from_millis(200);
const MAX_TOOLS: usize = 256;
const MAX_PAGES: usize = 64;

/// A server and its tools. Its connection ends when the last clone of the `Arc` is gone, and a process with it.
pub struct McpServer {
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What calls and the supervising task both need.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) settings: McpSettings,
    pub(super) link: watch::Sender<Link>,
    way: Way,
    pinned: Option<ProtocolVersion>,
    secrets: Arc<dyn Secrets>,
    /// Secrets that the present connection was made with.
    used: ArcSwap<Vec<Secret>>,
    tools: ArcSwap<Vec<Arc<McpTool>>>,
    generations: AtomicU64,
}

impl McpServer {
    /// Connects to a server of the operator's configuration. Wrong settings are an error; a server that is not there is
    /// not: it is tried again, and its tools appear when it comes up. Returns after the first try.
    pub async fn connect(
        name: &str,
        settings: McpSettings,
        secrets: Arc<dyn Secrets>,
    ) -> Result<Arc<Self>, WrongSettings> {
        let way = Way::read(name, &settings)?;
        Self::start(name, settings, secrets, way).await
    }

    /// The same for a server in this process. `command` and `url` mean nothing here.
    pub async fn in_process(
        name: &str,
        settings: McpSettings,
        secrets: Arc<dyn Secrets>,
        server: Arc<dyn InProcess>,
    ) -> Result<Arc<Self>, WrongSettings> {
        Self::start(name, settings, secrets, Way::InProcess(server)).await
    }

    async fn start(
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
            way,
            pinned,
            secrets,
            used: ArcSwap::default(),
            tools: ArcSwap::default(),
            generations: AtomicU64::new(0),
        });
        let stop = CancellationToken::new();
        let mut link = shared.link.subscribe();
        let task = tokio::spawn(supervise(Arc::clone(&shared), stop.clone()));
        let server = Arc::new(Self { shared, stop, task });
        // Fails only if the sender is gone, and the server holds it.
        let _ = link.wait_for(|link| !matches!(link, Link::Connecting)).await;
        Ok(server)
    }

    pub fn status(&self) -> McpStatus {
        McpStatus::from(&*self.shared.link.borrow())
    }

    /// Ends the connection and lets a process end by itself, within reason.
    pub async fn close(&self) {
        self.stop.cancel();
        let mut link = self.shared.link.subscribe();
        let _ = timeout(GRACE * 2, link.wait_for(|link| matches!(link, Link::Down { .. }))).await;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.link.send_replace(Link::Down { reason: "it was taken out of use".to_owned() });
    }
}

impl Supply for McpServer {
    fn name(&self) -> &str {
        &self.shared.name
    }

    /// What the server listed last. A server that is away keeps its tools, so that agents do not change with the weather;
    /// calling one says what is the matter.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.shared.tools.load().iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }
}

/// Connects, stays, and connects again.
async fn supervise(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0;
    loop {
        shared.link.send_replace(Link::Connecting);
        let started = Instant::now();
        let connected = tokio::select! {
            connected = timeout(CONNECT_TIMEOUT, shared.connect()) => connected,
            () = stop.cancelled() => break,
        };
        let (reason, was_up) = match connected {
            Ok(Ok(session)) => (shared.attend(session, &stop).await, true),
            Ok(Err(reason)) => (reason, false),
            Err(_) => ("it did not answer in time".to_owned(), false),
        };
        if stop.is_cancelled() {
            break;
        }
        failures = if started.elapsed() >= STEADY { 1 } else { failures + 1 };
        tracing::warn!(server = shared.name, reason, failures, "the MCP server is not connected");
        // Whoever waits for a connection that was lost once need not wait longer than for a new one.
        if was_up && failures == 1 {
            continue;
        }
        shared.link.send_replace(Link::Down { reason });
        tokio::select! {
            () = sleep(wait_after(failures)) => {}
            () = stop.cancelled() => break,
        }
    }
    shared.link.send_replace(Link::Down { reason: "it was taken out of use".to_owned() });
}

fn wait_after(failures: u32) -> Duration {
    // Eight doublings are already longer than the longest wait.
    (FIRST_WAIT * 2_u32.pow(failures.saturating_sub(1).min(8))).min(LONGEST_WAIT)
}

impl Shared {
    async fn connect(self: &Arc<Self>) -> Result<Session, String> {
        let dial = |revision| self.way.dial(&self.name, revision, &*self.secrets);
        let session = match dial(self.pinned.as_ref()).await {
            Err(NoSession::Older(revision)) => dial(Some(&revision)).await,
            other => other,
        };
        let session = session.map_err(|problem| match problem {
            NoSession::Because(reason) => reason,
            NoSession::Older(_) => "it cannot decide on a revision of the protocol".to_owned(),
        })?;
        self.used.store(Arc::new(session.used.clone()));
        let tools = self.list(session.service.peer()).await.ok_or("its tools cannot be listed")?;
        self.tools.store(Arc::new(tools));
        Ok(session)
    }

    /// Stays with a connection as long as it lasts, and says why it did not last longer.
    async fn attend(self: &Arc<Self>, session: Session, stop: &CancellationToken) -> String {
        let Session { service, revision, changed, mut child, used: _ } = session;
        let peer = service.peer().clone();
        let mut news = subscribe(&peer, &revision).await;
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let mut link = self.link.subscribe();
        self.link.send_replace(Link::Up { peer: peer.clone(), revision: revision.to_string(), generation });
        let end = service.cancellation_token();
        let mut closed = std::pin::pin!(service.waiting());
        loop {
            tokio::select! {
                _ = &mut closed => return "it closed the connection".to_owned(),
                () = ended(&mut child) => return "its process ended".to_owned(),
                () = changed.notified() => self.list_again(&peer).await,
                heard = next(&mut news) => match heard {
                    Some(()) => self.list_again(&peer).await,
                    None => news = None,
                },
                () = given_up(&mut link, generation) => return "the connection does not work any more".to_owned(),
                () = stop.cancelled() => break,
            }
        }
        end.cancel();
        let _ = timeout(GRACE, closed).await;
        if let Some(child) = child {
            child.end(GRACE).await;
        }
        String::new()
    }

    async fn list_again(self: &Arc<Self>, peer: &Peer<RoleClient>) {
        sleep(BETWEEN_LISTS).await;
        match timeout(CONNECT_TIMEOUT, self.list(peer)).await {
            Ok(Some(tools)) => self.tools.store(Arc::new(tools)),
            Ok(None) | Err(_) => {
                tracing::warn!(server = self.name, "the tools of the MCP server cannot be listed again")
            }
        }
    }

    /// What the server has, as far as it can be offered.
    async fn list(self: &Arc<Self>, peer: &Peer<RoleClient>) -> Option<Vec<Arc<McpTool>>> {
        if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Some(Vec::new());
        }
        let mut tools: Vec<Arc<McpTool>> = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await.ok()?;
            for listed in page.tools {
                let name = listed.name.to_string();
                match McpTool::new(self, listed) {
                    Ok(tool) if tools.len() < MAX_TOOLS => tools.push(Arc::new(tool)),
                    Ok(_) => return Some(tools),
                    Err(problem) => tracing::warn!(server = self.name, tool = name, problem, "a tool is left out"),
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Some(tools)
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

/// Newer servers say that their list changed only to whoever asked to be told.
async fn subscribe(peer: &Peer<RoleClient>, revision: &ProtocolVersion) -> Option<Subscription> {
    let tells = peer.peer_info()?.capabilities.tools.as_ref()?.list_changed == Some(true);
    if revision.has_initialize() || !tells {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    timeout(CONNECT_TIMEOUT, peer.listen(filter)).await.ok()?.ok()
}

/// The next news, or `None` if there will be no more. For ever silent without a subscription.
async fn next(news: &mut Option<Subscription>) -> Option<()> {
    match news {
        Some(news) => news.next().await.ok().flatten().map(|_| ()),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let waits: Vec<_> = (1..=12).map(|failures| wait_after(failures).as_millis()).collect();
        assert_eq!(waits[..4], [250, 500, 1000, 2000]);
        assert_eq!(waits[8..], [60_000; 4]);
        assert_eq!(wait_after(u32::MAX), LONGEST_WAIT);
    }
}
