//! What the next turn can read about the workers of this one.

use baton_model::event::JoinOutcome;
use baton_model::json as canonical;
use serde_json::{Map, Value, json};

use super::child_records::child_run;
use crate::orchestration::{Stage, WorkerBatch};
use crate::state::RunState;

/// Bytes of what is told of all workers of a turn beyond how each ended. A thousand that fail must not make the report
/// too large for a node's outputs; what is left out stands on the log.
const MOST_TOLD_BYTES: u64 = 64 * 1024;

/// What the next turn can read about its workers.
pub(super) fn report(state: &RunState, batch: &WorkerBatch, outcome: Option<JoinOutcome>) -> Map<String, Value> {
    let mut room = MOST_TOLD_BYTES;
    let children: Vec<Value> = batch
        .workers
        .iter()
        .enumerate()
        .map(|(i, worker)| {
            let status = match worker.stage {
                Stage::Completed | Stage::Harvested | Stage::Withheld => "completed",
                Stage::Failed | Stage::Refused => "failed",
                _ => "cancelled",
            };
            let mut told =
                json!({"workflowId": worker.id, "childRunId": child_run(state, batch, i), "childStatus": status});
            if state.rule() >= 4 {
                let harvested = Some(&worker.harvested).filter(|keys| !keys.is_empty());
                let more = [
                    ("error", worker.error.as_ref().map(|error| json!(error))),
                    ("harvestedKeys", harvested.map(|keys| json!(keys))),
                ];
                for (name, value) in more {
                    let size = value.as_ref().map(canonical::size);
                    if let (Some(value), Some(left)) = (value, size.and_then(|size| room.checked_sub(size))) {
                        told[name] = value;
                        room = left;
                    }
                }
            }
            told
        })
        .collect();
    let mut report = Map::new();
    match outcome {
        Some(outcome) => {
            report.insert("joinOutcome".to_owned(), json!(outcome));
        }
        None => {
            if let Some(last) = children.last() {
                report.insert("childRunId".to_owned(), last["childRunId"].clone());
                report.insert("childStatus".to_owned(), last["childStatus"].clone());
            }
        }
    }
    report.insert("children".to_owned(), Value::Array(children));
    report
}
