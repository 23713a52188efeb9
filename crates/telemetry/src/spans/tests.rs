#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::ids::Lineage;
use crate::span::Link;
use baton_model::{Fault, ForkMode, Part, Versions};
use serde_json::{Value as Json, json};

/// A log with an instant, in milliseconds, before each event.
fn log(events: &[(i64, &str, Json, Json)]) -> Vec<Record> {
    let record = |(seq, (at, kind, payload, private)): (usize, &(i64, &str, Json, Json))| Record {
        seq: seq as u64,
        at: Timestamp::from_millis(*at),
        event: Event::decode(
            kind,
            &payload.to_string(),
            Some(private.to_string().as_str()).filter(|text| *text != "null"),
        )
        .unwrap(),
        causation: None,
        versions: Versions::default(),
        part: Some(Part { outside: false, first: true }),
    };
    events.iter().enumerate().map(record).collect()
}

fn begun() -> (i64, &'static str, Json, Json) {
    let payload = json!({"workflowId": "w", "inputs": {"name": "canary"}, "transport": "rest",
        "owner": {"tenant": "acme"}, "tags": ["blue"], "metadata": {"note": "canary"}});
    let facts = json!({"workflow": null, "maxNodeExecutions": 1, "maxDurationMs": 1, "engineRule": 1,
        "variables": {"name": "canary"}});
    (0, "run.started", payload, facts)
}

fn started(at: i64, node: &str, attempt: u32) -> (i64, &'static str, Json, Json) {
    (at, "node.started", json!({"nodeId": node, "typeId": "core.x", "attempt": attempt}), json!({"visit": 1}))
}

fn completed(at: i64, node: &str) -> (i64, &'static str, Json, Json) {
    (at, "node.completed", json!({"nodeId": node, "outputs": {"answer": "canary"}}), Json::Null)
}

fn suspended(at: i64, node: &str) -> (i64, &'static str, Json, Json) {
    (at, "node.suspended", json!({"nodeId": node, "interruptId": format!("int:{node}:1")}), Json::Null)
}

fn asked(at: i64, node: &str) -> (i64, &'static str, Json, Json) {
    let facts = json!({"nodeId": node, "interruptId": format!("int:{node}:1")});
    (at, "interrupt.requested", json!({"kind": "approval", "key": node, "data": {"text": "canary"}}), facts)
}

fn resumed(at: i64, node: &str) -> (i64, &'static str, Json, Json) {
    (at, "node.resumed", json!({"nodeId": node, "resumeValue": "canary"}), Json::Null)
}

fn answered(at: i64, node: &str) -> (i64, &'static str, Json, Json) {
    let payload = json!({"nodeId": node, "interruptId": "int", "kind": "approval", "outcome": "accepted",
        "resumeValue": "canary"});
    (at, "interrupt.resolved", payload, Json::Null)
}

fn done(at: i64) -> (i64, &'static str, Json, Json) {
    (at, "run.completed", json!({"outputs": {"x": "canary"}}), Json::Null)
}

fn run() -> RunId {
    RunId::new("run_a")
}

fn fold(records: &[Record]) -> Vec<Span> {
    let mut spans = RunSpans::new(run(), None, Detail::default());
    let ended = records.iter().flat_map(|record| spans.record(record)).collect();
    assert_eq!(spans.under_way(), Vec::new());
    ended
}

/// Name, beginning, end and outcome of each span, in the order they ended.
fn described(spans: &[Span]) -> Vec<(String, i64, i64, String)> {
    let word = |span: &Span| match span.get("baton.outcome") {
        Some(Value::Text(word)) => word.clone(),
        _ => String::new(),
    };
    let line = |span: &Span| (span.name.clone(), span.start.as_millis(), span.end.unwrap().as_millis(), word(span));
    spans.iter().map(line).collect()
}

