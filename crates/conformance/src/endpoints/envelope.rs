//! Offering an envelope to the acceptor, with everything around it in the test's hands: what the host and the node take,
//! how far the counters are, what was said before.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{Digest, NodeId, Principal, Secret, Trust};
use baton_runtime::KeyLookup;
use baton_runtime::acceptor::{
    self, Consequence, Counters, Earlier, Host, Judgement, Kinds, Offer, Outcome, RefusalMode, Strictness, UNIVERSAL,
};
use baton_server::endpoint::scope::RunsCreate;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use baton_telemetry::{Envelope, Taken};
use serde::Deserialize;
use serde_json::{Value, json};

use super::log;
use super::mock_ai::wrong;
use super::stage::Body;
use crate::journal::Shown;
use crate::mode::Conformance;

/// The switch that takes envelopes away; see [`super::toggle`].
const CAPABILITY: &str = "host.aiEnvelope.supported";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Accept {
    #[serde(default)]
    envelope: Value,
    #[serde(default)]
    host_supported_envelopes: Vec<String>,
    node_allowed_kinds: Option<Vec<String>>,
    #[serde(default)]
    counters: Counters,
    schema_version_floor: Option<BTreeMap<String, u64>>,
    #[serde(default)]
    envelope_strictness: Strictness,
    run_trust_boundary: Option<Trust>,
    #[serde(default)]
    byok_canaries: Vec<Canary>,
    #[serde(default)]
    prior_correlations: Vec<Prior>,
    persisted_dedup: Option<Dedup>,
    #[serde(default)]
    approval_gate_context: bool,
    project_to: Option<Project>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Canary {
    value: String,
    secret_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prior {
    correlation_id: String,
    #[serde(flatten)]
    earlier: Earlier,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dedup {
    run_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    run_id: String,
    node_id: String,
    #[serde(default)]
    refusal_mode: RefusalMode,
}

pub(super) async fn accept(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    Body(asked): Body<Accept>,
) -> Result<Response, ApiError> {
    let kept = asked.kept(&who);
    let mut earlier: BTreeMap<String, Earlier> =
        asked.prior_correlations.iter().map(|prior| (prior.correlation_id.clone(), prior.earlier.clone())).collect();
    if let Some(kept) = &kept
        && let KeyLookup::Replay { body, .. } = app.host.recall(&who.tenant, &kept.key, &kept.request).await?
        && let Ok(known) = serde_json::from_str(&body)
    {
        earlier.insert(asked.correlation().to_owned(), known);
    }
    let mut judgement = asked.judge(&app, &earlier);
    if judgement.fresh {
        asked.show(&app, &who, &mut judgement).await?;
        if let Some(kept) = kept.filter(|_| !earlier.contains_key(asked.correlation())) {
            let known = Earlier { envelope_type: asked.kind().to_owned(), outcome: judgement.outcome.clone() };
            let body = serde_json::to_string(&known).unwrap_or_default();
            app.host.remember(&who.tenant, kept.key, kept.request, 200, body).await?;
        }
    }
    Ok(Reply::ok(&judgement.outcome).into_response())
}

/// Where the answer to a correlation id is kept, so that another process finds it.
struct StoredReply {
    key: Digest,
    request: Digest,
}

impl Accept {
    fn kind(&self) -> &str {
        self.envelope["type"].as_str().unwrap_or_default()
    }

    fn correlation(&self) -> &str {
        self.envelope["correlationId"].as_str().unwrap_or_default()
    }

    fn kept(&self, who: &Principal) -> Option<StoredReply> {
        let run = &self.persisted_dedup.as_ref()?.run_id;
        let correlation = Some(self.correlation()).filter(|id| !id.is_empty())?;
        let key = Digest::of_json(&json!(["seam-envelope", who.tenant, run, correlation]));
        Some(StoredReply { key, request: Digest::of_bytes("seam-envelope") })
    }

    fn secrets(&self, app: &App) -> Vec<Secret> {
        let mut secrets = app.host.options().secrets.clone();
        let canaries = self.byok_canaries.iter().filter(|canary| !canary.value.is_empty());
        secrets.extend(canaries.map(|canary| Secret::new(canary.secret_id.as_str(), canary.value.as_str())));
        secrets
    }

    fn judge(&self, app: &App, earlier: &BTreeMap<String, Earlier>) -> Judgement {
        let secrets = self.secrets(app);
        let advertised = || UNIVERSAL.iter().map(|kind| ((*kind).to_owned(), 1)).collect();
        let versions = self.schema_version_floor.clone().unwrap_or_else(advertised);
        let host = Host {
            enabled: !Conformance::of(&app.host).is_ok_and(|mode| mode.is_off(CAPABILITY)),
            supported: &self.host_supported_envelopes,
            versions: &versions,
            strictness: self.envelope_strictness,
            kinds: Kinds::shared(),
        };
        let offer = Offer {
            accepts: self.node_allowed_kinds.as_deref(),
            counters: self.counters,
            boundary: self.run_trust_boundary,
            secrets: &secrets,
            earlier: Some(earlier),
            approval: self.approval_gate_context,
        };
        acceptor::accept(&self.envelope, &host, &offer)
    }

    /// Shows what follows from the judgement, each caused by the envelope.
    async fn show(&self, app: &App, who: &Principal, judgement: &mut Judgement) -> Result<(), ApiError> {
        let Some(project) = &self.project_to else { return Ok(()) };
        let trust = judgement.outcome.trust().or(self.run_trust_boundary).unwrap_or_default();
        let logged = log::length(app, &who.tenant, &project.run_id).await?;
        let full = || wrong("projectTo", "Too many test events are kept. Reset the seams first.");
        let taken = match &judgement.outcome {
            Outcome::Accepted { schema_version_drift: drift, .. } => {
                Some(Taken { kind: self.kind().to_owned(), drift: *drift })
            }
            _ => None,
        };
        let told = Envelope { node: NodeId::new(&project.node_id), taken };
        let now = app.host.now();
        Conformance::of(&app.host)?
            .journal
            .tell(&who.tenant, &project.run_id, now, &told, &self.secrets(app))
            .ok_or_else(full)?;
        let mut ids = Vec::new();
        for (kind, payload) in events(self, project, judgement) {
            let event = Shown {
                kind,
                payload,
                node: Some(&project.node_id),
                cause: Some(self.correlation()),
                trust: Some(trust.as_str()),
            };
            let shown = Conformance::of(&app.host)?.journal.show(&who.tenant, &project.run_id, now, logged, event);
            let shown = shown.ok_or_else(full)?;
            ids.extend(shown["eventId"].as_str().map(str::to_owned));
        }
        if let Outcome::Accepted { recorded_event_ids, .. } = &mut judgement.outcome {
            *recorded_event_ids = ids;
        }
        Ok(())
    }
}

/// The events that the consequences of a judgement are on a log.
fn events(asked: &Accept, project: &Project, judgement: &Judgement) -> Vec<(&'static str, Value)> {
    let node = project.node_id.as_str();
    let mut events = Vec::new();
    for consequence in acceptor::consequences(asked.kind(), judgement, project.refusal_mode) {
        match consequence {
            Consequence::Clarify { questions, context_type } => {
                let id = format!("{}:{node}", asked.correlation());
                let mut data = json!({"questions": questions});
                if let Some(context) = context_type {
                    data["contextType"] = context.into();
                }
                events.push((
                    "clarification.requested",
                    json!({"nodeId": node, "interruptId": id, "questions": questions}),
                ));
                let asked =
                    json!({"nodeId": node, "interruptId": id, "kind": "clarification", "key": node, "data": data});
                events.push(("interrupt.requested", asked));
            }
            Consequence::Log { level, message, data } => {
                events.push(("log.appended", json!({"level": level.as_str(), "message": message, "data": data})));
            }
            // The schema goes to the model; nothing about it goes on a log.
            Consequence::TeachSchema { .. } => {}
            Consequence::CapBreached { kind, limit, observed, node: named } => {
                let mut breach = json!({"kind": kind, "limit": limit, "observed": observed});
                if named {
                    breach["nodeId"] = node.into();
                }
                events.push(("cap.breached", breach));
            }
            Consequence::NodeFailed(fault) => events.push(("node.failed", json!({"nodeId": node, "error": fault}))),
        }
    }
    events
}
