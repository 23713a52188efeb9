//! How far the calls are that the program has, as it says.

use std::collections::HashMap;
use std::sync::Arc;

use baton_client::{DispatchFrame, StepReport, StepReportState};
use baton_tool::mcp::{Followed, McpServer};

/// What the program says of each call, and which of it the host has not heard.
#[derive(Default)]
pub(super) struct Progress {
    calls: HashMap<(String, String), (u64, Followed)>,
}

impl Progress {
    /// From here on, what the program says of this call counts.
    pub(super) fn follow(&mut self, server: &Arc<McpServer>, frame: &DispatchFrame) {
        let followed = server.follow(&key(&frame.run_id, &frame.step_id));
        self.calls.insert((frame.run_id.clone(), frame.step_id.clone()), (frame.seq, followed));
    }

    pub(super) fn forget(&mut self, run: &str, step: &str) {
        self.calls.remove(&(run.to_owned(), step.to_owned()));
    }

    pub(super) fn is_any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// What is new since this was asked last: of each call the last word.
    pub(super) fn news(&mut self) -> Vec<StepReport> {
        let report = |((run, step), (seq, followed)): (&(String, String), &mut (u64, Followed))| {
            let said = followed.news()?;
            Some(StepReport {
                run_id: run.clone(),
                step_id: step.clone(),
                seq: *seq,
                state: StepReportState::Progress,
                progress: Some(said.progress),
                total: said.total,
                message: said.message,
                reason: None,
            })
        };
        self.calls.iter_mut().filter_map(report).collect()
    }
}

/// By what a call is known to the program.
pub(super) fn key(run: &str, step: &str) -> String {
    format!("{run}/{step}")
}