fn line(name: &str, start: i64, end: i64, outcome: &str) -> (String, i64, i64, String) {
    (name.to_owned(), start, end, outcome.to_owned())
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// What a run says of the one above it: all of it in the same host, from another one what that tells.
#[test]
fn a_child_names_its_parent_wherever_that_is() {
    let described = |facts: Json, origin: Option<Origin>| {
        let (at, kind, payload, mut private) = begun();
        private.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        let mut spans = RunSpans::new(run(), origin, Detail::default());
        let records = log(&[(at, kind, payload, private), done(9)]);
        let ended: Vec<Span> = records.iter().flat_map(|record| spans.record(record)).collect();
        let text = |key: &str| match ended[0].get(key) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        };
        ["run_id", "workflow_id", "node_id"].map(|name| text(&format!("openwop.parent.{name}")))
    };
    let link = |more: Json| {
        let mut link = json!({"run": "run_p", "node": "call", "root": "run_p", "cause": "core.subWorkflow"});
        link.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"parent": link})
    };
    let far = |more: Json| {
        let mut cause = json!({"hostId": "far", "runId": "run_far", "eventId": "run_far.3", "cause": "core.dispatch",
            "wellKnownUrl": "https://far.example/.well-known/openwop", "depth": 1});
        cause.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"cause": cause})
    };
    assert_eq!(described(json!({}), None), ["", "", ""]);
    assert_eq!(described(link(json!({"workflow": "outer"})), None), ["run_p", "outer", "call"]);
    assert_eq!(described(link(json!({})), None), ["run_p", "", "call"], "an older log");
    assert_eq!(described(far(json!({"nodeId": "hand", "workflowId": "leads"})), None), ["run_far", "leads", "hand"]);
    assert_eq!(described(far(json!({})), None), ["run_far", "", ""], "another host need not say more");
    let origin = json!({"source": "run_b", "seq": 0, "mode": "branch", "at": Timestamp::from_millis(0)});
    let origin: Origin = serde_json::from_value(origin).unwrap();
    assert_eq!(described(link(json!({"workflow": "outer"})), Some(origin)), ["", "", ""], "a fork is nobody's child");
}

#[test]
fn a_replay_that_went_another_way_says_so() {
    let diverged = (
        5,
        "replay.diverged",
        json!({"sourceRunId": "run_b", "atSequence": 1, "divergenceKind": "output"}),
        Json::Null,
    );
    let spans = fold(&log(&[begun(), diverged, done(9)]));
    assert_eq!(spans[0].get("openwop.replay.diverged"), Some(&Value::Flag(true)));
}

#[test]
fn each_attempt_has_a_span_below_its_visit() {
    let retried =
        json!({"nodeId": "a", "attempt": 1, "delayMs": 5, "lastError": {"code": "flaky", "message": "canary"}});
    let spans = fold(&log(&[
        begun(),
        started(1, "a", 0),
        (3, "node.retried", retried, json!({"wakeAt": "2027-01-15T08:00:00Z"})),
        started(8, "a", 1),
        completed(9, "a"),
        done(9),
    ]));
    assert_eq!(
        described(&spans),
        [
            line("openwop.node.core.x.attempt", 1, 3, "failed"),
            line("openwop.node.core.x.attempt", 8, 9, "completed"),
            line("openwop.node.core.x", 1, 9, "completed"),
            line("openwop.run", 0, 9, "completed"),
        ]
    );
    assert_eq!(spans[0].status, Status::Error("flaky".to_owned()));
    let numbers = [0, 1, 1].map(Value::Number);
    assert!(spans.iter().zip(&numbers).all(|(span, number)| span.get("openwop.node_attempt") == Some(number)));
    let parent = |span: &Span| span.parent.unwrap().span;
    assert_eq!([parent(&spans[0]), parent(&spans[1]), parent(&spans[2])], [spans[2].id, spans[2].id, spans[3].id]);
    assert_eq!(spans[3].get("openwop.run.tags"), Some(&Value::Texts(vec!["blue".to_owned()])));
    assert!(!format!("{spans:?}").contains("canary"));
}

#[test]
fn what_goes_on_after_an_answer_is_a_new_span_with_a_link() {
    let spans = fold(&log(&[
        begun(),
        started(1, "gate", 0),
        suspended(1, "gate"),
        asked(1, "gate"),
        resumed(70, "gate"),
        answered(70, "gate"),
        completed(71, "gate"),
        done(72),
    ]));
    assert_eq!(
        described(&spans),
        [
            line("openwop.node.core.x.attempt", 1, 1, "suspended"),
            line("openwop.node.core.x", 1, 1, "suspended"),
            line("openwop.run", 0, 1, "suspended"),
            line("openwop.interrupt", 1, 70, "accepted"),
            line("openwop.node.core.x.attempt", 70, 71, "completed"),
            line("openwop.node.core.x", 70, 71, "completed"),
            line("openwop.run", 70, 72, "completed"),
        ]
    );
    for name in ["openwop.run", "openwop.node.core.x", "openwop.node.core.x.attempt"] {
        let [first, second] = named(&spans, name)[..] else { panic!("{name}") };
        assert_eq!((first.links.len(), second.links.len()), (0, 1), "{name}");
        assert_eq!((second.links[0].span, second.links[0].trace), (first.id, first.trace), "{name}");
        assert_eq!((first.get("baton.leg"), second.get("baton.leg")), (None, Some(&Value::Number(1))));
    }
    assert_eq!(named(&spans, "openwop.interrupt")[0].parent.unwrap().span, named(&spans, "openwop.node.core.x")[0].id);
    assert!(!format!("{spans:?}").contains("canary"));
}

