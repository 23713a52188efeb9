//! Making a connection, and agreeing on how to speak.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_model::Secret;
use reqwest::Url;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RunningService,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rmcp::{ClientHandler, RoleClient};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::bounded::{Lines, MESSAGE_BYTES};
use super::handle::OPEN_CALLS;
use super::outgoing::Outgoing;
use super::progress::Follows;
use super::settings::{McpSettings, WrongSettings};
use super::status::Failure;
use super::stderr_tail::StderrTail;
use super::stdio::{Child, in_words};
use super::streamable::Backend;
use crate::egress::{Clients, Guard};
use crate::secrets::{Destination, Secrets, Text};

/// Requests to one server besides calls: a list of tools, a subscription, and what goes with them.
const OTHER_REQUESTS: usize = 8;

/// Both directions of a connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// A server in this process, for whoever embeds a host.
#[async_trait]
pub trait InProcess: Send + Sync {
    /// A new connection to it.
    async fn open(&self) -> io::Result<Box<dyn Stream>>;
}

/// The way to a server.
pub(super) enum Endpoint {
    Program { command: String, args: Vec<String>, env: Vec<(String, Text)> },
    Http { url: Url, bearer: Option<String>, clients: Clients, answer: Duration },
    InProcess(Arc<dyn InProcess>),
}

/// Why there is no connection.
pub(super) enum NoSession {
    Because(Failure),
    /// The server knows how to say which revisions it speaks, and this older one is the newest that both know.
    Older(ProtocolVersion),
}

impl From<String> for NoSession {
    fn from(reason: String) -> Self {
        Self::Because(reason.into())
    }
}

/// A connection that both sides agree on.
pub(super) struct Session {
    pub(super) service: RunningService<RoleClient, Listener>,
    pub(super) revision: ProtocolVersion,
    /// The server says that its list of tools is another one now.
    pub(super) changed: Arc<Notify>,
    /// It does not read what it is sent.
    pub(super) stuck: CancellationToken,
    pub(super) child: Option<Child>,
    /// What was secret about connecting.
    pub(super) used: Vec<Secret>,
}

impl Endpoint {
    pub(super) fn read(name: &str, settings: &McpSettings) -> Result<Self, WrongSettings> {
        let wrong = |problem: &str| Err(WrongSettings::new(name, problem));
        match (&settings.command, &settings.url) {
            (Some(_), Some(_)) | (None, None) => wrong("needs either `command` or `url`"),
            (Some(_), None) if settings.bearer.is_some() || settings.public_only => {
                wrong("`bearer` and `public_only` are for servers with a `url`")
            }
            (Some(command), None) => {
                let env = settings.environment(name)?.into_iter().collect();
                Ok(Self::Program { command: command.clone(), args: settings.args.clone(), env })
            }
            (None, Some(_)) if !settings.args.is_empty() || !settings.env.is_empty() => {
                wrong("`args` and `env` are for servers with a `command`")
            }
            (None, Some(url)) => {
                let guard = Guard::new(!settings.public_only);
                let url = Url::parse(url).ok().filter(|url| guard.check(url).is_ok());
                let Some(url) = url else { return wrong("`url` is not an address that can be called") };
                Ok(Self::Http {
                    url,
                    bearer: settings.bearer.clone(),
                    clients: Clients::patient(guard),
                    answer: settings.timeout(),
                })
            }
        }
    }

