//! A supervisor's turn sees memory and workspace as they were when it began, however long it lasts, and the next turn
//! sees everything that happened meanwhile.

use crate::common;

use std::sync::Arc;

use baton_model::event::DrainPolicy;
use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Decision, RunId, RunStatus};
use baton_runtime::{NewMemory, PauseRun, StartRun};
use baton_store::{Disk, MemoryStore, VersionedStoreId};
use baton_testkit::{Flow, SimClock};
use common::versioned_stores::{FILES, LIST, PUT, WRITE, as_of, contents, file, list, new_memory, note, paths, scoped};
use common::watched::Watched;
use common::{World, accept, in_time, options, tenant, who};
use serde_json::{Value, json};

const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// What a turn makes of what it sees.
const SEEN: &str = "size(memory) == 1 && memory[0].content == 'first' && workspace['plan.md'].content == 'one'";

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

fn end(reason: &str) -> Value {
    json!({"kind": "terminate", "reason": reason})
}

fn rules(rules: Value, otherwise: &str) -> Value {
    json!({"rules": rules, "otherwise": end(otherwise)})
}

fn led(id: &str, rules: Value, dispatch: Value) -> Flow {
    Flow::chain(id, &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)])
        .edge("dispatch", "lead")
}

/// A worker that leaves a note and a file.
fn worker(id: &str) -> Flow {
    Flow::chain(id, &[("put", PUT, note(id)), ("write", WRITE, file("plan.md", id)), ("list", LIST, list())])
}

async fn reason(world: &World, run: &RunId) -> String {
    match world.decisions(run).await.pop().unwrap().decision {
        Decision::Terminate { reason, .. } => reason.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_turn_writes_shows_in_the_next_turn_and_not_before() {
    let lead = rules(
        json!([
            {"when": "iteration == 1 && size(memory) == 0 && size(workspace) == 0", "decide": next(&["a", "b"])},
            {
                "when": "iteration == 2 && size(memory) == 2 && memory[0].content == 'b'
                    && workspace['plan.md'] == {'content': 'b', 'version': 2}",
                "decide": next(&["a"])
            },
            {
                "when": "iteration == 3 && size(memory) == 3 && memory[0].content == 'a'
                    && workspace['plan.md'] == {'content': 'a', 'version': 3}",
                "decide": end("as it should be")
            }
        ]),
        "something was seen early or late",
    );
    let flow = led("team", lead, json!({}));
    for records_ahead in [1, 512] {
        let world = World::open(Disk::default(), Arc::default(), options(records_ahead)).await;
        for flow in [flow.clone(), worker("a"), worker("b")] {
            world.register(flow).await;
        }
        let ended = world.finish("team").await;
        assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
        assert_eq!(reason(&world, &ended.run_id).await, "as it should be");
        // The second worker began after the first had ended, so it saw what that one wrote.
        let rows = world.rows().await;
        assert_eq!(contents(&world.snapshot(&rows[2].id).await, "seen"), ["b", "a"]);
        assert_eq!(ended.workspace[0].version, 3, "the snapshot shows what the latest turn sees");
        world.audit_versioned_stores("turns").await;
    }
}

/// What the supervisor sees is frozen when its turn begins; a human who takes three weeks changes nothing about it.
#[tokio::test]
async fn a_held_turn_that_is_refined_weeks_later_still_sees_what_it_saw() {
    for records_ahead in [1, 512] {
        let lead = rules(
            json!([
                {"when": format!("feedback == null && {SEEN}"), "decide": {
                    "kind": "next-worker", "nextWorkerIds": ["a"], "confidence": 0.2}},
                {"when": format!("iteration == 1 && {SEEN}"), "decide": next(&["a"])},
                {
                    "when": "iteration == 2 && size(memory) == 3 && memory[1].content == 'later'
                        && workspace['plan.md'].version == 3",
                    "decide": end("thawed")
                }
            ]),
            "lost",
        );
        let world = World::open(Disk::default(), Arc::default(), options(records_ahead)).await;
        for flow in [led("team", lead, json!({})), worker("a")] {
            world.register(flow).await;
        }
        world.remember("team", "first").await;
        world.write("plan.md", "one").await;
        let brief = NewMemory { ttl_ms: Some(WEEK_MS), ..new_memory("gone in a week") };
        let run = world.host.start_run(&who(), scoped("team", "team"), None).await.unwrap().run_id;
        world.waiting(&run).await;
        // All of this happens while the human thinks.
        world.host.put_memory(&tenant(), "team", brief, None).await.unwrap();
        world.remember("team", "later").await;
        world.write("plan.md", "two").await;
        let clock = Arc::clone(&world.clock);
        let world = World::open(world.stop().await, Arc::clone(&clock), options(records_ahead)).await;
        clock.advance(3 * WEEK_MS);
        world.settle().await;
        let refine = json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "be sure"}});
        world.resolve(&run, "lead", refine).await.unwrap();
        let ended = world.ended(&run).await;
        assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
        assert_eq!(reason(&world, &run).await, "thawed", "{:#?}", world.decisions(&run).await);
        world.audit("held for weeks").await;
        world.audit_versioned_stores("held for weeks").await;
    }
}

