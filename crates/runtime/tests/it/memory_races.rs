//! Many runs and people at the same memory and the same files, on several threads: every write gets a version of its
//! own, nobody sees half of anything, nothing hangs.

use crate::common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{MemoryEntry, RunId, RunSnapshot, RunStatus, code};
use baton_runtime::{ErrorKind, NewFile};
use baton_store::{Disk, MemoryStore, VersionedStoreId};
use baton_testkit::Flow;
use common::racing::{on_every_store, spawn};
use common::versioned_stores::{DELETE, LIST, PUT, WRITE, file, new_file, new_memory, note, scoped};
use common::watched::Watched;
use common::{World, accept, in_time, options, tenant, who};
use serde_json::json;

const SCOPE: &str = "team";

/// Looks, writes both kinds, looks again.
fn worker(id: &str) -> Flow {
    let look = |into: &str| json!({"into": into, "limit": 10_000});
    Flow::chain(
        id,
        &[
            ("before", LIST, look("before")),
            ("put", PUT, note("by a run")),
            ("write", WRITE, file("plan.md", "by a run")),
            ("again", PUT, note("by a run, again")),
            ("after", LIST, look("after")),
        ],
    )
}

fn team() -> Flow {
    let next = json!({"kind": "next-worker", "nextWorkerIds": ["worker", "worker", "worker"]});
    let rules = json!({
        "rules": [{"when": "iteration < 4 && size(memory) >= 0 && size(workspace) >= 0", "decide": next}],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    let dispatch = json!({"fanOutPolicy": "parallel"});
    Flow::chain("team", &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)])
        .edge("dispatch", "lead")
}

fn ids(snapshot: &RunSnapshot, variable: &str) -> Vec<String> {
    let entries: Vec<MemoryEntry> = serde_json::from_value(snapshot.variables[variable].clone()).unwrap();
    entries.into_iter().map(|entry| entry.id).collect()
}

/// Between its two looks a run has seen nothing change but its own two entries.
fn check_sight(snapshot: &RunSnapshot) {
    assert_eq!(snapshot.status, RunStatus::Completed, "{:?}", snapshot.error);
    let (before, after) = (ids(snapshot, "before"), ids(snapshot, "after"));
    assert_eq!(after.len(), before.len() + 2);
    assert_eq!(after[2..], before[..], "{} saw its scope change", snapshot.run_id);
}

async fn check_all(world: &World) {
    for row in world.rows().await {
        let snapshot = world.snapshot(&row.id).await;
        assert_eq!(snapshot.status, RunStatus::Completed, "{:?}", snapshot.error);
        if row.workflow.as_str() == "worker" {
            check_sight(&snapshot);
        }
    }
}

