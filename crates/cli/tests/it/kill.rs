//! The promise that matters most, against the real process: what was acknowledged survives `kill -9`, at whatever
//! moment it comes, and nothing happens twice.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use support::crashes::{Address, Steps, history, storage_is_sound};
use support::flow::{chain, hand_to, node, team};
use support::rng::{Rng, seed};
use support::web::{Web, of_type};

const KILLS: usize = 30;
const CLIENTS: u64 = 4;
/// Per client, so that the audit at the end stays short however fast the machine is.
const MAX_RUNS: usize = 200;
/// Clients rest up to this long between requests, so that the load lasts through all deaths.
const REST_MS: u64 = 25;

/// Three turns of a supervisor, each handing a child run to a worker that takes its time.
pub(crate) const TEAM: &str = "kill-team";
const WORKER: &str = "kill-worker";

pub(crate) const WORKFLOWS: [&str; 6] = [
    "conformance-noop",
    "conformance-multi-node",
    "conformance-delay",
    "conformance-subworkflow-parent",
    "conformance-approval",
    TEAM,
];

pub(crate) fn register_team(web: &Web) {
    let noop = |id: &str| node(id, "core.noop", json!({}));
    let steps = vec![noop("before"), node("work", "core.delay", json!({"ms": 60})), noop("after")];
    web.post("/v1/workflows", chain(WORKER, steps)).expect(201);
    let rules = json!([{"when": "size(children) < 3", "decide": hand_to(WORKER)}]);
    let enough = json!({"kind": "terminate", "reason": "three are enough"});
    web.post("/v1/workflows", team(TEAM, rules, enough, json!({}))).expect(201);
}

/// What one client was told.
#[derive(Default)]
struct Replies {
    /// Run → its workflow.
    acknowledged: BTreeMap<String, String>,
    /// Idempotency key → the run it was acknowledged with.
    keyed: BTreeMap<String, String>,
    /// Approvals whose answer was acknowledged.
    answered: BTreeSet<String>,
}

/// Starts runs and answers questions until told to stop, then finishes what it began.
fn load(client: u64, seed: u64, address: &Address, stop: &AtomicBool) -> Replies {
    let mut rng = Rng::new(seed ^ (client + 1));
    let mut replies = Replies::default();
    let mut open: Vec<String> = Vec::new();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(rng.below(REST_MS)));
        if count < MAX_RUNS {
            count += 1;
            let workflow = WORKFLOWS[rng.below(WORKFLOWS.len() as u64) as usize];
            let key = (rng.below(3) == 0).then(|| format!("key-{client}-{count}"));
            if let Some(run) = start(address, workflow, key.as_deref()) {
                replies.acknowledged.insert(run.clone(), workflow.to_owned());
                open.extend((workflow == "conformance-approval").then(|| run.clone()));
                replies.keyed.extend(key.map(|key| (key, run)));
            }
        }
        // Some questions stay open across several deaths.
        if !open.is_empty() && rng.below(3) == 0 {
            let run = open.swap_remove(rng.below(open.len() as u64) as usize);
            answer(address, &run, rng.below(2) == 0, &mut replies.answered);
        }
    }
    for run in open {
        answer(address, &run, true, &mut replies.answered);
    }
    replies
}

/// Without a key, an unknown outcome stays unknown. With one, it is asked for until it is known.
pub(crate) fn start(address: &Address, workflow: &str, key: Option<&str>) -> Option<String> {
    let mut body = json!({"workflowId": workflow, "inputs": {"delayMs": 300}});
    let headers: Vec<(&str, &str)> = key.iter().map(|key| ("Idempotency-Key", *key)).collect();
    if let Some(key) = key {
        body["tags"] = json!([key]);
    }
    loop {
        let answer = address.attempt("POST", "/v1/runs", &headers, Some(&body));
        if let Some(answer) = answer {
            return Some(answer.expect(201)["runId"].as_str().unwrap().to_owned());
        }
        key?;
    }
}

