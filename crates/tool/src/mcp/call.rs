//! One call of a tool of a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_model::code;
use baton_model::tool::ToolRequest;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CancelledNotification, CancelledNotificationParam,
    ClientRequest, MetaObject, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::handle::ServerHandle;
use super::result;
use super::streamable::Fault;
use crate::Called;

/// Where the call's own name is put, for servers that recognise a repeated one.
const IDEMPOTENCY_KEY: &str = "io.baton/idempotencyKey";
/// How long telling a server that nobody waits for an answer may take.
const LAST_WORD: Duration = Duration::from_secs(5);
/// How long a call waits for a connection that is being made. A program that was lost is back within a few seconds, or not
/// soon; then the caller should know.
const CONNECTION: Duration = Duration::from_secs(10);

/// Makes the call within its time. A request that was not sent, because the connection turned out to be dead, is sent
/// once more over a new one; a request that may have been sent is not.
pub(super) async fn call(server: &ServerHandle, name: &str, request: &ToolRequest) -> Called {
    let arguments = match &request.arguments {
        Value::Object(arguments) => Some(arguments.clone()),
        Value::Null => None,
        _ => {
            return Called::failed(
                code::VALIDATION_ERROR,
                format!("The arguments of {} must be an object.", request.tool),
            );
        }
    };
    let mut params = CallToolRequestParams::new(name.to_owned());
    params.arguments = arguments;
    params.meta = Some(meta(request));
    let sent = AtomicBool::new(false);
    let limit =
        request.timeout_ms.map_or(server.settings.timeout(), Duration::from_millis).min(server.settings.timeout());
    let asked = Instant::now();
    let _turn = match timeout(limit / 2, server.queue.turn(&request.tenant)).await {
        Ok(Some(turn)) => turn,
        Ok(None) => return result::disconnected(&server.name, "too many calls wait for it already"),
        Err(_) => return result::disconnected(&server.name, "its turn did not come in time"),
    };
    match timeout(limit.saturating_sub(asked.elapsed()), attempts(server, request, params, &sent)).await {
        Ok(called) => called,
        Err(_) if sent.load(Ordering::Relaxed) => {
            Called::unknown(format!("the MCP server {} did not answer in time", server.name))
        }
        Err(_) => result::disconnected(&server.name, "connecting takes too long"),
    }
}

async fn attempts(
    server: &ServerHandle,
    request: &ToolRequest,
    params: CallToolRequestParams,
    sent: &AtomicBool,
) -> Called {
    let tool = &request.tool;
    for last in [false, true] {
        let (peer, generation) = match timeout(CONNECTION, server.up()).await {
            Ok(Ok(up)) => up,
            Ok(Err(reason)) => return result::disconnected(&server.name, &reason),
            Err(_) => return result::disconnected(&server.name, "connecting takes too long"),
        };
        sent.store(true, Ordering::Relaxed);
        let error = match ask(server, &peer, request, params.clone()).await {
            Ok(response) => {
                return result::read(tool, response, &server.secrets(), server.settings.max_result_bytes);
            }
            Err(error) => CallError::from(error),
        };
        match error {
            CallError::Refused(complaint) => return result::failed(tool, &complaint, &server.secrets()),
            CallError::Lost(why) => {
                return Called::unknown(format!("the MCP server {} was called, but {why}", server.name));
            }
            CallError::NotSent(why) => {
                sent.store(false, Ordering::Relaxed);
                server.lost(generation);
                if last {
                    return result::disconnected(&server.name, why);
                }
            }
        }
    }
    result::disconnected(&server.name, "the connection was lost")
}

/// The same as `call_tool_once`, but for the name under which the server speaks of how far the call is.
async fn ask(
    server: &ServerHandle,
    peer: &Peer<RoleClient>,
    request: &ToolRequest,
    params: CallToolRequestParams,
) -> Result<CallToolResponse, ServiceError> {
    let call = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut handle = peer.send_cancellable_request(call, PeerRequestOptions::no_options()).await?;
    server.follows.sent(&request.key, &handle.progress_token);
    let mut given_up = GivenUp { peer: peer.clone(), id: Some(handle.id.clone()) };
    let answer = (&mut handle.rx).await;
    given_up.id = None;
    match answer.map_err(|_| ServiceError::TransportClosed)?? {
        ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
        ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
        ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Whoever stops waiting for an answer tells the server.
struct GivenUp {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let said = CancelledNotificationParam::new(Some(id), None);
            // One that reads nothing is told nothing.
            let _ = timeout(LAST_WORD, peer.send_notification(CancelledNotification::new(said).into())).await;
        });
    }
}

fn meta(request: &ToolRequest) -> RequestMetaObject {
    let mut meta = request.beside.0.clone();
    meta.insert(IDEMPOTENCY_KEY.to_owned(), request.key.clone().into());
    if let Some(trace) = &request.trace {
        meta.insert("traceparent".to_owned(), trace.parent.clone().into());
        if let Some(state) = &trace.state {
            meta.insert("tracestate".to_owned(), state.clone().into());
        }
    }
    RequestMetaObject(MetaObject(meta))
}

/// A call without a result.
enum CallError {
    /// The server certainly never got it.
    NotSent(&'static str),
    /// The server turned it down, in its own words.
    Refused(String),
    /// The server may have got it.
    Lost(&'static str),
}

impl From<ServiceError> for CallError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(complaint) => Self::Refused(complaint.message.into_owned()),
            ServiceError::UnexpectedResponse => Self::Refused("The answer is not a result of a tool.".to_owned()),
            ServiceError::TransportSend(error) => {
                if let Some(problem) = error.error.downcast_ref::<StreamableHttpError<Fault>>() {
                    return Self::from(problem);
                }
                // On a stream, a message that could not be written to its end was not received.
                if error.error.is::<std::io::Error>() {
                    return Self::NotSent("it closed its input");
                }
                Self::Lost("the connection failed")
            }
            ServiceError::TransportClosed => Self::Lost("the connection was cut before an answer came"),
            _ => Self::Lost("no answer came"),
        }
    }
}

impl From<&StreamableHttpError<Fault>> for CallError {
    fn from(problem: &StreamableHttpError<Fault>) -> Self {
        match problem {
            StreamableHttpError::Client(Fault::NotSent) => Self::NotSent("no connection could be made"),
            StreamableHttpError::Client(Fault::Refused(status)) => {
                Self::Refused(format!("The server answered HTTP {status}."))
            }
            StreamableHttpError::Client(Fault::Lost(why)) => Self::Lost(why),
            StreamableHttpError::SessionExpired => Self::NotSent("its session is gone"),
            StreamableHttpError::AuthRequired(_) => Self::Refused("The server wants another credential.".to_owned()),
            _ => Self::Lost("the connection failed"),
        }
    }
}
