//! Looks at the disk at the moment somebody outside is called: whatever the call follows from must be there.

use std::sync::Arc;

use baton_model::tool::ToolRequest;
use baton_model::{Event, ModelRequest, RunId};
use baton_store::MemoryStore;
use baton_store::reads::*;
use parking_lot::Mutex;

#[derive(Default)]
pub struct Witness {
    disk: Mutex<Option<Arc<MemoryStore>>>,
    objections: Mutex<Vec<String>>,
    looked: Mutex<usize>,
}

impl Witness {
    /// From now on, looks here.
    pub fn watch(&self, disk: &Arc<MemoryStore>) {
        *self.disk.lock() = Some(Arc::clone(disk));
    }

    /// Panics if a call was made that should not have been.
    pub fn satisfied(&self, context: &str) {
        let objections = self.objections.lock();
        assert!(objections.is_empty(), "{context}: {objections:#?}");
    }

    /// How many calls it has seen.
    pub fn looked(&self) -> usize {
        *self.looked.lock()
    }

    async fn log(&self, run: &RunId) -> Option<Vec<Event>> {
        let disk = self.disk.lock().clone()?;
        *self.looked.lock() += 1;
        let records = disk.records(run, 0, usize::MAX).await.unwrap();
        Some(records.iter().map(|stored| stored.decode(run).unwrap().event).collect())
    }

    fn object(&self, why: String) {
        self.objections.lock().push(why);
    }

    /// A tool is called, `before` times already under this very key: each time with an intent of its own on disk.
    pub(super) async fn called(&self, request: &ToolRequest, before: usize) {
        let (run, call) = request.key.rsplit_once('/').unwrap();
        let Some(log) = self.log(&RunId::new(run)).await else { return };
        let intents = log.iter().filter(|event| match event {
            Event::AgentToolCalled(event) => event.call_id == call,
            Event::EffectRetried(event) => event.call_id == call && !event.verify,
            _ => false,
        });
        let intents = intents.count();
        if before >= intents {
            self.object(format!("{}: call {} with {intents} intents on disk", request.key, before + 1));
        }
        let over = |event: &Event| matches!(event, Event::AgentToolReturned(event) if event.call_id == call);
        if log.iter().any(over) {
            self.object(format!("{}: called though its end is on disk", request.key));
        }
    }

    /// A model is asked: the attempt it is asked in, and every answer before, is on disk.
    pub(super) async fn asked(&self, request: &ModelRequest) {
        if let [run, call, _] = request.key.split('/').collect::<Vec<_>>()[..] {
            return self.asked_by_step(run, call).await;
        }
        let mut parts = request.key.rsplitn(5, '/');
        let mut number = || parts.next().unwrap().parse::<u32>().unwrap();
        let (call, attempt, visit) = (number(), number(), number());
        let (node, run) = (parts.next().unwrap(), parts.next().unwrap());
        let Some(log) = self.log(&RunId::new(run)).await else { return };
        let started = log.iter().any(|event| {
            matches!(event, Event::NodeStarted(event)
                if event.node_id.as_str() == node && event.private.visit == visit && event.attempt == attempt)
        });
        let answers = log.iter().filter(|event| {
            // The key names the attempt that began; the others went on with it.
            matches!(event, Event::ProviderUsage(event) if event.node_id.as_str() == node
                && event.private.reply.is_some()
                && event.private.visit == visit && event.private.attempt >= attempt)
        });
        let answers = answers.count();
        if !started || answers != call as usize {
            self.object(format!("{}: started {started}, {answers} answers on disk", request.key));
        }
    }

    /// The program that has this call in hand asks: the call is on disk, and its end is not.
    async fn asked_by_step(&self, run: &str, call: &str) {
        let Some(log) = self.log(&RunId::new(run)).await else { return };
        let called = log.iter().any(|event| matches!(event, Event::AgentToolCalled(event) if event.call_id == call));
        let over = log.iter().any(|event| matches!(event, Event::AgentToolReturned(event) if event.call_id == call));
        if !called || over {
            self.object(format!("{run}/{call}: asks with called {called}, over {over} on disk"));
        }
    }
}
