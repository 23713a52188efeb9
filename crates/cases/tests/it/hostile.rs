//! Cases that are broken, endless, many, or wrong.

use std::sync::Arc;
use std::time::Duration;

use baton_cases::Suite;
use baton_runtime::BeforeStep;
use serde_json::json;

use crate::support::{fails, passes, project, run, run_with, said, workflow};

fn noop() -> serde_json::Value {
    workflow("noop", &json!({"x": 0}), &[("one", "core.noop", json!({}))])
}

#[test]
fn a_thousand_cases_come_back_in_the_order_of_the_file() {
    let mut text = "workflow: noop\ncases:\n".to_owned();
    (0..1000).for_each(|i| text.push_str(&format!("  - name: case {i}\n")));
    let report = passes(project([noop()]), &text);
    assert_eq!((report.passed, report.cases.len()), (1000, 1000));
    let names: Vec<&str> = report.cases.iter().filter_map(|case| case.name.as_deref()).collect();
    assert!(names.iter().enumerate().all(|(i, name)| *name == format!("case {i}")));
}

#[test]
fn what_is_wrong_in_a_file_is_shown_where_it_stands_and_the_other_cases_run() {
    let text = "cases:
  - name: good
    workflow: noop
  - name: wrong type
    workflow: noop
    inputs: [1]
  - name: misspelt
    workflow: noop
    input: {}
  - name: good
    workflow: noop
  - name: nothing
  - name: status
    workflow: noop
    expect: { status: done }
  - name: duration
    workflow: noop
    answers:
      - accept: true
        after: soon
  - name: reply
    workflow: noop
    model:
      - text: a
        json: {}
  - name: tool
    workflow: noop
    tools: { shop: { returns: 1 } }
  - name: bound
    workflow: noop
    expect: { usage: { modelCalls: many } }
  - 7
";
    let report = run(project([noop()]), text);
    let said = said(&report);
    assert_eq!((report.passed, report.failed), (1, 10), "{said}");
    for part in [
        "6:5 (file)\n  file: invalid type: sequence, expected a map",
        "9:5 (file)\n  file: unknown field `input`",
        "did you mean `inputs`?",
        "10:5 (file)\n  file: there is a case `good` already, in line 2",
        "12:5 (file)\n  file: the case starts nothing",
        "15:15 (file)\n  file: `done` is no status of a run",
        "20:9 (file)\n  file: `soon` is no duration",
        "24:9 (file)\n  file: the reply has both `text` and `json`",
        "28:14 (file)\n  file: `shop` is no id of a tool",
        "31:24 (file)\n  file: expected a number, or a mapping with `min`",
        "32:5 (file)\n  file: a case is a mapping",
    ] {
        assert!(said.contains(part), "`{part}` is missing:\n{said}");
    }
}

#[test]
fn a_case_that_goes_round_for_ever_is_bounded() {
    // A loop of the workflow: its own bound ends it.
    let mut spins = workflow(
        "spins",
        &json!({"x": 0}),
        &[("a", "core.noop", json!({})), ("wait", "core.delay", json!({"delayMs": 60_000}))],
    );
    spins["edges"].as_array_mut().unwrap().push(json!({"id": "back", "sourceNodeId": "wait", "targetNodeId": "a"}));
    let report = run(project([spins]), "cases: [{name: x, workflow: spins}]");
    assert_eq!(report.failed, 1, "{}", said(&report));
}

#[test]
fn a_case_that_computes_without_end_is_given_up_and_the_others_go_on() {
    let mut project = project([noop(), workflow("endless", &json!({}), &[("one", "core.noop", json!({}))])]);
    project.options.before_step = Some(BeforeStep(Arc::new(|row, _| {
        // Longer than a case may take and than it is waited for after that; then it ends, as a test must.
        if row.workflow.as_str() == "endless" {
            std::thread::sleep(Duration::from_secs(6));
        }
    })));
    let text = "cases: [{name: a, workflow: endless, timeoutSeconds: 1}, {name: b, workflow: noop}, {name: c, workflow: noop}]";
    let report = run_with(project, text, &Suite { jobs: 1, ..Suite::default() });
    let said = said(&report);
    assert_eq!((report.passed, report.failed), (2, 1), "{said}");
    assert!(said.contains("given up: it computes without end"), "{said}");
}

#[test]
fn a_panic_inside_is_one_cases_failure() {
    let mut project = project([noop(), workflow("panics", &json!({}), &[("one", "core.noop", json!({}))])]);
    project.options.before_step = Some(BeforeStep(Arc::new(|row, _| {
        assert!(row.workflow.as_str() != "panics", "this step breaks");
    })));
    let text = "cases: [{name: a, workflow: panics}, {name: b, workflow: noop}]";
    let report = run_with(project, text, &Suite { jobs: 1, ..Suite::default() });
    let said = said(&report);
    assert_eq!((report.passed, report.failed), (1, 1), "{said}");
}

#[test]
fn a_model_that_never_answers_is_not_waited_for() {
    let asks = workflow(
        "asks",
        &json!({}),
        &[(
            "ask",
            "core.ai.structuredOutput",
            json!({"outputSchema": {"type": "object"}, "systemPrompt": "Say something."}),
        )],
    );
    let case = "cases: [{name: x, workflow: asks, model: [{stall: true}]}]";
    let report = run(project([asks]), case);
    assert_eq!(report.failed, 1, "{}", said(&report));
}

#[test]
fn a_filter_leaves_cases_out() {
    let text = "cases: [{name: first, workflow: noop}, {name: second, workflow: noop}]";
    let suite = Suite { filter: Some("sec".to_owned()), ..Suite::default() };
    let report = run_with(project([noop()]), text, &suite);
    assert_eq!((report.passed, report.skipped), (1, 1));
}

#[test]
fn files_that_are_no_cases_say_so() {
    for (text, says) in [
        ("", "the file is empty"),
        ("- a\n", "the file is not a mapping"),
        ("case: []\n", "`cases` must be a list"),
        ("cases: []\n", "the list of cases is empty"),
        ("cases: [{name: a}]\nworkflows: b\n", "`workflows` is no setting of a file"),
        ("cases: [{\n", "not YAML"),
    ] {
        fails(project([noop()]), text, &[says]);
    }
}
