//! Calls of a branch that are not really made: answered from the source's record, else by the tool's stub.

use baton_engine::ToolCall;
use baton_model::event::AgentToolReturned;
use baton_model::tool::{ToolOutcome, ToolStatus};
use baton_model::{Digest, Event, RunId, code};
use baton_store::{RunRow, StoredRecord};

use crate::Error;
use crate::services::tools::service::ToolCalls;

const PAGE: usize = 500;

impl ToolCalls {
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

    /// What the same call came back with where this run's way was gone before: the first of them for the first time it is
    /// made here, the second for the second, and the last one from then on. A call that was open at the fork is the
    /// source's own. Where none was made from there on, it is what it came to the last time before.
    async fn recorded_outcome(&self, run: &RunId, call: &ToolCall) -> Result<Option<ToolOutcome>, Error> {
        let Some(row) = self.store.run(run).await? else { return Ok(None) };
        let past = self.past(&row).await?;
        let mut last = None;
        for before in &past.same {
            let own = self.same_calls(&row, before.from, call).await?;
            if !own.iter().any(|found| found.call_id == call.call_id) {
                match self.came_back(&before.row, before.from, &call.call_id).await? {
                    Some(outcome) => return Ok(Some(outcome)),
                    None => continue,
                }
            }
            let earlier = own.iter().filter(|found| found.call_id != call.call_id).count();
            let made = outcomes(self.same_calls(&before.row, before.from, call).await?);
            if let Some(outcome) = made.get(earlier) {
                return Ok(Some(outcome.clone()));
            }
            last = last.or(made.last().cloned());
        }
        if last.is_some() {
            return Ok(last);
        }
        for before in &past.near {
            let made = outcomes(self.same_calls(&before.row, before.from, call).await?);
            if let Some(outcome) = made.last() {
                return Ok(Some(outcome.clone()));
            }
        }
        let mut own = self.same_calls(&row, 0, call).await?;
        own.retain(|found| found.call_id != call.call_id);
        Ok(outcomes(own).pop())
    }

    /// What this very call came back with, from one place of a log on.
    async fn came_back(&self, row: &RunRow, from: u64, call_id: &str) -> Result<Option<ToolOutcome>, Error> {
        let mut next = from;
        loop {
            let page = self.log_if_kept(row, next).await?;
            for stored in &page {
                match stored.decode(&row.id)?.event {
                    Event::AgentToolReturned(event) if event.call_id == call_id => {
                        return Ok(Some(outcome(event)).filter(is_recorded));
                    }
                    _ => {}
                }
            }
            next += page.len() as u64;
            if page.len() < PAGE {
                return Ok(None);
            }
        }
    }

    async fn log_if_kept(&self, row: &RunRow, from: u64) -> Result<Vec<StoredRecord>, Error> {
        match self.log.log(row, from, PAGE).await {
            Err(error) if error.code == code::RUN_PRUNED => Ok(Vec::new()),
            page => page,
        }
    }

    /// Calls of the same tool with the same arguments, from one place of a log on.
    async fn same_calls(&self, row: &RunRow, from: u64, call: &ToolCall) -> Result<Vec<Same>, Error> {
        let hash = Digest::of_json(&call.arguments);
        let mut found: Vec<Same> = Vec::new();
        let mut next = from;
        loop {
            let page = self.log_if_kept(row, next).await?;
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

fn outcomes(calls: Vec<Same>) -> Vec<ToolOutcome> {
    calls.into_iter().filter_map(|call| call.outcome).filter(is_recorded).collect()
}

/// That a branch had nothing to answer with is no answer.
fn is_recorded(outcome: &ToolOutcome) -> bool {
    outcome.error.as_ref().is_none_or(|error| error.code != code::EFFECT_NOT_SIMULATED)
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
