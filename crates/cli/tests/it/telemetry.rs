//! The real binary and a collector on loopback: what arrives there of a tree of runs, across an approval, across the
//! death of the host, of forks; and what happens to runs when nobody collects.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use baton_model::{NodeId, RunId};
use baton_telemetry::Place;
use baton_testkit::Collector;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Sent;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::{Value, json};
use support::flow::{chain, node};
use support::web::Web;
use support::{NOBODY, Running, baton_with, eventually};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// In everything that a caller may say.
const CANARY: &str = "canary-7f3a9c";
const KEYS: (&str, &str) = ("BATON_API_KEYS", "alpha:acme");

fn host(folder: &Path, collector: &str) -> (Running, Web) {
    let host = Running::start(folder, &["serve", "--otlp-endpoint", collector], &[KEYS]);
    let web = Web::new(&host.url, Some("alpha"));
    (host, web)
}

fn gated(web: &Web) {
    let set = json!({"name": "secret", "expression": format!("'{CANARY}'")});
    let gate = json!({"title": CANARY});
    let nodes = vec![node("set", "core.setVariable", set), node("gate", "core.approvalGate", gate)];
    let mut flow = chain("gated", nodes);
    flow["variables"] = json!([{"name": "secret", "type": "string", "required": false, "defaultValue": CANARY}]);
    web.post("/v1/workflows", flow).expect(201);
}

fn text(span: &Span, key: &str) -> Option<String> {
    let value = span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
    match value {
        Sent::StringValue(text) => Some(text),
        Sent::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}

fn hex(bytes: &[u8]) -> String {
    baton_model::json::hex(bytes)
}

fn of<'a>(spans: &'a [Span], run: &str, name: &str) -> Vec<&'a Span> {
    let wanted = |span: &&Span| span.name == name && text(span, "openwop.run_id").as_deref() == Some(run);
    spans.iter().filter(wanted).collect()
}

/// Asks until the collector has what is wanted.
fn until(collector: &Collector, wanted: impl Fn(&[Span]) -> bool) -> Vec<Span> {
    eventually("the collector has the spans", || wanted(&collector.spans()));
    collector.spans()
}

fn says(collector: &Collector, what: &str) -> bool {
    collector.requests().iter().any(|request| request.body.windows(what.len()).any(|some| some == what.as_bytes()))
}

