//! Forks under `kill -9`: every fork that was acknowledged exists afterwards and finishes, a repeated one counts once,
//! and replays come out like their sources, whatever moment the host died at.

use crate::support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::crashes::{Address, release_the_innocent, storage_is_sound};
use support::flow::{chain, hand_to, node, team};
use support::rng::{Rng, seed};
use support::web::{Web, of_type};

const KILLS: usize = 20;
const CLIENTS: u64 = 2;
/// Per client, so that the audit at the end stays short however fast the machine is.
const MOST: usize = 150;
/// Clients rest up to this long between requests, so that the load lasts through all deaths.
const REST_MS: u64 = 20;

/// A supervisor that hands out work until it remembers as many findings as it was told.
const TEAM: &str = "kill-fork-team";
const WORKER: &str = "kill-fork-worker";
/// Many steps of the engine's own, so that a death can hit the middle of a replay.
const LONG: &str = "kill-fork-long";

fn register(web: &Web) {
    let steps = vec![
        node("look", "core.delay", json!({"ms": 20})),
        node("remember", "vendor.baton.memory.put", json!({"content": "a finding"})),
    ];
    web.post("/v1/workflows", chain(WORKER, steps)).expect(201);
    let rules = json!([{"when": "size(memory) < variables.wanted", "decide": hand_to(WORKER)}]);
    let enough = json!({"kind": "terminate", "reason": "enough"});
    let mut team = team(TEAM, rules, enough, json!({}));
    team["variables"] = json!([{"name": "wanted", "type": "number", "required": false, "defaultValue": 2}]);
    web.post("/v1/workflows", team).expect(201);
    let step = |at: usize| {
        let config = json!({"name": "n", "expression": "variables.n + 1"});
        node(&format!("s{at}"), "core.setVariable", config)
    };
    let mut long = chain(LONG, (0..150).map(step).collect());
    long["variables"] = json!([{"name": "n", "type": "number", "required": false, "defaultValue": 0}]);
    web.post("/v1/workflows", long).expect(201);
}

/// The runs that are forked, and their logs.
struct Sources {
    team: String,
    long: String,
    logs: BTreeMap<String, Vec<Value>>,
}

impl Sources {
    fn make(web: &Web) -> Self {
        let run = |workflow: &str| {
            let run = web.start(workflow);
            let (_, events) = web.ended(&run, "completed");
            (run, events)
        };
        let (team, long) = (run(TEAM), run(LONG));
        let names = (team.0.clone(), long.0.clone());
        Self { team: names.0, long: names.1, logs: [team, long].into_iter().collect() }
    }
}

/// What one client was told: the fork, as it was acknowledged, and how many findings its memory must end with.
#[derive(Default)]
struct Replies {
    branches: Vec<(Value, usize)>,
    replays: Vec<Value>,
    /// Under a key, asked for until the outcome was known.
    keyed: Vec<(String, Value)>,
}

fn load(client: u64, seed: u64, address: &Address, sources: &Sources, stop: &AtomicBool) -> Replies {
    let mut rng = Rng::new(seed ^ (client + 1));
    let mut replies = Replies::default();
    for count in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(rng.below(REST_MS)));
        if replies.branches.len() + replies.replays.len() + replies.keyed.len() >= MOST {
            continue;
        }
        let source = if rng.below(5) == 0 { &sources.long } else { &sources.team };
        let from = rng.below(sources.logs[source].len() as u64 + 1);
        let path = format!("/v1/runs/{source}:fork");
        let replay = json!({"mode": "replay", "fromSeq": from});
        match rng.below(3) {
            0 => {
                let wanted = 2 + rng.below(3) as usize;
                let body = json!({
                    "mode": "branch", "fromSeq": rng.below(3), "runOptionsOverlay": {"variables": {"wanted": wanted}}
                });
                let made = address.attempt("POST", &format!("/v1/runs/{}:fork", sources.team), &[], Some(&body));
                replies.branches.extend(made.map(|answer| (answer.expect(201), wanted)));
            }
            1 => {
                let made = address.attempt("POST", &path, &[], Some(&replay));
                replies.replays.extend(made.map(|answer| answer.expect(201)));
            }
            _ => {
                let key = format!("fork-{client}-{count}");
                let made = loop {
                    let header = [("Idempotency-Key", key.as_str())];
                    if let Some(answer) = address.attempt("POST", &path, &header, Some(&replay)) {
                        break answer.expect(201);
                    }
                };
                replies.keyed.push((key, made));
            }
        }
    }
    replies
}