/// An entry that was alive when the turn began is alive for the turn, even if it has expired by the time a human
/// answers; a turn that begins later does not see it.
#[tokio::test]
async fn expiry_stands_still_while_a_turn_is_held() {
    let lead = rules(
        json!([
            {"when": "iteration == 1 && feedback == null && size(memory) == 1", "decide": {
                "kind": "next-worker", "nextWorkerIds": ["a"], "confidence": 0.2}},
            {"when": "iteration == 1 && size(memory) == 1", "decide": next(&["noop"])},
            {"when": "iteration == 2 && size(memory) == 0", "decide": end("expired")}
        ]),
        "lost",
    );
    let noop = Flow::chain("noop", &[("n", "core.noop", json!({}))]);
    let world = World::with([led("team", lead, json!({})), noop]).await;
    let brief = NewMemory { ttl_ms: Some(1000), ..new_memory("brief") };
    world.host.put_memory(&tenant(), "team", brief, None).await.unwrap();
    let run = world.start_in("team", "team").await;
    world.waiting(&run).await;
    world.clock.advance(1000);
    let refine = json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "again"}});
    world.resolve(&run, "lead", refine).await.unwrap();
    world.ended(&run).await;
    assert_eq!(reason(&world, &run).await, "expired", "{:#?}", world.decisions(&run).await);
}

/// An accepted decision stands as it was made; the turn after it sees the world of today.
#[tokio::test]
async fn a_turn_after_a_long_wait_sees_what_is_there_then() {
    let lead = rules(
        json!([
            {"when": "iteration == 1 && size(memory) == 0", "decide": {
                "kind": "next-worker", "nextWorkerIds": ["a"], "confidence": 0.2}},
            {"when": "iteration == 2 && size(memory) == 2 && memory[1].content == 'meanwhile'", "decide": end("today")}
        ]),
        "lost",
    );
    let world = World::with([led("team", lead, json!({})), worker("a")]).await;
    let run = world.start_in("team", "team").await;
    world.waiting(&run).await;
    world.remember("team", "meanwhile").await;
    let clock = Arc::clone(&world.clock);
    let world = World::open(world.stop().await, Arc::clone(&clock), options(512)).await;
    clock.advance(WEEK_MS);
    world.resolve(&run, "lead", accept()).await.unwrap();
    world.ended(&run).await;
    assert_eq!(reason(&world, &run).await, "today");
    let worker = world.rows().await[1].id.clone();
    assert_eq!(contents(&world.snapshot(&worker).await, "seen"), ["a", "meanwhile"]);
    world.audit_versioned_stores("after a long wait").await;
}

#[tokio::test]
async fn siblings_that_write_at_once_write_one_after_the_other() {
    let many: Vec<String> = (0..12).map(|i| format!("w{i}")).collect();
    let names: Vec<&str> = many.iter().map(String::as_str).collect();
    let lead = rules(
        json!([
            {"when": "iteration == 1", "decide": next(&names)},
            {"when": "iteration == 2 && size(memory) == 12 && workspace['plan.md'].version == 12", "decide": end("all")}
        ]),
        "lost",
    );
    for (records_ahead, concurrency) in [(1, 12), (3, 5), (512, 12)] {
        let world = World::open(Disk::default(), Arc::default(), options(records_ahead)).await;
        let dispatch = json!({"fanOutPolicy": "parallel", "maxConcurrency": concurrency});
        world.register(led("team", lead.clone(), dispatch)).await;
        for name in &names {
            world.register(worker(name)).await;
        }
        let ended = world.finish("team").await;
        assert_eq!(reason(&world, &ended.run_id).await, "all");
        let ledgers = world.ledgers().await;
        let memory = &ledgers[&VersionedStoreId::memory(&tenant(), ended.run_id.as_str())];
        let authors: std::collections::BTreeSet<_> = memory.iter().map(|change| change.run.clone().unwrap()).collect();
        assert_eq!((memory.len(), authors.len()), (12, 12), "each worker once");
        let workspace = &ledgers[&VersionedStoreId::workspace(&tenant(), DEFAULT_WORKSPACE)];
        assert_eq!(as_of(workspace, 12, ended.completed_at.unwrap())[0].file_meta().unwrap().version, 12);
        world.audit_versioned_stores("siblings").await;
    }
}

