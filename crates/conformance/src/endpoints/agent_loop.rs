//! A supervisor's loop of a given length: what it decided, what each turn saw of the workspace, and where it went on
//! after a human was asked. The loop is a real run; its log and what is stored beside it give every answer.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::{Digest, NodeId, RunId, RunSnapshot};
use baton_runtime::{Answer, StartRun, Via};
use baton_server::endpoint::scope::{ApprovalsRespond, WorkspaceWrite};
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stage::{Body, DISPATCH, Stage, Staging, definition, node, worker};

const SUPERVISOR: &str = "supervisor";
const IDLE_WORKER: &str = "conformance-seam-idle";
const WRITER: &str = "conformance-seam-writer";
/// The file the writer writes.
const FILE: &str = "conformance/agent-loop.md";
const MOST_TURNS: u64 = 100;
/// Below every floor an operator may set.
const UNSURE: f64 = 0.1;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Loop {
    turns: u64,
    workspace_write_at_turn: Option<u64>,
    suspend_at_turn: Option<u64>,
    #[serde(default)]
    resume: bool,
    max_loop_iterations: Option<u64>,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<Staging>,
    Body(request): Body<Loop>,
) -> Result<Response, ApiError> {
    let stage = Stage { app, who };
    let request = request.check()?;
    stage.register(worker(IDLE_WORKER, &Map::new())).await?;
    if request.workspace_write_at_turn.is_some() {
        stage.who.also::<WorkspaceWrite>()?;
        stage.register(writer()).await?;
    }
    let run = request.start(&stage).await?;
    let stopped = stage.settle(&run).await?;
    request.go_on(&stage, stopped).await?;
    let events = stage.log(&run).await?;
    Ok(Reply::ok(&request.report(&stage, &run, &events).await?).into_response())
}

impl Loop {
    fn check(self) -> Result<Self, ApiError> {
        if !(1..=MOST_TURNS).contains(&self.turns) {
            return Err(ApiError::at("/turns", &format!("must be an integer from 1 to {MOST_TURNS}")));
        }
        if self.suspend_at_turn.is_some_and(|turn| !(1..=self.turns).contains(&turn)) {
            return Err(ApiError::at("/suspendAtTurn", "must be one of the turns"));
        }
        // What a turn wrote is looked for in the next one, so there must be a next one.
        if self.workspace_write_at_turn.is_some_and(|turn| !(1..self.turns).contains(&turn)) {
            return Err(ApiError::at("/workspaceWriteAtTurn", "must be one of the turns, and not the last"));
        }
        Ok(self)
    }

    /// Every turn sends somebody to work, except the last, which ends the run.
    fn decision(&self, turn: u64) -> Value {
        let mut decision = if turn == self.turns {
            json!({"kind": "terminate", "reason": "seam-done"})
        } else {
            let worker = if self.workspace_write_at_turn == Some(turn) { WRITER } else { IDLE_WORKER };
            json!({"kind": "next-worker", "nextWorkerIds": [worker]})
        };
        if self.suspend_at_turn == Some(turn) {
            decision["confidence"] = json!(UNSURE);
        }
        decision
    }

    async fn start(&self, stage: &Stage) -> Result<RunId, ApiError> {
        let special = [self.workspace_write_at_turn, self.suspend_at_turn, Some(self.turns)];
        let rules: Vec<Value> = special
            .into_iter()
            .flatten()
            .map(|turn| json!({"when": format!("iteration == {turn}"), "decide": self.decision(turn)}))
            .collect();
        let otherwise = json!({"kind": "next-worker", "nextWorkerIds": [IDLE_WORKER]});
        let supervisor = json!({"rules": rules, "otherwise": otherwise});
        let digest = Digest::of_json(&supervisor).to_string();
        let workflow_id = format!("conformance-seam-loop-{}", digest.get(..16).unwrap_or(&digest));
        let nodes = vec![
            node(SUPERVISOR, "core.orchestrator.supervisor", &supervisor),
            node(DISPATCH, "core.dispatch", &json!({})),
        ];
        stage.register(definition(&workflow_id, nodes, &[], Vec::new())).await?;
        let bound = self.max_loop_iterations.map(|most| ("maxLoopIterations".to_owned(), json!(most)));
        let start = StartRun { workflow_id, configurable: bound.into_iter().collect(), ..StartRun::default() };
        Ok(stage.app.host.start_run(&stage.who, start, None).await?.run_id)
    }

