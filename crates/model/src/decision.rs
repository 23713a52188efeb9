//! What a supervisor may decide. One execution, one turn, exactly one of these.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::WorkflowId;

/// A supervisor's decision. Closed: clarify and escalate are routes the engine takes, never values a decision has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Decision {
    NextWorker {
        next_worker_ids: Vec<WorkflowId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
        /// One object per worker, laid over what the mapping projects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_worker_inputs: Option<Vec<Map<String, Value>>>,
    },
    AskUser {
        prompt: String,
    },
    Terminate {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
    },
}

impl Decision {
    /// Reads a decision, or says what is wrong with it.
    pub fn read(value: &Value) -> Result<Self, String> {
        let decision: Self = serde_json::from_value(value.clone()).map_err(|error| format!("{error}"))?;
        match &decision {
            Self::NextWorker { next_worker_ids, .. } => {
                if next_worker_ids.is_empty() {
                    return Err("`nextWorkerIds` names at least one workflow".to_owned());
                }
                if next_worker_ids.iter().any(|id| id.as_str().is_empty() || id.as_str().len() > 256) {
                    return Err("a worker id has 1 to 256 characters".to_owned());
                }
            }
            Self::AskUser { prompt } if prompt.is_empty() => return Err("`prompt` is not empty".to_owned()),
            Self::Terminate { reason: Some(reason), .. } if reason.is_empty() => {
                return Err("`reason` is not empty".to_owned());
            }
            Self::AskUser { .. } | Self::Terminate { .. } => {}
        }
        match decision.confidence() {
            Some(confidence) if !(0.0..=1.0).contains(&confidence) => {
                Err("`confidence` lies between 0 and 1".to_owned())
            }
            _ => Ok(decision),
        }
    }

    /// How sure the supervisor says it is; no opinion is no opinion.
    pub fn confidence(&self) -> Option<f64> {
        match self {
            Self::NextWorker { confidence, .. } | Self::Terminate { confidence, .. } => *confidence,
            Self::AskUser { .. } => None,
        }
    }

    pub fn first_worker(&self) -> Option<&WorkflowId> {
        match self {
            Self::NextWorker { next_worker_ids, .. } => next_worker_ids.first(),
            Self::AskUser { .. } | Self::Terminate { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_the_three_kinds_and_nothing_else() {
        for good in [
            json!({"kind": "next-worker", "nextWorkerIds": ["w"], "confidence": 0.4}),
            json!({"kind": "ask-user", "prompt": "?"}),
            json!({"kind": "terminate"}),
        ] {
            let decision = Decision::read(&good);
            assert_eq!(decision.ok().and_then(|d| serde_json::to_value(d).ok()), Some(good));
        }
        for bad in [
            json!({"kind": "next-worker", "nextWorkerIds": []}),
            json!({"kind": "next-worker", "nextWorkerIds": ["w"], "confidence": 1.5}),
            json!({"kind": "ask-user", "prompt": "", }),
            json!({"kind": "ask-user", "prompt": "?", "confidence": 0.5}),
            json!({"kind": "escalate"}),
            json!({"kind": "terminate", "extra": 1}),
            json!("terminate"),
        ] {
            assert!(Decision::read(&bad).is_err(), "{bad}");
        }
    }
}
