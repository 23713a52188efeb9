//! Runs that end or freeze the process they run in, against the real one. Whatever they do, the host comes up, everybody
//! else's runs go on, and the bad one can be seen, released and cancelled.

use crate::support;

use std::path::Path;
use std::time::{Duration, Instant};

use baton_testkit::postgres::Database;
use serde_json::{Value, json};
use support::flow::{chain, node};
use support::http::PATIENCE;
use support::web::Web;
use support::{Running, baton_with};

const KEYS: (&str, &str) = ("BATON_API_KEYS", "alpha:acme,beta:elsewhere");
const FAULTS: (&str, &str) = ("TEST_FAULTS_BY_TAG", "1");

/// Is durable, waits a moment, and goes on by itself.
fn flow() -> Value {
    let steps = vec![node("wait", "core.delay", json!({"ms": 300})), node("after", "core.noop", json!({}))];
    chain("poison-flow", steps)
}

/// Waits for hours: what a restart must not lose.
fn patient() -> Value {
    chain("patient", vec![node("wait", "core.delay", json!({"ms": 7_200_000})), node("after", "core.noop", json!({}))])
}

struct House<'a> {
    folder: &'a Path,
    env: Vec<(&'a str, &'a str)>,
}

impl House<'_> {
    fn start_host(&self) -> Running {
        Running::start(self.folder, &["serve", "--conformance"], &self.env)
    }

    /// Starts hosts until one lives, and says how many did not. It may die before it says where it listens.
    fn raise_after(&self, mut host: Option<Running>) -> (Running, usize) {
        let mut crashes = 0;
        loop {
            if let Some(mut running) = host.take()
                && running.ends_within(Duration::from_secs(8)).is_none()
            {
                return (running, crashes);
            }
            crashes += 1;
            assert!(crashes <= 2, "the host dies of one run again and again");
            host = Running::try_start(self.folder, &["serve", "--conformance"], &self.env).ok();
        }
    }

    /// Waits until a step of this run has not ended for a while. It stands in the notes that survive the process.
    fn until_stepped(&self, run: &str) {
        let notes = self.folder.join(".baton/baton.steps");
        let (deadline, mut seen) = (Instant::now() + PATIENCE, 0);
        while seen < 5 {
            assert!(Instant::now() < deadline, "{run} is not being stepped");
            let noted = std::fs::read(&notes).unwrap_or_default();
            let is_there = noted.windows(run.len()).any(|bytes| bytes == run.as_bytes());
            // One that has ended leaves its name behind a zero byte.
            let stands = is_there && noted.chunks(512).any(|place| place.starts_with(run.as_bytes()));
            seen = if stands { seen + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn cli(&self, host: &Running, arguments: &[&str]) -> support::Ended {
        let env = [("BATON_URL", host.url.as_str()), ("BATON_API_KEY", "alpha")];
        baton_with(self.folder, arguments, &env)
    }
}

fn web(host: &Running, key: &str) -> Web {
    Web::new(&host.url, Some(key))
}

fn start(web: &Web, tag: &str) -> String {
    web.start_with(json!({"workflowId": "poison-flow", "tags": [tag]}))
}

fn until_quarantined(web: &Web, run: &str) -> Value {
    web.until(run, |snapshot| snapshot["quarantine"].is_object())["quarantine"].clone()
}

#[test]
fn a_run_that_ends_the_process_is_found_out_at_the_third_start_at_the_latest() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS] };
    let host = house.start_host();
    web(&host, "alpha").post("/v1/workflows", flow()).expect(201);
    web(&host, "beta").post("/v1/workflows", flow()).expect(201);
    web(&host, "alpha").post("/v1/workflows", patient()).expect(201);
    let waits = web(&host, "alpha").start("patient");
    let others: Vec<String> = (0..5).map(|_| start(&web(&host, "beta"), "good")).collect();
    let bad = start(&web(&host, "alpha"), "fault:abort");
    let (host, crashes) = house.raise_after(Some(host));
    assert_eq!(crashes, 2, "it was let try twice");

    let acme = web(&host, "alpha");
    let held = until_quarantined(&acme, &bad);
    assert_eq!((&held["cause"], &held["runId"]), (&json!("process_died"), &json!(bad)), "{held}");
    for run in &others {
        web(&host, "beta").until_status(run, "completed");
    }
    assert_eq!(acme.snapshot(&waits)["status"], "running");
    acme.get("/readiness").expect(200);
    acme.post(&format!("/v1/runs/{bad}:pause"), json!({})).refused(409, "run_quarantined");

    let listed = house.cli(&host, &["run", "list", "--quarantined", "--json"]).expect(0).json();
    assert_eq!(listed["trees"][0]["rootRunId"], json!(bad), "{listed}");
    let table = house.cli(&host, &["run", "list", "--quarantined"]).expect(0);
    assert!(table.stdout.contains(&bad) && table.stdout.contains("process_died"), "{table:?}");
    let metrics = acme.get("/metrics").text();
    assert!(metrics.contains("baton_quarantined_trees 1"), "{metrics}");
    let foreign = web(&host, "beta").get("/v1/host/baton/quarantine").expect(200);
    assert_eq!(foreign["trees"], json!([]));
    web(&host, "beta").post(&format!("/v1/host/baton/runs/{bad}/release"), json!({})).refused(404, "run_not_found");

    // Released, it does it again, and is back in quarantine at the third start of its new life.
    house.cli(&host, &["run", "release", &bad]).expect(0);
    let (host, crashes) = house.raise_after(Some(host));
    assert_eq!(crashes, 2, "released, it has a clean record");
    let acme = web(&host, "alpha");
    until_quarantined(&acme, &bad);
    house.cli(&host, &["run", "cancel", &bad, "--reason", "it is poison"]).expect(0);
    let (_, events) = acme.ended(&bad, "cancelled");
    assert_eq!(events.last().unwrap()["payload"]["reason"], "it is poison");
    house.cli(&host, &["run", "release", &bad]).expect(5);
    assert_eq!(acme.get("/v1/host/baton/quarantine").expect(200)["trees"], json!([]));
    assert_eq!(host.stop(), 0);
    let host = house.start_host();
    web(&host, "alpha").ended(&bad, "cancelled");
}

