//! A log that this build would not write: what proving it, replaying it and following the replay show.

use crate::support;

use std::sync::Arc;

use baton_model::{Event, RunId};
use baton_runtime::Host;
use baton_store::reads::*;
use baton_store::{Commit, Journal as _, LogChain, MemoryStore, RunRow, StoredRecord, Write};
use serde_json::json;
use support::{Site, host_options};

/// Writes a run's log once more under another name, with other outputs of a node, as another build might have.
async fn doctored(store: &MemoryStore, run: &str, node: &str) -> (String, u64) {
    let run = RunId::new(run);
    let row = store.run(&run).await.unwrap().unwrap();
    let twin = RunId::new(format!("{run}x"));
    let mut changed = None;
    let mut records = Vec::new();
    for stored in store.records(&run, 0, 1000).await.unwrap() {
        let mut record = stored.decode(&run).unwrap();
        if let Event::NodeCompleted(completed) = &mut record.event
            && completed.node_id.as_str() == node
        {
            completed.outputs.insert("surprise".to_owned(), json!(true));
            changed = Some(record.seq);
        }
        records.push(StoredRecord::encode(&twin, &record));
    }
    let row = RunRow { chain: LogChain::default(), ..row };
    let fresh = RunRow { id: twin.clone(), next_seq: 0, ..row.clone() };
    let writes =
        vec![Write::CreateRun(fresh), Write::Append { row: RunRow { id: twin.clone(), ..row }, expected: 0, records }];
    store.submit(Commit::new(store.generation(), writes)).await.unwrap();
    (twin.to_string(), changed.expect("the node completed"))
}

async fn site() -> (Site, String, u64) {
    let store = Arc::new(MemoryStore::new());
    let host = Host::open(store.clone(), host_options()).await.unwrap();
    let site = Site::over(host, |_| {});
    let nodes = [("a", "core.noop", json!({})), ("b", "core.noop", json!({})), ("c", "core.noop", json!({}))];
    site.register_chain("three", &nodes).await;
    let run = site.completed("three").await;
    let (twin, seq) = doctored(&store, &run, "b").await;
    (site, twin, seq)
}

#[tokio::test]
async fn proving_names_the_first_difference() {
    let (site, run, seq) = site().await;
    let body = site.post(&format!("/v1/host/baton/runs/{run}/verify"), json!({})).await.json();
    assert_eq!((&body["equal"], &body["difference"]["seq"]), (&json!(false), &json!(seq)), "{body}");
    let difference = &body["difference"];
    assert_eq!(difference["kind"], "output");
    assert_eq!(difference["original"]["payload"]["outputs"], json!({"surprise": true}));
    assert_eq!(difference["replayed"]["type"], "node.completed");
    assert!(difference["replayed"]["payload"].get("outputs").is_none(), "nothing of the kind comes out: {body}");
}

#[tokio::test]
async fn a_replay_says_so_in_its_log_and_goes_on_and_only_debug_shows_it() {
    let (site, run, seq) = site().await;
    let fork = site.forked(&run, json!({"mode": "replay"}), "completed").await;
    let log = site.log(&fork).await;
    let diverged: Vec<_> = log.iter().filter(|event| event["type"] == "replay.diverged").collect();
    assert_eq!(diverged.len(), 1);
    let payload = &diverged[0]["payload"];
    assert_eq!((&payload["sourceRunId"], &payload["atSequence"]), (&json!(run), &json!(seq)));
    assert_eq!((&payload["divergenceKind"], &payload["divergencePoint"]), (&json!("output"), &json!("node.completed")));
    let original = site.log(&run).await[usize::try_from(seq).unwrap()]["eventId"].clone();
    assert_eq!(payload["originalEventId"], original);
    for (mode, shown) in [("debug", 1), ("updates", 0), ("messages", 0)] {
        let frames = site.stream(&format!("/v1/runs/{fork}/events?streamMode={mode}"), &[]).await.all().await;
        assert_eq!(frames.iter().filter(|frame| frame.event == "replay.diverged").count(), shown, "{mode}");
    }
    let diff = site.get(&format!("/v1/runs/{run}:diff?against={fork}")).await.json();
    assert_eq!(diff["divergedAtSeq"], diverged[0]["sequence"], "said before the step in which it happened");
    assert_eq!(diff["eventDiffs"][0]["bEvent"]["type"], "replay.diverged");
}
