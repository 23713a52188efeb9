//! One effect, wanted by several executors of its run at once. The run is a real one: its own executor stalls just before
//! the effect, the others take the run up again from its log and reach the place where calls leave the host.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::NodeId;
use baton_runtime::{Answer, StartRun, Via};
use baton_server::endpoint::scope::ApprovalsRespond;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::json;

use super::stage::{Body, Stage, Staging, definition, node};
use crate::mode::Conformance;

const WORKFLOW: &str = "conformance-seam-claim";
const GATE: &str = "gate";
const EFFECT: &str = "effect";
/// Fewer are no race; more prove nothing more.
const EXECUTORS: std::ops::RangeInclusive<usize> = 2..=16;

#[derive(Deserialize)]
pub(super) struct Asked {
    #[serde(default = "two")]
    executors: usize,
}

const fn two() -> usize {
    2
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Body(asked): Body<Asked>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    stage.who.also::<ApprovalsRespond>()?;
    if !EXECUTORS.contains(&asked.executors) {
        let range = format!("must be an integer from {} to {}", EXECUTORS.start(), EXECUTORS.end());
        return Err(ApiError::at("/executors", &range));
    }
    // Until somebody answers, the effect can be held before it happens.
    let nodes = vec![node(GATE, "core.approvalGate", &json!({})), node(EFFECT, "conformance.effect.emit", &json!({}))];
    stage.register(definition(WORKFLOW, nodes, &[(GATE.to_owned(), EFFECT.to_owned())], Vec::new())).await?;
    let host = &stage.app.host;
    let mode = Conformance::of(host)?;
    let start = StartRun { workflow_id: WORKFLOW.to_owned(), ..StartRun::default() };
    let run = host.start_run(&stage.who, start, None).await?.run_id;
    stage.settle(&run).await?;
    let go = async {
        let via = Via::Bearer { subject: stage.who.subject.clone() };
        let accept = Answer::from(json!({"action": "accept"}));
        host.resolve(stage.tenant(), &run, &NodeId::new(GATE), accept, via).await.map(drop)
    };
    let minted = mode.race_effect(host, stage.tenant(), &run, asked.executors, go).await?;
    let ended = stage.settle(&run).await?;
    let body = json!({
        "runId": run,
        "status": ended.status,
        "logicalInvocationId": minted.first(),
        "mintedIds": minted,
        "attempted": minted.len(),
        "delivered": mode.effect_count(host, stage.tenant(), &run).await?,
    });
    Ok(Reply::ok(&body).into_response())
}