/// A child that ends the process before anybody knows of it: its tree is held for it.
#[test]
fn a_child_that_ends_the_process_in_its_first_step_holds_its_tree() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS] };
    let host = house.start_host();
    let acme = web(&host, "alpha");
    acme.post("/v1/workflows", chain("fault-abort-at-start", vec![node("n", "core.noop", json!({}))])).expect(201);
    let call = json!({"workflowId": "fault-abort-at-start", "waitForCompletion": true});
    let steps = vec![node("wait", "core.delay", json!({"ms": 300})), node("call", "core.subWorkflow", call)];
    acme.post("/v1/workflows", chain("parent", steps)).expect(201);
    acme.post("/v1/workflows", flow()).expect(201);
    let bad = acme.start("parent");
    let (host, crashes) = house.raise_after(Some(host));
    assert_eq!(crashes, 2);
    let acme = web(&host, "alpha");
    let held = until_quarantined(&acme, &bad);
    assert_eq!((&held["cause"], &held["rootRunId"]), (&json!("process_died"), &json!(bad)), "{held}");
    let good = start(&acme, "good");
    acme.until_status(&good, "completed");
    house.cli(&host, &["run", "cancel", &bad]).expect(0);
    acme.ended(&bad, "cancelled");
}

/// What was found out is forgotten with the release, also by the next process.
#[test]
fn a_run_that_was_released_starts_with_a_clean_record() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS] };
    let host = house.start_host();
    web(&host, "alpha").post("/v1/workflows", patient()).expect(201);
    web(&host, "alpha").post("/v1/workflows", flow()).expect(201);
    let bad = start(&web(&host, "alpha"), "fault:abort");
    let (host, _) = house.raise_after(Some(host));
    until_quarantined(&web(&host, "alpha"), &bad);
    host.stop();
    // The defect is mended.
    let mended = House { folder: folder.path(), env: vec![KEYS] };
    let host = mended.start_host();
    until_quarantined(&web(&host, "alpha"), &bad);
    mended.cli(&host, &["run", "release", &bad]).expect(0);
    web(&host, "alpha").until_status(&bad, "completed");
    host.stop();
    let host = mended.start_host();
    web(&host, "alpha").ended(&bad, "completed");
    assert_eq!(web(&host, "alpha").get("/v1/host/baton/quarantine").expect(200)["trees"], json!([]));
}

