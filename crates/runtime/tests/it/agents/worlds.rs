//! What tests of agents do with a world besides.

use std::sync::Arc;

use baton_model::{Event, Record, RunId, RunStatus, code};
use baton_runtime::{Clock, ErrorKind, Host, Options};
use baton_store::{InterruptRow, MemoryStore};
use baton_testkit::SeededIds;
use serde_json::{Value, json};

use super::agent_audit::Audit;
use crate::common::{World, go_on, in_time, tenant};

/// The question about a call that nobody heard of again.
pub const UNKNOWN: &str = "x-host-baton-effect-unknown";

/// Answers questions about lost calls this way, and all others so that the run goes on.
type Says = fn(&InterruptRow) -> Value;

pub fn call_again(question: &InterruptRow) -> Value {
    said(question, json!({"action": "retry"}))
}

pub fn was_done(question: &InterruptRow) -> Value {
    said(question, json!({"action": "done", "result": {"did": "a human says"}}))
}

pub fn it_failed(question: &InterruptRow) -> Value {
    said(question, json!({"action": "fail"}))
}

fn said(question: &InterruptRow, about_a_call: Value) -> Value {
    if question.kind == UNKNOWN { about_a_call } else { go_on(question) }
}

/// What a log says about the calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub announced: usize,
    pub unknown: usize,
    pub again: usize,
    pub returned: usize,
    /// Questions about lost calls that were answered, of all tools.
    pub answered: usize,
}

impl World {
    /// The next process, whose names are others, with what it is given.
    pub async fn next(self, life: u64, options: Options) -> Self {
        let clock = Arc::clone(&self.clock);
        let store = Arc::new(MemoryStore::from_disk(self.stop().await));
        let ids = Arc::new(SeededIds::new(1000 + life));
        let host = Host::open_with(Arc::clone(&store) as _, options, Arc::clone(&clock) as _, ids).await.unwrap();
        Self { host, reader: Arc::clone(&store) as _, store, clock }
    }

    /// The run's whole log, decoded.
    pub async fn records_of(&self, run: &RunId) -> Vec<Record> {
        let records = self.reader.records(run, 0, usize::MAX).await.unwrap();
        records.iter().map(|stored| stored.decode(run).unwrap()).collect()
    }

    pub async fn events_of(&self, run: &RunId) -> Vec<Event> {
        self.records_of(run).await.into_iter().map(|record| record.event).collect()
    }

    /// The names of a run's events that begin like this.
    pub async fn kinds_of(&self, run: &RunId, prefix: &str) -> Vec<String> {
        let events = self.events_of(run).await;
        let names = events.iter().map(Event::type_name).filter(|name| name.starts_with(prefix));
        names.map(str::to_owned).collect()
    }

    pub async fn calls_of(&self, run: &RunId, tool: &str) -> Calls {
        let mut calls = Calls::default();
        for event in self.events_of(run).await {
            match event {
                Event::AgentToolCalled(event) if event.tool_name == tool => calls.announced += 1,
                Event::EffectUnknown(event) if event.tool_name == tool => calls.unknown += 1,
                Event::EffectRetried(event) if event.tool_name == tool && !event.verify => calls.again += 1,
                Event::AgentToolReturned(event) if event.tool_name == tool => calls.returned += 1,
                Event::InterruptResolved(event) if event.kind == UNKNOWN => calls.answered += 1,
                _ => {}
            }
        }
        calls
    }

    /// What tools came back with, by the log: the tool, its status, and the code of its error.
    pub async fn outcomes_of(&self, run: &RunId) -> Vec<(String, Value, Option<String>)> {
        let events = self.events_of(run).await.into_iter();
        let outcomes = events.filter_map(|event| match event {
            Event::AgentToolReturned(event) => {
                Some((event.tool_name, json!(event.status), event.error.map(|error| error.code)))
            }
            _ => None,
        });
        outcomes.collect()
    }

    /// Answers what is asked and moves time until every run has ended; see [`World::drive`].
    pub async fn drive_saying(&self, says: Says) {
        for _ in 0..1000 {
            self.settle().await;
            let rows = self.rows().await;
            if !rows.is_empty() && rows.iter().all(|row| row.status.is_terminal()) {
                return;
            }
            if let Some(open) = self.open_interrupts().await.first() {
                self.resolve(&open.run, open.node.as_str(), says(open)).await.unwrap();
                continue;
            }
            let horizon = self.clock.now().plus_millis(24 * 60 * 60 * 1000);
            let due = rows.iter().filter_map(|row| row.wake_at).min().filter(|at| *at <= horizon);
            let due = due.unwrap_or_else(|| panic!("stuck: {rows:#?}"));
            self.clock.advance_to(due.max(self.clock.now().plus_millis(1)));
        }
        panic!("no end: {:#?}", self.rows().await);
    }

    /// The same on a disk that fails once: it heals, and what was not acknowledged is said again.
    pub async fn through_trouble(&self, workflow: &str, says: Says) -> RunId {
        let mut run = self.try_start(workflow).await.map(|started| started.run_id).ok();
        for _ in 0..1000 {
            self.settle().await;
            if !self.host.readiness().ready {
                self.store.heal();
                self.recovered().await;
            }
            match &run {
                None => run = self.try_start(workflow).await.map(|started| started.run_id).ok(),
                Some(run) if self.status(run).await.is_terminal() => return run.clone(),
                Some(_) => match self.open_interrupts().await.first() {
                    Some(open) => match self.resolve(&open.run, open.node.as_str(), says(open)).await {
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable, "{error}"),
                    },
                    // Small steps: what failed is tried again after a while.
                    None => self.clock.advance(500),
                },
            }
        }
        panic!("no end: {:#?}", self.rows().await);
    }

    /// The whole tree is sound: logs are legal, brackets and calls are closed once, and going through a log again
    /// comes to the same log.
    pub async fn audit_agents(&self, context: &str) {
        self.audit(context).await;
        self.audit_versioned_stores(context).await;
        for row in self.rows().await {
            if row.origin.is_some() || !row.status.is_terminal() {
                continue;
            }
            Audit::check(&self.records_of(&row.id).await);
            let verified = self.host.verify(&tenant(), &row.id).await.unwrap();
            assert!(verified.difference.is_none(), "{context}: {:?}", verified.difference);
        }
    }

    /// The run completed, and this is what its agent said.
    pub async fn completed_with(&self, run: &RunId, result: &Value, context: &str) {
        let view = self.ended(run).await;
        assert_eq!(view.status, RunStatus::Completed, "{context}: {:?}", view.error);
        assert_eq!(view.variables["result"], *result, "{context}");
    }

    /// Starts a run that is refused, and says how.
    pub async fn refusal_of(&self, request: baton_runtime::StartRun) -> baton_runtime::Error {
        let refused = self.host.start_run(&crate::common::who(), request, None).await.unwrap_err();
        assert_eq!((refused.kind, refused.code), (ErrorKind::Invalid, code::VALIDATION_ERROR), "{refused}");
        refused
    }
}
