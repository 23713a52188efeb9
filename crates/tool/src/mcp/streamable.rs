//! The HTTP side of a server that speaks streamable HTTP. What is said over it is the library's business; here is only
//! how requests are sent: bounded in what they may bring back, through our own client, and with errors that tell a
//! request which was not sent from one that was not answered.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::time::sleep_until;

use super::bounded::{self, MESSAGE_BYTES};
use super::paced::Pace;
use super::reopening::Reopening;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// What went wrong below the protocol.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The server certainly never got the request.
    #[error("no connection could be made")]
    NotSent,
    /// The server got the request and turned it down.
    #[error("it answered HTTP {0}")]
    Refused(u16),
    /// The server may have got the request.
    #[error("{0}")]
    Lost(&'static str),
}

type Outcome<T> = Result<T, StreamableHttpError<Fault>>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// How much longer than a call an answer is waited for. The caller gives up first, and says so in its own words.
const MARGIN: Duration = Duration::from_secs(5);
/// How long a server may take to forget a session. Nobody needs the answer.
const FORGETTING: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Backend {
    client: Client,
    /// How long an answer may take, to its last byte. Without it, each request that a mute server was sent would keep a
    /// connection for as long as the session lasts.
    answer: Duration,
    /// Everything that the server says, over whatever stream.
    pace: Pace,
    reopening: Reopening,
}

impl Backend {
    /// `longest` is the longest that a call may take.
    pub(super) fn new(client: Client, longest: Duration) -> Self {
        let answer = longest.saturating_add(MARGIN);
        Self { client, answer, pace: Pace::default(), reopening: Reopening::default() }
    }

    /// The answer, if it begins in time.
    async fn send(&self, request: RequestBuilder) -> Outcome<Response> {
        in_time(self.answer, send(request)).await
    }
}

async fn in_time<T>(limit: Duration, what: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let late = |_| StreamableHttpError::Client(Fault::Lost("it did not answer in time"));
    tokio::time::timeout(limit, what).await.map_err(late)?
}

impl StreamableHttpClient for Backend {
    type Error = Fault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        let in_session = session_id.is_some();
        let request = self.client.post(uri.as_ref()).header(ACCEPT, format!("{EVENTS}, {JSON}")).json(&message);
        let response = self.send(dressed(request, session_id.as_deref(), auth_header, custom_headers)).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return in_time(self.answer, rejected(&message, in_session, response, &self.pace)).await;
        }
        let session = response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        match kind(&response) {
            Kind::Events => {
                let events = events(response, &self.pace);
                // Only a subscription is answered for as long as the connection lasts.
                let events = if subscribes(&message) { events } else { ending(events, self.answer) };
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Kind::Json => {
                let body = in_time(self.answer, read(response, &self.pace)).await?;
                match serde_json::from_slice(&body) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    // Only a request has an answer to wait for.
                    Err(_) if !matches!(message, ClientJsonRpcMessage::Request(_)) => {
                        Ok(StreamableHttpPostResponse::Accepted)
                    }
                    Err(_) => Err(StreamableHttpError::Client(Fault::Lost("its answer does not read"))),
                }
            }
            Kind::Other if !matches!(message, ClientJsonRpcMessage::Request(_)) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            Kind::Other => Err(StreamableHttpError::Client(Fault::Lost("it answered with something else than JSON"))),
        }
    }

    // The bound on one event is ours and is always in force.
    fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        _: usize,
    ) -> impl Future<Output = Outcome<StreamableHttpPostResponse>> + Send + '_ {
        self.post_message(uri, message, session_id, auth_header, custom_headers)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Outcome<()> {
        let request = dressed(self.client.delete(uri.as_ref()), Some(&session_id), auth_header, custom_headers);
        let status = in_time(FORGETTING, send(request)).await?.status();
        // A server need not offer this, and need not know the session any more.
        if status.is_success() || status.is_client_error() { Ok(()) } else { Err(refused(status)) }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Outcome<Events> {
        let opened = self.reopening.turn().await;
        let mut request = self.client.get(uri.as_ref()).header(ACCEPT, EVENTS);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = self.send(dressed(request, session_id.as_deref(), auth_header, custom_headers)).await?;
        match (response.status(), kind(&response)) {
            (StatusCode::METHOD_NOT_ALLOWED, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (status, Kind::Events) if status.is_success() => {
                // It is open for as long as somebody holds the stream.
                let held = move |event| {
                    let _ = &opened;
                    event
                };
                Ok(events(response, &self.pace).map(held).boxed())
            }
            (status, _) if status.is_success() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (status, _) => Err(refused(status)),
        }
    }

    fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        _: usize,
    ) -> impl Future<Output = Outcome<Events>> + Send + '_ {
        self.get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
    }
}

