//! How much of what all tenants share one of them may use at once.

use crate::services::models::MODEL_CALLS;

/// What two cores evaluate all the time: a unit takes about ten nanoseconds.
const EVALUATION_UNITS: u64 = 200_000_000;
/// More than anybody means to have without having thought about it.
const STORED_BYTES: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// How many calls of one model provider are open at the same time. A tenant has no more than are still free.
    pub model_calls: usize,
    /// How many units of expressions a tenant may evaluate in a second, on average. `None` means that there is no limit.
    pub evaluation_units: Option<u64>,
    /// About how many bytes a tenant may have stored before nothing more is begun for it. `None` means no limit.
    pub stored_bytes: Option<u64>,
}

impl Default for WorkLimits {
    fn default() -> Self {
        let evaluation_units = Some(EVALUATION_UNITS);
        Self { model_calls: MODEL_CALLS, evaluation_units, stored_bytes: Some(STORED_BYTES) }
    }
}
