//! Settings of a node that waits.

use super::config::Config;
use crate::plan::problem::Problem;

/// The longest a delay may be asked for: a year.
pub(crate) const LONGEST_DELAY_MS: u64 = 31_536_000_000;

/// `core.delay`: waits, without a thread or memory of its own.
#[derive(Debug)]
pub(crate) struct Delay {
    pub(crate) ms: Option<u64>,
}

impl Delay {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["ms", "durationMs", "delayMs"])?;
        let mut ms = None;
        for key in ["ms", "durationMs", "delayMs"] {
            ms = ms.or(config.whole(key, 0, LONGEST_DELAY_MS)?);
        }
        Ok(Self { ms })
    }
}
