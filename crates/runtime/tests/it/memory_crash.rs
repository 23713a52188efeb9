//! People write to memory and workspace while runs do, and the process dies or the disk fails at every commit in turn.
//! What was acknowledged is there afterwards, once, and the run comes to the same end.

use crate::common;

use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{RunSnapshot, RunStatus};
use baton_runtime::{Error, ErrorKind, Host};
use baton_store::{Disk, MemoryStore};
use baton_testkit::{Flow, SeededIds, SimClock};
use common::versioned_stores::{
    FILES, LIST, PUT, WRITE, contents, file, files, list, new_file, new_memory, note, paths, scoped,
};
use common::{World, accept, in_time, options, tenant, who};
use serde_json::json;

const MOST_CRASHES: u64 = 200;
const SCOPE: &str = "team";

/// Two runs like this follow each other; between their steps, people write too.
fn flow() -> Flow {
    let gate = || json!({"title": "Go on?"});
    Flow::chain(
        "work",
        &[
            ("one", PUT, note("run: one")),
            ("plan", WRITE, file("run.md", "one")),
            ("first", "core.approvalGate", gate()),
            ("two", PUT, note("run: two")),
            ("again", WRITE, file("run.md", "two")),
            ("second", "core.approvalGate", gate()),
            ("list", LIST, list()),
            ("files", FILES, files()),
        ],
    )
}

/// What people wrote and were told is safe.
#[derive(Default)]
struct Acknowledged {
    entries: Vec<(String, String)>,
    files: Vec<(String, u64)>,
}

impl Acknowledged {
    /// Writes what this stage of the story wants written, unless it is there.
    async fn write(&mut self, world: &World, stage: &str) -> Result<(), Error> {
        let content = format!("person: {stage}");
        if !world.recall(SCOPE).await.contains(&content) {
            let entry = world.host.put_memory(&tenant(), SCOPE, new_memory(&content), None).await?;
            self.entries.push((entry.id, content));
        }
        let path = format!("{stage}.md");
        if world.read(&path).await.is_none() {
            let written = world.host.put_file(&tenant(), DEFAULT_WORKSPACE, new_file(&path, "x")).await?;
            self.files.push((path, written.meta.version));
        }
        Ok(())
    }

    async fn check(&self, world: &World, context: &str) {
        for (id, content) in &self.entries {
            let kept = world.host.memory_entry(&tenant(), SCOPE, id).await.unwrap();
            assert_eq!(kept.map(|entry| entry.content).as_ref(), Some(content), "{context}: an entry was lost");
        }
        for (path, version) in &self.files {
            let kept = world.read(path).await;
            assert_eq!(kept.map(|file| file.meta.version), Some(*version), "{context}: {path} was lost");
        }
    }
}

/// Goes on with the story from wherever it is, until it is over or the disk says no.
async fn go_on(world: &World, acknowledged: &mut Acknowledged) -> Result<(), Error> {
    for n in 1..=2 {
        if world.rows().await.len() < n {
            acknowledged.write(world, &format!("before-{n}")).await?;
            world.host.start_run(&who(), scoped("work", SCOPE), None).await?;
        }
        let row = world.rows().await.remove(n - 1);
        for gate in ["first", "second"] {
            world.settle().await;
            let open = world.open_interrupts().await.into_iter().find(|open| open.run == row.id);
            if open.is_some_and(|open| open.node.as_str() == gate) {
                acknowledged.write(world, &format!("{gate}-{n}")).await?;
                world.resolve(&row.id, gate, accept()).await?;
            }
        }
        world.settle().await;
    }
    Ok(())
}

async fn over(world: &World) -> bool {
    let rows = world.rows().await;
    rows.len() == 2 && rows.iter().all(|row| row.status.is_terminal())
}