#[test]
fn a_run_rests_only_while_nothing_is_at_work() {
    let spans = fold(&log(&[
        begun(),
        started(1, "a", 0),
        started(1, "gate", 0),
        suspended(1, "gate"),
        asked(1, "gate"),
        completed(5, "a"),
        resumed(70, "gate"),
        answered(70, "gate"),
        completed(70, "gate"),
        done(70),
    ]));
    let runs: Vec<_> = named(&spans, "openwop.run").into_iter().cloned().collect();
    assert_eq!(described(&runs), [line("openwop.run", 0, 5, "suspended"), line("openwop.run", 70, 70, "completed")]);
}

#[test]
fn a_pause_ends_every_span_and_going_on_begins_new_ones() {
    let spans = fold(&log(&[
        begun(),
        started(1, "sleep", 0),
        started(1, "child", 0),
        (10, "run.paused", json!({"drainPolicy": "immediate"}), Json::Null),
        (90, "run.resumed", json!({}), Json::Null),
        // What slept gets a fresh attempt; the child went on by itself.
        started(90, "sleep", 1),
        completed(95, "child"),
        completed(99, "sleep"),
        done(99),
    ]));
    assert_eq!(
        described(&spans)[..5],
        [
            line("openwop.node.core.x.attempt", 1, 10, "paused"),
            line("openwop.node.core.x", 1, 10, "paused"),
            line("openwop.node.core.x.attempt", 1, 10, "paused"),
            line("openwop.node.core.x", 1, 10, "paused"),
            line("openwop.run", 0, 10, "paused"),
        ]
    );
    assert_eq!(
        described(&spans)[5..],
        [
            line("openwop.node.core.x.attempt", 90, 95, "completed"),
            line("openwop.node.core.x", 90, 95, "completed"),
            line("openwop.node.core.x.attempt", 90, 99, "completed"),
            line("openwop.node.core.x", 90, 99, "completed"),
            line("openwop.run", 90, 99, "completed"),
        ]
    );
}

#[test]
fn an_end_is_seen_even_if_it_comes_while_waiting() {
    let failed = json!({"nodeId": "gate", "error": {"code": "interrupt_expired", "message": "m"}, "attempts": 1});
    let spans = fold(&log(&[
        begun(),
        started(1, "gate", 0),
        suspended(1, "gate"),
        asked(1, "gate"),
        (50, "node.failed", failed, Json::Null),
        (50, "run.failed", json!({"error": {"code": "interrupt_expired", "message": "m"}}), Json::Null),
    ]));
    let expired = Status::Error("interrupt_expired".to_owned());
    let last: Vec<_> = ["openwop.node.core.x", "openwop.run"].map(|name| (*named(&spans, name)[1]).clone()).into();
    assert_eq!(
        described(&last),
        [line("openwop.node.core.x", 50, 50, "failed"), line("openwop.run", 50, 50, "failed")]
    );
    assert!(last.iter().all(|span| span.status == expired));
    let question = named(&spans, "openwop.interrupt")[0].clone();
    assert_eq!(described(&[question]), [line("openwop.interrupt", 1, 50, "cancelled")]);
    let cancelled = fold(&log(&[
        begun(),
        started(1, "a", 0),
        (9, "node.cancelled", json!({"nodeId": "a"}), Json::Null),
        (9, "run.cancelled", json!({"reason": "canary"}), Json::Null),
    ]));
    assert!(described(&cancelled).iter().all(|(_, _, end, outcome)| *end == 9 && outcome == "cancelled"));
    assert!(!format!("{cancelled:?}").contains("canary"));
}

