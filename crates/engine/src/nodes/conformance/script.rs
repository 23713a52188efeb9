//! A supervisor that decides what a test wrote down for each turn.

use baton_model::{Decision, WorkflowId};
use serde_json::Value;

use crate::plan::Problem;
use crate::plan::node_config::Config;
use crate::plan::node_config::decision::read_decision;

pub(crate) fn read_script(config: &Config<'_>) -> Result<Vec<Decision>, Vec<Problem>> {
    for key in ["mockDispatchPlan", "mockDecisions"] {
        if let Some(list) = config.get(key) {
            let list = list.as_array().ok_or_else(|| config.problem(key, format!("`{key}` is a list.")))?;
            let read = |(i, item): (usize, &Value)| read_decision(config, &format!("{key}/{i}"), Some(item));
            return list.iter().enumerate().map(read).collect();
        }
    }
    let first = match config.get("mockPendingDecision") {
        Some(held) => read_decision(config, "mockPendingDecision", Some(held))?,
        // A supervisor that says nothing at all still shows a whole loop: one worker, then the end.
        None => Decision::NextWorker {
            next_worker_ids: vec![WorkflowId::new("conformance-noop")],
            confidence: None,
            next_worker_inputs: None,
        },
    };
    Ok(vec![first])
}
