//! What was exported from one host and imported on another can be read, looked back at, verified and forked there as
//! where it happened.

use crate::common;
use crate::forking;
use crate::transferring;

use std::sync::Arc;

use baton_model::{ForkMode, RunStatus};
use baton_runtime::{Host, Transferred};
use baton_store::{RunRow, Store};
use baton_store_sqlite::SqliteStore;
use baton_testkit::{Flow, SeededIds};
use common::scenario::{self, pipeline};
use common::versioned_stores::{LIST, PUT, WRITE, file, list, note};
use common::{World, options, other, tenant};
use forking::fork;
use serde_json::json;
use transferring::{
    elsewhere, export, fresh, import, import_as, lines, played, records, rows, same_to_a_reader, try_export, whole,
};

#[tokio::test]
async fn every_kind_of_run_reads_the_same_on_the_other_side() {
    for scenario in scenario::all() {
        let (world, run) = played(&scenario).await;
        let text = export(&world, &run).await;
        let there = fresh().await;
        let imported = import(&there.host, &text).await.unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
        assert_eq!((imported.run_id, imported.already_here), (run.clone(), false));
        let own = rows(world.store.as_ref()).await;
        let expected =
            Transferred { runs: own.len() as u64, records: own.iter().map(|row| row.next_seq).sum(), ..imported.holds };
        assert_eq!((imported.holds, imported.new_runs), (expected, own.len() as u64), "{}", scenario.name);
        assert_eq!(rows(there.store.as_ref()).await.len(), own.len(), "{}", scenario.name);
        let stores = (world.reader.as_ref(), there.reader.as_ref());
        same_to_a_reader(&world.host, &there.host, stores.0, stores.1, scenario.name).await;
        // Nothing has begun to move.
        there.settle().await;
        assert!(there.rows().await.iter().all(|row| !row.busy && row.wake_at.is_none() && row.status.is_terminal()));
        assert!(there.open_interrupts().await.is_empty());
        // And from there it can go on.
        let again = lines(&export(&there, &run).await);
        let copied: Vec<_> = again.iter().filter(|line| line.get("record").is_some()).cloned().collect();
        let first: Vec<_> = lines(&text).into_iter().filter(|line| line.get("record").is_some()).collect();
        assert_eq!(copied, first, "{}", scenario.name);
    }
}

#[tokio::test]
async fn forks_on_the_other_side_go_as_they_would_at_home() {
    for scenario in scenario::all() {
        let (world, run) = played(&scenario).await;
        let text = export(&world, &run).await;
        let length = world.snapshot(&run).await.at_seq;
        let clock = Arc::clone(&world.clock);
        let home = elsewhere(world.stop().await, Arc::clone(&clock), options(512)).await;
        let there = elsewhere(baton_store::Disk::default(), clock, options(512)).await;
        import(&there.host, &text).await.unwrap();
        for (mode, from) in
            [(ForkMode::Branch, length / 2), (ForkMode::Branch, 0), (ForkMode::Replay, 0), (ForkMode::Replay, 3)]
        {
            let context = format!("{}, {mode:?} at {from}", scenario.name);
            let mut logs = Vec::new();
            for side in [&home, &there] {
                let forked = side.host.fork(&common::who(), &run, fork(mode, from), None).await.unwrap();
                side.settle().await;
                logs.push(forked.run_id);
            }
            // One clock for both: whoever is driven first must not leave the other behind.
            assert_eq!(logs[0], logs[1], "{context}");
            home.drive(50).await;
            there.drive(50).await;
            let fork = &logs[0];
            let (one, two) = (home.snapshot(fork).await, there.snapshot(fork).await);
            assert_eq!((one.status, &one.variables, &one.error), (two.status, &two.variables, &two.error), "{context}");
            assert_eq!(kinds(&home, fork).await, kinds(&there, fork).await, "{context}");
        }
    }
}

async fn kinds(world: &World, run: &baton_model::RunId) -> Vec<String> {
    let events = world.host.events(&tenant(), run, None, usize::MAX).await.unwrap().events;
    events.into_iter().map(|event| event.kind.to_string()).collect()
}

