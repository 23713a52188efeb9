//! The memory checks of conformance mode run like any workflow and leave what they found in variables.

use crate::common;
use baton_conformance::Conformance;

use std::sync::Arc;

use baton_model::{MemoryEntry, RunSnapshot, RunStatus};
use baton_runtime::Options;
use baton_store::Disk;
use common::versioned_stores::new_memory;
use common::{World, options, other, tenant};
use serde_json::{Value, json};

async fn conformance() -> World {
    World::open(Disk::default(), Arc::default(), Options { test_hooks: Conformance::hooks(), ..options(512) }).await
}

async fn checked(world: &World, workflow: &str) -> RunSnapshot {
    assert!(
        Conformance::of(&world.host).unwrap().fixtures().contains(&workflow.to_owned()),
        "{workflow} is not offered"
    );
    let ended = world.finish(workflow).await;
    assert_eq!(ended.status, RunStatus::Completed, "{workflow}: {:?}", ended.error);
    world.audit_versioned_stores(workflow).await;
    ended
}

fn entry(value: &Value) -> MemoryEntry {
    serde_json::from_value(value.clone()).unwrap()
}

#[tokio::test]
async fn what_is_written_reads_back() {
    let world = conformance().await;
    let ended = checked(&world, "conformance-agent-memory-roundtrip").await;
    let read = entry(&ended.variables["memoryReadback"]);
    let stored = world.entries(&tenant(), ended.run_id.as_str()).await;
    assert_eq!(stored, [read], "the readback is what is stored");
}

#[tokio::test]
async fn an_expired_entry_is_not_listed_and_a_fresh_one_is() {
    let world = conformance().await;
    let ended = checked(&world, "conformance-agent-memory-ttl").await;
    let listed: Vec<MemoryEntry> = serde_json::from_value(ended.variables["memoryList"].clone()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(json!(listed[0].id), ended.variables["freshId"]);
    assert!(listed[0].expires_at.is_some());
    let expired = ended.variables["expiredId"].as_str().unwrap();
    assert_ne!(listed[0].id, expired);
    assert_eq!(world.host.memory_entry(&tenant(), ended.run_id.as_str(), expired).await.unwrap(), None);
}

#[tokio::test]
async fn another_tenants_scope_of_the_probed_name_stays_hidden() {
    let world = conformance().await;
    let foreign = "conformance-foreign-scope";
    world.host.put_memory(&other().tenant, foreign, new_memory("theirs"), None).await.unwrap();
    let ended = checked(&world, "conformance-agent-memory-cross-tenant").await;
    assert_eq!(ended.variables["crossTenantProbe"], json!([]));
    let own: Vec<MemoryEntry> = serde_json::from_value(ended.variables["ownerProbe"].clone()).unwrap();
    assert_eq!(own.len(), 1);
    assert_eq!(json!(own[0].id), ended.variables["ownerEntryId"]);
    // The same handle in the tenant that owns the scope does show it: the probe really looks.
    world.remember(foreign, "ours").await;
    let ended = checked(&world, "conformance-agent-memory-cross-tenant").await;
    assert_eq!(entry(&ended.variables["crossTenantProbe"][0]).content, "ours");
}

#[tokio::test]
async fn a_secret_is_taken_out_before_it_is_stored() {
    let world = conformance().await;
    let ended = checked(&world, "conformance-agent-memory-redaction").await;
    let read = entry(&ended.variables["memoryReadback"]);
    assert!(read.content.contains("[REDACTED:conformance-test-secret]"), "{}", read.content);
    let stored = world.entries(&tenant(), ended.run_id.as_str()).await;
    assert_eq!(stored, [read]);
}

#[tokio::test]
async fn outside_conformance_mode_there_are_no_such_workflows() {
    let world = World::new().await;
    assert!(Conformance::of(&world.host).is_err());
    assert!(world.try_start("conformance-agent-memory-roundtrip").await.is_err());
}