#[test]
fn a_call_of_a_model_tells_who_and_how_much() {
    let usage = |at: i64| {
        let payload = json!({"provider": "mock", "model": "m-2", "inputTokens": 3, "outputTokens": 4,
            "totalTokens": 7, "costEstimateUsd": 0.25, "nodeId": "a"});
        (at, "provider.usage", payload, json!({"visit": 1, "attempt": 0}))
    };
    let call = json!({"visit": 1, "call": {"provider": "mock", "model": "m", "messages": [
        {"role": "user", "content": "canary"}]}});
    let node = json!({"nodeId": "a", "typeId": "core.ai", "attempt": 0});
    let spans = fold(&log(&[begun(), (1, "node.started", node, call), usage(5), usage(8), completed(9, "a"), done(9)]));
    let calls = named(&spans, "openwop.activity.mock");
    let times: Vec<_> = calls.iter().map(|span| (span.start.as_millis(), span.end.unwrap().as_millis())).collect();
    assert_eq!(times, [(1, 5), (5, 8)]);
    let mut keys: Vec<_> = calls[0].attributes.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "openwop.cost.currency",
            "openwop.cost.estimated",
            "openwop.cost.provider",
            "openwop.cost.tokens.input",
            "openwop.cost.tokens.output",
            "openwop.cost.tokens.total",
            "openwop.cost.usd",
            "openwop.event_seq",
            "openwop.node_id",
            "openwop.run_id",
            "openwop.workflow_id",
        ]
    );
    let text = |key| calls[0].get(key).cloned();
    assert_eq!(text("gen_ai.request.model"), Some(Value::Text("m".to_owned())));
    assert_eq!(text("gen_ai.response.model"), Some(Value::Text("m-2".to_owned())));
    assert_eq!(calls[0].parent.unwrap().span, named(&spans, "openwop.node.core.ai.attempt")[0].id);
    assert!(!format!("{spans:?}").contains("canary"));
}

#[test]
fn a_fork_tells_its_own_part_and_where_it_comes_from() {
    let records = log(&[
        begun(),
        started(1, "a", 0),
        completed(2, "a"),
        started(2, "gate", 0),
        suspended(2, "gate"),
        asked(2, "gate"),
        resumed(70, "gate"),
        answered(70, "gate"),
        completed(70, "gate"),
        done(70),
    ]);
    let origin = |seq: u64| {
        let text = json!({"source": "run_a", "seq": seq, "mode": "branch", "at": Timestamp::from_millis(50)});
        serde_json::from_value::<Origin>(text).unwrap()
    };
    let mut fork = RunSpans::new(RunId::new("run_fork"), Some(origin(6)), Detail::default());
    let spans: Vec<Span> = records.iter().flat_map(|record| fork.record(record)).collect();
    assert_eq!(
        described(&spans),
        [
            line("openwop.run", 50, 50, "suspended"),
            line("openwop.interrupt", 50, 70, "accepted"),
            line("openwop.node.core.x.attempt", 70, 70, "completed"),
            line("openwop.node.core.x", 70, 70, "completed"),
            line("openwop.run", 70, 70, "completed"),
        ]
    );
    let run = &spans[0];
    let original = fold(&records);
    let source = named(&original, "openwop.run")[0];
    assert_eq!(run.links, [Link { trace: source.trace, span: source.id }]);
    assert_eq!(run.parent, None);
    assert_eq!(run.get("openwop.replay.mode"), Some(&Value::Text(ForkMode::Branch.as_str().to_owned())));
    assert_eq!(run.get("openwop.replay.from_seq"), Some(&Value::Number(6)));
    assert_eq!(run.get("openwop.replay.source_run_id"), Some(&Value::Text("run_a".to_owned())));
    assert!(spans.iter().all(|span| original.iter().all(|other| other.id != span.id)), "names of its own");
    assert_eq!(spans[1].parent.unwrap().span, run.id);
    assert_eq!(spans[4].links, [Link { trace: run.trace, span: run.id }]);
    // In the middle of work: what is under way goes on in the fork.
    let mut fork = RunSpans::new(RunId::new("run_fork"), Some(origin(2)), Detail::default());
    let spans: Vec<Span> = records[..3].iter().flat_map(|record| fork.record(record)).collect();
    assert_eq!(
        described(&spans),
        [line("openwop.node.core.x.attempt", 50, 50, "completed"), line("openwop.node.core.x", 50, 50, "completed")]
    );
}

