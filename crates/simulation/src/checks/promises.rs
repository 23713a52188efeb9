//! Of what was acknowledged to clients.

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Event, RunStatus};
use baton_store::{Change, VersionedStoreId, VersionedStoreKind};

use crate::clients::Acknowledged;
use crate::disk::Observer;
use crate::workflows::tenants;

const KEPT: &str = "what was acknowledged is there after a crash";

pub(crate) fn check(disk: &Observer, known: &Acknowledged, found: &mut Vec<String>) {
    for (key, run) in &known.started {
        if disk.run(run).is_none() {
            found.push(format!("{KEPT}: {run} was started under {key}"));
        }
    }
    for run in &known.forked {
        if disk.run(run).is_none() {
            found.push(format!("{KEPT}: {run} was forked"));
        }
    }
    for run in &known.cancelled {
        match disk.run(run) {
            Some(row) if row.status.is_terminal() => {}
            row => found.push(format!("{KEPT}: {run} was cancelled, and is {:?}", row.map(|row| row.status))),
        }
    }
    for ((run, interrupt), value) in &known.answered {
        let Some(row) = disk.run(run) else {
            found.push(format!("{KEPT}: {run} was answered"));
            continue;
        };
        let gone = row.pruned.is_some_and(|pruned| pruned.log);
        let told = |event: &Event| matches!(event, Event::InterruptResolved(event) if event.interrupt_id == *interrupt);
        if !gone && !disk.events(run).iter().any(told) {
            found.push(format!("{KEPT}: {run}: the question {interrupt} was answered with {value}"));
        }
    }
    // A key names one run: nobody made a second one under it.
    let roots = disk.runs().into_iter().filter(|row| row.parent.is_none() && row.origin.is_none());
    let unknown: Vec<_> = roots.filter(|row| !known.started.values().any(|run| *run == row.id)).collect();
    for row in unknown.iter().filter(|row| !row.status.is_terminal() && row.status != RunStatus::Paused) {
        found.push(format!("no waiter hangs: {} was started, and nobody was told", row.id));
    }
    remembered(disk, known, found);
}

fn remembered(disk: &Observer, known: &Acknowledged, found: &mut Vec<String>) {
    for tenant in tenants() {
        let store = |kind, scope: &str| VersionedStoreId { tenant: tenant.clone(), kind, scope: scope.to_owned() };
        let memory = disk.changes(&store(VersionedStoreKind::Memory, "shared"));
        for (of, content) in known.remembered.iter().filter(|(of, _)| *of == tenant) {
            if !memory.iter().any(|change| change.item.as_ref().is_some_and(|item| item.content == *content)) {
                found.push(format!("{KEPT}: {content} is not in the memory of {of}"));
            }
        }
        let files = disk.changes(&store(VersionedStoreKind::Workspace, DEFAULT_WORKSPACE));
        for (of, path, content) in known.wrote.iter().filter(|(of, ..)| *of == tenant) {
            let holds = |change: &Change| {
                change.key == *path && change.item.as_ref().is_some_and(|item| item.content == *content)
            };
            if !files.iter().any(holds) {
                found.push(format!("{KEPT}: {path} of {of} never held {content}"));
            }
        }
    }
}
