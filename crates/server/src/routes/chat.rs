//! A message that calls an agent by name (host extension). What comes of it is an ordinary run.

mod mention;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use baton_api::{ChatMessage, StartedRun};
use baton_model::{InvocationSource, Principal};
use baton_runtime::StartRun;
use serde_json::Value;

use self::mention::Mention;
use super::{conversations, runs};
use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::RunsCreate;
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::reply::Reply;

/// Call an agent by name (host extension).
#[utoipa::path(post, path = "/v1/host/baton/chat", tag = "agents", request_body = ChatMessage,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses(
        (status = 201, description = "The agent is at work; follow its run", body = StartedRun),
        (status = 400, description = "Nobody is meant, or more than one", body = baton_api::ErrorBody),
        (status = 409, description = "The last message of the conversation has no answer yet", body = baton_api::ErrorBody)))]
pub(crate) async fn post(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    let reply = request.once(app, tenant.clone(), "POST /v1/host/baton/chat", move |call| async move {
        let message = call.json::<ChatMessage>()?;
        let (agent, task) = meant(&call.app, &who, &message.text)?;
        let conversation = message.conversation_id;
        conversations::check(&call.app, conversation.as_deref())?;
        let start = StartRun {
            inputs: [("task".to_owned(), Value::String(task))].into_iter().collect(),
            configurable: message.configurable,
            conversation,
            trace: runs::trace(&call.headers, &call.app),
            ..StartRun::default()
        };
        let kept = call.stored_with_effect(runs::render);
        let started = call.app.host.start_agent(&who, &agent, InvocationSource::ChatMention, start, kept).await?;
        Ok(Reply::new(StatusCode::CREATED, runs::render(&started).1).already_stored())
    });
    Ok(reply.await)
}

/// Whom a message is for, and what they are to do.
fn meant(app: &App, who: &Principal, text: &str) -> Result<(String, String), ApiError> {
    let at = |problem: &str| ApiError::at("/text", problem);
    match mention::find(text, &app.inventory(&who.tenant)) {
        Mention::Agent { task, .. } if task.is_empty() => Err(at("must say what the agent is to do")),
        Mention::Agent { id, task } => Ok((id, task)),
        Mention::None => Err(at("must call an agent by name, as in `@editor check this`; GET /v1/agents lists them")),
        Mention::Unknown(name) => {
            Err(at("calls nobody who is here; GET /v1/agents lists those that are").with("agentId", name))
        }
        Mention::Ambiguous(candidates) => {
            Err(at("could mean several agents; use the whole id of one of them").with("candidates", candidates))
        }
    }
}
