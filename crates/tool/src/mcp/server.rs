//! One server, as a source of tools. Its connection is made and kept by a [`Supervisor`] in a task of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use baton_model::Connection;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::dial::{Endpoint, InProcess};
use super::handle::ServerHandle;
use super::progress::Followed;
use super::settings::{McpSettings, WrongSettings};
use super::status::{Link, McpStatus};
use super::supervisor::{REMOVED, Supervisor, keep_running};
use crate::secrets::Secrets;
use crate::{Tool, ToolSource};

/// How long whoever needs tools waits for a server that was only just started: programs take a few seconds to come up,
/// and agents that begin meanwhile should have their tools. Counted from the start of the server, so that a mute one holds
/// up nobody afterwards.
pub(super) const FIRST_CONNECTION: Duration = Duration::from_secs(10);
/// How long a stop waits for a server and its process, all steps together.
const STOPPING: Duration = Duration::from_secs(8);

/// A server and its tools. Its connection ends when the last clone of the `Arc` is gone, and a process with it.
pub struct McpServer {
    supervisor: Arc<Supervisor>,
    stop: CancellationToken,
    stopped: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl McpServer {
    /// Starts to connect to a server of the operator's configuration, and returns at once. Wrong settings are an error; a
    /// server that is not there is not: it is tried again, and its tools appear when it comes up.
    pub fn start(name: &str, settings: McpSettings, secrets: Arc<dyn Secrets>) -> Result<Arc<Self>, WrongSettings> {
        let endpoint = Endpoint::read(name, &settings)?;
        Self::begin(name, settings, secrets, endpoint)
    }

    /// The same for a server in this process. `command` and `url` mean nothing here.
    pub fn in_process(
        name: &str,
        settings: McpSettings,
        secrets: Arc<dyn Secrets>,
        server: Arc<dyn InProcess>,
    ) -> Result<Arc<Self>, WrongSettings> {
        Self::begin(name, settings, secrets, Endpoint::InProcess(server))
    }

    fn begin(
        name: &str,
        settings: McpSettings,
        secrets: Arc<dyn Secrets>,
        endpoint: Endpoint,
    ) -> Result<Arc<Self>, WrongSettings> {
        settings.check(name)?;
        let pinned = settings.pinned().map_err(|unknown| WrongSettings::new(name, format!("`revision` {unknown}")))?;
        let handle = Arc::new(ServerHandle::new(name, settings, secrets));
        let supervisor = Arc::new(Supervisor::new(handle, endpoint, pinned));
        let (stop, stopped) = (CancellationToken::new(), CancellationToken::new());
        let task = tokio::spawn(keep_running(Arc::clone(&supervisor), stop.clone(), stopped.clone()));
        Ok(Arc::new(Self { supervisor, stop, stopped, task: AbortOnDropHandle::new(task) }))
    }

    pub fn status(&self) -> McpStatus {
        McpStatus::from(&*self.supervisor.handle.link.borrow())
    }

    /// Resolves when the first attempt to connect is over, however it went.
    pub async fn tried(&self) {
        self.supervisor.tried.cancelled().await;
    }

    /// Follows how far a call is, by its key, from before it is made.
    pub fn follow(&self, key: &str) -> Followed {
        self.supervisor.handle.follows.begin(key)
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
        self.supervisor.handle.link.send_replace(Link::Down { reason: REMOVED.to_owned() });
        self.supervisor.tried.cancel();
    }
}

impl ToolSource for McpServer {
    fn name(&self) -> &str {
        &self.supervisor.handle.name
    }

    /// What the server listed last. A server that is away keeps its tools, so that agents do not change with the weather;
    /// calling one says what is the matter.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.supervisor.tools.load().iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn pending(&self) -> Option<BoxFuture<'static, ()>> {
        let (tried, until) = (self.supervisor.tried.clone(), self.supervisor.started + FIRST_CONNECTION);
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
        if self.supervisor.listed.load(Ordering::Acquire) {
            return None;
        }
        Some(match &*self.supervisor.handle.link.borrow() {
            Link::Down { reason } => reason.clone(),
            Link::Connecting | Link::Up { .. } => "it has not answered yet".to_owned(),
        })
    }

    fn connection(&self) -> Option<Connection> {
        let history = self.supervisor.history.lock().clone();
        Some(history.connection(
            &self.supervisor.handle.name,
            &self.supervisor.handle.link.borrow(),
            self.supervisor.tools.load().len(),
        ))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.close().boxed()
    }
}
