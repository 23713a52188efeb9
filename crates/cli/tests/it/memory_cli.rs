//! Memory on the command line, against the real binary: what it prints, in both forms, and how it ends.

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::web::Web;
use support::{Running, baton, baton_fed, baton_with, dev};

fn put(here: &Path, scope: &str, content: &str, more: &[&str]) -> String {
    let words = [&["memory", "put", scope, "--content", content], more].concat();
    baton(here, &words).expect(0).stdout.trim().to_owned()
}

fn contents(list: &Value) -> Vec<&str> {
    list["entries"].as_array().unwrap().iter().map(|entry| entry["content"].as_str().unwrap()).collect()
}

#[test]
fn what_is_put_is_listed_read_and_forgotten() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let nothing = baton(here, &["memory", "list", "team"]).expect(0);
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("", "team has no entries\n"));
    assert_eq!(baton(here, &["memory", "scopes", "--json"]).expect(0).json(), json!({"scopes": []}));

    let first = put(here, "team", "first", &["--tag", "a", "--tag", "b"]);
    let second = put(here, "team", "second\nline", &["--tag", "b", "--ttl", "1h"]);
    let piped = baton_fed(here, &["memory", "put", "team", "-", "--json"], &[], "from a pipe").expect(0).json();
    assert_eq!((&piped["content"], &piped["tags"]), (&json!("from a pipe"), &json!([])));
    std::fs::write(here.join("note.txt"), "from a file").unwrap();
    baton(here, &["memory", "put", "team", "--file", "note.txt"]).expect(0);

    let list = baton(here, &["memory", "list", "team", "--json"]).expect(0).json();
    assert_eq!(contents(&list), ["from a file", "from a pipe", "second\nline", "first"]);
    let tagged = baton(here, &["memory", "list", "team", "--tag", "b", "--limit", "1", "--json"]).expect(0).json();
    assert_eq!(contents(&tagged), ["second\nline"]);

    let shown = baton(here, &["memory", "list", "team"]).expect(0);
    let header: Vec<&str> = shown.stdout.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["ENTRY", "CREATED", "EXPIRES", "TAGS", "CONTENT"]);
    assert_eq!(shown.stdout.lines().count(), 5, "one line an entry: {shown:?}");
    assert!(shown.stdout.lines().last().unwrap().ends_with("-          a, b  first"), "{shown:?}");

    let entry = baton(here, &["memory", "get", "team", &second, "--json"]).expect(0).json();
    let members: Vec<&String> = entry.as_object().unwrap().keys().collect();
    assert_eq!(members, ["content", "createdAt", "expiresAt", "id", "tags"]);
    let text = baton(here, &["memory", "get", "team", &second]).expect(0).stdout;
    assert!(text.starts_with(&format!("entry      {second}\n")) && text.ends_with("\n\nsecond\nline\n"), "{text}");

    let scopes = baton(here, &["memory", "scopes", "--json"]).expect(0).json();
    assert_eq!((&scopes["scopes"][0]["scope"], &scopes["scopes"][0]["version"]), (&json!("team"), &json!(4)));

    assert_eq!(baton(here, &["memory", "delete", "team", &first]).expect(0).stdout, format!("{first} deleted\n"));
    let gone = baton(here, &["memory", "get", "team", &first]).expect(3);
    assert!(gone.stderr.contains("hint: `baton memory list team` shows the entries"), "{gone:?}");
    baton(here, &["memory", "delete", "team", &first]).expect(3);
    let deleted = baton(here, &["memory", "delete", "team", &second, "--json"]).expect(0).json();
    assert_eq!(deleted, json!({"scope": "team", "id": second, "deleted": true}));
    assert_eq!(host.stop(), 0);
}

#[test]
fn an_export_is_whole_and_newest_first() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    for n in 0..25 {
        put(here, "long", &format!("note {n}"), &[]);
    }
    let few = baton(here, &["memory", "list", "long"]).expect(0);
    assert!(few.stderr.contains("these are the newest 20") && few.stderr.contains("memory export long"), "{few:?}");
    let all = baton(here, &["memory", "export", "long"]).expect(0).stdout;
    let notes: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: Vec<String> = (0..25).rev().map(|n| format!("note {n}")).collect();
    assert_eq!(notes.iter().map(|note| note["content"].as_str().unwrap()).collect::<Vec<_>>(), expected);

    let printed = baton(here, &["memory", "export", "long", "-o", "long.jsonl"]).expect(0);
    assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("", "25 entries of long in long.jsonl\n"));
    assert_eq!(std::fs::read_to_string(here.join("long.jsonl")).unwrap(), all);
    let lost = baton(here, &["memory", "export", "long", "-o", "no/such/file"]).expect(1);
    assert!(lost.stderr.contains("hint: the folder no/such does not exist"), "{lost:?}");
    assert_eq!(baton(here, &["memory", "export", "empty"]).expect(0).stdout, "");
    assert_eq!(host.stop(), 0);
}

