//! The workspace on the command line, against the real binary.

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::{Ended, baton, baton_fed, dev};

fn put(here: &Path, path: &str, text: &str, more: &[&str]) -> Ended {
    baton_fed(here, &[&["workspace", "put", path, "-"], more].concat(), &[], text)
}

#[test]
fn files_are_written_listed_read_and_deleted() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let nothing = baton(here, &["workspace", "ls"]).expect(0);
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("", "no files\n"));

    assert_eq!(put(here, "notes/plan.md", "one\n", &[]).expect(0).stdout, "notes/plan.md version 1\n");
    std::fs::write(here.join("data.json"), "{\"a\": \"\u{1b}[1mä\"}").unwrap();
    let json_type = ["workspace", "put", "data.json", "data.json", "--content-type", "application/json", "--json"];
    let meta = baton(here, &json_type).expect(0).json();
    assert_eq!((&meta["version"], &meta["contentType"]), (&json!(1), &json!("application/json")));
    assert!(meta.get("content").is_none(), "{meta}");

    // What was put comes out byte for byte.
    let content = baton(here, &["workspace", "cat", "data.json"]).expect(0).stdout;
    assert_eq!(content, "{\"a\": \"\u{1b}[1mä\"}");
    let file = baton(here, &["workspace", "cat", "notes/plan.md", "--json"]).expect(0).json();
    let members: Vec<&String> = file.as_object().unwrap().keys().collect();
    assert_eq!(members, ["content", "contentType", "etag", "path", "updatedAt", "version"]);

    let listed = baton(here, &["workspace", "ls", "--json"]).expect(0).json();
    let paths: Vec<&Value> = listed["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["data.json", "notes/plan.md"]);
    let notes = baton(here, &["workspace", "ls", "notes/"]).expect(0).stdout;
    assert!(notes.starts_with("PATH           VERSION  UPDATED") && notes.lines().count() == 2, "{notes}");

    // Only if nobody wrote meanwhile.
    let etag = file["etag"].as_str().unwrap();
    put(here, "notes/plan.md", "two\n", &["--if-match", etag]).expect(0);
    let stale = put(here, "notes/plan.md", "three\n", &["--if-match", etag, "--json"]).expect(5);
    let error: Value = serde_json::from_str(&stale.stderr).unwrap();
    assert_eq!((&error["error"], &error["details"]["currentVersion"]), (&json!("workspace_conflict"), &json!(2)));
    baton(here, &["workspace", "rm", "notes/plan.md", "--if-match", etag]).expect(5);
    assert_eq!(baton(here, &["workspace", "cat", "notes/plan.md", "--version", "1"]).expect(0).stdout, "one\n");
    baton(here, &["workspace", "cat", "notes/plan.md", "--version", "9"]).expect(3);

    assert_eq!(baton(here, &["workspace", "rm", "notes/plan.md"]).expect(0).stdout, "notes/plan.md deleted\n");
    let gone = baton(here, &["workspace", "cat", "notes/plan.md"]).expect(3);
    assert!(gone.stderr.contains("hint: `baton workspace ls`"), "{gone:?}");
    baton(here, &["workspace", "rm", "notes/plan.md"]).expect(3);
    for bad in ["../up", "/etc/passwd", "a b"] {
        put(here, bad, "x", &[]).expect(2);
    }
    baton(here, &["workspace", "put", "a.md", "missing.md"]).expect(3);
    let deleted = baton(here, &["workspace", "rm", "data.json", "--json"]).expect(0).json();
    assert_eq!(deleted, json!({"path": "data.json", "deleted": true}));
    assert_eq!(host.stop(), 0);
}

#[test]
fn the_log_tells_who_wrote_what_and_when() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    put(here, "a.md", "1\n", &[]).expect(0);
    put(here, "b.md", "1\n", &[]).expect(0);
    put(here, "a.md", "2\n", &[]).expect(0);
    baton(here, &["workspace", "rm", "a.md"]).expect(0);
    put(here, "a.md", "again\n", &[]).expect(0);

    let log = baton(here, &["workspace", "log", "a.md", "--json"]).expect(0).json();
    let printed: Vec<(Option<u64>, bool)> = log["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (change["version"].as_u64(), change["deleted"] == true))
        .collect();
    assert_eq!(printed, [(Some(1), false), (None, true), (Some(2), false), (Some(1), false)]);
    let text = baton(here, &["workspace", "log"]).expect(0).stdout;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(
        rows,
        [
            ["CHANGE", "PATH", "VERSION"],
            ["5", "a.md", "1"],
            ["4", "a.md", "deleted"],
            ["3", "a.md", "2"],
            ["2", "b.md", "1"],
            ["1", "a.md", "1"],
        ]
    );
    let page = baton(here, &["workspace", "log", "--limit", "2"]).expect(0);
    assert!(page.stderr.contains("add --before 4 for the next page"), "{page:?}");
    let rest = baton(here, &["workspace", "log", "--limit", "2", "--before", "4", "--json"]).expect(0).json();
    assert_eq!((&rest["changes"][0]["change"], &rest["nextBefore"]), (&json!(3), &json!(2)));
    assert_eq!(baton(here, &["workspace", "log", "nowhere.md"]).expect(0).stderr, "no changes\n");
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_diff_reads_like_one() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    put(here, "a.md", "one\ntwo\nthree\n", &[]).expect(0);
    let created = baton(here, &["workspace", "diff", "a.md"]).expect(0).stdout;
    assert_eq!(created, "--- a.md version 0\n+++ a.md version 1\n@@ -0,0 +1,3 @@\n+one\n+two\n+three\n");
    put(here, "a.md", "one\n2\nthree\n", &[]).expect(0);
    put(here, "a.md", "one\n2\nthree\nfour", &[]).expect(0);
    let newest = baton(here, &["workspace", "diff", "a.md"]).expect(0).stdout;
    assert_eq!(
        newest,
        "--- a.md version 2\n+++ a.md version 3\n@@ -1,3 +1,4 @@\n one\n 2\n three\n+four\n\\ no line break at the end\n"
    );
    let first = baton(here, &["workspace", "diff", "a.md", "1", "2"]).expect(0).stdout;
    assert_eq!(first, "--- a.md version 1\n+++ a.md version 2\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    let json = baton(here, &["workspace", "diff", "a.md", "1", "2", "--json"]).expect(0).json();
    assert_eq!((&json["from"], &json["to"]), (&json!(1), &json!(2)));
    assert_eq!(json["hunks"][0]["lines"][1], json!({"op": "removed", "text": "two\n"}));
    let same = baton(here, &["workspace", "diff", "a.md", "3", "3"]).expect(0);
    assert_eq!((same.stdout.as_str(), same.stderr.as_str()), ("", "versions 3 and 3 are the same\n"));
    baton(here, &["workspace", "diff", "a.md", "7"]).expect(3);
    baton(here, &["workspace", "diff", "none.md"]).expect(3);
    assert_eq!(host.stop(), 0);
}
