//! Two runs side by side over HTTP.

use crate::support;

use axum::body::Body;
use serde_json::{Value, json};
use support::protocol::judge;
use support::{OTHER, READER, Site};

fn path(a: &str, b: &str) -> String {
    format!("/v1/runs/{a}:diff?against={b}")
}

/// The answer, checked for its shape: closed, ordered, each side where its op says.
async fn diff(site: &Site, a: &str, b: &str) -> Value {
    let answer = site.send("GET", &path(a, b), &[READER], Body::empty()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let body = answer.json();
    judge("run-diff-response", &body);
    let mut members: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    members.retain(|name| *name != "truncated");
    members.sort_unstable();
    assert_eq!(members, ["a", "b", "divergedAtSeq", "eventDiffs", "stateDiff"]);
    assert_eq!((&body["a"], &body["b"]), (&json!(a), &json!(b)));
    let entries = body["eventDiffs"].as_array().unwrap();
    assert_eq!(entries.first().map_or(Value::Null, |entry| entry["seq"].clone()), body["divergedAtSeq"]);
    assert!(entries.is_sorted_by_key(|entry| entry["seq"].as_u64().unwrap()));
    for entry in entries {
        let sides = (entry.get("aEvent").is_some(), entry.get("bEvent").is_some());
        let expected = match entry["op"].as_str().unwrap() {
            "added" => (false, true),
            "removed" => (true, false),
            "changed" => (true, true),
            other => panic!("{other}"),
        };
        assert_eq!(sides, expected, "{entry}");
    }
    body
}

#[tokio::test]
async fn a_run_does_not_differ_from_itself_nor_from_its_replay() {
    let site = Site::conforming().await;
    let run = site.completed("conformance-dispatch-loop").await;
    let replay = site.forked(&run, json!({"mode": "replay"}), "completed").await;
    for (a, b) in [(&run, &run), (&run, &replay), (&replay, &run)] {
        let body = diff(&site, a, b).await;
        assert_eq!((&body["divergedAtSeq"], &body["eventDiffs"]), (&Value::Null, &json!([])));
        assert_eq!((&body["stateDiff"], body.get("truncated")), (&json!({}), None));
    }
}

#[tokio::test]
async fn two_runs_of_one_workflow_with_other_inputs_differ_where_it_shows() {
    let site = Site::open().await;
    let nodes = [
        ("wait", "core.noop", json!({})),
        ("say", "core.setVariable", json!({"name": "said", "expression": "'hello ' + variables.name"})),
    ];
    site.register_chain("greet", &nodes).await;
    let mut runs = Vec::new();
    for name in ["Ada", "Bea"] {
        let started = site.post("/v1/runs", json!({"workflowId": "greet", "inputs": {"name": name}})).await.json();
        runs.push(started["runId"].as_str().unwrap().to_owned());
        site.reach(runs.last().unwrap(), "completed").await;
    }
    let body = diff(&site, &runs[0], &runs[1]).await;
    assert_eq!(body["divergedAtSeq"], 0, "the inputs are in the first event");
    assert!(body["eventDiffs"].as_array().unwrap().iter().all(|entry| entry["op"] == "changed"));
    assert_eq!(body["eventDiffs"][0]["aEvent"]["payload"]["inputs"]["name"], "Ada");
    assert_eq!(body["stateDiff"]["variables"]["said"], json!({"a": "hello Ada", "b": "hello Bea"}));
    assert!(body["stateDiff"].get("status").is_none(), "both completed");

    // A branch shares its past with its source, so the difference begins after it.
    let overlay = json!({"variables": {"name": "Bea"}});
    let log = site.log(&runs[0]).await;
    let from = log.iter().position(|event| event["type"] == "node.completed").unwrap() + 1;
    let fork = json!({"mode": "branch", "fromSeq": from, "runOptionsOverlay": overlay});
    let branch = site.forked(&runs[0], fork, "completed").await;
    let body = diff(&site, &runs[0], &branch).await;
    assert!(body["divergedAtSeq"].as_u64().unwrap() >= from as u64, "{body}");
    assert_eq!(body["stateDiff"]["variables"]["said"], json!({"a": "hello Ada", "b": "hello Bea"}));
}

#[tokio::test]
async fn the_longer_log_has_more_and_the_side_says_which() {
    let site = Site::open().await;
    site.register("one", "core.noop", json!({})).await;
    let nodes = [("n", "core.noop", json!({})), ("m", "core.noop", json!({}))];
    site.register_chain("two", &nodes).await;
    let (short, long) = (site.completed("one").await, site.completed("two").await);
    let more = (site.log(&long).await.len() - site.log(&short).await.len()) as u64;
    let count = |body: &Value, op: &str| {
        body["eventDiffs"].as_array().unwrap().iter().filter(|entry| entry["op"] == op).count() as u64
    };
    let forwards = diff(&site, &short, &long).await;
    assert_eq!((count(&forwards, "added"), count(&forwards, "removed")), (more, 0));
    let backwards = diff(&site, &long, &short).await;
    assert_eq!((count(&backwards, "added"), count(&backwards, "removed")), (0, more));
    assert_eq!(forwards["divergedAtSeq"], backwards["divergedAtSeq"]);
}

#[tokio::test]
async fn a_run_under_way_is_compared_as_far_as_it_got() {
    let site = Site::conforming().await;
    let ended = site.completed("conformance-noop").await;
    let waiting = site.start("conformance-approval").await;
    site.reach(&waiting, "waiting-approval").await;
    for (a, b) in [(&ended, &waiting), (&waiting, &waiting)] {
        assert_eq!(diff(&site, a, b).await["truncated"], true);
    }
}

#[tokio::test]
async fn both_runs_must_be_named_and_readable() {
    let site = Site::conforming().await;
    let run = site.completed("conformance-noop").await;
    for bad in ["", "?against=", "?against", "?other=x", "?against=a&against=b", "?against=a&x=1"] {
        let answer = site.get(&format!("/v1/runs/{run}:diff{bad}")).await;
        answer.refused(400, "validation_error");
    }
    site.get(&path(&run, "run_nobody")).await.refused(404, "run_not_found");
    site.get(&path("run_nobody", &run)).await.refused(404, "run_not_found");
    let foreign = site.send("GET", &path(&run, &run), &[OTHER], Body::empty()).await;
    let unknown = site.send("GET", &path("run_x", "run_x"), &[OTHER], Body::empty()).await;
    foreign.refused(404, "run_not_found");
    assert_eq!(foreign.text, unknown.text);
    site.send("GET", &path(&run, &run), &[], Body::empty()).await.refused(401, "unauthenticated");
    let keys = "blind:acme:runs:create";
    let narrow = Site::over(site.host.clone(), |options| options.keys = baton_server::Keys::parse(keys).unwrap());
    let answer = narrow.send("GET", &path(&run, &run), &[("authorization", "Bearer blind")], Body::empty()).await;
    assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], "runs:read");
    let metrics = site.send("GET", "/metrics", &[], Body::empty()).await.text;
    assert!(metrics.contains("/v1/runs/{runId}:diff"), "the label names the operation");
}