    pub(super) async fn dial(
        &self,
        name: &str,
        pinned: Option<&ProtocolVersion>,
        secrets: &dyn Secrets,
        stderr_tail: &StderrTail,
        follows: &Arc<Follows>,
    ) -> Result<Session, NoSession> {
        let mut used = Vec::new();
        let mut resolve = |text: &Text| {
            let value = text.resolve(secrets, Destination::McpServer { name }, &mut used);
            value.ok_or_else(|| "a secret that it needs is not known".to_owned())
        };
        let changed = Arc::new(Notify::new());
        let (changes, follows) = (Arc::clone(&changed), Arc::clone(follows));
        let listener = Listener { changed: changes, follows, handshake: handshake(pinned) };
        let lifecycle = lifecycle(pinned);
        let stuck = CancellationToken::new();
        let (service, child) = match self {
            Self::Program { command, args, env } => {
                let env = env.iter().map(|(variable, text)| Ok((variable.clone(), resolve(text)?)));
                let env = env.collect::<Result<_, String>>()?;
                let kept_out = secrets.known().into_iter().chain(used.iter().cloned()).collect();
                let (child, stdout, stdin) = Child::start(name, command, args, env, kept_out, stderr_tail.clone())
                    .map_err(|problem| format!("`{command}` cannot be started: {}", problem.kind()))?;
                let transport = over(stdout, stdin, &stuck);
                (listener.serve_with_lifecycle(transport, lifecycle).await, Some(child))
            }
            Self::Http { url, bearer, clients, answer } => {
                let client = clients.client(url).map_err(|problem| problem.to_string())?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    // A lost session is a lost connection: the library would make up answers for other calls.
                    .reinit_on_expired_session(false)
                    // Calls wait in our queue, where tenants take turns, and not in the library's.
                    .max_concurrent_requests(OPEN_CALLS + OTHER_REQUESTS)
                    .max_sse_event_size(MESSAGE_BYTES);
                if let Some(id) = bearer {
                    config = config.auth_header(resolve(&Text::Secret { id: id.clone(), scheme: None })?);
                }
                let transport = StreamableHttpClientTransport::with_client(Backend::new(client, *answer), config);
                let transport = Outgoing::at_once(transport, stuck.clone());
                (listener.serve_with_lifecycle(transport, lifecycle).await, None)
            }
            Self::InProcess(server) => {
                let stream =
                    server.open().await.map_err(|problem| format!("it cannot be opened: {}", problem.kind()))?;
                let (read, write) = tokio::io::split(stream);
                let transport = over(read, write, &stuck);
                (listener.serve_with_lifecycle(transport, lifecycle).await, None)
            }
        };
        let service = match service {
            Ok(service) => service,
            Err(problem) => return Err(no_session(&problem, pinned, child).await),
        };
        let agreed = service.peer().peer_info().map(|info| info.protocol_version.clone());
        let revision = agreed.filter(|agreed| ProtocolVersion::KNOWN_VERSIONS.contains(agreed));
        match revision {
            Some(revision) if pinned.is_none_or(|pinned| *pinned == revision) => {
                Ok(Session { service, revision, changed, stuck, child, used })
            }
            _ => Err("it speaks no revision of the protocol that is known here or asked for".to_owned().into()),
        }
    }
}

/// Messages in lines, one stream for each direction.
fn over<R, W>(read: R, write: W, stuck: &CancellationToken) -> Outgoing<AsyncRwTransport<RoleClient, Lines<R>, W>>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let lines = AsyncRwTransport::new_client(Lines::new(read), write).with_max_line_length(MESSAGE_BYTES);
    Outgoing::in_turn(lines, stuck.clone())
}

/// What came of a handshake that failed. A process that did not survive it says how it ended.
async fn no_session(
    problem: &ClientInitializeError,
    pinned: Option<&ProtocolVersion>,
    child: Option<Child>,
) -> NoSession {
    let closed =
        matches!(problem, ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. });
    let exit = match child {
        Some(child) => child.end().await.filter(|_| closed).map(in_words),
        None => None,
    };
    match older(problem) {
        Some(revision) if pinned.is_none() => NoSession::Older(revision),
        _ => NoSession::Because(Failure::new(reason(problem), exit)),
    }
}

/// The newest first; else a handshake, where the server chooses.
fn lifecycle(pinned: Option<&ProtocolVersion>) -> ClientLifecycleMode {
    match pinned {
        Some(pinned) if pinned.has_initialize() => ClientLifecycleMode::Initialize,
        Some(pinned) => ClientLifecycleMode::Discover { preferred_versions: vec![pinned.clone()] },
        None => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

fn handshake(pinned: Option<&ProtocolVersion>) -> ProtocolVersion {
    pinned.cloned().unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// The newest revision with a handshake that a server names when it is asked for a newer one.
fn older(problem: &ClientInitializeError) -> Option<ProtocolVersion> {
    let ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } = problem else { return None };
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().rev().filter(|revision| revision.has_initialize());
    known.into_iter().find(|revision| server_supported.contains(revision)).cloned()
}

fn reason(problem: &ClientInitializeError) -> String {
    if problem.is_authorization_required() {
        return "it wants another credential".to_owned();
    }
    match problem {
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => "it speaks no revision that is known here",
        ClientInitializeError::TransportError { .. } => "no connection could be made",
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection",
        ClientInitializeError::JsonRpcError(_) | ClientInitializeError::LegacyFallbackFailed { .. } => {
            "it turned the handshake down"
        }
        _ => "the handshake failed",
    }
    .to_owned()
}

/// What the server may tell us unasked.
pub(super) struct Listener {
    changed: Arc<Notify>,
    follows: Arc<Follows>,
    handshake: ProtocolVersion,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.follows.heard(said);
    }

    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("baton", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name).with_protocol_version(self.handshake.clone())
    }
}
