use std::time::Duration;

/// How long a body may take to arrive, all of it and its next piece: a caller that sends a byte a minute must not hold a
/// place for long.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub whole: Duration,
    pub next: Duration,
}
