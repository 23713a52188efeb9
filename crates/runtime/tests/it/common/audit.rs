//! What must be true of every log, and what two runs of the same thing must agree on.

use std::collections::BTreeMap;

use baton_model::event::OrchestratorDecided;
use baton_model::{Event, NodeId, RunId};
use serde_json::{Value, json};

use super::World;

impl World {
    /// The public view of every run, without what may differ between two lives: instants, and how many records the
    /// way there took.
    pub async fn views(&self) -> BTreeMap<RunId, Value> {
        let mut views = BTreeMap::new();
        for row in self.rows().await {
            let snapshot = self.host.snapshot(&row.tenant, &row.id).await.unwrap();
            let mut view = json!(snapshot);
            view.as_object_mut().unwrap().remove("atSeq");
            if row.parent.is_some() {
                // How far its siblings had come when it began.
                view.as_object_mut().unwrap().remove("workspace");
            }
            forget_instants(&mut view);
            // The view shows where a loop has come to; how it came there must not differ either.
            view["decisions"] = json!(self.decisions(&row.id).await);
            views.insert(row.id, view);
        }
        views
    }

    /// A run's decisions, in the order they stand on its log.
    pub async fn decisions(&self, run: &RunId) -> Vec<OrchestratorDecided> {
        let mut decisions = Vec::new();
        for stored in self.reader.records(run, 0, usize::MAX).await.unwrap() {
            if let Event::OrchestratorDecided(event) = stored.decode(run).unwrap().event {
                decisions.push(event);
            }
        }
        decisions
    }

    /// Checks the log of every run: no gap, one terminal event and it is last, nothing done twice.
    pub async fn audit(&self, context: &str) {
        for row in self.rows().await {
            let context = format!("{context}, {} {}", row.workflow, row.id);
            let records = self.reader.records(&row.id, 0, usize::MAX).await.unwrap();
            assert_eq!(row.next_seq, records.len() as u64, "{context}: the row and its log");
            let mut terminal = Vec::new();
            let mut visits: BTreeMap<NodeId, u32> = BTreeMap::new();
            let mut started: BTreeMap<(NodeId, u32, u32), u32> = BTreeMap::new();
            let mut completed: BTreeMap<(NodeId, u32), u32> = BTreeMap::new();
            let mut dispatched: BTreeMap<RunId, u32> = BTreeMap::new();
            let mut planned: BTreeMap<RunId, u32> = BTreeMap::new();
            let (mut turns, mut elsewhere) = (Vec::new(), Vec::new());
            for (place, stored) in (0_u64..).zip(&records) {
                assert_eq!(stored.seq, place, "{context}: a gap");
                match stored.decode(&row.id).unwrap().event {
                    Event::NodeStarted(event) => {
                        visits.insert(event.node_id.clone(), event.private.visit);
                        *started.entry((event.node_id, event.private.visit, event.attempt)).or_default() += 1;
                    }
                    Event::NodeCompleted(event) => {
                        let visit = visits[&event.node_id];
                        *completed.entry((event.node_id, visit)).or_default() += 1;
                    }
                    Event::NodeDispatched(event) => {
                        if event.private.remote.is_some() {
                            elsewhere.push(event.child_run_id.clone());
                        }
                        *dispatched.entry(event.child_run_id).or_default() += 1;
                    }
                    Event::OrchestratorDecided(event) => turns.push(event.iteration),
                    Event::ChainEvent(event) => {
                        if let Some(child) = event.private.child {
                            *planned.entry(child.run).or_default() += 1;
                        }
                    }
                    Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_) => terminal.push(place),
                    _ => {}
                }
            }
            assert!(started.values().all(|n| *n == 1), "{context}: a node was started twice: {started:?}");
            assert!(completed.values().all(|n| *n == 1), "{context}: a node was completed twice: {completed:?}");
            assert!(dispatched.values().all(|n| *n == 1), "{context}: a child was dispatched twice: {dispatched:?}");
            for child in dispatched.keys().filter(|child| !elsewhere.contains(child)) {
                assert!(self.reader.run(child).await.unwrap().is_some(), "{context}: {child} was never made");
            }
            assert!(planned.values().all(|n| *n == 1), "{context}: a worker was named twice: {planned:?}");
            assert!(turns.iter().copied().eq(1..=turns.len() as u64), "{context}: turns with a gap: {turns:?}");
            if row.status.is_terminal() {
                assert_eq!(terminal, [records.len() as u64 - 1], "{context}: one terminal event, last");
            } else {
                assert!(terminal.is_empty(), "{context}: ended, but the row says {}", row.status);
            }
        }
    }

    /// Every run has ended, every log is sound, and the runs look as they should.
    pub async fn audit_ended(&self, context: &str, expected: &BTreeMap<RunId, Value>) {
        self.audit(context).await;
        self.audit_versioned_stores(context).await;
        for row in self.rows().await {
            assert!(row.status.is_terminal(), "{context}: {} is {}", row.id, row.status);
            assert!(!row.busy && row.wake_at.is_none(), "{context}: {} still wants something", row.id);
        }
        assert!(self.open_interrupts().await.is_empty(), "{context}: a question stayed open");
        assert!(self.host.readiness().ready, "{context}: {:?}", self.host.readiness());
        let views = self.views().await;
        assert_eq!(views.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{context}: the runs made");
        for (run, view) in &views {
            assert_eq!(view, &expected[run], "{context}: the view of {run}");
        }
    }
}

/// Takes out every reading of a clock, also in what runs remember and write.
fn forget_instants(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for field in ["startedAt", "completedAt", "createdAt", "updatedAt", "expiresAt"] {
                map.remove(field);
            }
            map.values_mut().for_each(forget_instants);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_instants),
        _ => {}
    }
}