/// The end of the story, whatever happened on the way.
async fn check_end(world: &World, acknowledged: &Acknowledged, context: &str) {
    let mut ends: Vec<RunSnapshot> = Vec::new();
    for row in world.rows().await {
        ends.push(world.snapshot(&row.id).await);
    }
    assert!(ends.iter().all(|end| end.status == RunStatus::Completed), "{context}: {ends:#?}");
    assert_eq!(contents(&ends[0], "seen"), ["run: two", "run: one", "person: before-1"], "{context}");
    let expected = [
        "run: two",
        "run: one",
        "person: before-2",
        "person: second-1",
        "run: two",
        "person: first-1",
        "run: one",
        "person: before-1",
    ];
    assert_eq!(contents(&ends[1], "seen"), expected, "{context}");
    assert_eq!(paths(&ends[0], "files"), ["before-1.md"], "{context}");
    let expected = ["before-1.md", "before-2.md", "first-1.md", "run.md", "second-1.md"];
    assert_eq!(paths(&ends[1], "files"), expected, "{context}");
    assert_eq!(world.read("run.md").await.unwrap().meta.version, 4, "{context}");
    acknowledged.check(world, context).await;
    world.audit(context).await;
    world.audit_versioned_stores(context).await;
}

/// Ids are never used again, as in real life: the next process must not name its entries as the last one did.
async fn open(disk: Disk, clock: &Arc<SimClock>, records_ahead: usize, ids: &Arc<SeededIds>) -> World {
    let store = Arc::new(MemoryStore::from_disk(disk));
    let (reader, clock) = (Arc::clone(&store) as Arc<dyn baton_store::Store>, Arc::clone(clock));
    let ids = Arc::clone(ids);
    let host =
        Host::open_with(Arc::clone(&reader), options(records_ahead), Arc::clone(&clock) as _, ids).await.unwrap();
    World { host, store, reader, clock }
}

async fn prepared() -> Disk {
    World::with([flow()]).await.stop().await
}

#[tokio::test]
async fn the_process_dies_after_every_commit() {
    for records_ahead in [1, 2, 512] {
        let disk = prepared().await;
        for commits in 0.. {
            let context = format!("{records_ahead} ahead, crashed after {commits}, seed {}", common::seed());
            assert!(commits < MOST_CRASHES, "{context}: never ends");
            let (clock, ids) = (Arc::default(), Arc::new(SeededIds::new(common::seed())));
            let mut acknowledged = Acknowledged::default();
            let world = open(disk.clone(), &clock, records_ahead, &ids).await;
            world.store.crash_after(commits);
            let died = tokio::select! {
                done = go_on(&world, &mut acknowledged) => done.is_err(),
                () = world.store.crashed() => true,
            };
            // A dead process is not shut down: writes it waits for never come to an end.
            let world = open(world.store.disk(), &clock, records_ahead, &ids).await;
            world.settle().await;
            acknowledged.check(&world, &context).await;
            in_time(&context, go_on(&world, &mut acknowledged)).await.unwrap();
            check_end(&world, &acknowledged, &context).await;
            world.stop().await;
            if !died {
                assert!(commits >= 10, "{context}: too few places to crash at");
                break;
            }
        }
    }
}

#[tokio::test]
async fn the_disk_fails_at_every_commit() {
    for records_ahead in [1, 512] {
        let disk = prepared().await;
        for failing_after in 0.. {
            let context = format!("{records_ahead} ahead, commit {failing_after} failed, seed {}", common::seed());
            assert!(failing_after < MOST_CRASHES, "{context}: never ends");
            let (clock, ids) = (Arc::default(), Arc::new(SeededIds::new(common::seed())));
            let mut acknowledged = Acknowledged::default();
            let world = open(disk.clone(), &clock, records_ahead, &ids).await;
            world.store.fail_after(failing_after);
            let mut failed = false;
            let story = async {
                while !over(&world).await {
                    match go_on(&world, &mut acknowledged).await {
                        Ok(()) => {}
                        Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable, "{context}: {error}"),
                    }
                    if !world.host.readiness().ready {
                        failed = true;
                        world.store.heal();
                    }
                    world.clock.advance(500);
                    world.settle().await;
                }
            };
            in_time(&context, story).await;
            check_end(&world, &acknowledged, &context).await;
            world.stop().await;
            if !failed {
                break;
            }
        }
    }
}

