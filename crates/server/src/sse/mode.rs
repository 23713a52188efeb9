//! Stream modes: the table of who sees what.

use axum::http::StatusCode;
use baton_model::code;
use std::time::Duration;

use crate::error::ApiError;
use crate::query::Params;

const NAMES: [&str; 4] = ["values", "updates", "messages", "debug"];
const MAX_BUFFER_MS: u64 = 5000;

/// The union of the modes a reader asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    values: bool,
    updates: bool,
    messages: bool,
    debug: bool,
}

/// How one event is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The RunEvent itself.
    Event,
    /// The bare payload, as `ai.message.chunk`.
    Chunk,
}

impl Modes {
    /// `updates` when nothing was asked for.
    pub(crate) fn from_query(params: &Params) -> Result<Self, ApiError> {
        match params.one("streamMode")? {
            None => Ok(Self { updates: true, ..Self::default() }),
            Some(text) => Self::parse(text),
        }
    }

    fn parse(text: &str) -> Result<Self, ApiError> {
        let mut modes = Self::default();
        let mut count = 0;
        for name in text.split(',').map(str::trim) {
            count += 1;
            match name {
                "values" => modes.values = true,
                "updates" => modes.updates = true,
                "messages" => modes.messages = true,
                "debug" => modes.debug = true,
                _ => return Err(unsupported(format!("There is no stream mode `{name}`."))),
            }
        }
        if modes.values && count > 1 {
            return Err(unsupported("The stream mode `values` cannot be combined with others.".to_owned()));
        }
        Ok(modes)
    }

    /// Whether whole states are wanted instead of events.
    pub(crate) fn wants_snapshots(self) -> bool {
        self.values
    }

    /// Whether a reader is told what is said about the run.
    pub(crate) fn wants_remarks(self) -> bool {
        self.updates || self.debug
    }

    pub(crate) fn shape(self, kind: &str) -> Option<Shape> {
        if self.debug || (self.updates && is_update(kind)) {
            Some(Shape::Event)
        } else if self.messages && kind == "output.chunk" {
            Some(Shape::Chunk)
        } else {
            None
        }
    }
}

/// Whether an event changes what a reader of states sees.
pub(crate) fn changes_state(kind: &str) -> bool {
    kind == "node.started" || (is_update(kind) && !is_versioned_write(kind))
}

fn is_update(kind: &str) -> bool {
    matches!(
        kind,
        "run.started"
            | "run.completed"
            | "run.failed"
            | "run.cancelled"
            | "run.paused"
            | "run.resumed"
            | "node.completed"
            | "node.failed"
            | "node.skipped"
            | "node.suspended"
            | "node.dispatched"
            | "approval.requested"
            | "approval.received"
            | "interrupt.requested"
            | "interrupt.resolved"
            | "artifact.created"
            | "run.annotated"
    ) || is_versioned_write(kind)
        || ["clarification.", "eval.", "deployment."].iter().any(|family| kind.starts_with(family))
}

/// Memory and files changed. What the run itself looks like did not.
fn is_versioned_write(kind: &str) -> bool {
    matches!(kind, "memory.written" | "baton.memory.deleted" | "workspace.updated")
}

/// Events a buffering reader gets at once: the end of the run, and the moment it starts to wait.
pub(crate) fn flushes(kind: &str) -> bool {
    matches!(kind, "run.completed" | "run.failed" | "run.cancelled" | "node.suspended")
}

/// `bufferMs`; `None` when events are to be sent one by one.
pub(crate) fn buffer_ms(params: &Params) -> Result<Option<Duration>, ApiError> {
    let millis = params.int("bufferMs", 0..=MAX_BUFFER_MS)?.unwrap_or(0);
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}

fn unsupported(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, code::UNSUPPORTED_STREAM_MODE, message).with("supported", NAMES.to_vec())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn modes(query: &str) -> Result<Modes, ApiError> {
        Modes::from_query(&Params::parse(query))
    }

    #[test]
    fn updates_is_the_default_and_lists_are_unions() {
        assert_eq!(modes("").unwrap(), modes("streamMode=updates").unwrap());
        let both = modes("streamMode=updates,%20messages").unwrap();
        assert_eq!(both.shape("run.started"), Some(Shape::Event));
        assert_eq!(both.shape("output.chunk"), Some(Shape::Chunk));
        assert!(modes("streamMode=values").unwrap().wants_snapshots());
    }

    #[test]
    fn one_bad_name_fails_the_list_and_values_stands_alone() {
        for query in ["nope", "updates,nope", "", "updates,", "values,updates", "values,values", "Updates"] {
            let error = modes(&format!("streamMode={query}")).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "unsupported_stream_mode"), "{query}");
            assert_eq!(error.details["supported"].as_array().unwrap().len(), 4);
        }
    }

    #[test]
    fn the_filter_table() {
        let of = |name: &str| modes(&format!("streamMode={name}")).unwrap();
        let rows = [
            ("run.started", true, true),
            ("run.cancelled", true, true),
            ("run.paused", true, true),
            ("node.started", false, true),
            ("node.completed", true, true),
            ("node.suspended", true, true),
            ("node.resumed", false, false),
            ("node.cancelled", false, false),
            ("node.retried", false, false),
            ("clarification.resolved", true, true),
            ("interrupt.requested", true, true),
            ("memory.written", true, false),
            ("baton.memory.deleted", true, false),
            ("workspace.updated", true, false),
            ("variable.changed", false, false),
            ("channel.written", false, false),
            ("baton.run.ending", false, false),
            ("replay.diverged", false, false),
            ("budget.consumed", false, false),
            ("budget.exhausted", false, false),
            ("output.chunk", false, false),
            // How an agent came to what it did is for whoever looks into a run; what came of it is its node's event.
            ("agent.invocation.started", false, false),
            ("agent.reasoned", false, false),
            ("agent.reasoning.delta", false, false),
            ("agent.toolCalled", false, false),
            ("agent.decided", false, false),
            ("prompt.composed", false, false),
            ("provider.usage", false, false),
            ("envelope.retry.attempted", false, false),
            ("baton.effect.unknown", false, false),
        ];
        for (kind, updates, state) in rows {
            assert_eq!(of("updates").shape(kind).is_some(), updates, "{kind}");
            assert_eq!(changes_state(kind), state, "{kind}");
            assert_eq!(of("debug").shape(kind), Some(Shape::Event), "{kind}");
            assert_eq!(of("messages").shape(kind), (kind == "output.chunk").then_some(Shape::Chunk), "{kind}");
        }
        assert_eq!(of("debug,messages").shape("output.chunk"), Some(Shape::Event), "sent once");
    }

    #[test]
    fn buffering_is_bounded() {
        let of = |query: &str| buffer_ms(&Params::parse(query));
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("bufferMs=0").unwrap(), None);
        assert_eq!(of("bufferMs=5000").unwrap(), Some(Duration::from_secs(5)));
        for bad in ["5001", "-1", "1.5", "x", ""] {
            let error = of(&format!("bufferMs={bad}")).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "validation_error"), "{bad}");
        }
    }
}
