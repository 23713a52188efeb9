//! Forking, replaying, verifying and comparing runs from the command line.

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::flow::{chain, node};
use support::{Running, baton, baton_fed};

/// Counts to three: each step is the engine's own decision.
fn counting(here: &Path) {
    let add = |id: &str| node(id, "core.setVariable", json!({"name": "n", "expression": "variables.n + 1"}));
    let mut flow = chain("counting", vec![add("one"), add("two"), add("three")]);
    flow["variables"] = json!([{"name": "n", "type": "number", "required": false, "defaultValue": 0}]);
    let folder = here.join("workflows");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("counting.json"), flow.to_string()).unwrap();
}

fn dev(here: &Path) -> Running {
    counting(here);
    support::dev(here)
}

fn id(snapshot: &Value) -> String {
    snapshot["runId"].as_str().unwrap().to_owned()
}

/// A run that has counted.
fn counted(here: &Path) -> String {
    let done = baton(here, &["run", "start", "counting", "-i", r#"{"n": 0}"#, "--wait", "--json"]).expect(0).json();
    assert_eq!((&done["status"], &done["variables"]["n"]), (&json!("completed"), &json!(3)), "{done}");
    id(&done)
}

fn events(here: &Path, run: &str) -> Vec<Value> {
    let log = baton(here, &["run", "events", run, "--json"]).expect(0).stdout;
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn start_of(events: &[Value], node: &str) -> u64 {
    let found = events.iter().find(|event| event["type"] == "node.started" && event["nodeId"] == node);
    found.unwrap()["sequence"].as_u64().unwrap()
}

#[test]
fn a_branch_goes_another_way_and_the_difference_is_told() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let source = counted(here);
    let log = events(here, &source);
    let two = start_of(&log, "two");

    let forked = baton(here, &["run", "fork", &source, "--at-node", "two", "--set", "n=10"]).expect(0);
    let branch = forked.stdout.trim().to_owned();
    assert!(forked.stderr.ends_with(&format!("run diff {source} {branch}\n")), "{forked:?}");
    baton(here, &["run", "watch", &branch]).expect(0);
    let shown = baton(here, &["run", "show", &branch]).expect(0).stdout;
    let line = format!("forked     branch of {source} at {two}, with its own variables.n");
    assert!(shown.contains(&line) && shown.contains("variables  n = 12"), "{shown}");

    let diff = baton(here, &["run", "diff", &source, &branch]).expect(0).stdout;
    assert!(
        diff.starts_with(&format!("--- {source}\n+++ {branch}\nthe runs differ from sequence {} on\n", two + 1)),
        "{diff}"
    );
    for line in
        [" variable.changed two\n", "-  \"next\": 2,", "+  \"next\": 11,", "STATE        A  B", "variables.n  3  12"]
    {
        assert!(diff.contains(line), "{line} is missing: {diff}");
    }
    let few = baton(here, &["run", "diff", &source, &branch, "--events", "1"]).expect(0);
    assert_eq!(few.stdout.lines().filter(|line| line.starts_with("@ ")).count(), 1, "{few:?}");
    let all = baton(here, &["run", "diff", &source, &branch, "--json"]).expect(0).json();
    let count = all["eventDiffs"].as_array().unwrap().len();
    assert_eq!((&all["a"], &all["divergedAtSeq"]), (&json!(source), &json!(two + 1)));
    assert!(few.stderr.contains(&format!("{} more events differ; --events {count} shows them", count - 1)), "{few:?}");
    baton(here, &["run", "diff", &source, &branch, "--exit-code"]).expect(9);
    let same = baton(here, &["run", "diff", &source, &source, "--exit-code"]).expect(0);
    assert_eq!((same.stdout.as_str(), same.stderr), ("", format!("{source} and {source} are equal\n")));

    // Inside a step: it begins before that, and says so.
    let moved = baton(here, &["run", "fork", &source, "--at", &(two + 1).to_string()]).expect(0);
    let note = format!("{} is inside a step, or a child was under way there: the branch begins at {two}\n", two + 1);
    assert!(moved.stderr.starts_with(&note), "{moved:?}");
    let shown = baton(here, &["run", "show", moved.stdout.trim()]).expect(0).stdout;
    assert!(shown.contains(&format!("forked     branch of {source} at {two} (asked for {})", two + 1)), "{shown}");

    // Other inputs, from the very beginning: typed, from a file, from stdin.
    std::fs::write(here.join("in.json"), r#"{"n": 5}"#).unwrap();
    let fork = ["run", "fork", &source, "--at", "0", "--wait", "--json", "-i"];
    for (inputs, n) in [(r#"{"n": 4}"#, 7), ("@in.json", 8)] {
        assert_eq!(baton(here, &[&fork[..], &[inputs]].concat()).expect(0).json()["variables"]["n"], n);
    }
    let fed = baton_fed(here, &[&fork[..], &["@-"]].concat(), &[], r#"{"n": 6}"#).expect(0).json();
    assert_eq!((&fed["variables"]["n"], &fed["forkedFrom"]["overlaid"]), (&json!(9), &json!(["inputs.n"])));
    assert_eq!(events(here, &source), log, "nobody touches the source");
    assert_eq!(host.stop(), 0);
}

#[test]
fn what_cannot_be_forked_is_refused_with_a_word() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let source = counted(here);
    for words in [
        &["run", "fork", &source][..],
        &["run", "fork", &source, "--at", "1", "--at-node", "two"],
        &["run", "fork", &source, "--replay", "--set", "n=1"],
        &["run", "fork", &source, "--replay", "-i", "{}"],
        &["run", "fork", &source, "--at", "1", "--set", "n"],
        &["run", "fork", &source, "--at", "1", "-i", "[1]"],
        &["run", "fork", &source, "--at", "1", "--side-effects", "perhaps"],
        &["run", "verify"],
        &["run", "verify", &source, "--all"],
        &["run", "verify", &source, "--workflow", "counting"],
    ] {
        baton(here, words).expect(2);
    }
    let pointless = baton(here, &["run", "fork", &source]).expect(2);
    for way in ["--at <SEQUENCE>", "--at-node <NODE>", "--replay"] {
        assert!(pointless.stderr.contains(way), "{way}: {pointless:?}");
    }
    baton(here, &["run", "fork", &source, "--at", "1", "-i", "@nowhere.json"]).expect(3);
    let beyond = baton(here, &["run", "fork", &source, "--at", "999"]).expect(2);
    assert!(beyond.stderr.contains("[invalid_from_seq]"), "{beyond:?}");
    let nowhere = baton(here, &["run", "fork", &source, "--at-node", "four"]).expect(3);
    assert!(nowhere.stderr.contains("never started a node `four`"), "{nowhere:?}");
    for words in
        [&["run", "fork", "run_zz", "--at", "0"][..], &["run", "verify", "run_zz"], &["run", "diff", &source, "zz"]]
    {
        baton(here, words).expect(3);
    }
    // Once, however often it is asked for.
    let once = ["run", "fork", &source, "--at", "3", "--idempotency-key", "k"];
    let first = baton(here, &once).expect(0).stdout;
    assert_eq!(baton(here, &once).expect(0).stdout, first);
    baton(here, &["run", "fork", &source, "--at", "4", "--idempotency-key", "k"]).expect(5);
    baton(here, &["run", "prune", &source, "--yes"]).expect(0);
    let pruned = baton(here, &["run", "fork", &source, "--at", "3"]).expect(5);
    assert!(pruned.stderr.contains("[replay_memory_snapshot_unavailable]"), "{pruned:?}");
    let shown = baton(here, &["run", "show", &source]).expect(0).stdout;
    assert!(shown.contains("its events are here, what it remembered and which files it saw are not"), "{shown}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn replays_prove_and_everything_can_be_verified() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let nothing = baton(here, &["run", "verify", "--all"]).expect(0);
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("", "no runs\n"));

    let source = counted(here);
    let notebook = id(&baton(here, &["run", "start", "demo-notebook", "--wait", "--json"]).expect(0).json());
    let waiting = id(&baton(here, &["run", "start", "demo-pipeline", "--wait", "--json"]).expect(6).json());
    for run in [&source, &notebook, &waiting] {
        // A replay asks nobody, so one of a run that waits is done where its source stands.
        let done = baton(here, &["run", "fork", run, "--replay", "--wait"]).expect(0);
        let printed = match run == &waiting {
            true => "the replay equals its source so far; it was cancelled because the source has not ended\n",
            false => "the replay equals its source\n",
        };
        assert!(done.stderr.ends_with(printed), "{done:?}");
        let replay = done.stdout.lines().next().unwrap().split_whitespace().last().unwrap().to_owned();
        assert!(done.stdout.contains(&format!("forked     replay of {run} at 0")), "{done:?}");
        let diff = baton(here, &["run", "diff", run, &replay, "--json"]).expect(0).json();
        assert_eq!((&diff["divergedAtSeq"], &diff["stateDiff"]), (&Value::Null, &json!({})), "{diff}");
    }
    let events = events(here, &source).len();
    let one = baton(here, &["run", "verify", &source, "--json"]).expect(0).json();
    assert_eq!((&one["equal"], &one["events"]), (&json!(true), &json!(events)));
    let decided = one["decided"].as_u64().unwrap();
    assert!(decided > 0);
    let printed = baton(here, &["run", "verify", &source]).expect(0).stdout;
    assert_eq!(printed, format!("{source} equal: {events} events, {decided} decided again\n"));

    let all = baton(here, &["run", "verify", "--all", "--json"]).expect(0).json();
    assert_eq!(all["verified"].as_array().unwrap().len(), 6 + 5, "{all}");
    assert_eq!((&all["skipped"], &all["broken"]), (&json!([]), &json!([])));
    assert!(all["verified"].as_array().unwrap().iter().all(|run| run["equal"] == true), "{all}");
    baton(here, &["run", "prune", &notebook, "--log", "--yes"]).expect(5);
    let some = baton(here, &["run", "verify", "--all", "--workflow", "counting"]).expect(0);
    let rows: Vec<Vec<&str>> = some.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["WORKFLOW", "RUNS", "EVENTS", "DECIDED", "EQUAL", "DIFFERENT", "BROKEN", "SKIPPED"]);
    let counts = [2, 2 * events as u64, 2 * decided, 2, 0, 0, 0].map(|count| count.to_string());
    assert_eq!(rows[1][1..], counts.each_ref().map(String::as_str));
    let later = baton(here, &["run", "verify", "--all", "--since", "2999-01-01T00:00:00Z", "--json"]).expect(0).json();
    assert_eq!(later["verified"], json!([]));
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_log_that_was_tampered_with_is_found_out() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let (moved, source, untouched) = (counted(here), counted(here), counted(here));
    let log = events(here, &source);
    let changed = log.iter().position(|event| event["type"] == "variable.changed" && event["nodeId"] == "two").unwrap();
    assert_eq!(log[changed]["payload"]["next"], 2);
    assert_eq!(host.stop(), 0);
    {
        let database = rusqlite::Connection::open(here.join(".baton/baton.db")).unwrap();
        let forge = "UPDATE events SET body = json_set(body, '$.payload.next', 99)
            WHERE seq = ?1 AND run = (SELECT run FROM runs WHERE id = ?2)";
        assert_eq!(database.execute(forge, rusqlite::params![changed as i64, source]).unwrap(), 1);
        // Nothing is decided by this; it is only shown.
        let move_it = "UPDATE events SET body = json_set(body, '$.nodeId', 'another')
            WHERE seq = ?1 AND run = (SELECT run FROM runs WHERE id = ?2)";
        assert_eq!(database.execute(move_it, rusqlite::params![changed as i64, moved]).unwrap(), 1);
    }
    let host = dev(here);
    for run in [&moved, &source] {
        let damaged = baton(here, &["run", "verify", run]).expect(5);
        assert!(damaged.stderr.contains(&format!("damaged at sequence {changed}")), "{damaged:?}");
    }
    assert_eq!(host.stop(), 0);
    // Whoever can write to the file can take the checksums away, as if the runs were older than those. What was decided
    // is proved all the same.
    {
        let database = rusqlite::Connection::open(here.join(".baton/baton.db")).unwrap();
        let ids = rusqlite::params![moved, source];
        let unsum = "UPDATE events SET sum = NULL WHERE run IN (SELECT run FROM runs WHERE id IN (?1, ?2))";
        assert!(database.execute(unsum, ids).unwrap() > 0);
        let unchain = "UPDATE runs SET chain = NULL, sum = NULL, made_sum = NULL WHERE id IN (?1, ?2)";
        assert_eq!(database.execute(unchain, ids).unwrap(), 2);
    }
    let host = dev(here);
    let found = baton(here, &["run", "verify", &moved]).expect(9);
    for line in
        [&format!("DIFFERS at sequence {changed} (output)"), "-  \"nodeId\": \"another\"", "+  \"nodeId\": \"two\""]
    {
        assert!(found.stdout.contains(line), "{line} is missing: {found:?}");
    }
    assert_eq!(events(here, &source)[changed]["payload"]["next"], 99, "it reads like any other log");

    let found = baton(here, &["run", "verify", &source]).expect(9);
    let head = format!("{source} DIFFERS at sequence {changed} (output): variable.changed");
    assert!(found.stdout.starts_with(&format!("{head} two\n")), "{found:?}");
    for line in ["--- recorded\n+++ decided again\n", "-  \"next\": 99", "+  \"next\": 2"] {
        assert!(found.stdout.contains(line), "{line} is missing: {found:?}");
    }
    let found = baton(here, &["run", "verify", &source, "--json"]).expect(9).json();
    assert_eq!((&found["equal"], &found["difference"]["seq"]), (&json!(false), &json!(changed)));
    assert_eq!(found["difference"]["original"]["payload"]["next"], 99);
    assert_eq!(found["difference"]["replayed"]["payload"]["next"], 2);

    let all = baton(here, &["run", "verify", "--all"]).expect(9);
    assert!(all.stderr.contains(&format!("{head}\n")), "{all:?}");
    assert!(all.stderr.ends_with(&format!("run verify {source}\n")), "{all:?}");
    baton(here, &["run", "verify", &untouched]).expect(0);
    let replay = baton(here, &["run", "fork", &source, "--replay", "--wait"]).expect(9);
    assert!(replay.stderr.ends_with("the replay differs from its source\n"), "{replay:?}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_versioned_store_with_a_gap_is_named_by_the_doctor() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    for text in ["one", "two"] {
        baton(here, &["memory", "put", "team", "--content", text]).expect(0);
    }
    assert_eq!(host.stop(), 0);
    {
        let database = rusqlite::Connection::open(here.join(".baton/baton.db")).unwrap();
        assert_eq!(database.execute("DELETE FROM changes WHERE version = 1", []).unwrap(), 1);
    }
    let findings = baton(here, &["doctor", "--json"]).expect(1).json();
    let storage = findings.as_array().unwrap().iter().find(|finding| finding["name"] == "storage").unwrap();
    assert_eq!(storage["found"], "memory `team` of dev has 1 of 2 changes (1 such ledgers)");
}