/// Nothing that waits for the disk can be seen, and a refusal waits for it too.
#[tokio::test]
async fn nothing_shows_before_it_is_durable() {
    let world =
        World::with([Flow::chain("both", &[("put", PUT, note("run")), ("write", WRITE, file("run.md", "x"))])]).await;
    world.remember(SCOPE, "old").await;
    world.write("plan.md", "old").await;
    world.store.hold();
    let stale = baton_runtime::NewFile { if_match: Some("w1".to_owned()), ..new_file("plan.md", "newer") };
    let full = baton_runtime::NewFile { if_match: Some("nonsense".to_owned()), ..new_file("plan.md", "never") };
    let host = || world.host.clone();
    let (entry, first, second, run, gone, refused) = (
        tokio::spawn({
            let host = host();
            async move { host.put_memory(&tenant(), SCOPE, new_memory("new"), None).await.unwrap() }
        }),
        tokio::spawn({
            let host = host();
            async move { host.put_file(&tenant(), DEFAULT_WORKSPACE, stale).await.unwrap() }
        }),
        tokio::spawn({
            let host = host();
            async move { host.put_file(&tenant(), DEFAULT_WORKSPACE, new_file("other.md", "x")).await.unwrap() }
        }),
        tokio::spawn({
            let host = host();
            async move { host.start_run(&who(), scoped("both", SCOPE), None).await.unwrap().run_id }
        }),
        tokio::spawn({
            let host = host();
            async move { host.delete_file(&tenant(), DEFAULT_WORKSPACE, "other.md", None).await.unwrap() }
        }),
        tokio::spawn({
            let host = host();
            async move { host.put_file(&tenant(), DEFAULT_WORKSPACE, full).await.unwrap_err() }
        }),
    );
    world.settle().await;
    assert!(!entry.is_finished() && !first.is_finished() && !second.is_finished() && !run.is_finished());
    assert!(!gone.is_finished() && !refused.is_finished(), "what is refused was judged by what may yet be lost");
    assert_eq!(world.recall(SCOPE).await, ["old"]);
    assert_eq!(world.read("plan.md").await.unwrap().content, "old");
    assert_eq!(world.read("other.md").await, None);
    let listed = world.host.files(&tenant(), DEFAULT_WORKSPACE, None).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(world.host.file_changes(&tenant(), DEFAULT_WORKSPACE, None, None, 10).await.unwrap().len(), 1);
    assert_eq!(world.host.memory_scopes(&tenant()).await.unwrap()[0].version, 1);

    world.store.release();
    in_time("the answers", async {
        let (entry, first, _, run) =
            (entry.await.unwrap(), first.await.unwrap(), second.await.unwrap(), run.await.unwrap());
        assert!(gone.await.unwrap());
        assert_eq!(refused.await.unwrap().details["currentVersion"], json!(2));
        assert_eq!(first.meta.version, 2);
        world.ended(&run).await;
        // Which of the two came first is nobody's promise.
        let mut recalled = world.recall(SCOPE).await;
        recalled.sort();
        assert_eq!(recalled, ["new", "old", "run"]);
        assert_eq!(world.host.memory_entry(&tenant(), SCOPE, &entry.id).await.unwrap(), Some(entry));
    })
    .await;
    assert_eq!(world.read("plan.md").await.unwrap().content, "newer");
    assert_eq!(world.read("other.md").await, None);
    assert_eq!(world.read("run.md").await.unwrap().meta.version, 1);
    world.audit_versioned_stores("released").await;
}
