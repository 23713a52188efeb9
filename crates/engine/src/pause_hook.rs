//! A place in long computations where whoever runs them may let others go first. It is told nothing and changes nothing:
//! a run decides the same whether or not anybody listens, and however long they take.

use std::sync::OnceLock;

static PAUSE: OnceLock<fn()> = OnceLock::new();
static USED: OnceLock<fn(u64)> = OnceLock::new();

/// Has this called now and then while expressions are evaluated, on the thread that evaluates them. Once per process;
/// whoever comes second is not heard.
pub fn on_pause(pause: fn()) {
    let _ = PAUSE.set(pause);
}

pub(crate) fn breather() {
    if let Some(pause) = PAUSE.get() {
        pause();
    }
}

/// Is told how many units an evaluation used, on the thread that evaluated, after each one. Once per process, like
/// [`on_pause`].
pub fn on_use(used: fn(u64)) {
    let _ = USED.set(used);
}

pub(crate) fn used(units: u64) {
    if let Some(told) = USED.get() {
        told(units);
    }
}
