//! Attestation and approval between a child's end and the merge of what it made.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{Digest, NodeId, RunSnapshot};
use baton_runtime::Via;
use baton_server::endpoint::scope::ApprovalsRespond;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::{Body, DISPATCH, Stage, Staging, worker};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attest {
    child_outputs: Map<String, Value>,
    #[serde(default)]
    output_attestation: Map<String, Value>,
    /// Absent: nobody ever answers.
    approval_action: Option<Action>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Accept,
    EditAccept,
    Reject,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Body(request): Body<Attest>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    let outputs = &request.child_outputs;
    if outputs.is_empty() || outputs.values().any(Value::is_null) {
        return Err(
            ApiError::invalid("`childOutputs` has at least one value, and no nulls.").with("pointer", "/childOutputs")
        );
    }
    let digest = Digest::of_json(&json!(outputs)).to_string();
    let child = format!("conformance-seam-attested-{}", digest.get(..16).unwrap_or(&digest));
    stage.register(worker(&child, outputs)).await?;
    let same: Map<String, Value> = outputs.keys().map(|name| (name.clone(), json!(name))).collect();
    let dispatch = json!({"outputMapping": same, "outputAttestation": request.output_attestation});
    let decision = json!({"kind": "next-worker", "nextWorkerIds": [child]});
    let asked = stage.loop_over("attest", &decision, &dispatch, &Map::new()).await?;
    let in_question = asked.interrupt.as_ref().map(|open| open.data["artifactData"]["attestation"].clone());
    let ended = answer(&stage, asked, request.approval_action, outputs).await?;
    report(&stage, &ended, in_question, outputs).await
}

/// Answers the question, if there is one. Without an answer the run is ended as an operator would end it.
async fn answer(
    stage: &Stage,
    asked: RunSnapshot,
    action: Option<Action>,
    outputs: &Map<String, Value>,
) -> Result<RunSnapshot, ApiError> {
    if asked.interrupt.is_none() {
        return Ok(asked);
    }
    let value = match action {
        Some(Action::Accept) => json!({"action": "accept"}),
        Some(Action::EditAccept) => json!({"action": "edit-accept", "editedArtifactData": {"outputs": outputs}}),
        Some(Action::Reject) => json!({"action": "reject"}),
        None => {
            stage.app.host.cancel(&stage.who, &asked.run_id, Some("nobody-answered".to_owned())).await?;
            return stage.settle(&asked.run_id).await;
        }
    };
    stage.who.also::<ApprovalsRespond>()?;
    let tenant = stage.tenant();
    let via = Via::Bearer { subject: stage.who.subject.clone() };
    stage.app.host.resolve(tenant, &asked.run_id, &NodeId::new(DISPATCH), value, via).await?;
    stage.settle(&asked.run_id).await
}

async fn report(
    stage: &Stage,
    run: &RunSnapshot,
    in_question: Option<Value>,
    outputs: &Map<String, Value>,
) -> Result<Response, ApiError> {
    let events = stage.log(&run.run_id).await?;
    let harvest = events
        .iter()
        .find(|event| event["type"] == "core.workflowChain.event" && event["payload"]["phase"] == "output.harvested");
    let mut body = json!({"runId": run.run_id, "merged": harvest.is_some()});
    let attested = harvest.and_then(|event| event["payload"].get("attestation")).cloned();
    if let Some(attestation) = attested.or(in_question) {
        body["attestation"] = attestation;
    }
    if let Some(event) = harvest {
        body["harvestedEvent"] = event.clone();
        let merged = run.variables.iter().filter(|(name, _)| outputs.contains_key(*name));
        body["mergedValues"] = merged.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into();
    }
    Ok(Reply::ok(&body).into_response())
}