async fn watched(flows: impl IntoIterator<Item = Flow>) -> (World, Arc<Watched>) {
    let memory = Arc::new(MemoryStore::from_disk(Disk::default()));
    let store = Arc::new(Watched::new(Arc::clone(&memory)));
    let clock: Arc<SimClock> = Arc::default();
    let world = World::over(Arc::clone(&store) as _, memory, clock, options(512)).await;
    for flow in flows {
        world.register(flow).await;
    }
    (world, store)
}

fn gated(lead: Value) -> Flow {
    let gate = json!({"title": "Go on?"});
    Flow::chain("team", &[("gate", "core.approvalGate", gate), ("lead", "core.orchestrator.supervisor", lead)])
}

/// A deadline that is near keeps a run in memory, and with it whatever it has been told.
fn in_a_hurry() -> StartRun {
    let mut start = scoped("team", "team");
    start.configurable.insert("runTimeoutMs".to_owned(), json!(50_000));
    start
}

/// What was read for a turn that could not begin, because somebody paused the run, is not what it sees when it begins
/// after all.
#[tokio::test]
async fn a_turn_that_begins_after_a_pause_sees_what_is_there_then() {
    let lead = rules(json!([{"when": "size(memory) == 2 && size(workspace) == 1", "decide": end("today")}]), "stale");
    let (world, store) = watched([gated(lead)]).await;
    world.remember("team", "first").await;
    let run = world.host.start_run(&who(), in_a_hurry(), None).await.unwrap().run_id;
    world.waiting(&run).await;
    store.slow(true);
    // What follows from the answer is on its way to the disk only once the read is through, or somebody else writes.
    let (_, ()) = tokio::join!(
        async { world.resolve(&run, "gate", accept()).await.unwrap() },
        in_time("the pause", async {
            store.keeps_back(1).await;
            let pause = PauseRun { reason: None, drain: DrainPolicy::Immediate };
            world.host.pause(&who(), &run, pause).await.unwrap();
        })
    );
    assert_eq!(world.decisions(&run).await, []);
    store.slow(false);
    world.settle().await;
    world.remember("team", "second").await;
    world.write("plan.md", "new").await;
    world.host.resume(&who(), &run, None).await.unwrap();
    world.ended(&run).await;
    assert_eq!(reason(&world, &run).await, "today");
}

/// A read that fails only delays.
#[tokio::test]
async fn a_turn_whose_memory_cannot_be_read_is_taken_later() {
    let lead = rules(json!([{"when": "size(memory) == 1", "decide": end("read")}]), "lost");
    let (world, store) = watched([gated(lead)]).await;
    world.remember("team", "first").await;
    let run = world.host.start_run(&who(), in_a_hurry(), None).await.unwrap().run_id;
    world.waiting(&run).await;
    store.blind(true);
    world.resolve(&run, "gate", accept()).await.unwrap();
    world.settle().await;
    store.blind(false);
    assert_eq!(world.status(&run).await, RunStatus::Running);
    world.clock.advance(1000);
    world.ended(&run).await;
    assert_eq!(reason(&world, &run).await, "read");
}

/// Only the files whose path begins so, by path.
#[tokio::test]
async fn a_prefix_lists_part_of_the_files() {
    let flow = Flow::chain("part", &[("files", FILES, json!({"prefix": "notes/", "into": "files"}))]);
    let world = World::with([flow]).await;
    for path in ["notes/b.md", "notes/a.md", "other.md"] {
        world.write(path, "x").await;
    }
    assert_eq!(paths(&world.finish("part").await, "files"), ["notes/a.md", "notes/b.md"]);
}
