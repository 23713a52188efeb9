//! Two hosts and a file between them.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use baton_model::{Principal, RunId, RunSummary, TenantId};
use baton_runtime::{Error, Host, Imported, Options};
use baton_store::{Disk, MemoryStore, RunFilter, RunRow, Store, StoredRecord};
use baton_testkit::{SeededIds, SimClock};
use serde_json::{Value, json};

use crate::common::scenario::Scenario;
use crate::common::{World, in_time, options, tenant, who};

/// Names that no run of the first host has.
const OTHER_SEED: u64 = 4242;

/// Another process on `disk`, which names its runs otherwise.
pub async fn elsewhere(disk: Disk, clock: Arc<SimClock>, options: Options) -> World {
    let store = Arc::new(MemoryStore::from_disk(disk));
    let ids = Arc::new(SeededIds::new(OTHER_SEED));
    let host = Host::open_with(Arc::clone(&store) as _, options, Arc::clone(&clock) as _, ids).await.unwrap();
    World { host, reader: Arc::clone(&store) as _, store, clock }
}

pub async fn fresh() -> World {
    elsewhere(Disk::default(), Arc::default(), options(512)).await
}

/// Plays a scenario to its end and gives its root.
pub async fn played(scenario: &Scenario) -> (World, RunId) {
    let world = World::with(scenario.flows.clone()).await;
    let root = scenario.flows[0].clone().build()["id"].as_str().unwrap().to_owned();
    let run = world.start(&root).await;
    world.drive(50).await;
    (world, run)
}

pub async fn try_export(host: &Host, tenant: &TenantId, run: &RunId) -> Result<String, Error> {
    let mut export = host.export(tenant, run).await?;
    let mut file = Vec::new();
    while let Some(page) = export.next().await? {
        assert!(page.ends_with(b"\n"), "whole lines");
        file.extend(page);
    }
    Ok(String::from_utf8(file).unwrap())
}

pub async fn export(world: &World, run: &RunId) -> String {
    try_export(&world.host, &tenant(), run).await.unwrap()
}

pub async fn import_as(host: &Host, who: &Principal, file: &str) -> Result<Imported, Error> {
    let mut import = host.import(who)?;
    // Cut at places that have nothing to do with lines.
    for piece in file.as_bytes().chunks(1013) {
        import.take(piece).await?;
    }
    in_time("importing", import.finish()).await
}

pub async fn import(host: &Host, file: &str) -> Result<Imported, Error> {
    import_as(host, &who(), file).await
}

/// The lines of a file, parsed, as a version would have written them that knew no checksums: what a test changes in them is
/// judged by all the other rules.
pub fn lines(file: &str) -> Vec<Value> {
    file.lines().map(|line| without_checksums(serde_json::from_str(line).unwrap())).collect()
}

fn without_checksums(mut line: Value) -> Value {
    if let Some(header) = line.get_mut("header").filter(|header| header["version"] == 4) {
        header["version"] = json!(3);
    }
    for part in ["record", "run"] {
        if let Some(part) = line.get_mut(part).and_then(Value::as_object_mut) {
            part.remove("sum");
            part.remove("chainBase");
        }
    }
    line
}

/// A file of these lines, with a header and a footer that fit them.
pub fn sealed(lines: &[Value]) -> String {
    let count = |name: &str| lines.iter().filter(|line| line.get(name).is_some()).count();
    let mut text: String =
        lines.iter().filter(|line| line.get("footer").is_none()).map(|line| format!("{line}\n")).collect();
    let digest = baton_model::Digest::of_bytes(&text);
    let footer = json!({"footer": {
        "definitions": count("definition"), "ledgers": count("ledger"), "changes": count("change"),
        "runs": count("run"), "records": count("record"), "digest": digest.as_str(),
    }});
    text.push_str(&format!("{footer}\n"));
    text
}

/// Every row of a host, by id.
pub async fn rows(store: &dyn Store) -> Vec<RunRow> {
    let mut rows = store.runs(&RunFilter { limit: usize::MAX, ..RunFilter::default() }).await.unwrap().items;
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    rows
}

pub async fn records(store: &dyn Store, row: &RunRow) -> Vec<StoredRecord> {
    store.records(&row.id, 0, usize::MAX).await.unwrap()
}

/// Everything there is in a store, in words that can be compared.
pub fn whole(disk: &Disk) -> String {
    format!("{disk:?}")
}

/// What lists say of a run, apart from where it comes from.
fn unmarked(row: &RunRow) -> RunSummary {
    let told = row.summary.as_deref().map(|text| serde_json::from_str::<RunSummary>(text).unwrap());
    RunSummary { imported: false, ..told.unwrap_or_default() }
}

/// A host that has what was exported shows it as the one that made it.
pub async fn same_to_a_reader(here: &Host, there: &Host, store: &dyn Store, other: &dyn Store, context: &str) {
    let (ours, copies) = (rows(store).await, rows(other).await);
    assert_eq!(ours.len(), copies.len(), "{context}");
    for (row, copy) in ours.into_iter().zip(copies) {
        let context = format!("{context}, {}", row.id);
        assert_eq!(unmarked(&copy), unmarked(&row), "{context}");
        let (workspace_scope, summary) = (copy.workspace_scope.clone(), copy.summary.clone());
        assert_eq!(copy, RunRow { workspace_scope, summary, ..row.clone() }, "{context}");
        assert_eq!(records(store, &row).await, records(other, &row).await, "{context}: verbatim");
        assert_eq!(here.snapshot(&tenant(), &row.id).await.unwrap(), there.snapshot(&tenant(), &row.id).await.unwrap());
        let events = here.events(&tenant(), &row.id, None, usize::MAX).await.unwrap();
        assert_eq!(events, there.events(&tenant(), &row.id, None, usize::MAX).await.unwrap(), "{context}");
        for seq in 0..row.next_seq {
            let (one, two) = (
                here.state_at(&tenant(), &row.id, Some(seq)).await.unwrap(),
                there.state_at(&tenant(), &row.id, Some(seq)).await.unwrap(),
            );
            assert_eq!(one, two, "{context} at {seq}");
        }
        for host in [here, there] {
            let verified = host.verify(&tenant(), &row.id).await.unwrap();
            assert!(verified.difference.is_none(), "{context}: {verified:#?}");
            assert_eq!(verified.events, row.next_seq, "{context}");
        }
    }
}