#[test]
fn a_tree_of_runs_is_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(200);
    let env = [
        KEYS,
        ("BATON_OTLP_ENDPOINT", collector.url.as_str()),
        ("BATON_OTLP_HEADERS", "x-key=env:COLLECTOR_KEY"),
        ("COLLECTOR_KEY", "for-the-collector"),
        ("BATON_HOST_ID", "host-a"),
    ];
    let host = Running::start(folder.path(), &["serve"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    web.post("/v1/workflows", chain("inner", vec![node("work", "core.fail", json!({"message": CANARY}))])).expect(201);
    let call = json!({"workflowId": "inner", "onChildFailure": "absorb", "inputMapping": {"given": "given"}});
    let mut outer = chain("outer", vec![node("call", "core.subWorkflow", call)]);
    outer["variables"] = json!([{"name": "given", "type": "string", "required": false, "defaultValue": CANARY}]);
    web.post("/v1/workflows", outer).expect(201);
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let body = json!({"workflowId": "outer", "inputs": {"given": CANARY}, "tags": ["blue"],
        "metadata": {"note": CANARY}});
    let headers = [("traceparent", parent.as_str())];
    let run = web.send("POST", "/v1/runs", &headers, Some(&body)).expect(201)["runId"].as_str().unwrap().to_owned();
    let (snapshot, _) = web.ended(&run, "completed");
    let child = snapshot["childRuns"][0]["runId"].as_str().unwrap().to_owned();
    // One that nobody wants kept.
    let quiet = [("traceparent", &*parent.replace("-01", "-00"))];
    let unwanted = web.send("POST", "/v1/runs", &quiet, Some(&body)).expect(201)["runId"].as_str().unwrap().to_owned();
    web.ended(&unwanted, "completed");
    assert_eq!(host.stop(), 0);

    let spans = collector.spans();
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
    let [root] = of(&spans, &run, "openwop.run")[..] else { panic!("{spans:#?}") };
    assert_eq!(hex(&root.parent_span_id), CALLER);
    for (key, value) in
        [("openwop.workflow_id", "outer"), ("openwop.tenant_id", "acme"), ("baton.outcome", "completed")]
    {
        assert_eq!(text(root, key).as_deref(), Some(value));
    }
    let [call] = of(&spans, &run, "openwop.node.core.subWorkflow")[..] else { panic!("{spans:#?}") };
    assert_eq!(call.parent_span_id, root.span_id);
    assert_eq!(text(call, "openwop.node_id").as_deref(), Some("call"));
    let [below] = of(&spans, &child, "openwop.run")[..] else { panic!("{spans:#?}") };
    assert_eq!(below.parent_span_id, call.span_id, "a child hangs below the node that called it");
    assert_eq!(text(below, "openwop.parent.run_id"), Some(run.clone()));
    assert_eq!(text(below, "openwop.parent.workflow_id").as_deref(), Some("outer"));
    assert_eq!(text(below, "openwop.parent.node_id").as_deref(), Some("call"));
    let [failed] = of(&spans, &child, "openwop.node.core.fail")[..] else { panic!("{spans:#?}") };
    assert_eq!(
        (failed.parent_span_id.clone(), text(failed, "openwop.node_attempt")),
        (below.span_id.clone(), Some("0".to_owned()))
    );
    assert_eq!(failed.status.clone().unwrap().code(), StatusCode::Error);
    let names: Vec<_> = spans.iter().map(|span| text(span, "openwop.run_id").unwrap()).collect();
    assert!(!names.contains(&unwanted), "whoever began the trace said so");
    let requests = collector.requests();
    assert!(requests.iter().all(|request| request.head.to_lowercase().contains("x-key: for-the-collector\r\n")));
    assert!(says(&collector, "host-a") && says(&collector, "blue"));
    assert!(!says(&collector, CANARY), "what callers say stays here");
}

#[test]
fn a_host_that_dies_while_a_run_waits_is_not_seen_in_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(200);
    let (first, web) = host(folder.path(), &collector.url);
    gated(&web);
    let run = web.start_with(json!({"workflowId": "gated", "inputs": {"secret": CANARY}}));
    web.until_status(&run, "waiting-approval");
    // The part before the question is there while the run waits, however long that is.
    until(&collector, |spans| !of(spans, &run, "openwop.run").is_empty());
    first.kill();

    let (second, web) = host(folder.path(), &collector.url);
    web.resolve(&run, "gate", json!({"action": "accept", "feedback": CANARY})).expect(200);
    web.ended(&run, "completed");
    let bundle = web.get(&format!("/v1/runs/{run}/debug-bundle")).expect(200);
    assert_eq!(second.stop(), 0);

    let spans = collector.spans();
    let ids: BTreeSet<_> = spans.iter().map(|span| hex(&span.span_id)).collect();
    assert_eq!(ids.len(), spans.len(), "nothing was sent twice");
    let (id, gate) = (RunId::new(run.as_str()), NodeId::new("gate"));
    let [before, after] = of(&spans, &run, "openwop.run")[..] else { panic!("{spans:#?}") };
    let segments = [0, 1].map(|segment| Place::Run { segment }.of(&id).to_string());
    assert_eq!([hex(&before.span_id), hex(&after.span_id)], segments);
    assert_eq!([before, after].map(|span| text(span, "baton.outcome").unwrap()), ["suspended", "completed"]);
    assert_eq!((before.links.len(), after.links.len()), (0, 1));
    assert_eq!(after.links[0].span_id, before.span_id, "sent by a process that is gone");
    assert_eq!(before.trace_id, after.trace_id);
    let [asked, answered] = of(&spans, &run, "openwop.node.core.approvalGate")[..] else { panic!("{spans:#?}") };
    let places = [0, 1].map(|segment| Place::Node { node: &gate, visit: 1, segment }.of(&id).to_string());
    assert_eq!([hex(&asked.span_id), hex(&answered.span_id)], places);
    assert_eq!((&asked.parent_span_id, &answered.parent_span_id), (&before.span_id, &after.span_id));
    let [question] = of(&spans, &run, "openwop.interrupt")[..] else { panic!("{spans:#?}") };
    assert_eq!(question.parent_span_id, asked.span_id);
    assert_eq!(text(question, "openwop.interrupt_kind").as_deref(), Some("approval"));
    assert_eq!(question.start_time_unix_nano, asked.end_time_unix_nano);
    assert!(!says(&collector, CANARY));

    // The bundle tells the same story, by itself.
    let printed: BTreeMap<String, Value> = bundle["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| (span["spanId"].as_str().unwrap().to_owned(), span.clone()))
        .collect();
    assert_eq!(printed.keys().cloned().collect::<BTreeSet<_>>(), ids);
    for span in &spans {
        let same = &printed[&hex(&span.span_id)];
        assert_eq!((&same["name"], &same["traceId"]), (&json!(span.name), &json!(hex(&span.trace_id))));
    }
}

#[test]
fn forks_are_linked_and_replays_send_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(200);
    let (host, web) = host(folder.path(), &collector.url);
    gated(&web);
    let source = web.start("gated");
    web.until_status(&source, "waiting-approval");
    web.resolve(&source, "gate", json!({"action": "accept"})).expect(200);
    let (_, events) = web.ended(&source, "completed");
    let fork = |mode: &str, seq: usize| {
        let body = json!({"mode": mode, "fromSeq": seq});
        web.post(&format!("/v1/runs/{source}:fork"), body).expect(201)["runId"].as_str().unwrap().to_owned()
    };
    let replay = fork("replay", 0);
    web.ended(&replay, "completed");
    let branch = fork("branch", support::web::place(&events, "node.resumed"));
    web.until_status(&branch, "waiting-approval");
    web.resolve(&branch, "gate", json!({"action": "accept"})).expect(200);
    web.ended(&branch, "completed");
    assert_eq!(host.stop(), 0);
    let spans = collector.spans();
    assert!(!says(&collector, &replay), "a replay has no side effects");
    let [first, last] = of(&spans, &branch, "openwop.run")[..] else { panic!("{spans:#?}") };
    let origin = of(&spans, &source, "openwop.run")[0];
    assert_eq!((&first.links[0].span_id, &first.links[0].trace_id), (&origin.span_id, &origin.trace_id));
    assert_eq!(last.links[0].span_id, first.span_id);
    assert!(first.parent_span_id.is_empty() || first.parent_span_id.iter().all(|byte| *byte == 0), "no parent");
    assert_eq!(text(first, "openwop.replay.source_run_id"), Some(source.clone()));
    assert_eq!(text(first, "openwop.replay.mode").as_deref(), Some("branch"));
    assert!(of(&spans, &branch, "openwop.node.core.setVariable").is_empty(), "that was the source's");
    assert_eq!(of(&spans, &source, "openwop.node.core.setVariable").len(), 1);
}

