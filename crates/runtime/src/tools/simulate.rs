//! Calls of a branch that are not really made: answered from the source's record, else by the tool's stub.

use baton_engine::ToolCall;
use baton_model::event::AgentToolReturned;
use baton_model::tool::{ToolOutcome, ToolStatus};
use baton_model::{Digest, Event, RunId, code};
use baton_store::RunRow;

use crate::Error;
use crate::inner::Inner;

const PAGE: usize = 500;

impl Inner {
    /// What a call comes back with that a branch only pretends to make.
    pub(super) async fn simulate(&self, run: &RunId, call: &ToolCall) -> Result<ToolOutcome, Error> {
        if let Some(outcome) = self.recorded_outcome(run, call).await? {
            return Ok(outcome);
        }
        if let Some(stub) = &call.tool.stub {
            return Ok(ToolOutcome::ok(stub.clone()));
        }
        let message = format!(
            "`{}` is only simulated in this branch, and neither its source nor a stub says what it would answer. \
             Fork with sideEffects \"real\" to really call it.",
            call.tool.id
        );
        Ok(ToolOutcome::failed(code::EFFECT_NOT_SIMULATED, message))
    }

    /// What the source's same call came back with: the first of them for the first time it is made here, the second for
    /// the second, and the last one from then on. A call that was open at the fork is the source's own.
    async fn recorded_outcome(&self, run: &RunId, call: &ToolCall) -> Result<Option<ToolOutcome>, Error> {
        let Some(row) = self.store.run(run).await? else { return Ok(None) };
        let Some(origin) = row.origin.clone() else { return Ok(None) };
        let Some(source) = self.store.run(&origin.source).await? else { return Ok(None) };
        let before = self.same_calls(&row, origin.seq, call).await?;
        if !before.iter().any(|found| found.call_id == call.call_id) {
            return self.came_back(&source, origin.seq, &call.call_id).await;
        }
        let earlier = before.iter().filter(|found| found.call_id != call.call_id).count();
        let made = self.same_calls(&source, origin.seq, call).await?;
        let outcomes: Vec<ToolOutcome> = made.into_iter().filter_map(|found| found.outcome).collect();
        Ok(outcomes.get(earlier).or(outcomes.last()).cloned())
    }

    /// What this very call came back with, from one place of a log on.
    async fn came_back(&self, row: &RunRow, from: u64, call_id: &str) -> Result<Option<ToolOutcome>, Error> {
        let mut next = from;
        loop {
            let page = self.log(row, next, PAGE).await?;
            for stored in &page {
                match stored.decode(&row.id)?.event {
                    Event::AgentToolReturned(event) if event.call_id == call_id => return Ok(Some(outcome(event))),
                    _ => {}
                }
            }
            next += page.len() as u64;
            if page.len() < PAGE {
                return Ok(None);
            }
        }
    }

    /// Calls of the same tool with the same arguments, from one place of a log on.
    async fn same_calls(&self, row: &RunRow, from: u64, call: &ToolCall) -> Result<Vec<Same>, Error> {
        let hash = Digest::of_json(&call.arguments);
        let mut found: Vec<Same> = Vec::new();
        let mut next = from;
        loop {
            let page = self.log(row, next, PAGE).await?;
            for stored in &page {
                match stored.decode(&row.id)?.event {
                    // By what was really asked: what is shown may be masked.
                    Event::AgentToolCalled(event) if event.tool_name == call.tool.id => {
                        let asked = event.private.asked.as_ref().map(|asked| Digest::of_json(&asked.arguments));
                        if asked.or(event.args_hash) == Some(hash.clone()) {
                            found.push(Same { call_id: event.call_id, outcome: None });
                        }
                    }
                    Event::AgentToolReturned(event) => {
                        if let Some(same) = found.iter_mut().find(|same| same.call_id == event.call_id) {
                            same.outcome = Some(outcome(event));
                        }
                    }
                    _ => {}
                }
            }
            next += page.len() as u64;
            if page.len() < PAGE {
                return Ok(found);
            }
        }
    }
}

struct Same {
    call_id: String,
    outcome: Option<ToolOutcome>,
}

fn outcome(event: AgentToolReturned) -> ToolOutcome {
    match event.private.hidden {
        Some(hidden) => *hidden,
        None => ToolOutcome {
            status: event.status.unwrap_or(ToolStatus::Ok),
            value: event.outcome.unwrap_or_default(),
            error: event.error,
            // It took no time here.
            duration_ms: None,
        },
    }
}
