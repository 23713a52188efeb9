//! A disk that takes its time: until the test lets it go on.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::fault::{Op, Part};

/// A test that never comes to it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Gate {
    op: Op,
    part: Part,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    is_open: bool,
}

impl Gate {
    pub(crate) fn new(op: Op, part: Part) -> Self {
        Self { op, part, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(crate) fn holds(&self, op: Op, part: Part) -> bool {
        self.op == op && self.part == part && !self.state.lock().is_open
    }

    /// Waits until the test lets it pass.
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock();
        state.waiting += 1;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| !state.is_open);
        state.waiting -= 1;
    }
}

/// Operations that wait for the test. Dropped, they go on.
#[derive(Debug)]
pub struct Stall(pub(crate) Arc<Gate>);

impl Stall {
    /// Waits until an operation waits here. Blocks.
    pub fn reached(&self) {
        let mut state = self.0.state.lock();
        let late = self.0.changed.wait_while_for(&mut state, |state| state.waiting == 0, PATIENCE).timed_out();
        assert!(!late, "nothing came to {:?} of {:?}", self.0.op, self.0.part);
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.0.state.lock().is_open = true;
        self.0.changed.notify_all();
    }
}
