//! A stranger's first hour with the real binary: start it, run the demos, answer, stop it, start it again.

use crate::support;

use std::path::Path;

use support::{Running, baton, baton_with, dev, until};

#[test]
fn the_pipeline_waits_for_a_human_and_finishes() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    // `--json` prints the snapshot; the talk, with the command to type, is on stderr.
    let waiting =
        baton(here, &["run", "start", "demo-pipeline", "-i", r#"{"topic":"tides"}"#, "--wait", "--json"]).expect(6);
    let snapshot = waiting.json();
    let run = snapshot["runId"].as_str().unwrap().to_owned();
    assert_eq!(snapshot["status"], "waiting-approval");
    assert!(waiting.stderr.contains(&format!("interrupt resolve {run} review --accept")), "{waiting:?}");

    let open = baton(here, &["interrupt", "list", "--json"]).expect(0).json();
    assert_eq!(open["interrupts"][0]["runId"], run.as_str());
    let shown = baton(here, &["interrupt", "show", &run]).expect(0);
    assert!(shown.stdout.contains("Publish these notes?"), "{shown:?}");

    baton(here, &["interrupt", "resolve", &run, "nowhere", "--accept"]).expect(3);
    baton(here, &["interrupt", "resolve", &run, "review", "--accept"]).expect(0);
    baton(here, &["run", "events", &run, "--follow"]).expect(0);
    let snapshot = baton(here, &["run", "show", &run, "--json"]).expect(0).json();
    assert_eq!(
        (snapshot["status"].as_str(), snapshot["variables"]["published"].as_bool()),
        (Some("completed"), Some(true))
    );
    assert_eq!(snapshot["variables"]["headline"], "Notes on tides");
    baton(here, &["interrupt", "resolve", &run, "review", "--accept"]).expect(5);
    let late = baton(here, &["interrupt", "resolve", &run, "--accept"]).expect(5);
    assert!(late.stderr.contains("has ended (completed)"), "{late:?}");
    baton(here, &["interrupt", "resolve", &format!("run_{}", "0".repeat(32)), "--accept"]).expect(3);

    let events = baton(here, &["run", "events", &run, "--json"]).expect(0).stdout;
    let sequences: Vec<u64> = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(sequences, (0..sequences.len() as u64).collect::<Vec<_>>());
    let watched = baton(here, &["run", "watch", &run]).expect(0);
    assert!(watched.stdout.lines().last().unwrap().contains("[ 8/8]"), "{watched:?}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn what_was_started_is_there_after_a_restart() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let run = baton(here, &["run", "start", "demo-pipeline", "--wait", "--json"]).expect(6).json()["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(host.stop(), 0);
    baton(here, &["run", "list"]).expect(10);

    let host = dev(here);
    baton(here, &["interrupt", "resolve", &run, "review", "--reject"]).expect(0);
    baton(here, &["run", "watch", &run]).expect(1);
    let runs = baton(here, &["run", "list", "--status", "failed", "--json"]).expect(0).json();
    assert_eq!(runs["runs"][0]["runId"], run.as_str());
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_killed_host_finishes_what_it_acknowledged() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let runs: Vec<String> =
        (0..3).map(|_| baton(here, &["run", "start", "demo-pipeline"]).expect(0).stdout.trim().to_owned()).collect();
    host.kill();

    let host = dev(here);
    for run in runs {
        let events = baton(here, &["run", "events", &run, "--json"]).expect(0).stdout;
        assert!(events.contains("run.started"), "{events}");
        until(here, &run, |snapshot| snapshot["status"] == "waiting-approval");
        baton(here, &["interrupt", "resolve", &run, "--accept"]).expect(0);
        let log = baton(here, &["run", "watch", &run, "--json"]).expect(0).stdout;
        for node in ["start", "prepare", "outline", "research", "join", "review", "publish", "end"] {
            let done =
                log.lines().filter(|line| line.contains("node.completed") && line.contains(&format!("\"{node}\"")));
            assert_eq!(done.count(), 1, "{node}: {log}");
        }
    }
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_parent_runs_its_children() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let done = baton(here, &["run", "start", "demo-parent", "--wait", "--json"]).expect(0).json();
    assert_eq!(done["variables"]["summary"], "Hello, Ada! Hello, Grace!");
    assert_eq!(done["childRuns"].as_array().unwrap().len(), 2);
    assert_eq!(host.stop(), 0);
}

#[test]
fn ids_may_be_shortened_when_they_stay_unique() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let start = || baton(here, &["run", "start", "demo-child"]).expect(0).stdout.trim().to_owned();
    let (first, second) = (start(), start());
    let common = first.chars().zip(second.chars()).take_while(|(a, b)| a == b).count();
    let shown = baton(here, &["run", "show", &first[..common + 1], "--json"]).expect(0).json();
    assert_eq!(shown["runId"], first.as_str());
    let ambiguous = baton(here, &["run", "show", &first["run_".len()..common]]).expect(2);
    assert!(ambiguous.stderr.contains(&first) && ambiguous.stderr.contains(&second), "{ambiguous:?}");
    baton(here, &["run", "show", "run_zz"]).expect(3);
    assert_eq!(host.stop(), 0);
}

#[test]
fn ends_of_runs_have_their_own_exit_codes() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let bound = r#"{"recursionLimit":2}"#;
    baton(here, &["run", "start", "demo-pipeline", "--configurable", bound, "--wait"]).expect(8);
    baton(here, &["run", "start", "no-such-workflow"]).expect(3);
    baton(here, &["--key", "wrong", "run", "list"]).expect(4);

    let run = baton(here, &["run", "start", "demo-pipeline", "--wait", "--json"]).expect(6).json()["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    baton(here, &["run", "cancel", &run, "--reason", "enough"]).expect(0);
    baton(here, &["run", "watch", &run]).expect(7);
    baton(here, &["run", "resume", &run]).expect(5);
    assert_eq!(host.stop(), 0);
}

#[test]
fn an_idempotency_key_starts_one_run() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let start = || baton(here, &["run", "start", "demo-child", "--idempotency-key", "once"]).expect(0).stdout;
    assert_eq!(start(), start());
    baton(here, &["run", "start", "demo-parent", "--idempotency-key", "once"]).expect(5);
    assert_eq!(host.stop(), 0);
}

