//! The newest lines of the host's own log, for the operator who looks at a page and not at a terminal.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_model::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use utoipa::ToSchema;

const LINES: usize = 200;

/// One line. Whoever writes it cuts it to a bearable length.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogLine {
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub level: &'static str,
    pub target: String,
    pub message: String,
}

/// A ring of them. Cheap to clone; all clones are one ring.
#[derive(Clone, Debug, Default)]
pub struct LogTail(Arc<Mutex<VecDeque<LogLine>>>);

impl LogTail {
    pub fn push(&self, line: LogLine) {
        let mut lines = self.0.lock();
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Oldest first.
    pub fn lines(&self) -> Vec<LogLine> {
        self.0.lock().iter().cloned().collect()
    }
}
