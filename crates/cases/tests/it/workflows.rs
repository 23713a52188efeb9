//! Workflows in cases: values, events, questions, time, tools, children.

use serde_json::json;

use crate::support::{fails, passes, project, workflow};

fn greet() -> serde_json::Value {
    workflow(
        "greet",
        &json!({"name": "", "text": ""}),
        &[("hello", "core.setVariable", json!({"name": "text", "expression": "'Hello ' + variables.name"}))],
    )
}

#[test]
fn a_workflow_is_started_and_what_comes_of_it_is_checked() {
    let cases = r"
workflow: greet
cases:
  - name: it greets
    inputs: { name: Ada }
    expect:
      variables: { text: Hello Ada }
      nodes: { hello: { status: completed } }
      events:
        - type: run.started
        - { type: node.completed, node: hello }
        - type: run.completed
      noEvents:
        - type: run.failed
  - name: and without a name
    expect: { variables: { text: 'Hello ' }, seconds: 0 }
";
    assert_eq!(passes(project([greet()]), cases).passed, 2);
}

#[test]
fn what_is_wrong_is_shown_as_a_difference() {
    let case = |expect: &str| {
        format!("cases:\n  - name: x\n    workflow: greet\n    inputs: {{ name: Ada }}\n    expect:\n{expect}")
    };
    fails(
        project([greet()]),
        &case("      variables: { text: Goodbye, name: Ada }\n"),
        &[
            "variables are not as expected",
            "-   \"text\": \"Goodbye\"",
            "+   \"text\": \"Hello Ada\"",
            "    \"name\": \"Ada\"",
        ],
    );
    fails(project([greet()]), &case("      status: failed\n"), &["expected `failed`, found `completed`"]);
    fails(
        project([greet()]),
        &case("      events: [{type: run.completed}, {type: node.completed}]\n"),
        &["event 2 is not there: `node.completed`"],
    );
    fails(project([greet()]), &case("      noEvents: [{type: node.completed}]\n"), &["`node.completed` happened"]);
    fails(project([greet()]), &case("      seconds: { min: 1 }\n"), &["expected at least 1 s, found 0 s"]);
}

#[test]
fn an_unknown_workflow_names_those_there_are() {
    fails(
        project([greet()]),
        "cases: [{name: x, workflow: gret}]",
        &["there is no workflow `gret`", "there are: greet"],
    );
}

#[test]
fn a_workflow_that_waits_for_a_month_takes_no_time() {
    let waits = workflow(
        "waits",
        &json!({"x": 0}),
        &[
            ("day", "core.delay", json!({"delayMs": 86_400_000})),
            ("month", "core.delay", json!({"delayMs": 2_592_000_000_u64})),
            ("end", "core.setVariable", json!({"name": "x", "value": 1})),
        ],
    );
    passes(project([waits]), "cases: [{name: x, workflow: waits, expect: {variables: {x: 1}, seconds: 2678400}}]");
}

fn approval() -> serde_json::Value {
    workflow(
        "approval",
        &json!({"done": false}),
        &[
            ("review", "core.approvalGate", json!({"title": "Send?", "timeoutMs": 604_800_000})),
            ("send", "core.setVariable", json!({"name": "done", "value": true})),
        ],
    )
}

#[test]
fn questions_are_answered_by_node_or_key_late_or_never() {
    let cases = r"
workflow: approval
cases:
  - name: at once
    answers: [{ node: review, accept: true }]
    expect: { variables: { done: true }, seconds: 0 }
  - name: after two days
    answers: [{ accept: true, after: 2d }]
    expect: { variables: { done: true }, seconds: 172800 }
  - name: rejected
    answers: [{ reject: true, feedback: not like this }]
    expect: { status: failed }
  - name: nobody answers for a week
    answers: [{ node: review, nobody: true }]
    expect: { status: failed, seconds: 604800 }
  - name: it waits
    expect: { status: waiting-approval, variables: { done: false } }
";
    passes(project([approval()]), cases);
    fails(
        project([approval()]),
        "cases: [{name: x, workflow: approval}]",
        &["`review` asks a question (approval)", "{node: review, accept: true}"],
    );
    fails(
        project([approval()]),
        "cases: [{name: x, workflow: approval, answers: [{accept: true}, {node: other, accept: true}]}]",
        &["answer 2 answers nothing"],
    );
    fails(
        project([approval()]),
        "cases: [{name: x, workflow: approval, answers: [{value: {action: dance}}]}]",
        &["the answer to `review` was refused"],
    );
}