#[test]
fn acknowledged_forks_survive_twenty_crashes_and_replays_end_equal() {
    let seed = seed();
    eprintln!("TEST_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let address = Address::new(&format!("kill-forks-{}-{seed}", std::process::id()));
    let stop = AtomicBool::new(false);
    let mut host = address.start_host(folder.path());
    let web = Web::new(&host.url, Some(&address.key));
    register(&web);
    let sources = Sources::make(&web);
    let (host, replies) = std::thread::scope(|scope| {
        let (address, sources, stop) = (&address, &sources, &stop);
        let client = |client| scope.spawn(move || load(client, seed, address, sources, stop));
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        let mut rng = Rng::new(seed);
        for _ in 0..KILLS {
            // The random moment; nothing is synchronised by it.
            std::thread::sleep(Duration::from_millis(rng.below(400)));
            host.kill();
            address.set(None);
            host = address.start_host(folder.path());
        }
        stop.store(true, Ordering::Relaxed);
        (host, clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>())
    });
    let count = |of: fn(&Replies) -> usize| replies.iter().map(of).sum::<usize>();
    let (branches, replays) = (count(|replies| replies.branches.len()), count(|replies| replies.replays.len()));
    let (keyed, cut_off) = (count(|replies| replies.keyed.len()), address.cut_off());
    eprintln!("{branches} branches, {replays} replays, {keyed} under a key, {cut_off} requests cut off");
    assert!(branches + replays + keyed > 0, "nothing was acknowledged, so nothing is proved");

    let web = Web::new(&host.url, Some(&address.key));
    release_the_innocent(&web);
    for replies in &replies {
        for (made, wanted) in &replies.branches {
            branch_is_done(&web, made, *wanted);
        }
        for made in replies.replays.iter().chain(replies.keyed.iter().map(|(_, made)| made)) {
            replay_is_equal(&web, made, &sources);
        }
        for (key, made) in &replies.keyed {
            let source = made["sourceRunId"].as_str().unwrap();
            let body = json!({"mode": "replay", "fromSeq": made["fromSeq"]});
            assert_eq!(web.keyed(key, &format!("/v1/runs/{source}:fork"), body).expect(201), *made, "{key}");
        }
    }
    for (run, log) in &sources.logs {
        assert_eq!(web.events(run), *log, "nobody touches a source");
    }
    all_verify(&web);
    assert_eq!(host.stop(), 0);
    storage_is_sound(folder.path());
}

/// It has as many findings as it was told to want, no more and no fewer, in a memory of its own.
fn branch_is_done(web: &Web, made: &Value, wanted: usize) {
    let run = made["runId"].as_str().unwrap();
    let (snapshot, events) = web.ended(run, "completed");
    assert_eq!(snapshot["forkedFrom"]["runId"], made["sourceRunId"]);
    assert_eq!(of_type(&events, "runOrchestrator.decided").len(), wanted + 1, "{run}");
    let memory = web.get(&format!("/v1/host/baton/memory/{run}")).expect(200);
    assert_eq!(memory["entries"].as_array().unwrap().len(), wanted, "{run}");
}

/// Event for event what its source is, and nothing says otherwise.
fn replay_is_equal(web: &Web, made: &Value, sources: &Sources) {
    let (run, source) = (made["runId"].as_str().unwrap(), made["sourceRunId"].as_str().unwrap());
    let (_, events) = web.ended(run, "completed");
    let replies = |events: &[Value]| -> Vec<(Value, Value, Value)> {
        events.iter().map(|event| (event["type"].clone(), event["nodeId"].clone(), event["payload"].clone())).collect()
    };
    assert!(replies(&events) == replies(&sources.logs[source]), "{run} is not like {source}");
}

/// Runs whose acknowledgement was lost exist or do not; those that exist end, and prove right, like all others.
fn all_verify(web: &Web) {
    let mut cursor = String::new();
    loop {
        let page = web.get(&format!("/v1/runs?limit=200{cursor}")).expect(200);
        for row in page["runs"].as_array().unwrap() {
            let run = row["runId"].as_str().unwrap();
            web.until_status(run, "completed");
            let found = web.post(&format!("/v1/host/baton/runs/{run}/verify"), json!({})).expect(200);
            assert_eq!(found["equal"], true, "{found}");
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return,
        }
    }
}
