//! What follows from an outcome, for whoever writes the log.

use baton_model::{Fault, code};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::outcome::{Judgement, Outcome};

/// Something to be recorded, in this order, caused by the envelope.
#[derive(Clone, Debug, PartialEq)]
pub enum Consequence {
    /// The node waits for a human.
    Clarify {
        questions: Value,
        context_type: Option<String>,
    },
    Log {
        level: Level,
        message: String,
        data: Value,
    },
    /// The schema of this kind goes into the model's next turn.
    TeachSchema {
        kind: String,
    },
    /// `node` says whether the event names the node.
    CapBreached {
        kind: String,
        limit: u64,
        observed: u64,
        node: bool,
    },
    NodeFailed(Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Debug,
    Warn,
    Error,
}

impl Level {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// What a node does about an envelope that its contract leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalMode {
    #[default]
    FailNode,
    DiscardAndWarn,
}

/// What follows from a judgement about an envelope of type `kind`. Nothing follows from one that was given before, and
/// an invalid envelope is the caller's to ask for again.
pub fn consequences(kind: &str, judgement: &Judgement, mode: RefusalMode) -> Vec<Consequence> {
    if !judgement.fresh {
        return Vec::new();
    }
    match &judgement.outcome {
        Outcome::Accepted { redacted_payload, .. } => accepted(kind, redacted_payload),
        Outcome::Invalid { .. } => Vec::new(),
        Outcome::Gated { reason, refused_type, allowed_kinds } => match mode {
            RefusalMode::DiscardAndWarn => vec![Consequence::Log {
                level: Level::Warn,
                message: "An envelope was left out.".to_owned(),
                data: json!({"reason": reason, "refusedType": refused_type, "acceptedTypes": allowed_kinds}),
            }],
            RefusalMode::FailNode => {
                let message = "The model answered with an envelope that does not belong here.";
                let fault = Fault::new(code::ENVELOPE_CONTRACT_VIOLATION, message)
                    .with("refusedType", refused_type.clone())
                    .with("acceptedTypes", allowed_kinds.clone());
                vec![Consequence::NodeFailed(fault)]
            }
        },
        Outcome::Breached { reason, cap_kind, limit, observed } => {
            let fault = Fault::new(code::CAP_BREACHED, format!("The model went on for too long: {reason}."))
                .with("kind", cap_kind.clone())
                .with("limit", *limit)
                .with("observed", *observed);
            let node = cap_kind != "envelopes";
            let breached =
                Consequence::CapBreached { kind: cap_kind.clone(), limit: *limit, observed: *observed, node };
            vec![breached, Consequence::NodeFailed(fault)]
        }
    }
}

fn accepted(kind: &str, payload: &Value) -> Vec<Consequence> {
    let log = |level, message: &str| Consequence::Log { level, message: message.to_owned(), data: payload.clone() };
    match kind {
        "clarification.request" => vec![Consequence::Clarify {
            questions: payload["questions"].clone(),
            context_type: payload["contextType"].as_str().map(str::to_owned),
        }],
        "schema.request" => vec![
            log(Level::Debug, "The model asked for a schema."),
            Consequence::TeachSchema { kind: payload["envelopeType"].as_str().unwrap_or_default().to_owned() },
        ],
        "schema.response" => vec![log(Level::Debug, "The model has a schema.")],
        "error" => vec![log(Level::Error, "The model says that it could not do it.")],
        _ => Vec::new(),
    }
}
