//! `baton serve --database-url`: two hosts on one database, and moving there and back.

use crate::support;

use baton_testkit::postgres::{Cluster, Database, rows};
use serde_json::{Value, json};
use support::web::Web;
use support::{Running, baton, baton_with, eventually};

const KEYS: (&str, &str) = ("BATON_API_KEYS", "alpha:acme");

#[test]
fn two_hosts_share_a_database_and_it_moves_to_a_folder() {
    let Some(database) = Database::fresh_blocking() else { return };
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let url = ("BATON_DATABASE_URL", database.url.as_str());
    let north = Running::start(here, &["serve"], &[KEYS, url]);
    let south = Running::start(here, &["serve", "--no-listen"], &[KEYS, url]);
    let (there, other) = (Web::new(&north.url, Some("alpha")), Web::new(&south.url, Some("alpha")));
    there.post("/v1/workflows", flow()).expect(201);
    let run = there.start("noop");
    there.ended(&run, "completed");
    other.ended(&run, "completed");
    let second = other.start("noop");
    there.ended(&second, "completed");

    let busy = baton(here, &["storage", "check", &database.url]).expect(5);
    assert!(busy.stderr.contains("is in use by 2 hosts"), "{busy:?}");
    let doctor = baton_with(here, &["doctor", "--json"], &[KEYS, url]).json();
    let finding = doctor.as_array().unwrap().iter().find(|finding| finding["name"] == "database").unwrap();
    assert_eq!(finding["state"], "ok", "{finding}");
    assert_eq!(north.stop(), 0);
    assert_eq!(south.stop(), 0);

    // What hosts had for each other when they stopped: done and not yet a reply, not done, refused, and without a key.
    let done = r#"{"done":{"status":"paused","at":1}}"#;
    let refused = r#"{"refused":{"kind":"Invalid","code":"validation_error","message":"No.","details":{}}}"#;
    let key = |name: &str| format!("key:{}", baton_model::Digest::of_bytes(name).as_str());
    let letters = [(key("done"), Some(done)), (key("undone"), None), (key("refused"), Some(refused))];
    for (id, answer) in letters.into_iter().chain([("ask:1:x".to_owned(), Some(done))]) {
        let answer = answer.map_or("NULL, NULL".to_owned(), |answer| format!("'{answer}', now()"));
        let letter =
            format!("INSERT INTO inbox (id, run, body, answer, answered_at) VALUES ('{id}', '{run}', '', {answer})");
        runtime().block_on(rows(&database.url, &letter));
    }
    let elsewhere = Database::fresh_blocking().unwrap();
    let moved = baton(here, &["storage", "copy", "--from", &database.url, "--to", &elsewhere.url, "--json"]).expect(0);
    assert_eq!(moved.json()["letters"], json!({"copied": 2, "undone": [], "unkept": []}));
    let ids = "SELECT id, answer, answered_at IS NULL FROM inbox ORDER BY answer IS NULL";
    let arrived = runtime().block_on(rows(&elsewhere.url, ids));
    let expected = [[key("done"), done.to_owned(), "f".to_owned()], [key("undone"), String::new(), "t".to_owned()]];
    assert_eq!(arrived, expected, "as they were");

    let copied = baton(here, &["storage", "copy", "--from", &database.url, "--to", "folder", "--json"]).expect(0);
    assert!(copied.stderr.contains(&format!("not copied: a request to {run} that was not done")), "{copied:?}");
    let copied = copied.json();
    assert_eq!(copied["letters"], json!({"copied": 0, "undone": [run], "unkept": [run]}));
    assert_eq!(copied["tables"]["runs"]["arrived"], 2);
    assert_eq!(copied["replayed"]["equal"], 2);
    let again = baton(here, &["storage", "copy", "--from", &database.url, "--to", "folder"]).expect(5);
    assert!(again.stderr.contains("is not empty") && again.stderr.contains("--resume"), "{again:?}");
    baton(here, &["storage", "copy", "--from", &database.url, "--to", "folder", "--resume"]).expect(0);
    let checked = baton(here, &["storage", "check", "folder", "--json"]).expect(0).json();
    assert_eq!((&checked["tables"]["runs"], &checked["problems"]), (&json!(2), &json!([])));

    let host = Running::start(here, &["serve", "--data", "folder"], &[KEYS]);
    let web = Web::new(&host.url, Some("alpha"));
    web.ended(&run, "completed");
    assert_eq!(host.stop(), 0);
    let fresh = Database::fresh_blocking().unwrap();
    baton(here, &["storage", "copy", "--from", "folder", "--to", &fresh.url]).expect(0);
    baton(here, &["storage", "check", &fresh.url]).expect(0);
    let host = Running::start(here, &["serve", "--data", "other"], &[KEYS]);
    Web::new(&host.url, Some("alpha")).post("/v1/workflows", flow()).expect(201);
    assert_eq!(host.stop(), 0);
    let mixed = baton(here, &["storage", "copy", "--from", "other", "--to", &fresh.url, "--resume"]).expect(5);
    assert!(mixed.stderr.contains("of something else than other"), "{mixed:?}");
    baton(here, &["storage", "copy", "--from", "folder", "--to", &fresh.url, "--resume"]).expect(0);
}

