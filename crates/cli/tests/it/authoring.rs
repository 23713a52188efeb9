//! A new project, its cases, and the host it runs on, as a person would type it.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{baton, dev, until};

/// A project named `desk`, and its folder.
fn desk(here: &Path, worker: &str) -> std::path::PathBuf {
    let made = baton(here, &["new", "desk", "--worker", worker]).expect(0);
    assert!(
        made.stdout.contains("desk/tests/triage.test.yaml") && made.stderr.contains("cd desk && baton test"),
        "{made:?}"
    );
    here.join("desk")
}

#[test]
fn a_new_project_passes_its_test_and_runs_at_once() {
    let here = tempfile::tempdir().unwrap();
    let desk = desk(here.path(), "none");
    let again = baton(here.path(), &["new", "desk"]).expect(5);
    assert!(again.stderr.contains("desk is not empty"), "{again:?}");
    baton(&desk, &["workflow", "validate", "workflows/triage.json"]).expect(0);
    let tested = baton(&desk, &["test"]).expect(0);
    assert!(tested.stdout.contains("ok    tests/triage.test.yaml: 3 passed"), "{tested:?}");

    let host = dev(&desk);
    let waiting = baton(&desk, &["run", "start", "triage", "--wait", "--json"]).expect(6).json();
    let run = waiting["runId"].as_str().unwrap();
    baton(&desk, &["interrupt", "resolve", run, "--accept"]).expect(0);
    let ended = until(&desk, run, |run| run["status"] == "completed");
    assert_eq!(ended["outputs"], json!({"reply": "Thank you, we are looking into it.", "urgent": true}));
    assert_eq!(host.stop(), 0);
}

#[test]
fn every_language_of_a_worker_makes_a_project_that_passes_without_it() {
    for (worker, file) in [("python", "worker/worker.py"), ("typescript", "worker/worker.mjs")] {
        let here = tempfile::tempdir().unwrap();
        let desk = desk(here.path(), worker);
        assert!(desk.join(file).is_file());
        baton(&desk, &["test"]).expect(0);
    }
}

#[test]
fn reports_for_people_and_machines_and_exit_codes() {
    let here = tempfile::tempdir().unwrap();
    let none = baton(here.path(), &["test"]).expect(3);
    assert!(none.stderr.contains("baton new NAME"), "{none:?}");
    let desk = desk(here.path(), "none");
    let cases = desk.join("tests/triage.test.yaml");
    let text = std::fs::read_to_string(&cases).unwrap();
    std::fs::write(&cases, text.replace("outputs: { reply: Help is on its way.", "outputs: { reply: Help is near."))
        .unwrap();

    let failed = baton(&desk, &["test", "--junit", "report.xml"]).expect(1);
    for part in [
        "FAIL  tests/triage.test.yaml:8:5 an urgent ticket is answered, and a person agrees",
        "-   \"reply\": \"Help is near.\"",
        "+   \"reply\": \"Help is on its way.\"",
        "2 passed, 1 failed",
    ] {
        assert!(failed.stdout.contains(part), "`{part}` is missing: {}", failed.stdout);
    }
    let junit = std::fs::read_to_string(desk.join("report.xml")).unwrap();
    assert!(
        junit.contains("tests=\"3\" failures=\"1\"")
            && junit.contains("<failure message=\"outputs are not as expected\">"),
        "{junit}"
    );

    let report: Value = baton(&desk, &["test", "--json"]).expect(1).json();
    assert_eq!((&report["passed"], &report["failed"]), (&json!(2), &json!(1)));
    assert_eq!(report["cases"][0]["problems"][0]["about"], "outputs");

    let some = baton(&desk, &["test", "--filter", "says no"]).expect(0);
    assert!(some.stdout.contains("1 passed, 0 failed, 2 left out"), "{some:?}");
    baton(&desk, &["test", "--filter", "no such case"]).expect(3);

    // A workflow that is not valid fails with its place, whatever the cases say.
    let flow = desk.join("workflows/other.json");
    std::fs::write(&flow, "{\n  \"id\": \"other\",\n  \"nodes\": 3\n}\n").unwrap();
    let broken = baton(&desk, &["test", "--filter", "says no"]).expect(1);
    assert!(broken.stdout.contains("FAIL  workflows/other.json:3:3") && broken.stdout.contains("/nodes"), "{broken:?}");
}

#[test]
fn recorded_answers_stand_in_for_a_model() {
    let here = tempfile::tempdir().unwrap();
    let desk = desk(here.path(), "none");
    let config = std::fs::read_to_string(desk.join("baton.toml")).unwrap();
    let script = "script = \"model/script.json\"\n";
    let recording = format!("{script}recording = {{ mode = \"record\", path = \"tests/answers.jsonl\" }}\n");
    std::fs::write(desk.join("baton.toml"), config.replace(script, &recording)).unwrap();
    let host = dev(&desk);
    baton(&desk, &["agent", "run", "private.desk.helpers.clerk", "--task", "My screen flickers.", "--wait"]).expect(0);
    assert_eq!(host.stop(), 0);

    let case = |task: &str| {
        let text = format!(
            "cases:\n  - name: recorded\n    agent: private.desk.helpers.clerk\n    inputs: {{ task: {task} }}\n    \
             recording: answers.jsonl\n    expect:\n      variables: {{ result: {{ reply: {{ $contains: looking into it }} }} }}\n"
        );
        std::fs::write(desk.join("tests/recorded.test.yaml"), text).unwrap();
        baton(&desk, &["test", "tests/recorded.test.yaml"])
    };
    case("My screen flickers.").expect(0);
    let other = case("My mouse squeaks.").expect(1);
    assert!(other.stdout.contains("the recording has no answer for this request"), "{other:?}");
}