fn dressed(request: RequestBuilder, session: Option<&str>, bearer: Option<String>, headers: Headers) -> RequestBuilder {
    let mut request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
    if let Some(session) = session {
        request = request.header(SESSION, session);
    }
    match bearer {
        Some(bearer) => request.bearer_auth(bearer),
        None => request,
    }
}

async fn send(request: RequestBuilder) -> Outcome<Response> {
    let response = request.send().await.map_err(|error| {
        StreamableHttpError::Client(if error.is_connect() || error.is_builder() {
            Fault::NotSent
        } else {
            Fault::Lost("the connection was cut before an answer came")
        })
    })?;
    if response.status() == StatusCode::UNAUTHORIZED {
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.unwrap_or_default().to_owned();
        return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
    }
    Ok(response)
}

/// A request that was turned down. A server that speaks the protocol says so in an error of the protocol.
async fn rejected(
    message: &ClientJsonRpcMessage,
    in_session: bool,
    response: Response,
    pace: &Pace,
) -> Outcome<StreamableHttpPostResponse> {
    let status = response.status();
    let error = match kind(&response) {
        Kind::Json => match serde_json::from_slice(&read(response, pace).await?) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        },
        Kind::Events | Kind::Other => None,
    };
    let ClientJsonRpcMessage::Request(request) = message else { return Err(refused(status)) };
    // An older server turns the first question down before it looks at it. The library falls back to the older handshake
    // if it hears an error that belongs to the question.
    let may_be_older = matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !in_session
        && status.is_client_error()
        && status != StatusCode::FORBIDDEN;
    let complaint = match error {
        Some(error) => error.error,
        None if may_be_older => ErrorData::invalid_request(Cow::Owned(format!("HTTP {}", status.as_u16())), None),
        None => return Err(refused(status)),
    };
    // Whoever did not read the request cannot repeat its number; this is its answer all the same.
    let answer = ServerJsonRpcMessage::error(complaint, Some(request.id.clone()));
    Ok(StreamableHttpPostResponse::Json(answer, None))
}

/// A server error may come from something in between, after the request was passed on.
fn refused(status: StatusCode) -> StreamableHttpError<Fault> {
    StreamableHttpError::Client(if status.is_server_error() {
        Fault::Lost("it answered with a server error")
    } else {
        Fault::Refused(status.as_u16())
    })
}

enum Kind {
    Events,
    Json,
    Other,
}

fn kind(response: &Response) -> Kind {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        EVENTS => Kind::Events,
        JSON => Kind::Json,
        _ => Kind::Other,
    }
}

fn events(response: Response, pace: &Pace) -> Events {
    SseStream::from_bytes_stream(bounded::events(response.bytes_stream(), pace.clone())).boxed()
}

fn subscribes(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::SubscriptionsListenRequest(_))
}

/// The events that arrive in this time.
fn ending(events: Events, limit: Duration) -> Events {
    events.take_until(tokio::time::sleep(limit)).boxed()
}

async fn read(mut response: Response, pace: &Pace) -> Outcome<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let lost = |why| StreamableHttpError::Client(Fault::Lost(why));
        match response.chunk().await {
            Ok(Some(chunk)) => {
                body.extend_from_slice(&chunk);
                if let Some(until) = pace.observe_part(&chunk) {
                    sleep_until(until).await;
                }
            }
            Ok(None) => return Ok(body),
            Err(_) => return Err(lost("its answer was cut off")),
        }
        if body.len() > MESSAGE_BYTES {
            return Err(lost("its answer is too large"));
        }
    }
}
