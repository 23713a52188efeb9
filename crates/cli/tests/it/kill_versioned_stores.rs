//! Memory and workspace under `kill -9`: a write that was acknowledged is there afterwards with the same id, version and
//! content, a repeated one counts once, and a loop that decides by its memory comes to the same result.

use crate::support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::crashes::{Address, Steps, history, storage_is_sound};
use support::flow::{chain, hand_to, node, team};
use support::rng::{Rng, seed};
use support::web::Web;

const KILLS: usize = 20;
const WRITERS: u64 = 2;
/// Per writer and kind, so that the audit at the end stays short however fast the machine is.
const MOST: usize = 400;
/// Writers rest up to this long between requests, so that the load lasts through all deaths.
const REST_MS: u64 = 15;

/// A supervisor that hands out work until it remembers three findings.
const TEAM: &str = "kill-notebook";
const WORKER: &str = "kill-observer";
const SHARED: &str = "shared";

fn register(web: &Web) {
    let steps = vec![
        node("look", "core.delay", json!({"ms": 40})),
        node("remember", "vendor.baton.memory.put", json!({"content": "a finding", "tags": ["finding"]})),
        node("recall", "vendor.baton.memory.list", json!({"into": "seen"})),
        node(
            "report",
            "vendor.baton.workspace.put",
            json!({"path": "team/report.md", "contentExpression": "'seen ' + string(size(variables.seen))"}),
        ),
    ];
    web.post("/v1/workflows", chain(WORKER, steps)).expect(201);
    let rules = json!([{"when": "size(memory) < 3", "decide": hand_to(WORKER)}]);
    let enough = json!({"kind": "terminate", "reason": "three are enough"});
    web.post("/v1/workflows", team(TEAM, rules, enough, json!({}))).expect(201);
}

/// What one writer was told, each answer as it came.
#[derive(Default)]
struct Replies {
    entries: Vec<Value>,
    /// Entries written under a key, whose outcome was asked for until it was known.
    keyed: Vec<Value>,
    files: Vec<Value>,
    runs: Vec<String>,
}

fn write(writer: u64, seed: u64, address: &Address, stop: &AtomicBool) -> Replies {
    let mut rng = Rng::new(seed ^ (writer + 1));
    let mut replies = Replies::default();
    let path = format!("/v1/host/workspace/files/w{writer}.md");
    let scope = format!("/v1/host/baton/memory/{SHARED}");
    for count in 0.. {
        if stop.load(Ordering::Relaxed) {
            return replies;
        }
        std::thread::sleep(Duration::from_millis(rng.below(REST_MS)));
        let text = format!("{writer}-{count}");
        match rng.below(8) {
            0..3 if replies.entries.len() < MOST => {
                let body = json!({"content": text, "tags": [format!("w{writer}")]});
                replies
                    .entries
                    .extend(address.attempt("POST", &scope, &[], Some(&body)).map(|answer| answer.expect(201)));
            }
            3 if replies.keyed.len() < MOST => {
                let body = json!({"content": text});
                loop {
                    let key = [("Idempotency-Key", text.as_str())];
                    if let Some(answer) = address.attempt("POST", &scope, &key, Some(&body)) {
                        replies.keyed.push(answer.expect(201));
                        break;
                    }
                }
            }
            4..7 if replies.files.len() < MOST => {
                let body = json!({"content": text});
                replies.files.extend(address.attempt("PUT", &path, &[], Some(&body)).map(|answer| answer.expect(200)));
            }
            _ if replies.runs.len() < MOST / 8 => {
                let body = json!({"workflowId": TEAM});
                let started = address.attempt("POST", "/v1/runs", &[], Some(&body)).map(|answer| answer.expect(201));
                replies.runs.extend(started.map(|run| run["runId"].as_str().unwrap().to_owned()));
            }
            _ => {}
        }
    }
    replies
}

