//! How long a call may take, and how much may come back.

use std::time::Duration;

/// Limits on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallLimits {
    pub(crate) connect: Duration,
    /// From the first attempt to the last byte, where a request does not say.
    pub(crate) whole: Duration,
    /// From one piece of an answer to the next.
    pub(crate) idle: Duration,
    pub(crate) whole_bytes: usize,
    /// A stream spends many bytes on every word.
    pub(crate) stream_bytes: usize,
}
