//! What hosts write to each other.

use baton_engine::{Actor, Command};
use baton_model::event::DrainPolicy;
use baton_model::{NodeId, RunStatus, Timestamp, code};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, Kind};

/// A command that callers give, on its way to the host that drives the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "camelCase")]
pub(super) enum Order {
    Resolve { node: NodeId, value: Value, subject: Option<String> },
    Cancel { reason: Option<String>, by: Option<String> },
    Pause { reason: Option<String>, drain: DrainPolicy },
    Resume { reason: Option<String> },
}

impl Order {
    /// `None` for what no caller says.
    pub(super) fn of(command: &Command) -> Option<Self> {
        Some(match command.clone() {
            Command::Resolve { node, value, actor: Actor { subject } } => Self::Resolve { node, value, subject },
            Command::Cancel { reason, by, parent: None } => Self::Cancel { reason, by },
            Command::Pause { reason, drain } => Self::Pause { reason, drain },
            Command::Resume { reason } => Self::Resume { reason },
            _ => return None,
        })
    }

    pub(super) fn command(self) -> Command {
        match self {
            Self::Resolve { node, value, subject } => Command::Resolve { node, value, actor: Actor { subject } },
            Self::Cancel { reason, by } => Command::Cancel { reason, by, parent: None },
            Self::Pause { reason, drain } => Command::Pause { reason, drain },
            Self::Resume { reason } => Command::Resume { reason },
        }
    }
}

/// What one host wants of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "camelCase")]
pub(super) enum Request {
    /// Let this claim on a ledger go.
    LetGo { tenant: String, kind: String, scope: String },
    /// Give away as many trees, to this session.
    Share { trees: usize, to: u64 },
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
            kind: format!("{:?}", error.kind),
            code: error.code.to_owned(),
            message: error.message.clone(),
            details: error.details.clone(),
        }
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What the host that drives the run said, in its words.
    pub(super) fn read(text: &str) -> Result<(RunStatus, Timestamp), Error> {
        match serde_json::from_str(text) {
            Ok(Self::Done { status, at }) => Ok((status, Timestamp::from_micros(at))),
            Ok(Self::Refused { kind, code, message, details }) => {
                Err(Error { details, ..Error::new(kind_named(&kind), known_code(&code), message) })
            }
            Err(error) => {
                let message = "Another host's answer does not read. Do all hosts run the same version?";
                Err(Error::new(Kind::Internal, code::INTERNAL_ERROR, message).because(error))
            }
        }
    }
}

fn kind_named(name: &str) -> Kind {
    use Kind::{Conflict, Forbidden, Gone, Internal, Invalid, NotFound, TooLarge, Unavailable, Unprocessable};
    [Invalid, Forbidden, NotFound, Conflict, Gone, TooLarge, Unprocessable, Unavailable]
        .into_iter()
        .find(|kind| format!("{kind:?}") == name)
        .unwrap_or(Internal)
}

/// Codes are constants; this gives one that came by letter its lifetime back.
fn known_code(text: &str) -> &'static str {
    [
        code::VALIDATION_ERROR,
        code::FORBIDDEN,
        code::INTERRUPT_NOT_FOUND,
        code::INTERRUPT_ALREADY_RESOLVED,
        code::INTERRUPT_CANCELLED,
        code::INTERRUPT_GONE,
        code::INTERRUPT_EXPIRED,
        code::RUN_CONFLICT,
        code::RUN_NOT_FOUND,
        code::RUN_PRUNED,
        code::SERVICE_UNAVAILABLE,
    ]
    .into_iter()
    .find(|code| *code == text)
    .unwrap_or(code::INTERNAL_ERROR)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let at = Timestamp::from_millis(5);
        assert_eq!(Outcome::read(&Outcome::done(RunStatus::Paused, at).write()).unwrap(), (RunStatus::Paused, at));
        let refused = Error::new(Kind::Gone, code::INTERRUPT_GONE, "Too late.").with("at", 3);
        let read = Outcome::read(&Outcome::refused(&refused).write()).unwrap_err();
        assert_eq!((read.kind, read.code, read.message), (refused.kind, refused.code, refused.message));
        assert_eq!(read.details, refused.details);
        for order in [
            Order::Resolve { node: NodeId::new("gate"), value: Value::Null, subject: Some("me".to_owned()) },
            Order::Cancel { reason: None, by: Some("me".to_owned()) },
            Order::Pause { reason: Some("why".to_owned()), drain: DrainPolicy::Immediate },
            Order::Resume { reason: None },
        ] {
            let text = serde_json::to_string(&order).unwrap();
            let back: Order = serde_json::from_str(&text).unwrap();
            assert_eq!(Order::of(&back.command()), Some(order));
        }
        assert_eq!(Order::of(&Command::Advance), None);
    }
}