#[test]
fn mistakes_are_told_with_the_right_exit_code() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    for words in [
        &["memory", "list"][..],
        &["memory", "list", "a", "--run", "run_1"],
        &["memory", "put", "a"],
        &["memory", "put", "a", "--content", "x", "-"],
        &["memory", "put", "a", "--content", "x", "--ttl", "soon"],
        &["memory", "put", "a", "--content", "x", "--ttl", "5ms"],
        &["memory", "put", "", "--content", "x"],
        &["memory", "put", "a", "--content", "x", "--tag", ""],
        &["memory", "get", "a", ".."],
    ] {
        baton(here, words).expect(2);
    }
    baton(here, &["memory", "put", "a", "--file", "missing.txt"]).expect(3);
    baton(here, &["memory", "list", "--run", "run_zz"]).expect(3);
    let large = baton_fed(here, &["memory", "put", "a", "-", "--json"], &[], &"x".repeat(64 * 1024 + 1)).expect(2);
    let error: Value = serde_json::from_str(&large.stderr).unwrap();
    assert_eq!((&error["error"], &error["details"]["limit"]), (&json!("validation_error"), &json!(65536)));
    baton(here, &["--key", "wrong", "memory", "list", "a"]).expect(4);

    let once = || put(here, "a", "once", &["--idempotency-key", "k"]);
    assert_eq!(once(), once());
    assert_eq!(
        baton(here, &["memory", "list", "a", "--json"]).expect(0).json()["entries"].as_array().unwrap().len(),
        1
    );
    assert_eq!(host.stop(), 0);
    baton(here, &["memory", "scopes"]).expect(10);
}

#[test]
fn limits_of_the_configuration_hold() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let env = [
        ("BATON_API_KEYS", "alpha:a,reader:a:memory:read+runs:read,other:b"),
        ("BATON_LIMITS_MAX_MEMORY_ENTRIES", "2"),
        ("BATON_LIMITS_MAX_MEMORY_ENTRY_BYTES", "10"),
        ("BATON_LIMITS_MAX_WORKSPACE_FILES", "1"),
        ("BATON_LIMITS_MAX_WORKSPACE_FILE_BYTES", "20"),
    ];
    let host = Running::start(here, &["serve"], &env);
    let ask = |key: &str, words: &[&str]| baton_with(here, words, &[("BATON_URL", &host.url), ("BATON_API_KEY", key)]);
    let put = |key: &str, text: &str| ask(key, &["memory", "put", "s", "--content", text]);
    put("alpha", "eleven byte").expect(2);
    put("alpha", "one").expect(0);
    put("alpha", "two").expect(0);
    let full = put("alpha", "three").expect(2);
    assert!(full.stderr.contains("[memory_full]"), "{full:?}");
    // A key that may only read, and one of somebody else.
    put("reader", "x").expect(4);
    assert_eq!(contents(&ask("reader", &["memory", "list", "s", "--json"]).expect(0).json()), ["two", "one"]);
    assert_eq!(contents(&ask("other", &["memory", "list", "s", "--json"]).expect(0).json()), Vec::<&str>::new());

    let write = |path: &str, text: &str| {
        let env = [("BATON_URL", host.url.as_str()), ("BATON_API_KEY", "alpha")];
        baton_fed(here, &["workspace", "put", path], &env, text)
    };
    write("a.md", "twenty-one bytes long").expect(2);
    write("a.md", "fits").expect(0);
    let full = write("b.md", "fits").expect(2);
    assert!(full.stderr.contains("[workspace_too_large]"), "{full:?}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn runs_of_one_scope_share_a_memory() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let run = |inputs: &str, more: &[&str]| {
        let words = [&["run", "start", "demo-observe", "-i", inputs, "--wait", "--json"], more].concat();
        baton(here, &words).expect(0).json()["runId"].as_str().unwrap().to_owned()
    };
    let first = run(r#"{"note":"one"}"#, &["--scope", "team"]);
    let second = run(r#"{"note":"two"}"#, &["--scope", "team"]);
    let alone = run(r#"{"note":"three"}"#, &[]);
    let list = |words: &[&str]| baton(here, &[&["memory", "list", "--json"], words].concat()).expect(0).json();
    let team = list(&["team"]);
    assert_eq!(contents(&team), ["note: two tides", "note: one tides"]);
    assert_eq!((list(&["--run", &first]), list(&["--run", &second])), (team.clone(), team));
    assert_eq!(contents(&list(&["--run", &alone])), ["note: three tides"]);
    assert_eq!(contents(&list(&[&alone])), ["note: three tides"], "a run without a scope has its own");
    assert_eq!(host.stop(), 0);
}

/// A copy is whole, however many pages it takes to make it.
#[test]
fn an_export_has_everything() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let dev: Value = serde_json::from_slice(&std::fs::read(here.join(".baton/dev.json")).unwrap()).unwrap();
    let web = Web::new(&host.url, dev["key"].as_str());
    for n in 0..1001 {
        web.post("/v1/host/baton/memory/full", json!({"content": n.to_string()})).expect(201);
    }
    let copy = baton(here, &["memory", "export", "full"]).expect(0);
    let entry = |line: &str| serde_json::from_str::<Value>(line).unwrap()["content"].as_str().unwrap().to_owned();
    let contents: Vec<String> = copy.stdout.lines().map(entry).collect();
    assert_eq!(contents, (0..1001).rev().map(|n| n.to_string()).collect::<Vec<_>>(), "newest first, none missing");
    assert_eq!(host.stop(), 0);
}
