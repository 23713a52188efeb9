//! The notebook demo, looking back at what a run knew, and taking away what makes that possible.

use crate::support;

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use support::{Running, baton, baton_fed, baton_with, dev};

fn notebook(here: &Path, topic: &str) -> Value {
    let inputs = json!({"topic": topic}).to_string();
    baton(here, &["run", "start", "demo-notebook", "-i", &inputs, "--wait", "--json"]).expect(0).json()
}

fn id(snapshot: &Value) -> String {
    snapshot["runId"].as_str().unwrap().to_owned()
}

fn events(here: &Path, run: &str) -> Vec<Value> {
    let log = baton(here, &["run", "events", run, "--json"]).expect(0).stdout;
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn state(here: &Path, run: &str, seq: u64) -> Value {
    baton(here, &["run", "show", run, "--at", &seq.to_string(), "--json"]).expect(0).json()
}

fn contents(entries: &Value) -> Vec<&str> {
    entries.as_array().unwrap().iter().map(|entry| entry["content"].as_str().unwrap()).collect()
}

#[test]
fn the_notebook_remembers_writes_and_checks() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let done = notebook(here, "tides");
    let run = id(&done);
    let workers: Vec<&Value> = done["childRuns"].as_array().unwrap().iter().map(|child| &child["workflowId"]).collect();
    assert_eq!(workers, ["demo-observe", "demo-observe", "demo-observe", "demo-report", "demo-check"]);

    let findings = ["use: who lives by tides", "rhythm: how often one sees tides", "cause: what drives tides"];
    let list = baton(here, &["memory", "list", "--run", &run, "--json"]).expect(0).json();
    assert_eq!(contents(&list["entries"]), [&["report.md is written"], &findings[..]].concat());
    let tagged = baton(here, &["memory", "list", "--run", &run, "--tag", "finding", "--json"]).expect(0).json();
    assert_eq!(contents(&tagged["entries"]), findings);
    let shown = baton(here, &["memory", "list", "--run", &run]).expect(0);
    assert!(shown.stderr.contains(&format!("memory get {run} mem_")), "{shown:?}");

    let draft = format!("# Notes on tides\n\n- {}\n- {}\n- {}\n", findings[2], findings[1], findings[0]);
    let report = baton(here, &["workspace", "cat", "report.md"]).expect(0).stdout;
    assert_eq!(report, format!("{draft}\nChecked: version 1.\n"));
    let diff = baton(here, &["workspace", "diff", "report.md"]).expect(0).stdout;
    assert!(diff.ends_with("+\n+Checked: version 1.\n"), "{diff}");

    // What its workers did is told on their logs, and who wrote a file in the workspace's.
    let child = |at: usize| done["childRuns"][at]["runId"].as_str().unwrap();
    let printed = baton(here, &["run", "watch", child(0)]).expect(0).stdout;
    let line = printed.lines().find(|line| line.contains("memory.written")).unwrap_or_else(|| panic!("{printed}"));
    assert!(line.contains("remembered mem_") && line.ends_with(&format!("[finding] in {}", &run[..16])), "{line}");
    let printed = baton(here, &["run", "events", child(3)]).expect(0).stdout;
    assert!(printed.contains("wrote report.md version 1"), "{printed}");
    let log = baton(here, &["workspace", "log", "report.md", "--json"]).expect(0).json();
    assert_eq!((&log["changes"][0]["runId"], &log["changes"][1]["runId"]), (&json!(child(4)), &json!(child(3))));

    // Again about something else: a new memory, the same file.
    let again = id(&notebook(here, "storms"));
    assert_eq!(
        contents(&baton(here, &["memory", "list", "--run", &again, "--json"]).expect(0).json()["entries"]).len(),
        4
    );
    let diff = baton(here, &["workspace", "diff", "report.md", "2", "4"]).expect(0).stdout;
    assert!(diff.contains("-# Notes on tides\n+# Notes on storms\n"), "{diff}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_run_is_shown_as_it_was_at_any_record() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let done = notebook(here, "tides");
    let run = id(&done);
    // Nothing that happens later changes what is seen.
    notebook(here, "storms");
    baton_fed(here, &["workspace", "put", "late.md"], &[], "late").expect(0);

    let events = events(here, &run);
    let decided: Vec<u64> = events
        .iter()
        .filter(|event| event["type"] == "runOrchestrator.decided")
        .map(|event| event["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(decided.len(), 6);
    for (turn, seq) in decided.iter().enumerate() {
        let state = state(here, &run, *seq);
        assert_eq!((&state["runId"], &state["seq"], &state["memoryScope"]), (&json!(run), &json!(seq), &json!(run)));
        assert_eq!(state["memory"].as_array().unwrap().len(), turn.min(4), "{state}");
        let files: Vec<(&str, u64)> = state["workspace"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| (file["path"].as_str().unwrap(), file["version"].as_u64().unwrap()))
            .collect();
        let expected: &[(&str, u64)] = match turn {
            0..=3 => &[],
            4 => &[("report.md", 1)],
            _ => &[("report.md", 2)],
        };
        assert_eq!(files, expected, "turn {}", turn + 1);
    }
    let first = state(here, &run, 0);
    assert_eq!((&first["variables"]["topic"], &first["memory"]), (&json!("tides"), &json!([])));

    let text = baton(here, &["run", "show", &run, "--at", &decided[4].to_string()]).expect(0).stdout;
    for line in [
        format!("run        {run}"),
        format!("as of      sequence {}, ", decided[4]),
        "status     running".to_owned(),
        format!("memory     {run}, version 4"),
        "workspace  version 1".to_owned(),
        "variables  topic = tides".to_owned(),
        "report   report.md is written".to_owned(),
        "report.md  1        ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is missing: {text}");
    }
    let beyond = baton(here, &["run", "show", &run, "--at", "9999", "--json"]).expect(2);
    let error: Value = serde_json::from_str(&beyond.stderr).unwrap();
    assert_eq!((&error["error"], &error["details"]["fromSeq"]), (&json!("invalid_from_seq"), &json!(9999)));
    baton(here, &["run", "show", "run_zz", "--at", "0"]).expect(3);
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_key_that_may_not_read_memory_sees_the_rest() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let demos = Path::new(env!("CARGO_MANIFEST_DIR")).join("demos");
    let env = [("BATON_API_KEYS", "alpha:a,runs:a:runs:read")];
    let host = Running::start(here, &["serve", "--workflows", demos.to_str().unwrap()], &env);
    let ask = |key: &str, words: &[&str]| baton_with(here, words, &[("BATON_URL", &host.url), ("BATON_API_KEY", key)]);
    let run = id(&ask("alpha", &["run", "start", "demo-notebook", "--wait", "--json"]).expect(0).json());
    let state = ask("runs", &["run", "show", &run, "--at", "5"]).expect(0);
    assert!(state.stderr.contains("not shown, because the key may not read it: memory, workspace"), "{state:?}");
    ask("runs", &["memory", "list", "--run", &run]).expect(4);
    ask("runs", &["workspace", "ls"]).expect(4);
    ask("runs", &["run", "prune", &run, "--yes"]).expect(4);
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_pruned_run_says_what_is_missing() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let done = notebook(here, "tides");
    let (run, child) = (id(&done), done["childRuns"][0]["runId"].as_str().unwrap().to_owned());
    let log = events(here, &run);

    // Nobody is there to ask, and a dry run changes nothing.
    let asked = baton(here, &["run", "prune", &run]).expect(2);
    assert!(asked.stderr.contains("hint: use --yes to confirm"), "{asked:?}");
    let dry = baton(here, &["run", "prune", &run, "--dry-run", "--json"]).expect(0).json();
    assert_eq!(dry["wouldPrune"][0]["runId"], run.as_str());
    state(here, &run, 3);
    // A part of a tree is not pruned by itself.
    let part = baton(here, &["run", "prune", &child, "--yes"]).expect(5);
    assert!(part.stderr.ends_with(&format!("hint: baton run prune {run}\n")), "{part:?}");
    baton(here, &["run", "prune", &child, "--dry-run"]).expect(5);

    let pruned = baton(here, &["run", "prune", &run, "--yes", "--json"]).expect(0).json();
    assert_eq!(pruned, json!({"runId": run, "prunedRuns": 6, "log": false}));
    let refused = |words: &[&str], reason: &str| {
        let ended = baton(here, &[words, &["--json"]].concat()).expect(5);
        let error: Value = serde_json::from_str(&ended.stderr).unwrap();
        assert_eq!(error["error"], "replay_memory_snapshot_unavailable", "{error}");
        assert_eq!(error["details"]["reason"], reason, "{error}");
    };
    refused(&["run", "show", &run, "--at", "3"], "retention_expired");
    refused(&["run", "show", &child, "--at", "1"], "retention_expired");
    refused(&["memory", "list", "--run", &run], "retention_expired");
    assert_eq!(baton(here, &["memory", "scopes", "--json"]).expect(0).json(), json!({"scopes": []}));
    // The log is whole, the files are there, and the run says that it was pruned.
    assert_eq!(events(here, &run), log);
    baton(here, &["workspace", "cat", "report.md"]).expect(0);
    let shown = baton(here, &["run", "show", &run]).expect(0).stdout;
    assert!(shown.contains("pruned     ") && shown.contains("status     completed"), "{shown}");
    let again = baton(here, &["run", "prune", &run, "--yes"]).expect(0).stdout;
    assert_eq!(again, format!("{run} had nothing left to prune\n"));

    let pruned = baton(here, &["run", "prune", &run, "--log", "--yes"]).expect(0).stdout;
    assert_eq!(pruned, format!("{run} pruned, 6 runs in its tree\n"));
    refused(&["run", "show", &run, "--at", "3"], "event_log_unavailable");
    for command in ["show", "events", "watch", "tree"] {
        let gone = baton(here, &["run", command, &run]).expect(5);
        assert!(gone.stderr.contains("[run_pruned]"), "{gone:?}");
    }
    let listed = baton(here, &["run", "list", "--json"]).expect(0).json();
    assert!(listed["runs"].as_array().unwrap().iter().any(|row| row["runId"] == run.as_str()), "{listed}");
    assert_eq!(host.stop(), 0);

    // And so it stays.
    let host = dev(here);
    refused(&["run", "show", &run, "--at", "3"], "event_log_unavailable");
    assert_eq!(host.stop(), 0);
}

#[test]
fn what_ended_long_ago_is_pruned_in_one_go() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let ended: Vec<String> = ["tides", "storms"].map(|topic| id(&notebook(here, topic))).to_vec();
    let waiting = id(&baton(here, &["run", "start", "demo-pipeline", "--wait", "--json"]).expect(6).json());

    let young = baton(here, &["run", "prune", "--older-than", "30d", "--yes"]).expect(0);
    assert_eq!((young.stdout.as_str(), young.stderr.as_str()), ("", "no run ended more than 30d00h ago\n"));
    baton(here, &["run", "prune", "--older-than", "0s"]).expect(2);
    for words in [&["run", "prune"][..], &["run", "prune", &waiting, "--older-than", "1d"]] {
        baton(here, words).expect(2);
    }
    let dry = baton(here, &["run", "prune", "--older-than", "0s", "--dry-run"]).expect(0);
    assert!(ended.iter().all(|run| dry.stdout.contains(run)) && !dry.stdout.contains(&waiting), "{dry:?}");
    assert_eq!(dry.stderr, "2 would be pruned, with their children; nothing was pruned\n");

    let done = baton(here, &["run", "prune", "--older-than", "0s", "--yes"]).expect(0);
    let lines: Vec<String> =
        [2, 1].map(|n| format!("[{}/2] {} pruned, 6 runs in its tree", 3 - n, ended[n - 1])).to_vec();
    assert_eq!(done.stdout.lines().collect::<Vec<_>>(), lines);
    assert_eq!(done.stderr, "pruned 2 trees, 12 runs in all; 0 pruned before, 0 skipped\n");
    for run in &ended {
        baton(here, &["run", "show", run, "--at", "0"]).expect(5);
    }
    let again = baton(here, &["run", "prune", "--older-than", "0s", "--yes", "--json"]).expect(0).json();
    assert_eq!((again["pruned"].as_array().unwrap().len(), &again["pruned"][0]["prunedRuns"]), (2, &json!(0)));
    assert_eq!(again["skipped"], json!([]));

    // What waits is left alone, and refuses when it is named.
    state(here, &waiting, 0);
    let refused = baton(here, &["run", "prune", &waiting, "--yes"]).expect(5);
    assert!(refused.stderr.contains("has not ended"), "{refused:?}");
    assert!(refused.stderr.ends_with(&format!("hint: baton run cancel {waiting}\n")), "{refused:?}");
    assert_eq!(host.stop(), 0);
}

/// A host of the test's own: of the two runs it lists, one has not ended after all.
#[test]
fn what_cannot_be_pruned_is_skipped_with_a_word() {
    let here = tempfile::tempdir().unwrap();
    let row = |id: &str| {
        json!({"runId": id, "workflowId": "w", "status": "completed", "createdAt": "2026-01-01T00:00:00Z",
            "updatedAt": "2026-01-01T00:00:00Z"})
    };
    let mut child = row("run_c");
    child["parentRunId"] = json!("run_a");
    let error = json!({"code": "run_conflict", "message": "It has not ended."});
    let results = json!([
        {"runId": "run_a", "ok": false, "error": error},
        {"runId": "run_b", "ok": true, "prunedRuns": 1}
    ]);
    let answers = [
        ("GET /v1/runs?", 200, json!({"runs": [row("run_a"), child, row("run_b")]})),
        ("POST /v1/runs:bulk-prune ", 200, json!({"results": results})),
    ];
    let (url, played) = play(answers);
    let done = baton(here.path(), &["--url", &url, "run", "prune", "--older-than", "1d", "--yes"]).expect(0);
    assert_eq!(done.stdout, "[2/2] run_b pruned\n");
    let talk: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(
        talk,
        [
            "[1/2] run_a skipped: It has not ended. [run_conflict]",
            "pruned 1 tree, 1 run in all; 0 pruned before, 1 skipped"
        ]
    );
    played.join().unwrap();

    // A host that refuses the caller is no reason to go on.
    let answers = [
        ("GET /v1/runs?", 200, json!({"runs": [row("run_a"), row("run_b")]})),
        ("POST /v1/runs:bulk-prune ", 403, json!({"error": "forbidden", "message": "No."})),
    ];
    let (url, played) = play(answers);
    let stopped = baton(here.path(), &["--url", &url, "run", "prune", "--older-than", "1d", "--yes"]).expect(4);
    assert!(stopped.stderr.contains("No. [forbidden"), "{stopped:?}");
    played.join().unwrap();
}

/// Answers these requests in this order, one a connection; each must begin as told.
fn play<const N: usize>(answers: [(&'static str, u16, Value); N]) -> (String, std::thread::JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let played = std::thread::spawn(move || {
        for (expected, status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let request = read_request(&mut stream);
            assert!(request.starts_with(expected), "{expected}: {request}");
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    (url, played)
}

fn read_request(stream: &mut std::net::TcpStream) -> String {
    let mut reader = std::io::BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    // Unread bytes would make the close a reset.
    std::io::Read::read_exact(&mut reader, &mut vec![0; length]).unwrap();
    head
}