    /// Accepts the held decision, or ends the run as an operator would whom nobody answers.
    async fn go_on(&self, stage: &Stage, stopped: RunSnapshot) -> Result<RunSnapshot, ApiError> {
        let Some(question) = &stopped.interrupt else { return Ok(stopped) };
        if self.resume {
            stage.who.also::<ApprovalsRespond>()?;
            let tenant = stage.tenant();
            let answer = match question.kind.as_str() {
                "clarification" => json!({"answers": {"decision": "accept"}}),
                _ => json!({"action": "accept"}),
            };
            let via = Via::Bearer { subject: stage.who.subject.clone() };
            let answer = Answer::to(question.interrupt_id.as_str(), answer);
            stage.app.host.resolve(tenant, &stopped.run_id, &NodeId::new(SUPERVISOR), answer, via).await?;
        } else {
            stage.app.host.cancel(&stage.who, &stopped.run_id, Some("nobody-answered".to_owned())).await?;
        }
        stage.settle(&stopped.run_id).await
    }

    async fn report(&self, stage: &Stage, run: &RunId, events: &[Value]) -> Result<Value, ApiError> {
        let decided: Vec<&Value> = of_kind(events, "runOrchestrator.decided").collect();
        let mut answer = json!({
            "runId": run,
            "decisions": decided.iter().map(|event| &event["payload"]).collect::<Vec<_>>(),
        });
        if let Some(asked) = of_kind(events, "interrupt.resolved").find(|event| event["nodeId"] == SUPERVISOR)
            && let Some(next) = decided.iter().find(|event| event["sequence"].as_u64() > asked["sequence"].as_u64())
        {
            answer["resumedIteration"] = next["payload"]["iteration"].clone();
        }
        if let Some(breach) = of_kind(events, "cap.breached").next() {
            answer["bound"] = breach["payload"].clone();
            let failed = of_kind(events, "run.failed").next();
            answer["bound"]["errorCode"] =
                failed.map_or(Value::Null, |event| event["payload"]["error"]["code"].clone());
        }
        if let Some(turn) = self.workspace_write_at_turn
            && let Some(written) = written_version(stage, events).await?
            && let (Some(then), Some(next)) = (turn_start(events, turn), turn_start(events, turn + 1))
        {
            answer["workspaceVisible"] = json!({
                "atWriteTurn": sees(stage, run, then, written).await?,
                "atNextTurn": sees(stage, run, next, written).await?,
            });
        }
        Ok(answer)
    }
}

fn writer() -> Value {
    let put = json!({"path": FILE, "content": "Written by a worker of a loop."});
    definition(WRITER, vec![node("write", "vendor.baton.workspace.put", &put)], &[], Vec::new())
}

/// The version of the file that this run's writer made, from the writer's own log.
async fn written_version(stage: &Stage, events: &[Value]) -> Result<Option<u64>, ApiError> {
    let sent = of_kind(events, "node.dispatched").find(|event| event["payload"]["childWorkflowId"] == WRITER);
    let Some(child) = sent.and_then(|event| event["payload"]["childRunId"].as_str()) else { return Ok(None) };
    let log = stage.log(&RunId::new(child)).await?;
    Ok(of_kind(&log, "workspace.updated").find_map(|event| event["payload"]["version"].as_u64()))
}

/// Where a turn began: the supervisor's last start before the turn was decided.
fn turn_start(events: &[Value], turn: u64) -> Option<u64> {
    let decided = of_kind(events, "runOrchestrator.decided").find(|event| event["payload"]["iteration"] == turn)?;
    let starts = of_kind(events, "node.started").filter(|event| event["nodeId"] == SUPERVISOR);
    starts
        .filter_map(|event| event["sequence"].as_u64())
        .take_while(|seq| Some(*seq) < decided["sequence"].as_u64())
        .last()
}

/// Whether the workspace as of a record has the file in the version written, or a newer one.
async fn sees(stage: &Stage, run: &RunId, seq: u64, written: u64) -> Result<bool, ApiError> {
    let then = stage.app.host.surroundings(stage.tenant(), run, seq).await?;
    Ok(then.workspace.iter().any(|file| file.path == FILE && file.version >= written))
}

fn of_kind<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}