/// Answers a question until it is known to be answered. Nobody else answers it. Under a key, a repeated answer is the
/// same answer; without one, the state of the run tells whether the first was taken.
pub(crate) fn answer(address: &Address, run: &str, keyed: bool, answered: &mut BTreeSet<String>) {
    let key = format!("answer-{run}");
    let headers: &[(&str, &str)] = if keyed { &[("Idempotency-Key", &key)] } else { &[] };
    let mut uncertain = false;
    loop {
        let Some(snapshot) = address.attempt("GET", &format!("/v1/runs/{run}"), &[], None) else { continue };
        let snapshot = snapshot.expect(200);
        match snapshot["status"].as_str().unwrap() {
            "waiting-approval" => {}
            "completed" if uncertain && keyed => {}
            "completed" if uncertain => return,
            "pending" | "running" => {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            other => panic!("{run} is {other} before its answer"),
        }
        let body = json!({"resumeValue": {"action": "accept"}});
        match address.attempt("POST", &format!("/v1/runs/{run}/interrupts/gate"), headers, Some(&body)) {
            Some(answer) => {
                answer.expect(200);
                answered.insert(run.to_owned());
                return;
            }
            None => uncertain = true,
        }
    }
}

#[test]
fn what_was_acknowledged_survives_thirty_crashes_and_happens_once() {
    let seed = seed();
    eprintln!("TEST_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let address = Address::new(&format!("kill-{}-{seed}", std::process::id()));
    let start_host = || address.start_host(folder.path());
    let stop = AtomicBool::new(false);
    let (host, replies) = std::thread::scope(|scope| {
        let mut host = start_host();
        register_team(&Web::new(&host.url, Some(&address.key)));
        let (address, stop) = (&address, &stop);
        let client = |client| scope.spawn(move || load(client, seed, address, stop));
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        let mut rng = Rng::new(seed);
        for _ in 0..KILLS {
            // The random moment; nothing is synchronised by it.
            std::thread::sleep(Duration::from_millis(rng.below(300)));
            host.kill();
            address.set(None);
            host = start_host();
        }
        stop.store(true, Ordering::Relaxed);
        (host, clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>())
    });
    let web = Web::new(&host.url, Some(&address.key));
    let count = |of: fn(&Replies) -> usize| replies.iter().map(of).sum::<usize>();
    let (runs, answered) = (count(|replies| replies.acknowledged.len()), count(|replies| replies.answered.len()));
    let cut_off = address.cut_off();
    eprintln!("{runs} runs acknowledged, {answered} answers, {cut_off} requests cut off");
    assert!(runs > KILLS && answered > 0 && cut_off > 0, "the load was too light to prove anything");
    let undisturbed = undisturbed(&web);
    assert_eq!(undisturbed[TEAM].len(), 4, "a lead and three workers");
    for replies in &replies {
        audit(&web, replies, &undisturbed);
    }
    nothing_is_stuck(&web);
    assert_eq!(host.stop(), 0);
    storage_is_sound(folder.path());
}

/// One run of each workflow that nobody disturbed.
pub(crate) fn undisturbed(web: &Web) -> BTreeMap<&'static str, Vec<Steps>> {
    let history = |workflow: &'static str| {
        let run = web.start_with(json!({"workflowId": workflow, "inputs": {"delayMs": 300}}));
        if workflow == "conformance-approval" {
            web.until_status(&run, "waiting-approval");
            web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
        }
        (workflow, history(web, &run))
    };
    WORKFLOWS.into_iter().map(history).collect()
}

/// Everything acknowledged is there and went exactly as it goes when nobody dies: no step missing, none twice.
fn audit(web: &Web, replies: &Replies, undisturbed: &BTreeMap<&str, Vec<Steps>>) {
    for (run, workflow) in &replies.acknowledged {
        assert_eq!(history(web, run), undisturbed[workflow.as_str()], "{workflow} {run}");
    }
    for run in &replies.answered {
        assert_eq!(of_type(&web.events(run), "approval.received").len(), 1, "{run}");
    }
    for (key, run) in &replies.keyed {
        let runs = web.get(&format!("/v1/runs?tag={key}")).expect(200)["runs"].clone();
        let ids: Vec<&str> = runs.as_array().unwrap().iter().map(|row| row["runId"].as_str().unwrap()).collect();
        assert_eq!(ids, [run], "{key}");
    }
}

/// Runs whose acknowledgement was lost exist or do not; those that exist end like all others.
fn nothing_is_stuck(web: &Web) {
    let mut cursor = String::new();
    loop {
        let page = web.get(&format!("/v1/runs?limit=200{cursor}")).expect(200);
        for row in page["runs"].as_array().unwrap() {
            let run = row["runId"].as_str().unwrap();
            let wanted = |status: &str| {
                status == "completed" || (status == "waiting-approval" && row["workflowId"] == "conformance-approval")
            };
            web.until(run, |snapshot| wanted(snapshot["status"].as_str().unwrap()));
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return,
        }
    }
}