#[test]
fn serve_takes_keys_and_folders_and_refuses_bad_files() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let flows = here.join("flows");
    std::fs::create_dir(&flows).unwrap();
    let child = Path::new(env!("CARGO_MANIFEST_DIR")).join("demos/demo-child.json");
    std::fs::copy(&child, flows.join("demo-child.json")).unwrap();
    let env = [("BATON_API_KEYS", "alpha:a,beta:b:runs:read")];
    let host = Running::start(here, &["serve", "--workflows", "flows"], &env);
    let ask = |key: &str, words: &[&str]| {
        baton_with(here, words, &[("BATON_URL", host.url.as_str()), ("BATON_API_KEY", key)])
    };
    let run = ask("alpha", &["run", "start", "demo-child", "--wait", "--json"]).expect(0).json()["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    ask("beta", &["run", "start", "demo-child"]).expect(4);
    ask("beta", &["run", "show", &run]).expect(3);
    // A second host on the same data must not start.
    let second = baton_with(here, &["serve", "--listen", "127.0.0.1:0"], &env).expect(1);
    assert!(second.stderr.contains("in use by another process") && second.stderr.contains("hint: "), "{second:?}");
    let busy = baton(here, &["storage", "check"]).expect(5);
    assert!(busy.stderr.contains("in use by another process") && !busy.stderr.contains("--data"), "{busy:?}");
    let address = host.url.trim_start_matches("http://");
    let judged = baton(here, &["doctor", "--listen", address, "--json"]).json();
    let running = judged.as_array().unwrap().iter().find(|finding| finding["name"] == "host").unwrap();
    assert_eq!(running["found"], format!("{} is ready", host.url));
    assert_eq!(host.stop(), 0);

    std::fs::write(flows.join("bad.json"), std::fs::read_to_string(&child).unwrap().replace("core.", "gore.")).unwrap();
    let refused = baton_with(here, &["serve", "--listen", "127.0.0.1:0", "--workflows", "flows"], &env).expect(2);
    assert!(refused.stderr.contains("flows/bad.json: /nodes/0/typeId: "), "{refused:?}");
}

#[test]
fn dev_picks_up_workflows_while_it_runs() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let child = Path::new(env!("CARGO_MANIFEST_DIR")).join("demos/demo-child.json");
    let mine = std::fs::read_to_string(child).unwrap().replace("demo-child", "mine");
    baton(here, &["run", "start", "mine"]).expect(3);
    std::fs::create_dir(here.join("workflows")).unwrap();
    std::fs::write(here.join("workflows/broken.json"), "{").unwrap();
    std::fs::write(here.join("workflows/mine.json"), mine).unwrap();
    for _ in 0..100 {
        if baton(here, &["run", "start", "mine", "--wait"]).code == 0 {
            assert_eq!(host.stop(), 0);
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the new workflow was never registered");
}

#[test]
fn registering_tells_file_and_place_and_keeps_versions() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let child = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("demos/demo-child.json")).unwrap();
    std::fs::write(here.join("w.json"), child.replace("demo-child", "w")).unwrap();
    assert_eq!(baton(here, &["workflow", "register", "w.json"]).expect(0).stdout, "w version 1 registered\n");
    assert_eq!(baton(here, &["workflow", "register", "w.json"]).expect(0).stdout, "w version 1 unchanged\n");
    std::fs::write(here.join("w.json"), child.replace("demo-child", "w").replace("Hello", "Hi")).unwrap();
    assert_eq!(baton(here, &["workflow", "register", "w.json"]).expect(0).stdout, "w version 2 registered\n");
    let hi = baton(here, &["run", "start", "w", "--wait", "--json"]).expect(0).json();
    assert_eq!(hi["variables"]["greeting"], "Hi, world!");

    std::fs::write(here.join("w.json"), child.replace("core.", "gore.")).unwrap();
    let bad = baton(here, &["workflow", "register", "w.json"]).expect(2);
    assert!(bad.stderr.starts_with("error: w.json: ") && bad.stderr.contains("/nodes/0/typeId"), "{bad:?}");
    assert_eq!(host.stop(), 0);
}