#[test]
fn a_run_that_freezes_is_named_and_ends_the_process_once() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS, ("BATON_STUCK_AFTER_SECONDS", "3")] };
    let host = house.start_host();
    let acme = web(&host, "alpha");
    acme.post("/v1/workflows", flow()).expect(201);
    web(&host, "beta").post("/v1/workflows", flow()).expect(201);
    let bad = start(&acme, "fault:spin");
    // Whoever looks at it, or tells it something, waits; everybody else goes on.
    let url = host.url.clone();
    let lookers: Vec<_> = (0..12)
        .map(|number| {
            let (acme, bad) = (Web::new(&url, Some("alpha")), bad.clone());
            std::thread::spawn(move || {
                while acme.attempt("GET", "/health", &[], None).is_ok() {
                    let (method, path) = if number % 3 == 0 { ("POST", ":pause") } else { ("GET", "") };
                    let body = (method == "POST").then(|| json!({}));
                    drop(acme.attempt(method, &format!("/v1/runs/{bad}{path}"), &[], body.as_ref()));
                }
            })
        })
        .collect();
    let mut completed = 0;
    let other = web(&host, "beta");
    // The process ends meanwhile, at any of these lines.
    while let Ok(started) =
        other.attempt("POST", "/v1/runs", &[], Some(&json!({"workflowId": "poison-flow", "tags": ["good"]})))
    {
        assert_eq!(started.status, 201, "{}", started.text());
        let run = started.json()["runId"].as_str().unwrap().to_owned();
        while let Ok(health) = other.attempt("GET", "/health", &[], None) {
            assert_eq!(health.status, 200);
            let Ok(snapshot) = other.attempt("GET", &format!("/v1/runs/{run}"), &[], None) else { break };
            if snapshot.status == 200 && snapshot.json()["status"] == "completed" {
                completed += 1;
                break;
            }
        }
    }
    assert!(completed > 0, "nobody else got on");
    for looker in lookers {
        looker.join().unwrap();
    }
    let mut host = host;
    assert_eq!(host.ends_within(PATIENCE), Some(11), "ends itself with its own exit code");
    let printed = host.kill();
    assert!(printed.contains("work does not get on") && printed.contains(&bad), "{printed}");

    let mut host = house.start_host();
    let acme = web(&host, "alpha");
    let held = until_quarantined(&acme, &bad);
    assert_eq!(held["cause"], "stuck", "{held}");
    let good = start(&acme, "good");
    acme.until_status(&good, "completed");
    assert_eq!(host.ends_within(Duration::from_secs(8)), None, "it lives on");
    house.cli(&host, &["run", "cancel", &bad]).expect(0);
    acme.ended(&bad, "cancelled");
}

/// A replay has no steps of its own; what it goes through is noted and left alone all the same.
#[test]
fn a_replay_that_ends_the_process_is_found_out_too() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS] };
    let host = house.start_host();
    let acme = web(&host, "alpha");
    acme.post("/v1/workflows", flow()).expect(201);
    let source = start(&acme, "fault-replay:abort");
    acme.until_status(&source, "completed");
    // It may die before it has answered.
    let body = json!({"mode": "replay", "fromSeq": 0});
    drop(acme.attempt("POST", &format!("/v1/runs/{source}:fork"), &[], Some(&body)));
    let (host, crashes) = house.raise_after(Some(host));
    assert_eq!(crashes, 2, "it was let try twice");
    let acme = web(&host, "alpha");
    let trees = acme.get("/v1/host/baton/quarantine").expect(200);
    let held = &trees["trees"][0];
    assert_eq!(held["cause"], "process_died", "{trees}");
    let replay = held["rootRunId"].as_str().unwrap().to_owned();
    assert_ne!(replay, source);
    house.cli(&host, &["run", "cancel", &replay]).expect(0);
    acme.ended(&replay, "cancelled");
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_frozen_run_does_not_keep_the_process_from_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS, ("BATON_STUCK_AFTER_SECONDS", "600")] };
    let mut host = house.start_host();
    let acme = web(&host, "alpha");
    acme.post("/v1/workflows", flow()).expect(201);
    let frozen = start(&acme, "fault:spin");
    house.until_stepped(&frozen);
    host.ask_to_stop();
    assert_eq!(host.ends_within(PATIENCE), Some(0));
}

/// A tree is held because the process died twice while it was stepped. Then the process dies while something else is
/// stepped: perhaps somebody only kills it, so the tree may go on, once.
#[test]
fn a_process_that_dies_without_a_held_run_speaks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS, ("BATON_STUCK_AFTER_SECONDS", "600")] };
    let host = house.start_host();
    web(&host, "alpha").post("/v1/workflows", flow()).expect(201);
    let held = start(&web(&host, "alpha"), "fault:abort");
    let (host, _) = house.raise_after(Some(host));
    until_quarantined(&web(&host, "alpha"), &held);

    host.kill();
    let host = house.start_host();
    until_quarantined(&web(&host, "alpha"), &held);
    let frozen = start(&web(&host, "alpha"), "fault:spin");
    house.until_stepped(&frozen);
    host.kill();

    // Nothing misbehaves any more, and the tree is there again.
    let harmless = House { folder: folder.path(), env: vec![KEYS] };
    let host = harmless.start_host();
    let acme = web(&host, "alpha");
    acme.until_status(&held, "completed");
    acme.until_status(&frozen, "completed");
    assert_eq!(acme.get("/v1/host/baton/quarantine").expect(200)["trees"], json!([]));
    assert_eq!(host.stop(), 0);
}

