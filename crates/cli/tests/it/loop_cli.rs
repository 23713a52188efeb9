//! The supervisor loop as a person meets it on the command line: held decisions, a worker's question, the tree.

use crate::support;

use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value;
use snapbox::{IntoData, Redactions, str};
use support::{Ended, Running, baton, baton_with, dev, show, until};

fn start(here: &Path, workflow: &str, exit: i32) -> (String, Ended) {
    let ended = baton(here, &["run", "start", workflow, "--wait", "--json"]).expect(exit);
    (ended.json()["runId"].as_str().unwrap().to_owned(), ended)
}

/// The child of a run that waits.
fn waiting_child(here: &Path, run: &str) -> String {
    let waits = |snapshot: &Value| child(snapshot).is_some();
    child(&until(here, run, waits)).unwrap()
}

fn child(snapshot: &Value) -> Option<String> {
    let children = snapshot["childRuns"].as_array()?;
    let waiting = children.iter().find(|child| child["status"] == "waiting-approval")?;
    waiting["runId"].as_str().map(str::to_owned)
}

/// How much of a run's id a narrow line shows.
const SHORT_ID: usize = 16;

/// Compares output with a snapshot. Runs have names in it instead of ids, and ages are left out.
fn assert_output(text: &str, runs: &[(&'static str, &str)], expected: impl IntoData) {
    let mut redactions = Redactions::new();
    let mut redact = |name: &'static str, pattern: &str| {
        redactions.insert(name, Regex::new(&format!("(?<redacted>{pattern})")).unwrap()).unwrap();
    };
    for (name, id) in runs {
        // Short and full forms of one id are the same run.
        redact(name, &format!("{}[0-9a-f]*", &id[..SHORT_ID]));
    }
    redact("[AGE]", " +(just now|[0-9]+s ago)");
    snapbox::Assert::new().action_env("SNAPSHOTS").redact_with(redactions).eq(text, expected.into_data());
}

/// Decisions on the log: turn and kind.
fn decided(here: &Path, run: &str) -> Vec<(u64, String)> {
    let log = baton(here, &["run", "events", run, "--json"]).expect(0).stdout;
    log.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["type"] == "runOrchestrator.decided")
        .map(|event| {
            let payload = &event["payload"];
            (payload["iteration"].as_u64().unwrap(), payload["decision"]["kind"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn the_team_works_from_start_to_end() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let (run, held) = start(here, "demo-team", 6);
    assert!(held.stderr.contains("waiting for approval: Turn 2: "), "{held:?}");
    assert!(held.stderr.contains(&format!("interrupt resolve {run} lead --accept --id int:lead:2\n")), "{held:?}");
    assert!(held.stderr.contains("or answer with --reject, --refine TEXT, --edit JSON\n"), "{held:?}");
    let shown = baton(here, &["interrupt", "show", &run]).expect(0).stdout;
    assert!(shown.contains("decision   next-worker demo-draft, confidence 0.40\n"), "{shown}");
    assert!(shown.contains("held       confidence 0.40 is below 0.50\n"), "{shown}");

    baton(here, &["interrupt", "resolve", &run, "--accept"]).expect(0);
    let review = waiting_child(here, &run);
    // The parent says whose question it waits for, and does not take the answer itself.
    let printed = baton(here, &["run", "show", &run]).expect(0);
    assert!(
        printed.stderr.contains(&format!("asked by {review} (demo-review, node read), a descendant of this run")),
        "{printed:?}"
    );
    assert!(printed.stderr.contains(&format!("interrupt resolve {review} read --accept")), "{printed:?}");
    let elsewhere = baton(here, &["interrupt", "resolve", &run, "--accept"]).expect(3);
    assert!(
        elsewhere.stderr.contains(&format!("has no open question; its descendant {review} (demo-review) has one")),
        "{elsewhere:?}"
    );
    let tree = baton(here, &["run", "tree", &review]).expect(0).stdout;
    let children = show(here, &run)["childRuns"].clone();
    let child = |index: usize| children[index]["runId"].as_str().unwrap();
    let runs =
        [("[TEAM]", run.as_str()), ("[RESEARCH]", child(0)), ("[DRAFT]", child(1)), ("[REVIEW]", review.as_str())];
    assert_output(
        &tree,
        &runs,
        str![[r#"
demo-team         waiting-approval  [TEAM][AGE]
├─ demo-research  completed         [RESEARCH]  turn 1 at hand-over[AGE]
├─ demo-draft     completed         [DRAFT]  turn 2 at hand-over[AGE]
└─ demo-review    waiting-approval  [REVIEW]  turn 3 at hand-over[AGE]

"#]],
    );

    let answered = baton(here, &["interrupt", "resolve", &review, "read", "--accept"]).expect(0);
    assert!(answered.stderr.contains(&format!("run show {run}")), "{answered:?}");
    let followed = baton(here, &["run", "tree", &run, "--follow"]).expect(0).stdout;
    let completed = format!("{}  demo-team  completed", &run[..SHORT_ID]);
    assert!(followed.lines().any(|line| line == completed), "{followed}");
    let end = show(here, &run);
    assert_eq!(end["variables"]["article"], "On tides: Three facts about tides.");
    let kinds = [(1, "next-worker"), (2, "next-worker"), (3, "next-worker"), (4, "terminate")];
    assert_eq!(decided(here, &run), kinds.map(|(turn, kind)| (turn, kind.to_owned())));
    let nested = baton(here, &["run", "tree", &run, "--json"]).expect(0).json();
    assert_eq!((&nested["runId"], &nested["children"][2]["turn"]), (&end["runId"], &Value::from(3)));
    assert_eq!(nested["children"][2]["workflowId"], "demo-review");

    let watched = baton(here, &["run", "watch", &run]).expect(0).stdout;
    for line in [
        "turn 1: next-worker demo-research, confidence 0.90",
        "held: confidence 0.40 is below 0.50 (next-worker demo-draft, confidence 0.40)",
        "demo-draft: harvested draft",
        "turn 4: terminate: the article is approved",
    ] {
        assert!(watched.contains(line), "{line} is missing: {watched}");
    }
    let narrow = baton_with(here, &["run", "watch", &run], &[("COLUMNS", "60")]).expect(0).stdout;
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_held_decision_can_be_sent_back_changed_or_refused() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);

    // Sent back: the same turn is decided again, and held again, for these rules come to the same result.
    let (run, _) = start(here, "demo-team", 6);
    let before = show(here, &run)["interrupt"]["key"].clone();
    baton(here, &["interrupt", "resolve", &run, "--refine", "are you sure?"]).expect(0);
    let again = until(here, &run, |snapshot| {
        snapshot["status"] == "waiting-approval" && snapshot["interrupt"]["key"] != before
    });
    assert_eq!(again["interrupt"]["data"]["artifactId"], "decision-2");
    assert_eq!(decided(here, &run).len(), 1);

    // Changed: what a human decides is not judged again.
    let edited = r#"{"kind":"terminate","reason":"enough","confidence":0.1}"#;
    // The same command once more is not an answer to the next question; that is shown, with what answers it.
    let late = baton(here, &["interrupt", "resolve", &run, "lead", "--edit", edited]).expect(5);
    let id = again["interrupt"]["interruptId"].as_str().unwrap();
    assert!(late.stderr.contains("It asks: Turn 2: "), "{late:?}");
    assert!(
        late.stderr.contains(&format!("hint: baton interrupt resolve {run} lead --accept --id {id}\n")),
        "{late:?}"
    );
    let stale = baton(here, &["interrupt", "resolve", &run, "lead", "--accept", "--id", "int:lead:2"]).expect(5);
    assert!(stale.stderr.contains("interrupt_already_resolved"), "{stale:?}");
    baton(here, &["interrupt", "resolve", &run, "--accept", "--id", "int:lead:2"]).expect(5);
    let shown = baton(here, &["interrupt", "show", &run]).expect(0).stdout;
    assert!(shown.contains(&format!("id         {id}\n")), "{shown}");
    baton(here, &["interrupt", "resolve", &run, "lead", "--id", id, "--edit", r#"{"kind":"escalate"}"#]).expect(2);
    baton(here, &["interrupt", "resolve", &run, "--id", id, "--edit", edited]).expect(0);
    until(here, &run, |snapshot| snapshot["status"] == "completed");
    assert_eq!(decided(here, &run)[1], (2, "terminate".to_owned()));
    baton(here, &["interrupt", "resolve", &run, "lead", "--accept"]).expect(5);

    // Refused: the run fails and nothing was done.
    let (run, _) = start(here, "demo-team", 6);
    baton(here, &["interrupt", "resolve", &run, "--reject", "--feedback", "no"]).expect(0);
    baton(here, &["run", "watch", &run]).expect(1);
    let end = show(here, &run);
    assert_eq!((&end["error"]["code"], end["childRuns"].as_array().unwrap().len()), (&"approval_rejected".into(), 1));
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_crash_between_question_and_answer_changes_nothing() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let (run, _) = start(here, "demo-team", 6);
    host.kill();

    let host = dev(here);
    baton(here, &["interrupt", "resolve", &run, "--accept"]).expect(0);
    let review = waiting_child(here, &run);
    host.kill();

    let host = dev(here);
    baton(here, &["interrupt", "resolve", &review, "--accept"]).expect(0);
    let end = until(here, &run, |snapshot| snapshot["status"] == "completed");
    assert_eq!(end["childRuns"].as_array().unwrap().len(), 3);
    let turns: Vec<u64> = decided(here, &run).into_iter().map(|(turn, _)| turn).collect();
    assert_eq!(turns, [1, 2, 3, 4]);
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_worker_that_is_refused_ends_the_team_by_rule() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    let (run, _) = start(here, "demo-team", 6);
    baton(here, &["interrupt", "resolve", &run, "--accept"]).expect(0);
    let review = waiting_child(here, &run);
    baton(here, &["interrupt", "resolve", &review, "--reject"]).expect(0);
    until(here, &run, |snapshot| snapshot["status"] == "completed");
    let tree = baton(here, &["run", "tree", &run]).expect(0).stdout;
    assert!(tree.lines().last().unwrap().ends_with("approval_rejected"), "{tree}");
    let bound = r#"{"maxLoopIterations":1}"#;
    baton(here, &["run", "start", "demo-team", "--configurable", bound, "--wait"]).expect(8);
    assert_eq!(host.stop(), 0);
}

#[test]
fn every_kind_of_held_question_takes_the_same_answers() {
    let demos = Path::new(env!("CARGO_MANIFEST_DIR")).join("demos");
    for (kind, status) in [
        ("approval", "waiting-approval"),
        ("clarification", "waiting-clarification"),
        ("x-host-baton-low-confidence", "waiting-approval"),
    ] {
        let here = tempfile::tempdir().unwrap();
        let here = here.path();
        let env = [("BATON_API_KEYS", "alpha:a"), ("BATON_ESCALATION_INTERRUPT", kind)];
        let host = Running::start(here, &["serve", "--workflows", demos.to_str().unwrap()], &env);
        let ask = |words: &[&str]| baton_with(here, words, &[("BATON_URL", &host.url), ("BATON_API_KEY", "alpha")]);
        let start = || {
            let held = ask(&["run", "start", "demo-team", "--wait", "--json"]).expect(6);
            assert_eq!(held.json()["status"], status, "{kind}");
            let run = held.json()["runId"].as_str().unwrap().to_owned();
            assert!(held.stderr.contains(&format!("interrupt resolve {run} lead --accept")), "{held:?}");
            run
        };
        let shown = ask(&["interrupt", "show", &start()]).expect(0).stdout;
        assert!(shown.contains("next-worker demo-draft, confidence 0.40"), "{kind}: {shown}");
        assert!(shown.contains("confidence 0.40 is below 0.50"), "{kind}: {shown}");

        let accepted = start();
        ask(&["interrupt", "resolve", &accepted, "--accept"]).expect(0);
        let refined = start();
        ask(&["interrupt", "resolve", &refined, "--refine", "think again"]).expect(0);
        let open = ask(&["interrupt", "list", &refined, "--json"]).expect(0).json();
        let id = open["interrupts"][0]["interruptId"].as_str().unwrap().to_owned();
        ask(&["interrupt", "resolve", &refined, "--id", &id, "--edit", r#"{"kind":"terminate"}"#]).expect(0);
        ask(&["run", "watch", &refined]).expect(0);
        let rejected = start();
        ask(&["interrupt", "resolve", &rejected, "--reject"]).expect(0);
        ask(&["run", "watch", &rejected]).expect(1);
        let log = ask(&["run", "events", &accepted]).expect(0).stdout;
        assert!(log.contains("turn 2: next-worker demo-draft"), "{kind}: {log}");
        assert_eq!(host.stop(), 0);
    }
}

fn guide(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/examples").join(name)
}

#[test]
fn the_guides_teams_do_what_it_says() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    for name in ["summarise", "measure", "supervisor", "supervisor-ask", "supervisor-merge", "supervisor-parallel"] {
        let file = guide(&format!("{name}.json"));
        baton(here, &["workflow", "validate", file.to_str().unwrap()]).expect(0);
        baton(here, &["workflow", "register", file.to_str().unwrap()]).expect(0);
    }
    let (_, done) = start(here, "supervisor", 0);
    assert_eq!(done.json()["variables"]["result"], "In short: a long story");

    let (run, done) = start(here, "supervisor-parallel", 0);
    assert_eq!(done.json()["variables"]["length"], 30);
    let log = baton(here, &["run", "events", &run]).expect(0).stdout;
    assert!(log.contains("2 workers in parallel, at most 2 at once, join wait-all"), "{log}");
    assert!(log.contains("satisfied: 2 completed, 0 failed, 0 cancelled"), "{log}");

    let (run, _) = start(here, "supervisor-ask", 6);
    let wrong = baton(here, &["interrupt", "resolve", &run, "--accept"]).expect(2);
    assert!(wrong.stderr.contains("--answer answer="), "{wrong:?}");
    baton(here, &["interrupt", "resolve", &run, "--answer", "answer=no"]).expect(0);
    until(here, &run, |snapshot| snapshot["status"] == "completed");
    assert_eq!(decided(here, &run), [(1, "ask-user".to_owned()), (2, "terminate".to_owned())]);

    let (run, held) = start(here, "supervisor-merge", 6);
    assert!(held.stderr.contains("or answer with --reject, --edit JSON\n"), "{held:?}");
    let shown = baton(here, &["interrupt", "show", &run]).expect(0).stdout;
    assert!(shown.contains("output     summary = In short: the tides\nsha256     "), "{shown}");
    baton(here, &["interrupt", "resolve", &run, "--edit", r#"{"summary":"Moon and water."}"#]).expect(0);
    let end = until(here, &run, |snapshot| snapshot["status"] == "completed");
    assert_eq!(end["variables"]["result"], "Moon and water.");

    let (run, _) = start(here, "supervisor-merge", 6);
    baton(here, &["interrupt", "resolve", &run, "--reject"]).expect(0);
    let end = until(here, &run, |snapshot| snapshot["status"] == "completed");
    assert_eq!(end["variables"]["result"], "");
    assert_eq!(host.stop(), 0);
}
