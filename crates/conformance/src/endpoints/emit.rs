//! Would this host take such an event? What a test offers is held against the schema of the event's payload, and
//! refused if it carries what must never be on a log.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_model::{Principal, Secret, code, event, redact};
use baton_server::endpoint::scope::RunsCreate;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Value, json};

use super::log;
use super::mock_ai::wrong;
use super::stage::Body;
use crate::journal::Shown;
use crate::mode::Conformance;

const USAGE: &str = "provider.usage";
const REFUSAL: &str = "envelope.refusal";
const RECOVERY: &str = "envelope.recovery.applied";
const RELIABILITY: [&str; 6] = [
    "envelope.retry.attempted",
    "envelope.retry.exhausted",
    REFUSAL,
    "envelope.truncated",
    "envelope.nlToFormat.engaged",
    RECOVERY,
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Emit {
    #[serde(default)]
    run_id: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    payload: Value,
    correlation_id: Option<String>,
    node_id: Option<String>,
}

pub(super) async fn usage(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    Body(emit): Body<Emit>,
) -> Result<Response, ApiError> {
    emit.take(&app, &who, USAGE, code::PROVIDER_USAGE_CREDENTIAL_LEAK).await
}

pub(super) async fn reliability(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    Body(emit): Body<Emit>,
) -> Result<Response, ApiError> {
    let named = emit.kind.as_deref();
    let Some(kind) = RELIABILITY.into_iter().find(|kind| named == Some(kind)) else {
        return Err(wrong("type", format!("`type` is one of {}.", RELIABILITY.join(", "))));
    };
    emit.take(&app, &who, kind, code::ENVELOPE_RELIABILITY_CREDENTIAL_LEAK).await
}

impl Emit {
    async fn take(
        mut self,
        app: &App,
        who: &Principal,
        kind: &'static str,
        leak: &'static str,
    ) -> Result<Response, ApiError> {
        let tenant = &who.tenant;
        if self.run_id.is_empty() {
            return Err(wrong("runId", "`runId` says whose event it is."));
        }
        if leaks(&self.payload, &app.host.options().secrets) {
            return Err(refused(leak, "The payload holds a credential, or what refers to one."));
        }
        if kind == REFUSAL
            && let Some(payload) = self.payload.as_object_mut()
        {
            // What a model said instead of an answer may repeat the prompt; this host never shows it.
            payload.remove("refusalText");
        }
        check(kind, &self.payload)?;
        let node = self.node_id.as_deref().or_else(|| self.payload["nodeId"].as_str());
        let (node, cause) = (node.map(str::to_owned), self.correlation_id.as_deref());
        let event = Shown { kind, payload: self.payload, node: node.as_deref(), cause, trust: None };
        let logged = log::length(app, tenant, &self.run_id).await?;
        let shown = Conformance::of(&app.host)?.journal.show(tenant, &self.run_id, app.host.now(), logged, event);
        let shown = shown.ok_or_else(|| wrong("runId", "Too many test events are kept. Reset the seams first."))?;
        Ok(Reply::ok(&json!({"event": shown})).into_response())
    }
}

/// The payload has the shape that this host's own events of the kind have.
fn check(kind: &'static str, payload: &Value) -> Result<(), ApiError> {
    let schema: Value = event::schema(kind).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if kind == RECOVERY {
        let known = |name: &str| schema["properties"].get(name).is_some();
        let extra = payload.as_object().into_iter().flatten().any(|(name, _)| !known(name));
        if extra {
            let message = "The payload has a member that could carry what the model said.";
            return Err(refused(code::ENVELOPE_RECOVERY_CONTENT_LEAK, message));
        }
    }
    let validator = jsonschema::draft202012::new(&schema);
    let validator = validator.map_err(|_| ApiError::internal("The schema of this event cannot be read."))?;
    match validator.iter_errors(payload).next() {
        None => Ok(()),
        Some(error) => {
            let place = format!("payload{}", error.instance_path());
            let rule = error.schema_path().to_string();
            Err(wrong(&place, format!("The payload of {kind} breaks a rule of its schema: {rule}.")))
        }
    }
}

/// Whether anything in the value is a credential, refers to one, or is a test's own canary.
fn leaks(value: &Value, secrets: &[Secret]) -> bool {
    let shady =
        |text: &str| text.starts_with("secret:") || text.contains("secret-canary-") || redact(text, secrets) != text;
    match value {
        Value::String(text) => shady(text),
        Value::Array(items) => items.iter().any(|item| leaks(item, secrets)),
        Value::Object(members) => {
            members.iter().any(|(name, item)| name == "credentialRef" || shady(name) || leaks(item, secrets))
        }
        _ => false,
    }
}

fn refused(code: &'static str, message: &'static str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, code, message).with("pointer", "/payload")
}