async fn all_ended(world: &World) {
    in_time("every run's end", async {
        while world.rows().await.iter().any(|row| !row.status.is_terminal()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_people_and_readers_share_a_scope() {
    on_every_store([worker("worker"), team()], async |world: Arc<World>| {
        let done = Arc::new(AtomicBool::new(false));
        let mut writers = Vec::new();
        for n in 0..3_usize {
            writers.push(spawn(&world, async move |world| {
                for i in 0..8_usize {
                    let workflow = if (n + i) % 3 == 0 { "team" } else { "worker" };
                    world.host.start_run(&who(), scoped(workflow, SCOPE), None).await.unwrap();
                }
            }));
            writers.push(spawn(&world, async move |world| {
                for i in 0..15 {
                    let entry = world.remember(SCOPE, &format!("person {n} {i}")).await;
                    let there = world.host.memory_entry(&tenant(), SCOPE, &entry.id).await.unwrap();
                    assert_eq!(there.as_ref(), Some(&entry), "what was acknowledged can be read");
                    let written = world.write("plan.md", &format!("person {n} {i}")).await;
                    assert!(world.read("plan.md").await.unwrap().meta.version >= written.meta.version);
                    if i % 5 == 4 {
                        assert!(world.host.delete_memory(&tenant(), SCOPE, &entry.id).await.unwrap());
                    }
                }
            }));
        }
        let reader = spawn(&world, {
            let done = Arc::clone(&done);
            async move |world| {
                let (mut entries, mut version) = (BTreeSet::new(), 0);
                while !done.load(Ordering::Acquire) {
                    let held: BTreeSet<String> =
                        world.entries(&tenant(), SCOPE).await.into_iter().map(|entry| entry.id).collect();
                    entries.extend(held);
                    let now = world.read("plan.md").await.map_or(0, |file| file.meta.version);
                    assert!(now >= version, "a file went back from {version} to {now}");
                    version = now;
                    tokio::task::yield_now().await;
                }
                entries
            }
        });
        for writer in writers {
            in_time("a writer", writer).await.unwrap();
        }
        all_ended(&world).await;
        done.store(true, Ordering::Release);
        let seen = in_time("the reader", reader).await.unwrap();
        let ledgers = world.ledgers().await;
        let memory = &ledgers[&VersionedStoreId::memory(&tenant(), SCOPE)];
        let written: BTreeSet<String> = memory.iter().map(|change| change.key.clone()).collect();
        assert!(seen.is_subset(&written), "a reader saw what was never written");
        check_all(&world).await;
        world.audit("a shared scope").await;
        world.audit_versioned_stores("a shared scope").await;
    })
    .await;
}

/// Runs start, look and end while others that share their scope are pruned: nobody's view is pulled away.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pruning_takes_nothing_from_runs_that_begin_meanwhile() {
    on_every_store([worker("worker")], async |world: Arc<World>| {
        let mut racers = Vec::new();
        for _ in 0..3 {
            racers.push(spawn(&world, async move |world| {
                for _ in 0..25 {
                    let run = world.start_in("worker", SCOPE).await;
                    check_sight(&world.ended(&run).await);
                    match world.host.prune(&tenant(), &run, false).await {
                        Ok(pruned) => assert_eq!(pruned.runs, 1),
                        Err(error) => panic!("{error}"),
                    }
                    let after = world.snapshot(&run).await;
                    assert!(after.retention.is_some() && after.workspace.is_empty());
                }
            }));
        }
        racers.push(spawn(&world, async move |world| {
            for i in 0..60 {
                let entry = world.remember(SCOPE, "brief").await;
                world.write("plan.md", &format!("{i}")).await;
                assert!(world.host.delete_memory(&tenant(), SCOPE, &entry.id).await.unwrap());
            }
        }));
        for racer in racers {
            in_time("a racer", racer).await.unwrap();
        }
        let held = world.recall(SCOPE).await;
        assert_eq!(held.len(), 150, "two entries of each run, none of the deleted ones");
    })
    .await;
}

/// Of many who want the same entry gone, one did it. The count of what is there stays right.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_entry_is_deleted_once() {
    on_every_store([], async |world: Arc<World>| {
        for _ in 0..40 {
            let entry = world.remember(SCOPE, "wanted gone").await;
            let deleters: Vec<_> = (0..4)
                .map(|_| {
                    let id = entry.id.clone();
                    spawn(&world, async move |world| world.host.delete_memory(&tenant(), SCOPE, &id).await.unwrap())
                })
                .collect();
            let mut told = 0;
            for deleter in deleters {
                told += usize::from(in_time("a deleter", deleter).await.unwrap());
            }
            assert_eq!(told, 1);
        }
        let changes = &world.ledgers().await[&VersionedStoreId::memory(&tenant(), SCOPE)];
        assert_eq!(changes.len(), 80, "one write and one deletion each");
    })
    .await;
}

/// The same for two runs that have both seen the entry before either of them deletes it.
#[tokio::test]
async fn two_runs_do_not_delete_the_same_entry() {
    let flow = Flow::chain(
        "eager",
        &[
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("delete", DELETE, json!({"idExpression": "inputs.id"})),
        ],
    );
    let memory = Arc::new(MemoryStore::from_disk(Disk::default()));
    let store = Arc::new(Watched::new(Arc::clone(&memory)));
    let world = World::over(Arc::clone(&store) as _, memory, Arc::default(), options(512)).await;
    world.register(flow).await;
    let entry = world.remember(SCOPE, "wanted gone").await;
    let mut runs: Vec<RunId> = Vec::new();
    for _ in 0..2 {
        let mut start = scoped("eager", SCOPE);
        start.inputs.insert("id".to_owned(), json!(entry.id));
        // A deadline that is near keeps the run in memory, so that nothing but the entry has to be read.
        start.configurable.insert("runTimeoutMs".to_owned(), json!(50_000));
        let run = world.host.start_run(&who(), start, None).await.unwrap().run_id;
        world.waiting(&run).await;
        runs.push(run);
    }
    store.slow(true);
    in_time("both", async {
        tokio::join!(
            async { world.resolve(&runs[0], "gate", accept()).await.unwrap() },
            async { world.resolve(&runs[1], "gate", accept()).await.unwrap() },
            async {
                // Each looks whether the run sees the entry, and then whether it is still there.
                store.keeps_back(2).await;
                store.next_round();
                store.keeps_back(4).await;
                store.slow(false);
            }
        )
    })
    .await;
    let mut deleted = 0;
    for run in &runs {
        assert_eq!(world.ended(run).await.status, RunStatus::Completed);
        deleted += world.records(run).await.iter().filter(|record| record.kind == "baton.memory.deleted").count();
    }
    assert_eq!(deleted, 1);
    assert_eq!(world.ledgers().await[&VersionedStoreId::memory(&tenant(), SCOPE)].len(), 2);
    world.audit_versioned_stores("deleted once").await;
}

/// Of many who replace the same file, each expecting it to be the one it read, one wins each round.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_conditional_write_has_one_winner() {
    on_every_store([], async |world: Arc<World>| {
        world.write("plan.md", "first").await;
        for round in 0..30_u64 {
            let etag = world.read("plan.md").await.unwrap().meta.etag;
            let racers: Vec<_> = (0..4)
                .map(|n| {
                    let new = NewFile { if_match: Some(etag.clone()), ..new_file("plan.md", &format!("{round} {n}")) };
                    spawn(&world, async move |world| world.host.put_file(&tenant(), DEFAULT_WORKSPACE, new).await)
                })
                .collect();
            let mut won = 0;
            for racer in racers {
                match in_time("a racer", racer).await.unwrap() {
                    Ok(file) => {
                        won += 1;
                        assert_eq!(file.meta.version, round + 2);
                    }
                    Err(error) => {
                        assert_eq!(error.code, code::WORKSPACE_CONFLICT);
                        assert_eq!(error.details["currentVersion"], json!(round + 2));
                    }
                }
            }
            assert_eq!(won, 1, "round {round}");
        }
        world.audit_versioned_stores("one winner").await;
    })
    .await;
}

/// Bringing a run back into memory brings its versioned stores back too; hundreds of them must not stand in each other's way.
#[tokio::test]
async fn many_runs_with_memories_of_their_own_come_back_after_a_restart() {
    let flow = Flow::chain(
        "waiting",
        &[
            ("put", PUT, note("mine")),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("list", LIST, json!({"into": "seen"})),
        ],
    );
    let world = World::with([flow]).await;
    for _ in 0..300 {
        world.start("waiting").await;
    }
    world.settle().await;
    let clock = Arc::clone(&world.clock);
    let world = World::open(world.stop().await, clock, options(512)).await;
    for row in world.rows().await {
        in_time("an answer", world.resolve(&row.id, "gate", accept())).await.unwrap();
        let ended = in_time("an end", world.ended(&row.id)).await;
        assert_eq!(common::versioned_stores::contents(&ended, "seen"), ["mine"]);
    }
}

/// The disk fails and heals again and again under people and runs that write.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flapping_disk_loses_no_acknowledged_write() {
    let world = Arc::new(World::with([worker("worker")]).await);
    let done = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for n in 0..3_usize {
        let done = Arc::clone(&done);
        writers.push(spawn(&world, async move |world| {
            let (mut kept, mut round) = (Vec::new(), 0);
            while !done.load(Ordering::Acquire) {
                round += 1;
                let unavailable =
                    |error: baton_runtime::Error| assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
                match world.host.put_memory(&tenant(), SCOPE, new_memory(&format!("{n} {round}")), None).await {
                    Ok(entry) => kept.push(entry),
                    Err(error) => unavailable(error),
                }
                let file = new_file("plan.md", "x");
                let put = world.host.put_file(&tenant(), DEFAULT_WORKSPACE, file).await;
                put.map(drop).unwrap_or_else(unavailable);
                world.host.start_run(&who(), scoped("worker", SCOPE), None).await.map(drop).unwrap_or_else(unavailable);
                tokio::task::yield_now().await;
            }
            kept
        }));
    }
    world.flap(25).await;
    done.store(true, Ordering::Release);
    let mut kept = Vec::new();
    for writer in writers {
        kept.extend(in_time("a writer", writer).await.unwrap());
    }
    in_time("the rest", async {
        while world.rows().await.iter().any(|row| !row.status.is_terminal()) {
            world.clock.advance(100);
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!kept.is_empty());
    let held = world.entries(&tenant(), SCOPE).await;
    for entry in &kept {
        assert!(held.contains(entry), "{entry:?} was acknowledged and lost");
    }
    check_all(&world).await;
    world.audit("a flapping disk").await;
    world.audit_versioned_stores("a flapping disk").await;
}
