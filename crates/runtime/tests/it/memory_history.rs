//! Looking back at a run's memory and workspace, and what is left after retention has been there.

use crate::common;

use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{RunId, RunStatus, code};
use baton_runtime::{ErrorKind, PrunedTree};
use baton_store::{Disk, MemoryStore, VersionedStoreId, VersionedStoreKind};
use baton_testkit::Flow;
use common::versioned_stores::{DELETE, LIST, PUT, WRITE, contents, file, list, note};
use common::watched::Watched;
use common::{World, accept, in_time, options, tenant};
use serde_json::json;

/// Writes, calls a child that writes, deletes what it wrote first.
fn busy(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("one", PUT, json!({"content": "one", "ttlSeconds": 2})),
            ("write", WRITE, file("plan.md", "one")),
            ("call", "core.subWorkflow", json!({"workflowId": "child"})),
            ("wait", "core.delay", json!({"ms": 1000})),
            ("again", WRITE, file("plan.md", "two")),
            ("forget", DELETE, json!({"idExpression": "nodes.one.entry.id"})),
            ("wait2", "core.delay", json!({"ms": 5000})),
            ("two", PUT, note("two")),
            ("list", LIST, list()),
        ],
    )
}

fn child() -> Flow {
    Flow::chain("child", &[("put", PUT, note("child")), ("write", WRITE, file("child.md", "x"))])
}

fn waiting() -> Flow {
    Flow::chain("waiting", &[("gate", "core.approvalGate", json!({"title": "Go on?"})), ("list", LIST, list())])
}

fn simple() -> Flow {
    Flow::chain("simple", &[("put", PUT, note("simple")), ("write", WRITE, file("plan.md", "simple"))])
}

async fn prune(world: &World, run: &RunId, log: bool) -> PrunedTree {
    world.host.prune(&tenant(), run, log).await.unwrap()
}

