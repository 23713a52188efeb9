//! Answering questions a run waits on: with a key, or with the signed link that is its own credential.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue, REFERRER_POLICY};
use axum::response::{IntoResponse as _, Response};
use baton_api::{Answer, Interrupt, Interrupts, ResolvedInterrupt};
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp};
use baton_runtime::{Resolved, TokenView, Via};
use baton_store::{InterruptFilter, InterruptRow};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Allowed;
use crate::auth::access::Public;
use crate::auth::scope::{ApprovalsRespond, RunsRead};
use crate::error::ApiError;
use crate::idempotency::{Call, Mutation};
use crate::path::Ids;
use crate::query::Params;
use crate::reply::{self, Reply};

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

fn taken(Answer { resume_value: value, interrupt_id }: Answer) -> baton_runtime::Answer {
    baton_runtime::Answer { value, interrupt_id }
}

/// The same as some clients send it: the answer itself is the body, and says what is to be done.
fn read(call: &Call) -> Result<baton_runtime::Answer, ApiError> {
    call.json::<Answer>().map(taken).or_else(|refusal| match call.json::<Map<String, Value>>() {
        Ok(mut value) if value.contains_key("action") && !value.contains_key("resumeValue") => {
            let interrupt_id = match value.remove("interruptId") {
                None | Some(Value::Null) => None,
                Some(Value::String(id)) => Some(id),
                Some(_) => return Err(ApiError::invalid("`interruptId` is a string.").with("pointer", "/interruptId")),
            };
            Ok(baton_runtime::Answer { value: Value::Object(value), interrupt_id })
        }
        _ => Err(refusal),
    })
}

/// The stored and the sent form of an answer are the same bytes.
fn render(resolved: &Resolved) -> (u16, String) {
    let Resolved { run_id, node_id, status } = resolved.clone();
    reply::rendered(StatusCode::OK, &ResolvedInterrupt { run_id, node_id, status })
}

fn answered(resolved: &Resolved) -> Result<Reply, ApiError> {
    Ok(Reply::new(StatusCode::OK, render(resolved).1).already_stored())
}

/// Answer the interrupt open at a node.
#[utoipa::path(post, path = "/v1/runs/{runId}/interrupts/{nodeId}", tag = "interrupts", request_body = Answer,
    params(("runId" = String, Path), ("nodeId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "Taken", body = ResolvedInterrupt),
        (status = 400, description = "The answer does not fit", body = baton_api::ErrorBody),
        (status = 404, description = "Nothing waits there", body = baton_api::ErrorBody),
        (status = 409, description = "Somebody else answered", body = baton_api::ErrorBody)))]
pub(crate) async fn resolve(
    State(app): State<App>,
    who: Allowed<ApprovalsRespond>,
    Ids((run, node)): Ids<(String, String)>,
    request: Mutation,
) -> Result<Response, ApiError> {
    take(app, who, (run, node), request, false).await
}

/// `bare` says that the answer itself may be the body.
async fn take(
    app: App,
    who: Allowed<ApprovalsRespond>,
    (run, node): (String, String),
    request: Mutation,
    bare: bool,
) -> Result<Response, ApiError> {
    let tenant = who.tenant.clone();
    let reply =
        request.once(app, tenant.clone(), "POST /v1/runs/{runId}/interrupts/{nodeId}", move |call| async move {
            let answer = if bare { read(&call)? } else { taken(call.json()?) };
            let via = Via::Bearer { subject: who.subject.clone() };
            let (run, node, kept) = (RunId::new(run), NodeId::new(node), call.stored_with_effect(render));
            answered(&call.app.host.resolve_once(&tenant, &run, &node, answer, via, kept).await?)
        });
    Ok(reply.await)
}

/// The same under an older name. The answer may be the body itself, as in `{"action": "accept"}`.
#[utoipa::path(post, path = "/v1/runs/{runId}/approvals/{nodeId}", tag = "interrupts", request_body = Answer,
    params(("runId" = String, Path), ("nodeId" = String, Path)),
    responses((status = 200, description = "Taken", body = ResolvedInterrupt),
        (status = 404, description = "Nothing waits there", body = baton_api::ErrorBody)))]
pub(crate) async fn resolve_alias(
    State(app): State<App>,
    who: Allowed<ApprovalsRespond>,
    Ids(ids): Ids<(String, String)>,
    request: Mutation,
) -> Result<Response, ApiError> {
    take(app, who, ids, request, true).await
}

fn shown(row: InterruptRow) -> Interrupt {
    Interrupt {
        run_id: row.run,
        workflow_id: row.workflow,
        node_id: row.node,
        interrupt_id: row.interrupt_id,
        key: row.key,
        kind: row.kind,
        data: row.data,
        requested_at: row.requested_at,
        expires_at: row.expires_at,
    }
}

