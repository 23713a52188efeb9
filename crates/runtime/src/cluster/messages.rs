//! What hosts write to each other.

use baton_engine::{Actor, Command, Returned, StepAsked};
use baton_model::event::DrainPolicy;
use baton_model::{Digest, NodeId, RunStatus, Timestamp, ToolOutcome, code};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, ErrorKind};

/// A command that callers give, on its way to the host that drives the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "camelCase")]
pub(super) enum ForwardedBody {
    Resolve {
        node: NodeId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupt: Option<String>,
        value: Value,
        subject: Option<String>,
    },
    Cancel {
        reason: Option<String>,
        by: Option<String>,
    },
    Pause {
        reason: Option<String>,
        drain: DrainPolicy,
    },
    Resume {
        reason: Option<String>,
    },
    /// What a runner says came of a call.
    ToolReturned {
        node: NodeId,
        call: String,
        outcome: ToolOutcome,
    },
    /// The program that has a step in hand has asked a model.
    StepAsked {
        node: NodeId,
        call: String,
        asked: Box<StepAsked>,
    },
    /// The program that has a step in hand keeps a value.
    StepKept {
        node: NodeId,
        call: String,
        key: String,
        value: Value,
    },
}

impl ForwardedBody {
    /// `None` for what no caller says.
    pub(super) fn of(command: &Command) -> Option<Self> {
        Some(match command.clone() {
            Command::Resolve { node, interrupt, value, actor: Actor { subject } } => {
                Self::Resolve { node, interrupt, value, subject }
            }
            Command::Cancel { reason, by, parent: None } => Self::Cancel { reason, by },
            Command::Pause { reason, drain } => Self::Pause { reason, drain },
            Command::Resume { reason } => Self::Resume { reason },
            Command::ToolReturned { node, call_id, returned: Returned::Outcome { outcome, written } }
                if written.is_empty() =>
            {
                Self::ToolReturned { node, call: call_id, outcome }
            }
            Command::StepAsked { node, call_id, asked } => Self::StepAsked { node, call: call_id, asked },
            Command::StepKept { node, call_id, key, value } => Self::StepKept { node, call: call_id, key, value },
            _ => return None,
        })
    }

    pub(super) fn command(self) -> Command {
        match self {
            Self::Resolve { node, interrupt, value, subject } => {
                Command::Resolve { node, interrupt, value, actor: Actor { subject } }
            }
            Self::Cancel { reason, by } => Command::Cancel { reason, by, parent: None },
            Self::Pause { reason, drain } => Command::Pause { reason, drain },
            Self::Resume { reason } => Command::Resume { reason },
            Self::ToolReturned { node, call, outcome } => {
                let returned = Returned::Outcome { outcome, written: Vec::new() };
                Command::ToolReturned { node, call_id: call, returned }
            }
            Self::StepAsked { node, call, asked } => Command::StepAsked { node, call_id: call, asked },
            Self::StepKept { node, call, key, value } => Command::StepKept { node, call_id: call, key, value },
        }
    }
}

/// What one host wants of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "camelCase")]
pub(super) enum PeerRequest {
    /// Let this claim on a versioned store go.
    LetGo { tenant: String, kind: String, scope: String },
    /// Give away as many trees, to this session.
    Share { trees: usize, to: u64 },
    /// Read the webhook subscriptions again.
    Subscriptions,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    Done { status: RunStatus, at: i64 },
    Refused { kind: String, code: String, message: String, details: Map<String, Value> },
}

impl Outcome {
    pub(super) fn done(status: RunStatus, at: Timestamp) -> Self {
        Self::Done { status, at: at.as_micros() }
    }

    pub(super) fn refused(error: &Error) -> Self {
        Self::Refused {
            kind: error.kind.as_str().to_owned(),
            code: error.code.to_owned(),
            message: error.message.clone(),
            details: error.details.clone(),
        }
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether an answer holds for whoever asks again with the same key. What can be mended or may pass does not: the
    /// next request under that key is a new one.
    pub(super) fn stands(text: &str) -> bool {
        match serde_json::from_str(text) {
            Ok(Self::Done { .. }) => true,
            Ok(Self::Refused { kind, .. }) => match ErrorKind::named(&kind) {
                ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Gone | ErrorKind::Unprocessable => true,
                ErrorKind::Invalid
                | ErrorKind::Forbidden
                | ErrorKind::TooLarge
                | ErrorKind::TooMany
                | ErrorKind::Unavailable
                | ErrorKind::Internal => false,
            },
            Err(_) => false,
        }
    }

    /// What the host that drives the run said, in its words.
    pub(super) fn read(text: &str) -> Result<(RunStatus, Timestamp), Error> {
        match serde_json::from_str(text) {
            Ok(Self::Done { status, at }) => Ok((status, Timestamp::from_micros(at))),
            Ok(Self::Refused { kind, code, message, details }) => Err(Error {
                details,
                ..Error::new(ErrorKind::named(&kind), code::known(&code).unwrap_or(code::INTERNAL_ERROR), message)
            }),
            Err(error) => {
                let message = "Another host's answer does not read. Do all hosts run the same version?";
                Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, message).because(error))
            }
        }
    }
}

