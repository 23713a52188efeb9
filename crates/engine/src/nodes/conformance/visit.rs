//! Visits of nodes that only test workflows have.

use baton_model::{Fault, code};

use super::chunks::chunks;
use super::kind::TestKind;
use crate::eval_context::EvalContext;
use crate::node_request::{Found, Request};
use crate::nodes::outcome::{Done, Outcome, wrong_answer};

/// Runs a visit's first step.
pub(crate) fn run(kind: &TestKind, context: &EvalContext<'_>) -> Outcome {
    match kind {
        // A state machine of its own: see `mock_visit`.
        TestKind::MockAgent(_) => Outcome::Done(Done::default()),
        // It has asked before it starts.
        TestKind::Probe(_) => Outcome::Done(Done::default()),
        TestKind::StreamText => stream_text(context),
        TestKind::Missing { .. } => kind.missing().map_or_else(|| Outcome::Done(Done::default()), Outcome::Failed),
    }
}

/// What it asks the shell.
pub(crate) fn request(kind: &TestKind) -> Result<Request, Fault> {
    match kind {
        TestKind::Probe(probe) => Ok(Request::Probe(probe.clone())),
        TestKind::MockAgent(_) | TestKind::StreamText | TestKind::Missing { .. } => Err(wrong_answer()),
    }
}

/// What it makes of the answer.
pub(crate) fn finish(kind: &TestKind, found: Found) -> Result<Done, Fault> {
    match (kind, found) {
        (TestKind::Probe(_), Found::Variables(variables)) => {
            Ok(Done { outputs: variables.clone(), variables: variables.into_iter().collect(), ..Done::default() })
        }
        _ => Err(wrong_answer()),
    }
}

fn stream_text(context: &EvalContext<'_>) -> Outcome {
    match chunks(context.state.configurable().get("mockProvider")) {
        Some(chunks) => Outcome::Stream(chunks),
        None => Outcome::Failed(Fault::new(
            code::CAPABILITY_NOT_PROVIDED,
            "No model provider is configured: this node needs `configurable.mockProvider`.",
        )),
    }
}