#[tokio::test]
async fn a_disk_on_either_side_makes_no_difference() {
    for scenario in scenario::all() {
        let (world, run) = played(&scenario).await;
        let text = export(&world, &run).await;
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut hosts = Vec::new();
        for (seed, folder) in [(1, &one), (2, &two)] {
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).unwrap());
            let ids = Arc::new(SeededIds::new(seed));
            let clock = Arc::clone(&world.clock) as _;
            hosts.push((Host::open_with(Arc::clone(&store), options(512), clock, ids).await.unwrap(), store));
        }
        import(&hosts[0].0, &text).await.unwrap();
        let text = try_export(&hosts[0].0, &tenant(), &run).await.unwrap();
        import(&hosts[1].0, &text).await.unwrap();
        assert!(import(&hosts[1].0, &text).await.unwrap().already_here);
        for (host, store) in &hosts {
            same_to_a_reader(&world.host, host, world.reader.as_ref(), store.as_ref(), scenario.name).await;
            let forked = host.fork(&common::who(), &run, fork(ForkMode::Replay, 0), None).await.unwrap();
            let mut log = host.subscribe(&forked.run_id);
            let status = world.status(&run).await;
            while host.snapshot(&tenant(), &forked.run_id).await.is_ok_and(|seen| seen.status != status) {
                log.changed().await;
            }
            host.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_branch_brings_what_it_was_forked_from() {
    let flow = Flow::chain(
        "notes",
        &[("a", PUT, note("one")), ("w", WRITE, file("p.md", "x")), ("b", PUT, note("two")), ("l", LIST, list())],
    );
    let world = World::with([flow]).await;
    world.write("older.md", "from another time").await;
    let run = world.start("notes").await;
    world.ended(&run).await;
    let middle = world
        .records(&run)
        .await
        .iter()
        .find(|record| record.versions.memory == 1 && record.versions.workspace == 2)
        .unwrap()
        .seq;
    let branch = world.host.fork(&common::who(), &run, fork(ForkMode::Branch, middle + 1), None).await.unwrap().run_id;
    world.ended(&branch).await;
    let second =
        world.host.fork(&common::who(), &branch, fork(ForkMode::Branch, middle + 1), None).await.unwrap().run_id;
    world.ended(&second).await;
    let replay = world.host.fork(&common::who(), &second, fork(ForkMode::Replay, 0), None).await.unwrap().run_id;
    world.ended(&replay).await;
    // What others write later stays at home.
    world.write("later.md", "not for export").await;
    world.remember(run.as_str(), "nor this").await;
    let text = export(&world, &replay).await;
    assert!(!text.contains("not for export") && !text.contains("nor this"));
    let ids: Vec<_> = lines(&text).iter().filter_map(|line| line["run"]["id"].as_str().map(str::to_owned)).collect();
    assert_eq!(ids, [&run, &branch, &second, &replay].map(|run| run.to_string()));
    let there = fresh().await;
    import(&there.host, &text).await.unwrap();
    same_to_a_reader(&world.host, &there.host, world.reader.as_ref(), there.reader.as_ref(), "branches").await;
    // The tenant's own workspace is left alone, and the other end of the lineage is known already.
    assert!(there.read("p.md").await.is_none());
    let shorter = export(&world, &branch).await;
    assert!(import(&there.host, &shorter).await.unwrap().already_here);
}

#[tokio::test]
async fn two_files_may_share_their_beginning() {
    let flow = || {
        Flow::chain(
            "notes",
            &[("a", PUT, note("one")), ("g", "core.approvalGate", json!({"title": "?"})), ("b", PUT, note("two"))],
        )
    };
    let world = World::with([flow()]).await;
    let run = world.start("notes").await;
    world.drive(1).await;
    let mut files = Vec::new();
    for from in [4, 6] {
        let branch = world.host.fork(&common::who(), &run, fork(ForkMode::Branch, from), None).await.unwrap().run_id;
        world.drive(1).await;
        files.push(export(&world, &branch).await);
    }
    let there = fresh().await;
    assert_eq!(import(&there.host, &files[0]).await.unwrap().new_runs, 2);
    let second = import(&there.host, &files[1]).await.unwrap();
    assert_eq!((second.new_runs, second.holds.runs, second.already_here), (1, 2, false));
    same_to_a_reader(&world.host, &there.host, world.reader.as_ref(), there.reader.as_ref(), "both").await;
}

#[tokio::test]
async fn a_named_scope_grows_with_every_file_and_may_be_used_meanwhile() {
    let flow = Flow::chain("notes", &[("a", PUT, note("one")), ("l", LIST, list())]);
    let world = World::with([flow.clone()]).await;
    let first = world.start_in("notes", "customer").await;
    world.ended(&first).await;
    let one = export(&world, &first).await;
    let second = world.start_in("notes", "customer").await;
    world.ended(&second).await;
    let two = export(&world, &second).await;
    let there = fresh().await;
    import(&there.host, &one).await.unwrap();
    assert_eq!(there.recall("customer").await, ["one"]);
    import(&there.host, &two).await.unwrap();
    assert_eq!(there.recall("customer").await, ["one", "one"]);
    assert!(import(&there.host, &one).await.unwrap().already_here);
    // A live run goes on from there, and then what happened elsewhere no longer fits.
    there.start_in("notes", "customer").await;
    there.drive(1).await;
    assert_eq!(there.recall("customer").await.len(), 3);
    let third = world.start_in("notes", "customer").await;
    world.ended(&third).await;
    let before = whole(&there.store.disk());
    let refused = import(&there.host, &export(&world, &third).await).await.unwrap_err();
    assert_eq!((refused.code, refused.details["scope"].as_str()), ("run_conflict", Some("customer")), "{refused}");
    assert_eq!(whole(&there.store.disk()), before);
    there.remember("customer", "still takes writes").await;
}

#[tokio::test]
async fn what_was_forgotten_does_not_come_back() {
    let flow = Flow::chain("files", &[("w", WRITE, file("p.md", "x"))]);
    let world = World::with([flow]).await;
    for _ in 0..40 {
        world.write("log.md", "again").await;
    }
    let old = world.start("files").await;
    world.ended(&old).await;
    for _ in 0..40 {
        world.write("log.md", "and again").await;
    }
    let run = world.start("files").await;
    world.ended(&run).await;
    world.host.prune(&tenant(), &old, true).await.unwrap();
    let text = export(&world, &run).await;
    assert!(lines(&text).iter().filter(|line| line.get("change").is_some()).count() < 10);
    let there = fresh().await;
    import(&there.host, &text).await.unwrap();
    let row = there.reader.run(&run).await.unwrap().unwrap();
    for seq in 0..row.next_seq {
        assert_eq!(
            world.host.surroundings(&tenant(), &run, seq).await.unwrap(),
            there.host.surroundings(&tenant(), &run, seq).await.unwrap()
        );
    }
    let again = export(&there, &run).await;
    let changes = |text: &str| lines(text).into_iter().filter(|line| line.get("change").is_some()).collect::<Vec<_>>();
    assert_eq!(changes(&again), changes(&text));
}

#[tokio::test]
async fn the_importing_key_owns_what_comes() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    let text = export(&world, &run).await;
    let there = fresh().await;
    import_as(&there.host, &other(), &text).await.unwrap();
    assert_eq!(there.host.snapshot(&other().tenant, &run).await.unwrap().status, RunStatus::Completed);
    assert_eq!(there.host.snapshot(&tenant(), &run).await.unwrap_err().code, "run_not_found");
    assert!(there.host.workflow(&other().tenant, "pipeline").await.is_ok());
    // Somebody else cannot have it too, nor learn anything about it.
    let refused = import(&there.host, &text).await.unwrap_err();
    assert_eq!(refused.code, "run_conflict");
    assert!(import_as(&there.host, &other(), &text).await.unwrap().already_here);
}

#[tokio::test]
async fn a_workflow_that_is_registered_here_stays_what_it_is() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    let there = fresh().await;
    there.register(Flow::chain("pipeline", &[("only", "core.noop", json!({}))])).await;
    import(&there.host, &export(&world, &run).await).await.unwrap();
    let (newest, definition) = there.host.workflow(&tenant(), "pipeline").await.unwrap();
    assert_eq!((newest.version, definition["nodes"].as_array().unwrap().len()), (1, 1));
    // The run is still pinned to what it ran.
    assert!(there.host.verify(&tenant(), &run).await.unwrap().difference.is_none());
    let row: RunRow = there.reader.run(&run).await.unwrap().unwrap();
    assert_eq!(records(there.reader.as_ref(), &row).await.len() as u64, row.next_seq);
}
