//! Where a branch begins. A step is decided as a whole, and children run ahead of what their parent has heard of them:
//! half a decision, or a worker that is done again while what it wrote is there already, is nobody's past. So a branch
//! begins with the last step at or before the point that is asked for at which no child is under way.

use std::collections::HashSet;

use baton_model::RunId;
use baton_store::RunRow;

use crate::Error;
use crate::history::fork::service::Forks;
use crate::history::log::is_rest;
use crate::services::workflows::Whose;

/// Steps are short.
const PAGE: u64 = 100;

/// Where a fork begins.
#[derive(Default)]
pub(super) struct Point {
    pub(super) seq: u64,
    /// The children that its source had had by then.
    pub(super) begun: HashSet<RunId>,
}

impl Forks {
    pub(super) async fn branch_point(&self, source: &RunRow, asked: u64) -> Result<Point, Error> {
        if asked == 0 {
            return Ok(Point::default());
        }
        let plan = self.plan_loader.plan(Whose::Tenant(&source.tenant), &source.digest).await?;
        let (seq, begun) = if plan.has_children() {
            // Whether one is under way only the log before it can tell.
            self.log.last_alone(source, asked).await?
        } else {
            (self.step_at(source, asked).await?, HashSet::new())
        };
        // What is left of what was asked for may be an older run's to keep.
        self.log.check_kept(source, seq, asked).await?;
        Ok(Point { seq, begun })
    }

    /// The beginning of the step that this record belongs to.
    async fn step_at(&self, source: &RunRow, seq: u64) -> Result<u64, Error> {
        let mut last = seq;
        loop {
            let from = last.saturating_sub(PAGE - 1);
            let page = self.log.log(source, from, usize::try_from(last - from + 1).unwrap_or(usize::MAX)).await?;
            if page.last().is_none_or(|record| record.seq < seq) && last == seq {
                // Nothing is there yet. Steps are committed as a whole, so what comes next begins one.
                return Ok(seq);
            }
            if let Some(first) = page.iter().rfind(|record| !is_rest(record)) {
                return Ok(first.seq);
            }
            if from == 0 {
                return Ok(0);
            }
            last = from - 1;
        }
    }
}