/// Why a run can no longer be looked back at.
async fn refusal(world: &World, run: &RunId, seq: u64) -> String {
    let surroundings = world.host.surroundings(&tenant(), run, seq).await.map(drop).unwrap_err();
    let state = world.host.state_at(&tenant(), run, Some(seq)).await.map(drop).unwrap_err();
    let fork = world.host.check_fork_point(&tenant(), run, seq).await.unwrap_err();
    for error in [&surroundings, &state, &fork] {
        assert_eq!((error.kind, error.code), (ErrorKind::Unprocessable, code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE));
        assert_eq!((&error.details["fromSeq"], &error.details["sourceRunId"]), (&json!(seq), &json!(run)));
        assert_eq!(error.details, surroundings.details);
    }
    surroundings.details["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_record_shows_the_run_as_it_was_then() {
    for records_ahead in [1, 512] {
        let world = World::open(Disk::default(), Arc::default(), options(records_ahead)).await;
        for flow in [busy("busy"), child()] {
            world.register(flow).await;
        }
        world.remember("team", "before").await;
        world.write("old.md", "x").await;
        let run = world.start_in("busy", "team").await;
        // People write between the run's steps.
        for content in ["during", "later"] {
            world.settle().await;
            world.remember("team", content).await;
            world.write("plan.md", content).await;
            let wake = world.rows().await[0].wake_at.unwrap();
            world.clock.advance_to(wake);
        }
        let ended = world.ended(&run).await;
        assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
        assert_eq!(contents(&ended, "seen"), ["two", "child", "before"]);
        world.audit_versioned_stores("history").await;

        let records = world.records(&run).await;
        let last = world.host.state_at(&tenant(), &run, None).await.unwrap();
        assert_eq!((last.seq, last.view.status), (records.len() as u64 - 1, RunStatus::Completed));
        assert_eq!(last.view.variables, ended.variables);
        for record in &records {
            let state = world.host.state_at(&tenant(), &run, Some(record.seq)).await.unwrap();
            assert_eq!((state.seq, state.at), (record.seq, record.at));
            assert_eq!(state.view.status.is_terminal(), record.seq == last.seq, "at {}", record.seq);
            assert_eq!(state.surroundings, world.host.surroundings(&tenant(), &run, record.seq).await.unwrap());
            world.host.check_fork_point(&tenant(), &run, record.seq).await.unwrap();
        }
        let first = world.host.surroundings(&tenant(), &run, 0).await.unwrap();
        assert_eq!((first.memory.len(), first.workspace.len()), (1, 1), "before the run wrote anything");
        let length = records.len() as u64;
        world.host.check_fork_point(&tenant(), &run, length).await.unwrap();
        let beyond = world.host.check_fork_point(&tenant(), &run, length + 1).await.unwrap_err();
        assert_eq!(beyond.code, code::INVALID_FROM_SEQ);
        assert_eq!(world.host.surroundings(&tenant(), &run, length).await.unwrap_err().code, code::INVALID_FROM_SEQ);
    }
}

#[tokio::test]
async fn a_pruned_tree_loses_its_own_memory_and_says_so() {
    let world = World::with([busy("busy"), child()]).await;
    let run = world.start("busy").await;
    world.drive(0).await;
    let kept = world.start("busy").await;
    world.drive(0).await;
    let child = world.rows().await.into_iter().find(|row| row.parent.as_ref() == Some(&run)).unwrap().id;
    let of_child = world.host.prune(&tenant(), &child, false).await.unwrap_err();
    assert_eq!((of_child.code, &of_child.details["rootRunId"]), (code::RUN_CONFLICT, &json!(run)));

    let ledgers = world.ledgers().await;
    assert_eq!(prune(&world, &run, false).await, PrunedTree { runs: 2, log: false });
    assert_eq!(world.recall(run.as_str()).await, [""; 0]);
    assert_eq!(world.recall(kept.as_str()).await.len(), 2, "another tree's memory");
    for seen in [&run, &child] {
        assert_eq!(refusal(&world, seen, 0).await, "retention_expired");
        let snapshot = world.snapshot(seen).await;
        assert!(snapshot.retention.is_some() && snapshot.workspace.is_empty(), "{snapshot:?}");
        assert_eq!(snapshot.status, RunStatus::Completed);
        assert!(world.host.events(&tenant(), seen, None, 1000).await.unwrap().is_final(None), "the log is still there");
    }
    let records = world.records(&kept).await;
    world.audit_surroundings(&tenant(), &kept, &records, &ledgers, "the other tree").await;
    // Bounds come first.
    let beyond = world.host.check_fork_point(&tenant(), &run, 10_000).await.unwrap_err();
    assert_eq!(beyond.code, code::INVALID_FROM_SEQ);

    assert_eq!(prune(&world, &run, false).await.runs, 0, "pruned already");
    assert_eq!(prune(&world, &run, true).await, PrunedTree { runs: 2, log: true });
    assert_eq!(prune(&world, &run, false).await.runs, 0, "a log that is gone stays gone");
    for world in [world.stop().await].map(|disk| World::open(disk, Arc::default(), options(512))) {
        let world = world.await;
        assert_eq!(refusal(&world, &run, 0).await, "event_log_unavailable");
        let gone = world.host.snapshot(&tenant(), &run).await.unwrap_err();
        assert_eq!((gone.kind, gone.code), (ErrorKind::Gone, code::RUN_PRUNED));
        assert_eq!(world.host.events(&tenant(), &run, None, 10).await.unwrap_err().code, code::RUN_PRUNED);
        assert!(world.rows().await.iter().any(|row| row.id == run), "the row stays");
        // Versions go on where they were, should anybody write there again.
        world.remember(run.as_str(), "new").await;
        let version = world.reader.versioned_head(&VersionedStoreId::memory(&tenant(), run.as_str())).await.unwrap();
        assert_eq!(version, 5, "four changes were dropped");
        world.stop().await;
    }
}

#[tokio::test]
async fn a_shared_scope_keeps_what_others_still_look_back_to() {
    let world = World::with([simple(), waiting()]).await;
    let old = world.remember("team", "old").await;
    world.write("plan.md", "zero").await;
    let first = world.start_in("simple", "team").await;
    world.ended(&first).await;
    let second = world.start_in("simple", "team").await;
    world.ended(&second).await;
    let looking = world.start_in("waiting", "team").await;
    world.waiting(&looking).await;
    assert!(world.host.delete_memory(&tenant(), "team", &old.id).await.unwrap());
    world.write("plan.md", "newest").await;
    let ledgers = world.ledgers().await;

    let running = world.host.prune(&tenant(), &looking, false).await.unwrap_err();
    assert_eq!((running.kind, running.code), (ErrorKind::Conflict, code::RUN_CONFLICT));
    prune(&world, &second, false).await;
    for kept in [&first, &looking] {
        let records = world.records(kept).await;
        world.audit_surroundings(&tenant(), kept, &records, &ledgers, "kept").await;
    }
    prune(&world, &first, true).await;
    let records = world.records(&looking).await;
    world.audit_surroundings(&tenant(), &looking, &records, &ledgers, "kept").await;
    let changes = world.host.file_changes(&tenant(), DEFAULT_WORKSPACE, None, None, 100).await.unwrap();
    assert_eq!(changes.len(), 2, "what nobody looks back to is gone: {changes:#?}");
    world.resolve(&looking, "gate", accept()).await.unwrap();
    assert_eq!(contents(&world.ended(&looking).await, "seen"), ["simple", "simple", "old"]);
    prune(&world, &looking, false).await;
    assert_eq!(world.recall("team").await, ["simple", "simple"], "what is current stays");
    assert_eq!(world.read("plan.md").await.unwrap().content, "newest");
    assert_eq!(world.read("plan.md").await.unwrap().meta.version, 4);
    assert_eq!(world.ledgers().await[&VersionedStoreId::memory(&tenant(), "team")].len(), 2);
}

/// Somebody was told to work in the scope of a tree that is pruned: what they see stays.
#[tokio::test]
async fn a_scope_named_after_a_run_stays_while_others_use_it() {
    let world = World::with([simple(), waiting()]).await;
    let owner = world.start("simple").await;
    world.ended(&owner).await;
    let guest = world.start_in("waiting", owner.as_str()).await;
    world.waiting(&guest).await;
    prune(&world, &owner, true).await;
    world.resolve(&guest, "gate", accept()).await.unwrap();
    assert_eq!(contents(&world.ended(&guest).await, "seen"), ["simple"]);
    prune(&world, &guest, true).await;
    prune(&world, &owner, true).await;
    assert_eq!(world.recall(owner.as_str()).await, [""; 0], "pruning again takes what nobody uses any more");
    assert_eq!(world.host.memory_scopes(&tenant()).await.unwrap(), []);
}

/// A run that is being read while it is pruned must not stay in memory as it was.
#[tokio::test]
async fn a_read_that_began_before_a_prune_does_not_outlive_it() {
    let memory = {
        let world = World::with([simple()]).await;
        world.write("plan.md", "first").await;
        let run = world.start("simple").await;
        world.ended(&run).await;
        Arc::new(MemoryStore::from_disk(world.stop().await))
    };
    let store = Arc::new(Watched::new(Arc::clone(&memory)));
    let world = World::over(Arc::clone(&store) as _, memory, Arc::default(), options(512)).await;
    let run = world.rows().await[0].id.clone();
    world.settle().await;
    store.slow_logs(true);
    let host = world.host.clone();
    let reading = tokio::spawn({
        let (host, run) = (host.clone(), run.clone());
        async move { host.snapshot(&tenant(), &run).await.unwrap() }
    });
    in_time("the read", store.keeps_back(1)).await;
    let pruning = tokio::spawn({
        let run = run.clone();
        async move { host.prune(&tenant(), &run, false).await.unwrap() }
    });
    world.settle().await;
    store.slow_logs(false);
    in_time("both", async { (reading.await.unwrap(), pruning.await.unwrap()) }).await;
    let after = world.snapshot(&run).await;
    assert!(after.retention.is_some() && after.workspace.is_empty(), "{after:?}");
}

/// The versioned stores of a tenant, and which of them a prune leaves.
#[tokio::test]
async fn scopes_are_listed_while_they_hold_anything() {
    let world = World::with([simple()]).await;
    let run = world.start("simple").await;
    world.ended(&run).await;
    world.remember("team", "x").await;
    let scopes = world.host.memory_scopes(&tenant()).await.unwrap();
    assert_eq!(scopes.iter().map(|row| row.scope.as_str()).collect::<Vec<_>>(), [run.as_str(), "team"]);
    prune(&world, &run, false).await;
    let scopes = world.reader.ledgers(&tenant(), VersionedStoreKind::Memory).await.unwrap();
    assert_eq!(scopes.iter().map(|row| row.scope.as_str()).collect::<Vec<_>>(), ["team"]);
}
