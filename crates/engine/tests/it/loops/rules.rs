//! What a dispatch's configuration promises, read from its text and not from the engine.

use baton_model::event::JoinOutcome;
use baton_model::{Decision, WorkflowId};
use serde_json::{Map, Value, json};

use super::generate::Case;

pub struct Rules {
    dispatch: Value,
    host_fan_out: u64,
}

impl Rules {
    pub fn new(case: &Case) -> Self {
        Self { dispatch: case.dispatch.clone(), host_fan_out: u64::from(case.max_fan_out) }
    }

    fn text(&self, path: &str, default: &'static str) -> &str {
        self.dispatch.pointer(path).and_then(Value::as_str).unwrap_or(default)
    }

    pub fn is_parallel(&self, workers: usize) -> bool {
        self.text("/fanOutPolicy", "sequential") == "parallel" && workers > 1
    }

    /// How many children may be under way at once.
    pub fn concurrency(&self, workers: usize) -> usize {
        let own = self.dispatch["maxConcurrency"].as_u64().unwrap_or(u64::MAX);
        if self.is_parallel(workers) { own.min(self.host_fan_out) as usize } else { 1 }
    }

    /// The code with which a decision is refused before anything is started.
    pub fn refusal(&self, decision: &Decision) -> Option<&'static str> {
        let Decision::NextWorker { next_worker_ids: ids, next_worker_inputs: inputs, .. } = decision else {
            return None;
        };
        if ids.len() > 1 && self.text("/fanOutPolicy", "sequential") == "reject" {
            return Some("fan_out_unsupported");
        }
        let quorum = self.dispatch.pointer("/joinPolicy/quorum").and_then(Value::as_u64).unwrap_or(0);
        let wrong = inputs.as_ref().is_some_and(|inputs| inputs.len() != ids.len()) || quorum > ids.len() as u64;
        wrong.then_some("validation_error")
    }

    fn mapping(&self, default: &str, per_worker: &str, worker: &WorkflowId) -> Map<String, Value> {
        let own = self.dispatch.get(per_worker).and_then(|all| all.get(worker.as_str()));
        own.or_else(|| self.dispatch.get(default)).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// What a worker is started with.
    pub fn inputs(&self, worker: &WorkflowId, variables: &Map<String, Value>, own: &Map<String, Value>) -> Value {
        let mapping = self.mapping("inputMapping", "perWorkerInputMappings", worker);
        let given =
            mapping.iter().filter_map(|(key, name)| Some((key.clone(), variables.get(name.as_str()?)?.clone())));
        Value::Object(given.chain(own.clone()).collect())
    }

    pub fn harvests(&self, worker: &WorkflowId) -> bool {
        !self.mapping("outputMapping", "perWorkerOutputMappings", worker).is_empty()
    }

    /// What is taken over from a worker that made this, in mapping order.
    pub fn harvest(&self, worker: &WorkflowId, made: &Map<String, Value>) -> Vec<(String, Value)> {
        let mapping = self.mapping("outputMapping", "perWorkerOutputMappings", worker);
        mapping.iter().filter_map(|(name, key)| Some((name.clone(), made.get(key.as_str()?)?.clone()))).collect()
    }

    pub fn attests(&self) -> bool {
        self.dispatch.get("outputAttestation").is_some()
    }

    pub fn asks_before_merging(&self) -> bool {
        self.dispatch.pointer("/outputAttestation/requireApproval") == Some(&json!(true))
    }

    pub fn iteration_cap(&self) -> u64 {
        self.dispatch["iterationCap"].as_u64().unwrap_or(u64::MAX)
    }

    /// The join of workers that ended like this (`true`: completed), in this order; `None` while it is open.
    pub fn join(&self, ends: &[bool], workers: usize) -> Option<JoinOutcome> {
        let mode = self.text("/joinPolicy/mode", "wait-all");
        let fail_fast = self.text("/joinPolicy/onChildFailure", "collect") == "fail-fast";
        let quorum = self.dispatch.pointer("/joinPolicy/quorum").and_then(Value::as_u64).unwrap_or(1) as usize;
        let (mut good, mut bad) = (0, 0);
        for completed in ends {
            if *completed {
                good += 1;
            } else {
                bad += 1;
                if fail_fast {
                    return Some(JoinOutcome::Failed);
                }
            }
            let met = match mode {
                "wait-all" => good + bad == workers,
                "race" => true,
                _ => good >= quorum,
            };
            if met {
                return Some(if bad == 0 { JoinOutcome::Satisfied } else { JoinOutcome::Partial });
            }
            if mode != "wait-all" && workers - bad < quorum {
                return Some(JoinOutcome::Failed);
            }
        }
        None
    }
}