/// The name of the message for a keyed request.
pub(super) fn keyed(key: &Digest) -> String {
    format!("{KEYED}{}", key.as_str())
}

const KEYED: &str = "key:";

/// The key of the request that a message of this name is about, if it has one.
pub fn key_of_forwarded(id: &str) -> Option<Digest> {
    id.strip_prefix(KEYED).and_then(Digest::parse)
}

/// Whether a message to a run matters to whoever moves a store elsewhere while nobody uses it: nobody has done what it
/// says, or it holds an answer that whoever asks again with its key should get.
pub fn forwarded_matters(id: &str, answer: Option<&str>) -> bool {
    answer.is_none_or(|answer| key_of_forwarded(id).is_some() && Outcome::stands(answer))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let at = Timestamp::from_millis(5);
        assert_eq!(Outcome::read(&Outcome::done(RunStatus::Paused, at).write()).unwrap(), (RunStatus::Paused, at));
        let refused = Error::new(ErrorKind::Gone, code::INTERRUPT_GONE, "Too late.").with("at", 3);
        let read = Outcome::read(&Outcome::refused(&refused).write()).unwrap_err();
        assert_eq!((read.kind, read.code, read.message), (refused.kind, refused.code, refused.message));
        assert_eq!(read.details, refused.details);
        for kind in ErrorKind::ALL {
            let told = Outcome::refused(&Error::new(kind, code::RATE_LIMITED, "No.")).write();
            let read = Outcome::read(&told).unwrap_err();
            assert_eq!((read.kind, read.code), (kind, code::RATE_LIMITED), "{told}");
        }
        for (kind, stands) in [
            (ErrorKind::Gone, true),
            (ErrorKind::Conflict, true),
            (ErrorKind::Invalid, false),
            (ErrorKind::Forbidden, false),
        ] {
            let refused = Error::new(kind, code::VALIDATION_ERROR, "No.");
            assert_eq!(Outcome::stands(&Outcome::refused(&refused).write()), stands, "{kind:?}");
        }
        let done = Outcome::done(RunStatus::Paused, at).write();
        assert!(Outcome::stands(&done) && !Outcome::stands("?"));
        let key = Digest::of_bytes("key");
        let matters = |id: &str| [Some(done.as_str()), Some("?"), None].map(|answer| forwarded_matters(id, answer));
        assert_eq!((matters(&keyed(&key)), matters("ask:1:x")), ([true, false, true], [false, false, true]));
        assert_eq!((key_of_forwarded(&keyed(&key)), key_of_forwarded("ask:1:x")), (Some(key), None));
        for order in [
            ForwardedBody::Resolve {
                node: NodeId::new("gate"),
                interrupt: Some("int:gate:1".to_owned()),
                value: Value::Null,
                subject: Some("me".to_owned()),
            },
            ForwardedBody::Cancel { reason: None, by: Some("me".to_owned()) },
            ForwardedBody::Pause { reason: Some("why".to_owned()), drain: DrainPolicy::Immediate },
            ForwardedBody::Resume { reason: None },
            ForwardedBody::ToolReturned {
                node: NodeId::new("agent"),
                call: "c".to_owned(),
                outcome: ToolOutcome::ok(Value::from(1)),
            },
        ] {
            let text = serde_json::to_string(&order).unwrap();
            let back: ForwardedBody = serde_json::from_str(&text).unwrap();
            assert_eq!(ForwardedBody::of(&back.command()), Some(order));
        }
        assert_eq!(ForwardedBody::of(&Command::Advance), None);
        // As hosts of the version before wrote it.
        let older = r#"{"order":"resolve","node":"gate","value":1,"subject":null}"#;
        let read: ForwardedBody = serde_json::from_str(older).unwrap();
        assert!(matches!(read, ForwardedBody::Resolve { interrupt: None, .. }), "{read:?}");
    }
}
