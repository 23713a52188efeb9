//! Conversations: which there are, what was said in them, and another way to go on from the middle (host extension). The
//! tenant is that of the key, so somebody else's conversation is one that does not exist.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_model::{RunId, RunStatus, Timestamp};
use baton_runtime::{ConversationView, TurnView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::scope::{RunsCreate, RunsRead};
use crate::error::ApiError;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;
const MAX_ID_CHARS: usize = 128;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conversations {
    /// By name.
    conversations: Vec<Conversation>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conversation {
    conversation_id: String,
    turns: u64,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<ConversationView> for Conversation {
    fn from(view: ConversationView) -> Self {
        Self { conversation_id: view.id, turns: view.turns, updated_at: view.updated_at }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Turns {
    conversation_id: String,
    /// Newest first.
    turns: Vec<Turn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Turn {
    turn: u64,
    #[schema(value_type = String)]
    run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Absent where the run never began, or is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    status: Option<RunStatus>,
    asked: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    answer: Option<Value>,
}

impl From<TurnView> for Turn {
    fn from(view: TurnView) -> Self {
        let TurnView { turn, run, agent, at, status, asked, answer } = view;
        Self { turn, run_id: run, agent_id: agent, at, status, asked, answer }
    }
}

/// Where a conversation forks. Unknown members are refused.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ForkConversation {
    /// The last turn that both have; the newest unless said.
    turn: Option<u64>,
    /// The name of the new one; the host makes one unless said.
    conversation_id: Option<String>,
}

/// Refuses what cannot name a conversation.
pub(crate) fn check(app: &App, id: Option<&str>) -> Result<(), ApiError> {
    let Some(id) = id else { return Ok(()) };
    if !(1..=MAX_ID_CHARS).contains(&id.chars().count()) {
        return Err(ApiError::at("/conversationId", "must have 1 to 128 characters"));
    }
    app.refuse_secret("conversationId", id)
}

/// The conversations of the tenant (host extension).
#[utoipa::path(get, path = "/v1/host/baton/conversations", tag = "agents",
    params(("limit" = Option<u64>, Query, description = "At most 200; 50 unless said"),
        ("cursor" = Option<String>, Query, description = "What the page before said")),
    responses((status = 200, description = "Conversations, by name", body = Conversations)))]
pub(crate) async fn list(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["limit", "cursor"])?;
    let limit = params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize;
    let (page, more) = app.host.conversations(tenant, params.one("cursor")?, limit).await?;
    let next_cursor = page.last().filter(|_| more).map(|last| last.id.clone());
    let conversations = page.into_iter().map(Conversation::from).collect();
    Ok(Reply::ok(&Conversations { conversations, next_cursor }).into_response())
}

/// What was said in a conversation (host extension).
#[utoipa::path(get, path = "/v1/host/baton/conversations/{conversationId}", tag = "agents",
    params(("conversationId" = String, Path),
        ("limit" = Option<u64>, Query, description = "At most 200; 50 unless said"),
        ("cursor" = Option<String>, Query, description = "What the page before said")),
    responses((status = 200, description = "Turns, newest first", body = Turns),
        (status = 404, description = "No such conversation", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: Allowed<RunsRead>,
    Ids(conversation_id): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["limit", "cursor"])?;
    let limit = params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize;
    let cursor = params.int("cursor", 1..=i64::MAX.unsigned_abs())?;
    let page = app.host.conversation(tenant, &conversation_id, cursor, limit).await?;
    let next_cursor = page.next.map(|cursor| cursor.to_string());
    let turns = page.items.into_iter().map(Turn::from).collect();
    Ok(Reply::ok(&Turns { conversation_id, turns, next_cursor }).into_response())
}

/// Go on from the middle of a conversation under another name (host extension).
#[utoipa::path(post, path = "/v1/host/baton/conversations/{conversationId}/fork", tag = "agents",
    request_body = ForkConversation,
    params(("conversationId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, description = "The new conversation", body = Conversation),
        (status = 400, description = "No such turn", body = baton_api::ErrorBody),
        (status = 404, description = "No such conversation", body = baton_api::ErrorBody),
        (status = 409, description = "The name is taken", body = baton_api::ErrorBody)))]
pub(crate) async fn fork(
    State(app): State<App>,
    who: Allowed<(RunsRead, RunsCreate)>,
    Ids(id): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply =
        request.once(app, tenant.clone(), "POST /v1/host/baton/conversations/{id}/fork", move |call| async move {
            let asked = call.json::<ForkConversation>()?;
            check(&call.app, asked.conversation_id.as_deref())?;
            let made = call.app.host.fork_conversation(&tenant, &id, asked.turn, asked.conversation_id).await?;
            let body = serde_json::to_string(&Conversation::from(made)).unwrap_or_default();
            Ok(Reply::new(StatusCode::CREATED, body))
        });
    Ok(reply.await)
}