#[test]
fn runs_do_not_notice_that_nobody_collects() {
    let silent = Collector::start(0);
    for collector in [silent.url.clone(), format!("http://{NOBODY}")] {
        let folder = tempfile::tempdir().unwrap();
        let (host, web) = host(folder.path(), &collector);
        gated(&web);
        let runs: Vec<String> = (0..20).map(|_| web.start("gated")).collect();
        for run in &runs {
            web.until_status(run, "waiting-approval");
            web.resolve(run, "gate", json!({"action": "accept"})).expect(200);
        }
        for run in &runs {
            web.ended(run, "completed");
        }
        // Stopping tries once more, and then stops.
        assert_eq!(host.stop(), 0);
    }
    assert!(!silent.requests().is_empty());
}

#[test]
fn spans_go_out_in_json_where_the_operator_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(200);
    let env = [KEYS, ("BATON_OTLP_ENDPOINT", collector.url.as_str()), ("BATON_OTLP_PROTOCOL", "http/json")];
    let host = Running::start(folder.path(), &["serve"], &env);
    let web = Web::new(&host.url, Some("alpha"));
    let claims = web.get("/.well-known/openwop").expect(200);
    assert_eq!(claims["observability"], json!({"otel": {"exportProtocols": ["http/json", "http/protobuf"]}}));
    web.post("/v1/workflows", chain("one", vec![node("work", "core.noop", json!({}))])).expect(201);
    let run = web.post("/v1/runs", json!({"workflowId": "one"})).expect(201)["runId"].as_str().unwrap().to_owned();
    web.ended(&run, "completed");
    assert_eq!(host.stop(), 0);
    let requests = collector.requests();
    assert!(requests[0].head.to_lowercase().contains("content-type: application/json"), "{}", requests[0].head);
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert!(body.to_string().contains(&run) && body["resourceSpans"].is_array(), "{body}");
}

#[test]
fn what_cannot_work_is_said_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let flag = baton_with(folder.path(), &["serve", "--otlp-endpoint", "localhost:4318"], &[KEYS]);
    assert_eq!(flag.code, 2);
    assert!(flag.stderr.contains("write it like http://localhost:4318"), "{}", flag.stderr);
    let env = [KEYS, ("BATON_OTLP_ENDPOINT", "grpc://localhost:4317")];
    let variable = baton_with(folder.path(), &["serve"], &env);
    assert_eq!(variable.code, 2);
    let expected =
        "BATON_OTLP_ENDPOINT: `otlp_endpoint` must be an http:// or https:// address such as http://localhost:4318";
    assert!(variable.stderr.contains(expected), "{}", variable.stderr);
    let env = [KEYS, ("BATON_OTLP_ENDPOINT", "http://localhost:4318"), ("BATON_OTLP_HEADERS", "x-key=env:NOWHERE")];
    let unset = baton_with(folder.path(), &["serve", "--listen", "127.0.0.1:0"], &env);
    assert_eq!(unset.code, 2);
    assert!(
        unset.stderr.contains("NOWHERE, which is not set") && unset.stderr.contains("otlp_headers"),
        "{}",
        unset.stderr
    );
}