/// List open interrupts of the tenant (host extension).
#[utoipa::path(get, path = "/v1/interrupts", tag = "interrupts",
    params(
        ("runId" = Option<String>, Query),
        ("kind" = Option<String>, Query),
        ("limit" = Option<u64>, Query, description = "1 to 200, default 50")),
    responses((status = 200, description = "Open interrupts", body = Interrupts)))]
pub(crate) async fn list(State(app): State<App>, who: Allowed<RunsRead>, params: Params) -> Result<Response, ApiError> {
    let tenant = &who.tenant;
    params.only(&["runId", "kind", "limit"])?;
    let filter = InterruptFilter {
        tenant: Some(tenant.clone()),
        run: params.one("runId")?.map(RunId::from),
        kind: params.one("kind")?.map(str::to_owned),
        limit: params.int("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT) as usize,
    };
    let interrupts = app.host.interrupts(&filter).await?.into_iter().map(shown).collect();
    Ok(Reply::ok(&Interrupts { interrupts }).into_response())
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenInterrupt {
    #[schema(value_type = String)]
    run_id: RunId,
    #[schema(value_type = String)]
    node_id: NodeId,
    interrupt_id: String,
    kind: String,
    key: String,
    #[schema(value_type = Object)]
    data: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    resume_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[schema(value_type = String, format = DateTime)]
    requested_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl From<TokenView> for OpenInterrupt {
    fn from(view: TokenView) -> Self {
        Self {
            run_id: view.run_id,
            node_id: view.node_id,
            interrupt_id: view.interrupt_id,
            kind: view.kind,
            key: view.key,
            data: view.data,
            resume_schema: view.resume_schema,
            timeout_ms: view.timeout_ms,
            requested_at: view.requested_at,
            expires_at: view.expires_at,
        }
    }
}

/// The address of these requests is a credential: the answer is kept by nobody on the way, and a page that shows it does
/// not tell others where it comes from.
pub(crate) async fn keep_the_address_quiet(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// What a signed link asks.
#[utoipa::path(get, path = "/v1/interrupts/{token}", tag = "interrupts", params(("token" = String, Path)),
    responses((status = 200, description = "The open interrupt", body = OpenInterrupt),
        (status = 404, description = "No such link", body = baton_api::ErrorBody),
        (status = 410, description = "The link has expired", body = baton_api::ErrorBody)))]
pub(crate) async fn inspect_token(
    _: Public,
    State(app): State<App>,
    Ids(token): Ids<String>,
) -> Result<Response, ApiError> {
    Ok(Reply::ok(&OpenInterrupt::from(app.host.inspect_token(&token).await?)).into_response())
}

/// Answer through a signed link.
#[utoipa::path(post, path = "/v1/interrupts/{token}", tag = "interrupts", request_body = Answer,
    params(("token" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, description = "Taken", body = ResolvedInterrupt),
        (status = 403, description = "The link may only inspect", body = baton_api::ErrorBody),
        (status = 404, description = "No such link", body = baton_api::ErrorBody),
        (status = 409, description = "Already answered", body = baton_api::ErrorBody),
        (status = 410, description = "The link has expired", body = baton_api::ErrorBody)))]
pub(crate) async fn resolve_token(
    _: Public,
    State(app): State<App>,
    Ids(token): Ids<String>,
    request: Mutation,
) -> Result<Response, ApiError> {
    // Before a stranger's body is read, or anything is kept under a key of its own choosing, it must hold a link that we
    // signed.
    app.host.check_link(&token)?;
    let owner = Digest::of_bytes(&token).to_string();
    let reply =
        request.once_for(app, (owner, TenantId::new(LINKS)), "POST /v1/interrupts/{token}", move |call| async move {
            // Whoever holds a link that no longer leads anywhere has nothing to mend in its answer.
            let answer = match call.json::<Answer>() {
                Ok(answer) => answer,
                Err(refusal) => {
                    call.app.host.inspect_token(&token).await?;
                    return Err(refusal);
                }
            };
            answered(&call.app.host.resolve_token_once(&token, taken(answer), call.stored_with_effect(render)).await?)
        });
    Ok(reply.await)
}

/// Among whose writes the answers to links are kept: whoever has a link is no tenant.
const LINKS: &str = "*links";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::body;

    #[test]
    fn an_answer_is_required_but_may_be_null() {
        let of = |text: &str| body::parse::<Answer>(text.as_bytes()).map(|answer| answer.resume_value);
        assert_eq!(of(r#"{"resumeValue":null}"#).unwrap(), Value::Null);
        assert_eq!(of(r#"{"resumeValue":{"action":"accept"}}"#).unwrap()["action"], "accept");
        assert!(of("{}").unwrap_err().message.contains("resumeValue"));
        assert_eq!(of(r#"{"resumeValue":1,"note":2}"#).unwrap_err().details["pointer"], "/note");
    }
}
