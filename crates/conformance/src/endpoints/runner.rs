//! Runners (RFC 0122): signing one in, and a step for it. The runner that signs in here answers at once, on a stream like any
//! other; which step it may have is the registry's to say.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{Principal, RunId};
use baton_runtime::{
    Host, NewToken, OutsideStep, ResultFrame, RunnerBearer, RunnerCapabilities, RunnerOwner, RunnerRegistration,
    RunnerStream, Told,
};
use baton_server::endpoint::scope::RunsCreate;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::mock_ai::wrong;
use super::stage::Body;

/// The runners that signed in here. A second one of a name takes the place of the first.
static ANSWERING: LazyLock<Mutex<HashMap<RunnerOwner, AbortOnDropHandle<()>>>> = LazyLock::new(Mutex::default);
/// More than a suite signs in.
const MOST: usize = 1_000;
/// What their tokens are called.
const TOKEN: &str = "test endpoint";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Register {
    #[serde(default)]
    runner_id: Option<String>,
    #[serde(default)]
    subject: String,
    #[serde(default)]
    capabilities: RunnerCapabilities,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dispatch {
    #[serde(default)]
    subject: String,
    #[serde(default)]
    run_id: String,
    #[serde(default)]
    step_id: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    inputs: Map<String, Value>,
}

pub(super) async fn register(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    Body(call): Body<Register>,
) -> Result<Response, ApiError> {
    if call.subject.is_empty() {
        return Err(wrong("subject", "`subject` is required.".to_owned()));
    }
    let runner_id = call.runner_id.filter(|id| !id.is_empty()).unwrap_or_else(|| "loopback".to_owned());
    let owner = RunnerOwner { tenant: who.tenant.clone(), subject: call.subject.clone() };
    let bearer = RunnerBearer { owner: owner.clone(), token: token_of(&app.host, &who, &call.subject).await? };
    let (subject, capabilities) = (call.subject, call.capabilities);
    let frame = RunnerRegistration { runner_id: runner_id.clone(), subject: subject.clone(), capabilities };
    app.host.register_runner(&bearer, frame.clone()).await?;
    let stream = app.host.runner_stream(&bearer, &runner_id, None).await?;
    let answering = answer(app.host.clone(), bearer, runner_id.clone(), stream);
    let mut all = ANSWERING.lock();
    if all.len() >= MOST {
        all.clear();
    }
    all.insert(owner, AbortOnDropHandle::new(tokio::spawn(answering)));
    drop(all);
    let capabilities = serde_json::to_value(frame.capabilities).unwrap_or_default();
    Ok(Reply::ok(&json!({"runnerId": runner_id, "subject": subject, "capabilities": capabilities})).into_response())
}

/// The token of the runners that sign in here for a subject. There is one for each.
async fn token_of(host: &Host, who: &Principal, subject: &str) -> Result<String, ApiError> {
    let who = Principal { acts_for: Some(subject.to_owned()), ..who.clone() };
    let known = host.runner_tokens(&who).into_iter().find(|token| token.name == TOKEN && token.subject == subject);
    if let Some(known) = known {
        return Ok(known.id);
    }
    let new = NewToken { name: TOKEN.to_owned(), subject: Some(subject.to_owned()), expires_at: None };
    Ok(host.new_runner_token(&who, new).await?.0.id)
}

/// Says of every step what it was asked.
async fn answer(host: Host, bearer: RunnerBearer, id: String, mut stream: RunnerStream) {
    while let Some(told) = stream.next().await {
        let Told::Dispatch { frame, .. } = told else { continue };
        let content = format!("answered by {id}");
        let output = json!({"role": "assistant", "content": content}).as_object().cloned().unwrap_or_default();
        let frame = ResultFrame { run_id: frame.run_id, step_id: frame.step_id, seq: frame.seq, output };
        if let Err(error) = host.runner_result(&bearer, &id, frame).await {
            tracing::debug!(%error, "a result was not taken");
        }
    }
}

pub(super) async fn dispatch(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    Body(call): Body<Dispatch>,
) -> Result<Response, ApiError> {
    for (field, text) in [
        ("subject", &call.subject),
        ("runId", &call.run_id),
        ("stepId", &call.step_id),
        ("provider", &call.provider),
        ("model", &call.model),
    ] {
        if text.is_empty() {
            return Err(wrong(field, format!("`{field}` is required.")));
        }
    }
    if call.kind != "model" {
        return Err(wrong("kind", "only `model` is dispatched here; tools are called by runs.".to_owned()));
    }
    let step = OutsideStep {
        owner: RunnerOwner { tenant: who.tenant.clone(), subject: call.subject },
        run: RunId::new(call.run_id),
        step: call.step_id,
        provider: call.provider,
        model: call.model,
        inputs: call.inputs,
    };
    let (result, deduped) = app.host.dispatch_outside(step).await?;
    Ok(Reply::ok(&json!({"result": result, "deduped": deduped})).into_response())
}
