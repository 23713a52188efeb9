//! Telling the mock model provider what to answer. The calls themselves are made by runs, the ordinary way.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use baton_model::{ModelReply, NodeId, StopReason, Usage, code};
use baton_server::endpoint::scope::{RunsCreate, RunsRead};
use baton_server::endpoint::{Allowed, ApiError, App, Params, Reply};
use serde::Deserialize;
use serde_json::{Value, json};

use super::stage::Body;
use crate::mode::Conformance;

/// How long a program may be.
const MOST_ENTRIES: usize = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Program {
    #[serde(default)]
    node_id: String,
    program: Option<Vec<Entry>>,
}

/// One answer. Suites write it in two ways: as what a vendor would say, or by its `mode`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    mode: Option<Mode>,
    content: Option<String>,
    /// With `mode: envelope`: the value to answer with.
    #[serde(alias = "envelope")]
    payload: Option<Value>,
    stop_reason: Option<Ended>,
    refusal_text: Option<String>,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Envelope,
    Refusal,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    EndTurn,
    MaxTokens,
    Length,
    StopSequence,
    Safety,
}

impl From<Ended> for StopReason {
    fn from(stop: Ended) -> Self {
        match stop {
            Ended::EndTurn => Self::EndTurn,
            Ended::MaxTokens | Ended::Length => Self::MaxTokens,
            Ended::StopSequence => Self::StopSequence,
            Ended::Safety => Self::Refusal,
        }
    }
}

impl From<Entry> for ModelReply {
    fn from(entry: Entry) -> Self {
        let refused = entry.mode == Some(Mode::Refusal);
        let plain = if refused { StopReason::Refusal } else { StopReason::EndTurn };
        let payload = entry.payload.map(|payload| payload.to_string());
        let usage = Usage { input_tokens: entry.input_tokens, output_tokens: entry.output_tokens, ..Usage::default() };
        Self {
            stop: entry.stop_reason.map_or(plain, StopReason::from),
            refusal: entry.refusal_text,
            ..Self::text(entry.content.or(payload).unwrap_or_default(), usage)
        }
    }
}

pub(super) async fn post(
    State(app): State<App>,
    _: Allowed<RunsCreate>,
    Body(program): Body<Program>,
) -> Result<Response, ApiError> {
    let entries = program.program.ok_or_else(|| wrong("program", "`program` lists the answers to give."))?;
    if program.node_id.is_empty() {
        return Err(wrong("nodeId", "`nodeId` names the node whose calls are answered."));
    }
    if entries.len() > MOST_ENTRIES {
        return Err(wrong("program", "A program has at most 1000 answers."));
    }
    let replies: Vec<ModelReply> = entries.into_iter().map(ModelReply::from).collect();
    let count = replies.len();
    Conformance::of(&app.host)?.program_mock(NodeId::new(program.node_id), replies);
    Ok(Reply::ok(&json!({"ok": true, "count": count})).into_response())
}

/// The room that the last call of a node left for its answer.
pub(super) async fn last_budget(
    State(app): State<App>,
    _: Allowed<RunsRead>,
    params: Params,
) -> Result<Response, ApiError> {
    let Some(node) = params.one("nodeId")?.filter(|node| !node.is_empty()) else {
        return Err(wrong("nodeId", "`nodeId` names the node whose calls are meant."));
    };
    let budget = Conformance::of(&app.host)?.mock_budget(&NodeId::new(node));
    Ok(Reply::ok(&json!({"nodeId": node, "maxTokens": budget})).into_response())
}

/// A mistake in what a test endpoint was sent.
pub(super) fn wrong(field: &str, message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, code::INVALID_ARGUMENT, message.into()).with("pointer", format!("/{field}"))
}