fn calls() -> serde_json::Value {
    workflow(
        "calls",
        &json!({"id": "a", "found": {}}),
        &[(
            "look",
            "vendor.baton.tool",
            json!({"tool": "mcp:shop.lookup", "argumentsExpression": "{'id': variables.id}", "into": "found"}),
        )],
    )
}

#[test]
fn tools_are_stubbed_and_those_that_are_not_fail_the_case() {
    let cases = r"
workflow: calls
tools:
  mcp:shop.lookup:
    calls:
      - when: { id: a }
        returns: { price: 3 }
      - when: { id: slow }
        takes: 1h
        returns: { price: 4 }
    fails: no such thing
cases:
  - name: found
    expect:
      variables: { found: { price: 3 } }
      tools: [{ tool: 'mcp:shop.lookup', arguments: { id: a } }]
      usage: { toolCalls: 1, modelCalls: 0 }
  - name: slow
    inputs: { id: slow }
    expect: { variables: { found: { price: 4 } }, seconds: 3600 }
  - name: not found
    inputs: { id: z }
    expect: { status: failed, error: { message: { $contains: no such thing } } }
";
    passes(project([calls()]), cases);
    fails(
        project([calls()]),
        "cases: [{name: x, workflow: calls}]",
        &["`mcp:shop.lookup` was called with {\"id\":\"a\"}, and is not stubbed", "mcp:shop.lookup: {returns: …}"],
    );
    fails(
        project([calls()]),
        "cases: [{name: x, workflow: calls, tools: {'mcp:shop.lookup': {calls: [{when: {id: b}, returns: 1}]}}}]",
        &["has no answer for that"],
    );
    fails(
        project([calls()]),
        "cases: [{name: x, workflow: calls, tools: {'mcp:shop.lookup': {returns: {}}}, expect: {tools: [{tool: 'mcp:shop.lookup', arguments: {id: b}}]}}]",
        &[
            "the calls of tools are not as expected",
            "- mcp:shop.lookup {\"id\":\"b\"}",
            "+ mcp:shop.lookup {\"id\":\"a\"}",
        ],
    );
    fails(
        project([calls()]),
        "cases: [{name: x, workflow: calls, tools: {'mcp:shop.lookup': {calls: [{returns: 1}, {times: 1, returns: 2}]}}}]",
        &["was called 0 times, not 1"],
    );
}

#[test]
fn a_request_over_http_goes_nowhere() {
    let http = workflow(
        "http",
        &json!({"answer": {}}),
        &[("ask", "vendor.baton.http", json!({"url": "https://api.example.com/orders", "into": "answer"}))],
    );
    fails(
        project([http.clone()]),
        "cases: [{name: x, workflow: http}]",
        &["`openwop:http.request` was called", "is not stubbed"],
    );
    let case = r"
cases:
  - name: x
    workflow: http
    tools:
      openwop:http.request:
        calls: [{ when: { method: GET }, returns: { status: 200, body: { id: 7 } } }]
    expect: { variables: { answer: { body: { id: 7 } } } }
";
    passes(project([http]), case);
}

#[test]
fn children_are_looked_at_too() {
    let parent = workflow(
        "parent",
        &json!({"made": {}}),
        &[(
            "greet",
            "vendor.baton.map",
            json!({"items": ["Ada", "Bob"], "workflow": "greet", "inputsExpression": "{'name': item}", "output": "text", "into": "made"}),
        )],
    );
    let project = || project([parent.clone(), greet()]);
    let case = |name: &str| {
        format!(
            "cases: [{{name: x, workflow: parent, expect: {{children: [{{workflow: greet, variables: {{text: Hello {name}}}}}]}}}}]"
        )
    };
    passes(project(), &case("Bob"));
    fails(project(), &case("Eve"), &["no run of `greet` is as expected", "Hello Eve"]);
}

#[test]
fn a_file_of_a_workflow_is_named_by_its_path_and_judged_with_lines() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.json");
    std::fs::write(&good, serde_json::to_string_pretty(&greet()).unwrap()).unwrap();
    let case = |path: &std::path::Path| format!("cases: [{{name: x, workflow: '{}'}}]", path.display());
    passes(project([]), &case(&good));
    let bad = folder.path().join("bad.json");
    std::fs::write(
        &bad,
        serde_json::to_string_pretty(&greet()).unwrap().replace("core.setVariable", "core.setVariables"),
    )
    .unwrap();
    fails(project([]), &case(&bad), &["bad.json:", "/nodes/0/typeId"]);
    fails(project([]), &case(&folder.path().join("none.json")), &["cannot be read"]);
}
