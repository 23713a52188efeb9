//! Waiting.

use baton_model::{Fault, code};

use super::outcome::Outcome;
use crate::eval_context::EvalContext;
use crate::plan::{Delay, LONGEST_DELAY_MS};

impl Delay {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        let asked = match (self.ms, context.inputs.get("delayMs")) {
            (Some(ms), _) => Some(ms),
            (None, None) => Some(0),
            (None, Some(value)) => {
                value.as_f64().filter(|n| *n >= 0.0 && *n <= LONGEST_DELAY_MS as f64).map(|n| n as u64)
            }
        };
        match asked {
            Some(ms) => Outcome::Sleep { ms },
            None => Outcome::Failed(Fault::new(
                code::VALIDATION_ERROR,
                format!("`delayMs` is a number of milliseconds from 0 to {LONGEST_DELAY_MS}."),
            )),
        }
    }
}