#[test]
fn what_is_under_way_has_no_end_and_every_record_a_span_if_that_is_wanted() {
    let mut spans = RunSpans::new(run(), None, Detail { events: true, labels: false });
    let records = log(&[begun(), started(1, "a", 0)]);
    let appended: Vec<Span> = records.iter().flat_map(|record| spans.record(record)).collect();
    assert_eq!(described(&appended), [line("openwop.event.append", 0, 0, ""), line("openwop.event.append", 1, 1, "")]);
    assert_eq!(appended[1].get("openwop.event_type"), Some(&Value::Text("node.started".to_owned())));
    let under_way = spans.under_way();
    let names: Vec<_> = under_way.iter().map(|span| (span.name.as_str(), span.end)).collect();
    assert_eq!(names, [("openwop.run", None), ("openwop.node.core.x", None), ("openwop.node.core.x.attempt", None)]);
    assert_eq!(under_way[0].get("openwop.run.tags"), None);
    assert!(appended.iter().all(|span| span.parent.unwrap().span == under_way[0].id));
}

#[test]
fn bounds_and_differences_are_said_of_the_run() {
    let breach = json!({"kind": "node-executions", "limit": 3, "observed": 4});
    let spans = fold(&log(&[
        begun(),
        (1, "cap.breached", breach, Json::Null),
        (1, "run.failed", json!({"error": {"code": "recursion_limit_exceeded", "message": "m"}}), Json::Null),
    ]));
    let run = spans.last().unwrap();
    assert_eq!(run.get("openwop.cap_kind"), Some(&Value::Text("node-executions".to_owned())));
    assert_eq!(run.get("openwop.cap_observed"), Some(&Value::Number(4)));
    let fault = Fault::new("recursion_limit_exceeded", "m");
    assert_eq!(run.status, Status::failed(&fault));
    let Event::RunStarted(event) = &log(&[begun()])[0].event else { panic!("no beginning") };
    assert_eq!(run.trace, Lineage::of(&self::run(), event, false).trace);
}

#[test]
fn an_envelope_is_told_once_it_is_judged_and_never_what_it_says() {
    let called = |at: i64, call: &str, arguments: Json| {
        let payload = json!({"agentId": "a", "toolName": "envelope", "callId": call});
        let asked = json!({"id": call, "name": "openwop:envelope", "arguments": arguments});
        (at, "agent.toolCalled", payload, json!({"place": {"nodeId": "a"}, "asked": asked}))
    };
    let returned = |at: i64, call: &str, error: Json| {
        let mut payload = json!({"agentId": "a", "toolName": "envelope", "callId": call});
        if !error.is_null() {
            payload["error"] = error;
        }
        (at, "agent.toolReturned", payload, json!({"place": {"nodeId": "a"}}))
    };
    let mut question = asked(4, "a");
    question.2["data"] = json!({"callId": "c3"});
    let spans = fold(&log(&[
        begun(),
        started(1, "a", 0),
        called(2, "c1", json!({"type": "error", "schemaVersion": 0, "payload": {"message": "canary"}})),
        returned(2, "c1", Json::Null),
        called(3, "c2", json!({"type": "canary", "schemaVersion": 0})),
        returned(3, "c2", json!({"code": "envelope_invalid", "message": "canary"})),
        called(4, "c3", json!({"type": "clarification.request"})),
        suspended(4, "a"),
        question,
        resumed(70, "a"),
        answered(70, "a"),
        returned(70, "c3", Json::Null),
        completed(71, "a"),
        done(71),
    ]));
    let all = named(&spans, "openwop.envelope");
    let described: Vec<_> = all.iter().map(|span| (span.get("envelope_type"), span.end)).collect();
    let text = |text: &str| Value::Text(text.to_owned());
    let (first, third) = (text("error"), text("clarification.request"));
    let at = |ms| Some(Timestamp::from_millis(ms));
    assert_eq!(described, [(Some(&first), at(2)), (None, at(3)), (Some(&third), at(4))], "nobody waits in a span");
    let drift: Vec<_> = all.iter().map(|span| span.get("envelope_schema_version_drift")).collect();
    assert_eq!(drift, [Some(&Value::Flag(true)), None, None]);
    assert_eq!(all[0].parent.unwrap().span, Place::Node { node: &NodeId::new("a"), visit: 1, segment: 0 }.of(&run()));
    assert!(!format!("{spans:?}").contains("canary"), "{spans:?}");
}