/// Every thread that steps is taken by somebody of one tenant; another tenant's runs, and requests, go on.
#[test]
fn panics_and_many_frozen_runs_of_one_tenant_leave_the_other_alone() {
    let folder = tempfile::tempdir().unwrap();
    let house = House { folder: folder.path(), env: vec![KEYS, FAULTS, ("BATON_STUCK_AFTER_SECONDS", "600")] };
    let host = house.start_host();
    let (acme, other) = (web(&host, "alpha"), web(&host, "beta"));
    acme.post("/v1/workflows", flow()).expect(201);
    other.post("/v1/workflows", flow()).expect(201);
    let panics = start(&acme, "fault:panic");
    assert_eq!(until_quarantined(&acme, &panics)["cause"], "step_panicked");
    // Once all of its own turns are frozen, its next requests wait. That is its own trouble, so nobody here waits for them.
    let (accepted, frozen) = std::sync::mpsc::sync_channel(20);
    for _ in 0..20 {
        let (acme, accepted) = (web(&host, "alpha"), accepted.clone());
        std::thread::spawn(move || {
            let body = json!({"workflowId": "poison-flow", "tags": ["fault:spin"]});
            drop(acme.attempt("POST", "/v1/runs", &[], Some(&body)).map(|_| accepted.send(())));
        });
    }
    frozen.recv_timeout(PATIENCE).expect("one at least was taken");
    std::thread::sleep(Duration::from_millis(600));
    for _ in 0..10 {
        let run = start(&other, "good");
        other.until_status(&run, "completed");
        other.get("/health").expect(200);
        other.get("/v1/runs").expect(200);
    }
}

/// Three hosts on one database: a run that ends whoever steps it does not go from one to the next until all are dead.
#[test]
fn three_hosts_on_one_database_survive_a_run_that_ends_processes() {
    let Some(database) = Database::fresh_blocking() else { return };
    let folder = tempfile::tempdir().unwrap();
    let env = vec![KEYS, FAULTS, ("BATON_DATABASE_URL", database.url.as_str()), ("BATON_DATABASE_LEASE_MS", "1000")];
    let house = House { folder: folder.path(), env };
    let mut hosts: Vec<Running> = (0..3).map(|_| house.start_host()).collect();
    web(&hosts[0], "alpha").post("/v1/workflows", flow()).expect(201);
    web(&hosts[0], "beta").post("/v1/workflows", flow()).expect(201);
    let others: Vec<String> = hosts.iter().map(|host| start(&web(host, "beta"), "good")).collect();
    let bad = start(&web(&hosts[0], "alpha"), "fault:abort");
    let deadline = Instant::now() + PATIENCE;
    let held = loop {
        hosts.retain_mut(|host| host.ends_within(Duration::ZERO).is_none());
        assert!(!hosts.is_empty(), "it has ended all of them");
        let last = hosts.last().unwrap();
        let snapshot = web(last, "alpha").attempt("GET", &format!("/v1/runs/{bad}"), &[], None);
        let held =
            snapshot.ok().filter(|answer| answer.status == 200).map(|answer| answer.json()["quarantine"].clone());
        if let Some(held) = held.filter(Value::is_object) {
            break held;
        }
        assert!(Instant::now() < deadline, "never in quarantine");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(held["cause"], "process_died", "{held}");
    hosts.retain_mut(|host| host.ends_within(Duration::ZERO).is_none());
    assert!(!hosts.is_empty(), "one is left");
    let left = hosts.pop().unwrap();
    for run in &others {
        web(&left, "beta").until_status(run, "completed");
    }
    // Whoever comes back knows.
    let mut again = house.start_host();
    assert!(until_quarantined(&web(&again, "alpha"), &bad)["detail"].is_string());
    assert_eq!(again.ends_within(Duration::from_secs(3)), None);
    house.cli(&again, &["run", "cancel", &bad]).expect(0);
    web(&left, "alpha").until_status(&bad, "cancelled");
}
