//! Of one log.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::{Event, NodeId, RunId};
use baton_store::RunRow;

use crate::disk::Observer;

pub(crate) fn check(disk: &Observer, row: &RunRow, found: &mut Vec<String>) {
    let run = &row.id;
    let mut object = |what: &str, why: String| found.push(format!("{what}: {} {run}: {why}", row.workflow));
    let records = disk.decoded(run);
    // A fork's log begins where it leaves its source; a pruned one has no records.
    let first = row.origin.as_ref().map_or(0, |origin| origin.seq);
    if row.pruned.is_some_and(|pruned| pruned.log) {
        return;
    }
    if !records.iter().map(|record| record.seq).eq(first..row.next_seq) {
        let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
        object("sequences have no gap", format!("{first}..{} but {seqs:?}", row.next_seq));
    }
    let mut terminal = Vec::new();
    let mut visits: BTreeMap<NodeId, u32> = BTreeMap::new();
    let mut started: BTreeSet<(NodeId, u32, u32)> = BTreeSet::new();
    let mut completed: BTreeSet<(NodeId, u32)> = BTreeSet::new();
    let mut children: BTreeSet<RunId> = BTreeSet::new();
    let mut planned: BTreeSet<RunId> = BTreeSet::new();
    let mut resolved: BTreeSet<String> = BTreeSet::new();
    let mut turn = None;
    for record in &records {
        match &record.event {
            Event::NodeStarted(event) => {
                visits.insert(event.node_id.clone(), event.private.visit);
                if !started.insert((event.node_id.clone(), event.private.visit, event.attempt)) {
                    object("no node completes twice", format!("{} was started twice", event.node_id));
                }
            }
            Event::NodeCompleted(event) => {
                // What a branch inherits was started in its source.
                if let Some(visit) = visits.get(&event.node_id)
                    && !completed.insert((event.node_id.clone(), *visit))
                {
                    object("no node completes twice", format!("{} visit {visit}", event.node_id));
                }
            }
            Event::NodeDispatched(event) if !children.insert(event.child_run_id.clone()) => {
                object("children are created once", format!("{} twice", event.child_run_id));
            }
            Event::ChainEvent(event) => {
                if let Some(child) = &event.private.child
                    && !planned.insert(child.run.clone())
                {
                    object("children are created once", format!("{} was named twice", child.run));
                }
            }
            Event::InterruptResolved(event) if !resolved.insert(event.interrupt_id.clone()) => {
                object("an answer counts once", format!("{} twice", event.interrupt_id));
            }
            Event::OrchestratorDecided(event) => {
                if turn.is_some_and(|turn| event.iteration != turn + 1) {
                    object("turns count 1..n", format!("{} after {turn:?}", event.iteration));
                }
                turn = Some(event.iteration);
            }
            Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_) => terminal.push(record.seq),
            _ => {}
        }
    }
    let last = row.next_seq.saturating_sub(1);
    let wanted = if row.status.is_terminal() { vec![last] } else { Vec::new() };
    if terminal != wanted {
        object("one terminal event, and it is last", format!("{} with terminal events at {terminal:?}", row.status));
    }
    let is_replay = records.is_empty() || row.origin.is_some();
    for child in children.iter().filter(|_| !is_replay) {
        match disk.run(child) {
            Some(below) if row.status.is_terminal() && !below.status.is_terminal() => {
                object("children end before their parent", format!("{child} is {}", below.status));
            }
            Some(_) => {}
            None => object("children are created once", format!("{child} was never made")),
        }
    }
}
