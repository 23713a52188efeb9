//! A host that dies while it imports has all of a file or none of it, and takes the same file again afterwards.

use crate::common;
use crate::forking;
use crate::transferring;

use std::sync::Arc;

use baton_model::{ForkMode, RunId};
use baton_runtime::{ErrorKind, StartRun};
use baton_store::Disk;
use baton_testkit::Flow;
use common::scenario::{call, pipeline};
use common::versioned_stores::{LIST, PUT, WRITE, file, list};
use common::{World, in_time, options, who};
use forking::fork;
use serde_json::json;
use transferring::{elsewhere, export, fresh, import, lines, records, rows, whole};

/// A branch of a tree whose notes and files fill `size` bytes each.
async fn sample(size: usize) -> (World, RunId) {
    let text = "x".repeat(size);
    let mut nodes: Vec<(String, &str, serde_json::Value)> = vec![("first".to_owned(), LIST, list())];
    // More than a commit holds, when it is large.
    for n in 0..2 {
        nodes.push((format!("write{n}"), WRITE, file(&format!("f{n}.md"), &text)));
        nodes.push((format!("put{n}"), PUT, json!({"content": &text[..size.min(60_000)]})));
    }
    nodes.push(("call".to_owned(), "core.subWorkflow", call("pipeline")));
    let nodes: Vec<(&str, &str, serde_json::Value)> =
        nodes.iter().map(|(id, kind, config)| (id.as_str(), *kind, config.clone())).collect();
    let top = Flow::chain("top", &nodes).variable("n", "number", json!(4));
    let world = World::with([top, pipeline("pipeline")]).await;
    let mut last = None;
    for _ in 0..if size > 1000 { 9 } else { 1 } {
        let run = world.start("top").await;
        world.ended(&run).await;
        last = Some(run);
    }
    let branch = world.host.fork(&who(), &last.unwrap(), fork(ForkMode::Branch, 8), None).await.unwrap().run_id;
    world.ended(&branch).await;
    (world, branch)
}

#[tokio::test]
async fn a_small_file_is_one_commit() {
    let (world, run) = sample(10).await;
    let text = export(&world, &run).await;
    let there = fresh().await;
    let before = there.store.commits();
    import(&there.host, &text).await.unwrap();
    assert_eq!(there.store.commits(), before + 1);
}

/// Three generations, each of which is handed six megabytes.
async fn generations() -> (World, RunId) {
    // A megabyte is handed down, and copied five times on the way: one value has a megabyte at most.
    let copies = || -> Vec<(String, &str, serde_json::Value)> {
        let copy = |n: usize| json!({"name": format!("copy{n}"), "expression": "variables.load"});
        (0..5).map(|n| (format!("set{n}"), "core.setVariable", copy(n))).collect()
    };
    let flow = |id: &str, last: (&str, serde_json::Value)| {
        let mut nodes = copies();
        nodes.push(("last".to_owned(), if last.0.is_empty() { "core.noop" } else { "core.subWorkflow" }, last.1));
        let nodes: Vec<_> = nodes.iter().map(|(id, kind, config)| (id.as_str(), *kind, config.clone())).collect();
        Flow::chain(id, &nodes).variable("load", "string", json!(""))
    };
    let hand_down =
        |id: &str, child: &str| flow(id, (child, json!({"workflowId": child, "inputMapping": {"load": "load"}})));
    let last = flow("last", ("", json!({})));
    let world = World::with([hand_down("first", "second"), hand_down("second", "last"), last]).await;
    let inputs = [("load".to_owned(), json!("x".repeat(1_000_000)))].into_iter().collect();
    let request = StartRun { inputs, ..common::request("first") };
    let run = world.host.start_run(&who(), request, None).await.unwrap().run_id;
    world.ended(&run).await;
    (world, run)
}

#[tokio::test]
async fn a_crash_leaves_a_small_file_out_or_in() {
    let (world, run) = sample(10).await;
    assert_eq!(crash_everywhere(&world, &run).await, [0, 4], "one commit");
}

#[tokio::test]
async fn a_crash_between_versioned_stores_and_runs_leaves_no_runs() {
    let (world, run) = sample(1_000_000).await;
    assert_eq!(crash_everywhere(&world, &run).await, [0, 0, 4]);
}

#[tokio::test]
async fn a_crash_between_runs_leaves_the_children() {
    let (world, run) = generations().await;
    assert_eq!(crash_everywhere(&world, &run).await, [0, 2, 3]);
}

/// Dies after every commit of an import, and takes the file in again. Gives how many runs were there after each.
async fn crash_everywhere(world: &World, run: &RunId) -> Vec<usize> {
    let text = export(world, run).await;
    let order: Vec<String> =
        lines(&text).iter().filter_map(|line| line["run"]["id"].as_str().map(str::to_owned)).collect();
    let only = fresh().await;
    import(&only.host, &text).await.unwrap();
    let mut left = Vec::new();
    for commits in 0.. {
        let there = fresh().await;
        there.store.crash_after(commits);
        let mut taking = there.host.import(&who()).unwrap();
        taking.take(text.as_bytes()).await.unwrap();
        let died = tokio::select! {
            biased;
            outcome = taking.finish() => outcome.is_err(),
            () = there.store.crashed() => true,
        };
        let again = elsewhere(there.store.disk(), Arc::default(), options(512)).await;
        // What is there is there from its beginning to its end, children before their parents.
        let rows = again.rows().await;
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, order[..ids.len()], "after {commits} commits");
        for row in &rows {
            assert!(again.host.verify(&common::tenant(), &row.id).await.unwrap().difference.is_none());
            assert!(again.host.state_at(&common::tenant(), &row.id, None).await.is_ok());
        }
        left.push(rows.len());
        let imported = in_time("again", import(&again.host, &text)).await.unwrap();
        assert_eq!(imported.new_runs as usize, order.len() - rows.len());
        compare(&only, &again).await;
        if !died {
            break;
        }
    }
    left
}

/// A host that died has in the end what one has that did not.
async fn compare(only: &World, again: &World) {
    let (expected, rows) = (rows(only.reader.as_ref()).await, rows(again.reader.as_ref()).await);
    assert_eq!(rows, expected);
    for row in rows {
        assert_eq!(records(again.reader.as_ref(), &row).await, records(only.reader.as_ref(), &row).await);
    }
    assert_eq!(again.ledgers().await, only.ledgers().await);
}

#[tokio::test]
async fn a_full_disk_refuses_the_file_and_takes_it_later() {
    let (world, run) = sample(10).await;
    let text = export(&world, &run).await;
    let there = elsewhere(Disk::default(), Arc::default(), options(512)).await;
    let before = whole(&there.store.disk());
    there.store.fail_after(0);
    assert_eq!(import(&there.host, &text).await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(whole(&there.store.disk()), before);
    there.store.heal();
    while !there.host.readiness().ready {
        there.clock.advance(1000);
        tokio::task::yield_now().await;
    }
    assert!(!import(&there.host, &text).await.unwrap().already_here);
}