#[test]
fn a_host_says_that_its_database_is_away_and_needs_no_second_try_when_it_is_back() {
    let runtime = runtime();
    let Some(cluster) = runtime.block_on(Cluster::start()) else { return };
    let here = tempfile::tempdir().unwrap();
    let url = runtime.block_on(cluster.database());
    let env = [KEYS, ("BATON_DATABASE_URL", url.as_str()), ("BATON_DATABASE_LEASE_MS", "3000")];
    let host = Running::start(here.path(), &["serve"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    web.post("/v1/workflows", flow()).expect(201);
    let run = web.start("noop");
    web.ended(&run, "completed");
    let readiness = |status| eventually(&format!("readiness is {status}"), || web.get("/readiness").status == status);
    // It writes nothing meanwhile: only its lease can tell.
    cluster.stop(true);
    readiness(503);
    cluster.start_again();
    readiness(200);
    let run = web.start("noop");
    web.ended(&run, "completed");
    assert_eq!(host.stop(), 0);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn flow() -> Value {
    support::flow::chain("noop", vec![support::flow::node("a", "core.noop", json!({}))])
}

#[test]
fn a_host_that_stops_hands_its_runs_over_and_nobody_waits_for_its_lease() {
    let Some(database) = Database::fresh_blocking() else { return };
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let url = ("BATON_DATABASE_URL", database.url.as_str());
    // Longer than any test waits for anything.
    let lease = ("BATON_DATABASE_LEASE_MS", "600000");
    let north = Running::start(here, &["serve"], &[KEYS, url, lease]);
    let south = Running::start(here, &["serve"], &[KEYS, url, lease]);
    let (there, other) = (Web::new(&north.url, Some("alpha")), Web::new(&south.url, Some("alpha")));
    let step = |n| support::flow::node(&format!("step{n}"), "core.delay", json!({"delayMs": 50}));
    let gate = support::flow::node("gate", "core.approvalGate", json!({"title": "Go on?"}));
    there.post("/v1/workflows", support::flow::chain("slow", (0..40).map(step).collect())).expect(201);
    there.post("/v1/workflows", support::flow::chain("asks", vec![gate, step(0)])).expect(201);
    let slow: Vec<String> = (0..8).map(|_| there.start("slow")).collect();
    let asks = there.start("asks");
    there.until_status(&asks, "waiting-approval");
    assert_eq!(north.stop(), 0);

    other.resolve(&asks, "gate", json!({"action": "accept"})).expect(200);
    other.ended(&asks, "completed");
    for run in &slow {
        let (_, events) = other.ended(run, "completed");
        assert_eq!(support::web::nodes_of(&events, "node.completed").len(), 40, "each step once");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let epochs = "SELECT run, count(DISTINCT epoch) FROM events GROUP BY run ORDER BY count(DISTINCT epoch) DESC";
    let written = runtime.block_on(rows(&database.url, epochs));
    let twice = written.iter().filter(|run| run[1] == "2").count();
    // Should this machine be so slow that some had ended before the stop, they were not handed over.
    assert!(written.len() == 9 && twice > 1, "by one host, then the other: {written:?}");
    assert_eq!(south.stop(), 0);
}

#[test]
fn the_password_of_a_database_is_never_shown() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    std::fs::write(here.join("baton.toml"), "[database]\nurl = \"postgres://me:hunter2@127.0.0.1:1/x\"\n").unwrap();
    let shown = baton(here, &["config", "show", "--config", "baton.toml", "--json"]).expect(0);
    assert_eq!(shown.json()["database.url"]["value"], "postgres://127.0.0.1:1/x");
    let config = [("BATON_CONFIG", "baton.toml"), KEYS];
    let served = baton_with(here, &["serve", "--listen", "127.0.0.1:0"], &config).expect(1);
    assert!(served.stderr.contains("is the server running there"), "{served:?}");
    let doctor = baton_with(here, &["doctor"], &config).expect(1);
    assert!(doctor.stdout.contains("database"), "{doctor:?}");
    let misspelt = baton_with(here, &["serve"], &[("BATON_DATABASE_URL", "mysql://me:hunter2@h/x"), KEYS]).expect(2);
    assert!(misspelt.stderr.contains("postgres://user:password@host"), "{misspelt:?}");
    for ended in [shown, served, doctor, misspelt] {
        assert!(!ended.stdout.contains("hunter2") && !ended.stderr.contains("hunter2"), "{ended:?}");
    }
}
