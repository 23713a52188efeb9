use baton_model::{Fault, code};

use super::Outcome;
use super::config::Config;
use crate::eval_context::EvalContext;
use crate::plan::Problem;

/// The longest a delay may be asked for: a year.
const MOST_MS: u64 = 31_536_000_000;

/// `core.delay`: waits, without a thread or memory of its own.
#[derive(Debug)]
pub(crate) struct Delay {
    ms: Option<u64>,
}

impl Delay {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["ms", "durationMs", "delayMs"])?;
        let mut ms = None;
        for key in ["ms", "durationMs", "delayMs"] {
            ms = ms.or(config.whole(key, 0, MOST_MS)?);
        }
        Ok(Self { ms })
    }

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        let asked = match (self.ms, scene.inputs.get("delayMs")) {
            (Some(ms), _) => Some(ms),
            (None, None) => Some(0),
            (None, Some(value)) => value.as_f64().filter(|n| *n >= 0.0 && *n <= MOST_MS as f64).map(|n| n as u64),
        };
        match asked {
            Some(ms) => Outcome::Sleep { ms },
            None => Outcome::Failed(Fault::new(
                code::VALIDATION_ERROR,
                format!("`delayMs` is a number of milliseconds from 0 to {MOST_MS}."),
            )),
        }
    }
}
