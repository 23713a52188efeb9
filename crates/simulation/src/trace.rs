//! What was done to a simulation, to read after a failure and to compare between two runs of one seed.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::time::SimTime;

#[derive(Clone, Debug)]
pub(crate) struct Trace {
    time: Arc<SimTime>,
    lines: Arc<Mutex<Vec<String>>>,
    /// Tells at once, for a seed that does not end.
    loud: bool,
}

impl Trace {
    pub(crate) fn new(time: Arc<SimTime>) -> Self {
        Self { time, lines: Arc::default(), loud: std::env::var_os("BATON_SEED_LOUD").is_some() }
    }

    pub(crate) fn add(&self, line: impl AsRef<str>) {
        let ms = self.time.elapsed_ms();
        let line = format!("{:>6}.{:03} {}", ms / 1000, ms % 1000, line.as_ref());
        if self.loud {
            eprintln!("{line}");
        }
        self.lines.lock().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}