#[test]
fn acknowledged_writes_survive_twenty_crashes_with_their_versions() {
    let seed = seed();
    eprintln!("TEST_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let address = Address::new(&format!("kill-ledgers-{}-{seed}", std::process::id()));
    let stop = AtomicBool::new(false);
    let (host, replies) = std::thread::scope(|scope| {
        let mut host = address.start_host(folder.path());
        register(&Web::new(&host.url, Some(&address.key)));
        let (address, stop) = (&address, &stop);
        let writer = |writer| scope.spawn(move || write(writer, seed, address, stop));
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        let mut rng = Rng::new(seed);
        for _ in 0..KILLS {
            // The random moment; nothing is synchronised by it.
            std::thread::sleep(Duration::from_millis(rng.below(250)));
            host.kill();
            address.set(None);
            host = address.start_host(folder.path());
        }
        stop.store(true, Ordering::Relaxed);
        (host, writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>())
    });
    let count = |of: fn(&Replies) -> usize| replies.iter().map(of).sum::<usize>();
    let (entries, keyed) = (count(|replies| replies.entries.len()), count(|replies| replies.keyed.len()));
    let (files, runs) = (count(|replies| replies.files.len()), count(|replies| replies.runs.len()));
    let cut_off = address.cut_off();
    eprintln!("{entries} entries, {keyed} under a key, {files} files, {runs} loops, {cut_off} requests cut off");
    let least = entries.min(keyed).min(files).min(runs);
    assert!(least > 0, "nothing was acknowledged, so nothing is proved");

    let web = Web::new(&host.url, Some(&address.key));
    for replies in &replies {
        memory_is_there(&web, replies);
        files_are_there(&web, replies);
    }
    let undisturbed = undisturbed(&web);
    for run in replies.iter().flat_map(|replies| &replies.runs) {
        same_result(&web, run, &undisturbed);
    }
    assert_eq!(host.stop(), 0);
    storage_is_sound(folder.path());
}

/// Each acknowledged entry reads as it was acknowledged; one written under a key is there once.
fn memory_is_there(web: &Web, replies: &Replies) {
    for entry in replies.entries.iter().chain(&replies.keyed) {
        let path = format!("/v1/host/baton/memory/{SHARED}/{}", entry["id"].as_str().unwrap());
        assert_eq!(web.get(&path).expect(200), *entry);
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let all = web.get(&format!("/v1/host/baton/memory/{SHARED}?limit=1000")).expect(200);
    for entry in all["entries"].as_array().unwrap() {
        *times.entry(entry["content"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(times.values().sum::<usize>() < 1000, "the audit would not see all of it");
    for entry in &replies.keyed {
        assert_eq!(times[entry["content"].as_str().unwrap()], 1, "{entry}");
    }
}

/// Each acknowledged version of a file is there, word for word, and the versions have no gap.
fn files_are_there(web: &Web, replies: &Replies) {
    let mut last = 0;
    for file in &replies.files {
        let version = file["version"].as_u64().unwrap();
        assert!(version > last, "version {version} was given twice");
        last = version;
        let path = format!("/v1/host/workspace/files/{}?version={version}", file["path"].as_str().unwrap());
        assert_eq!(web.get(&path).expect(200), *file);
    }
    let Some(file) = replies.files.first() else { return };
    let path = file["path"].as_str().unwrap();
    let now = web.get(&format!("/v1/host/workspace/files/{path}")).expect(200)["version"].as_u64().unwrap();
    assert!(now >= last);
    let mut versions = Vec::new();
    let mut before = String::new();
    loop {
        let page = web.get(&format!("/v1/host/baton/workspace/changes?path={path}{before}")).expect(200);
        versions.extend(page["changes"].as_array().unwrap().iter().map(|change| change["version"].as_u64().unwrap()));
        match page["nextBefore"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(versions, (1..=now).rev().collect::<Vec<_>>());
}

/// What a loop that nobody disturbed did, step by step.
fn undisturbed(web: &Web) -> Vec<Steps> {
    let steps = history(web, &web.start(TEAM));
    assert_eq!(steps.len(), 4, "a lead and three workers");
    steps
}

/// A loop that lived through deaths did the same, and remembers the same.
fn same_result(web: &Web, run: &str, undisturbed: &[Steps]) {
    assert_eq!(history(web, run), undisturbed, "{run}");
    let memory = web.get(&format!("/v1/host/baton/memory/{run}")).expect(200);
    let contents: Vec<&Value> = memory["entries"].as_array().unwrap().iter().map(|entry| &entry["content"]).collect();
    assert_eq!(contents, ["a finding"; 3], "{run}");
    // Each worker saw what was there when it started and its own.
    let snapshot = web.snapshot(run);
    let seen: Vec<usize> = snapshot["childRuns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|child| web.snapshot(child["runId"].as_str().unwrap()))
        .map(|child| child["variables"]["seen"].as_array().unwrap().len())
        .collect();
    assert_eq!(seen, [1, 2, 3], "{run}");
}
