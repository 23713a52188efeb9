//! Between a child's completion and the harvest of what it made: attestation, and approval where it is asked for.
//! Fails closed: without a yes nothing is merged, and the loop goes on without it.

use baton_model::event::{ApprovalAction, NodeSuspended, NodeSuspendedFacts, Outcome};
use baton_model::{Draft, Event, Fault, RunStatus, Timestamp, WorkflowId, code};
use serde_json::{Map, Value, json};

use super::human_answer::Answer;
use super::votes::{EDIT, EDIT_ACCEPT};
use super::{child_records, finish, harvest, suspend, votes};
use crate::command::{ChildOutcome, Refusal};
use crate::nodes::{Ask, Done};
use crate::orchestration::WorkerBatch;
use crate::plan::{Dispatch, OnFailure, SubWorkflow};
use crate::state::{Child, RunState};

/// Merges a completed worker's outputs, or asks whether it may.
pub(super) fn merge(
    state: &RunState,
    batch: &WorkerBatch,
    dispatch: &Dispatch,
    worker: usize,
    at: Timestamp,
) -> Vec<Draft> {
    let outputs = &batch.workers[worker].outputs;
    if !dispatch.attest.approval {
        return harvest::harvest(state, batch, dispatch, worker, outputs, at);
    }
    let node = &state.plan.nodes[batch.node].id;
    let attestation = json!(batch.workers[worker].attestation);
    let artifact = format!("merge-{}-{worker}", batch.iteration);
    let ask = question(&artifact, &batch.workers[worker].id, json!({"outputs": outputs, "attestation": attestation}));
    let key = format!("{node}:{}:{worker}", state.nodes[batch.node].visit);
    suspend::suspend(state, batch.node, &key, ask, at)
}

/// The same question for a sub-workflow. The child's end goes on the log with it, so that nobody asks for it again.
pub(super) fn ask(
    state: &RunState,
    child: &Child,
    outputs: &Map<String, Value>,
    outcome: &ChildOutcome,
    at: Timestamp,
) -> Vec<Draft> {
    let node = &state.plan.nodes[child.node];
    let ended = NodeSuspended {
        node_id: node.id.clone(),
        interrupt_id: format!("int:{}:{}:child", node.id, state.nodes[child.node].visit),
        kind: None,
        key: None,
        reason: Some("merge-approval".to_owned()),
        child_status: Some(RunStatus::Completed),
        child_run_id: Some(child.plan.run.clone()),
        agent_id: None,
        threshold: None,
        observed: None,
        private: NodeSuspendedFacts { child_memory: child_records::seen(child, outcome) },
    };
    let mut drafts: Vec<Draft> = vec![Event::from(ended).into()];
    let run = &state.nodes[child.node];
    let artifact = format!("merge-{}-{}", node.id, run.visit);
    let data = json!({"outputs": outputs, "attestation": child_records::attestation(&outcome.variables), "childRunId": child.plan.run});
    let question = question(&artifact, &child.plan.workflow, data);
    drafts.extend(suspend::suspend(state, child.node, &suspend::key(&node.id, run.visit, run.attempt), question, at));
    drafts
}

/// Answers a sub-workflow's merge question. Without a yes nothing is merged and the node fails, unless it absorbs.
pub(super) fn answer_sub_workflow(answer: Answer<'_>, call: &SubWorkflow) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, at } = answer;
    let artifact = interrupt.data.get("artifactData").and_then(Value::as_object).cloned().unwrap_or_default();
    let made = artifact.get("outputs").and_then(Value::as_object).cloned().unwrap_or_default();
    let (outcome, word, merged) = read(value, made)?;
    let by = votes::voter(value, actor);
    let mut drafts = answer.closes(Some(&by), outcome);
    drafts.push(votes::decision_received(state.plan.nodes[node].id.clone(), word, &by, value));
    let mut outputs: Map<String, Value> = [("childStatus".to_owned(), json!("completed"))].into_iter().collect();
    outputs.extend(artifact.get("childRunId").map(|run| ("childRunId".to_owned(), run.clone())));
    match merged {
        Some(merged) => {
            outputs.extend(artifact.get("attestation").map(|value| ("attestation".to_owned(), value.clone())));
            drafts.extend(match call.harvest(&merged, state.bounds()) {
                Ok(variables) => finish::complete(state, node, Done { outputs, variables, ..Done::default() }, at),
                Err(fault) => finish::fail(state, node, fault, at),
            });
        }
        None if call.on_failure == OnFailure::Absorb => {
            drafts.extend(finish::complete(state, node, Done::with(outputs), at));
        }
        None => {
            let fault = Fault::new(code::APPROVAL_REJECTED, "What the child made was not approved.");
            drafts.extend(finish::fail(state, node, fault.with("decidedBy", by), at));
        }
    }
    Ok(drafts)
}

fn question(artifact: &str, worker: &WorkflowId, data: Value) -> Ask {
    let data = json!({
        "artifactId": artifact,
        "artifactType": "sub-run-output",
        "title": format!("Merge what {worker} made?"),
        "artifactData": data,
        "actions": ["accept", "reject", "edit-accept"],
    });
    Ask::new("approval", data)
}

/// What is to be merged, if anything.
type Merge = (Outcome, ApprovalAction, Option<Map<String, Value>>);

fn read(value: &Value, made: Map<String, Value>) -> Result<Merge, Refusal> {
    match value.get("action").and_then(Value::as_str) {
        Some("accept") => Ok((Outcome::Accepted, ApprovalAction::Accept, Some(made))),
        Some(EDIT_ACCEPT | EDIT) => {
            let edited = value.get("editedArtifactData").and_then(Value::as_object);
            let edited =
                edited.ok_or_else(|| Refusal::invalid("`edit-accept` needs `editedArtifactData`, an object."))?;
            let outputs = edited.get("outputs").and_then(Value::as_object).unwrap_or(edited);
            Ok((Outcome::Accepted, ApprovalAction::EditAccept, Some(outputs.clone())))
        }
        Some("reject") => Ok((Outcome::Rejected, ApprovalAction::Reject, None)),
        _ => Err(Refusal::invalid("`action` must be one of accept, reject, edit-accept.")),
    }
}

/// Answers a merge question.
pub(super) fn answer(answer: Answer<'_>, dispatch: &Dispatch) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, value, actor, at, .. } = answer;
    let waiting = state.batch.as_ref().and_then(|batch| Some((batch, batch.awaiting_merge(dispatch)?)));
    let (batch, worker) = waiting.ok_or_else(|| Refusal::invalid("Nothing waits to be merged here."))?;
    let by = votes::voter(value, actor);
    let (outcome, word, outputs) = read(value, batch.workers[worker].outputs.clone())?;
    let mut drafts = answer.closes(Some(&by), outcome);
    drafts.push(votes::decision_received(state.plan.nodes[node].id.clone(), word, &by, value));
    if let Some(outputs) = outputs {
        drafts.extend(harvest::harvest(state, batch, dispatch, worker, &outputs, at));
    }
    Ok(drafts)
}
