//! What the program that has a step in hand asks and keeps: recorded under the step, there when the step is made again, and
//! within bounds.

use crate::support;

use baton_engine::{Command, MOST_MEMO_BYTES, Refusal, RefusalKind, StepAsked};
use baton_model::{Digest, Event, ModelReply, NodeId, RunStatus, Usage, code};
use serde_json::{Value, json};
use support::agents::{ok, unknown};
use support::tools::{LOOK, MAIL};
use support::{World, run, stored, workflow};

const STEP: &str = "call:1:0:0:0";

fn digest(text: &str) -> Digest {
    Digest::of_bytes(text)
}

fn asked(request: &str, dispatch: &str, said: &str) -> Command {
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let asked = StepAsked {
        request: digest(request),
        dispatch: digest(dispatch),
        provider: "p".to_owned(),
        model: "m".to_owned(),
        reply: Some(ModelReply::text(said, usage)),
        usage,
        cost_usd: Some(0.25),
        cap: None,
    };
    Command::StepAsked { node: "call".into(), call_id: STEP.to_owned(), asked: Box::new(asked) }
}

fn kept(key: &str, value: Value) -> Command {
    Command::StepKept { node: "call".into(), call_id: STEP.to_owned(), key: key.to_owned(), value }
}

fn working(tool: &str) -> World {
    let world = run(workflow(&[("call", "vendor.baton.tool", json!({"tool": tool}))], &[]));
    assert_eq!(world.tool().call_id, STEP);
    world
}

fn answers(world: &World, request: &str, dispatch: &str) -> (Vec<u64>, Vec<u64>) {
    let work = world.state.step_work(&NodeId::new("call"), STEP).expect("the step is open");
    assert_eq!(Some(work), world.refolded().step_work(&NodeId::new("call"), STEP), "all of it is on the log");
    work.answers(&digest(request), &digest(dispatch))
}

fn refused(refusal: Result<(), Refusal>) -> (RefusalKind, String) {
    let refusal = refusal.expect_err("it is refused");
    (refusal.kind, refusal.fault.code)
}

#[test]
fn answers_are_recorded_under_the_step_and_found_by_what_was_asked() {
    let mut world = working(LOOK);
    world.command(&asked("a", "1", "one")).unwrap();
    world.command(&asked("b", "1", "two")).unwrap();
    world.command(&asked("a", "1", "three")).unwrap();
    assert_eq!(answers(&world, "a", "1"), (vec![], vec![3, 5]), "the nth of a request");
    assert_eq!(answers(&world, "a", "2"), (vec![3, 5], vec![]), "another dispatch has them from the first");
    assert_eq!(answers(&world, "c", "1"), (vec![], vec![]));
    let usage = &world.payloads("provider.usage")[0];
    assert_eq!(usage["nodeId"], "call");
    assert_eq!(usage.as_object().unwrap().len(), 7, "nothing of the step is shown: {usage}");
    let record = stored(&world.log[3]);
    let Event::ProviderUsage(event) = &record.event else { panic!("{record:?}") };
    assert_eq!(event.private.reply.as_ref().unwrap().content, "one");
    assert_eq!(record.causation, Some(2), "the call is its cause");
    let cost = world.state.clone();
    let view = baton_engine::snapshot(&cost);
    let metrics = serde_json::to_value(&view).unwrap()["metrics"].clone();
    assert!(metrics.to_string().contains("30"), "it counts in the run's account: {metrics}");
    let call = world.tool();
    world.returns(&call, ok(json!({"n": 1})));
    assert_eq!(world.status(), RunStatus::Completed);
    assert!(world.state.step_work(&NodeId::new("call"), STEP).is_none());
}

#[test]
fn what_was_asked_and_kept_is_there_when_the_step_is_made_again() {
    let mut world = working(LOOK);
    world.command(&asked("a", "1", "one")).unwrap();
    world.command(&kept("k", json!([1]))).unwrap();
    let call = world.tool();
    world.returns(&call, unknown());
    assert_eq!(world.types().last(), Some(&"baton.effect.retried"), "a tool that reads is called again");
    assert_eq!(answers(&world, "a", "2").0.len(), 1);
    let work = world.state.step_work(&NodeId::new("call"), STEP).unwrap();
    assert!(work.memo("k").is_some() && work.memo("other").is_none());
    let mut asks = working(MAIL);
    let call = asks.tool();
    asks.returns(&call, unknown());
    assert_eq!(asks.status(), RunStatus::WaitingApproval);
    asks.command(&asked("a", "1", "late")).unwrap();
    assert_eq!(answers(&asks, "a", "2").0.len(), 1, "it is paid for, whoever decides about the step");
}

#[test]
fn a_step_that_is_over_records_nothing() {
    let mut world = working(LOOK);
    let call = world.tool();
    world.returns(&call, ok(json!({})));
    let length = world.log.len();
    for late in [asked("a", "1", "late"), kept("k", json!(1))] {
        assert_eq!(refused(world.command(&late)), (RefusalKind::Conflict, code::STEP_NOT_LEASED.to_owned()));
    }
    let mut other = working(LOOK);
    other.cancel();
    assert_eq!(refused(other.command(&kept("k", json!(1)))).1, code::STEP_NOT_LEASED);
    assert_eq!(world.log.len(), length);
}

#[test]
fn the_first_value_under_a_key_counts_and_there_are_bounds() {
    let mut world = working(LOOK);
    world.command(&kept("k", json!("first"))).unwrap();
    let length = world.log.len();
    world.command(&kept("k", json!("second"))).unwrap();
    assert_eq!(world.log.len(), length, "nothing is written over it");
    let shown = &world.payloads("baton.step.memo")[0];
    assert_eq!(shown, &json!({"nodeId": "call", "callId": STEP, "toolName": LOOK, "key": "k", "bytes": 7}));
    for (key, value, wrong) in [
        (String::new(), json!(1), code::VALIDATION_ERROR),
        ("x".repeat(201), json!(1), code::VALIDATION_ERROR),
        ("large".to_owned(), json!("x".repeat(MOST_MEMO_BYTES)), code::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(refused(world.command(&kept(&key, value))).1, wrong);
    }
    for n in 1..1_000 {
        world.command(&kept(&format!("{n:é>200}"), json!(n))).unwrap();
    }
    assert_eq!(refused(world.command(&kept("one more", json!(1)))).1, code::CAP_BREACHED);
    let mut full = working(LOOK);
    for n in 0..64 {
        full.command(&kept(&n.to_string(), json!("x".repeat(MOST_MEMO_BYTES - 2)))).unwrap();
    }
    assert_eq!(refused(full.command(&kept("one more", json!(1)))).1, code::PAYLOAD_TOO_LARGE, "all together");
    let mut asks = working(LOOK);
    for n in 0..1_000 {
        asks.command(&asked(&n.to_string(), "1", "x")).unwrap();
    }
    assert_eq!(refused(asks.command(&asked("one more", "1", "x"))).1, code::CAP_BREACHED);
}

#[test]
fn a_sensitive_node_shows_no_key() {
    let mut definition = workflow(&[("call", "vendor.baton.tool", json!({"tool": LOOK}))], &[]);
    definition["variables"] = json!([{"name": "secret", "type": "number", "sensitive": true, "defaultValue": 5}]);
    definition["nodes"][0]["inputs"] = json!({"n": {"type": "variable", "variableName": "secret"}});
    let mut world = run(definition.clone());
    if world.types().last() == Some(&"agent.toolCalled") {
        world.command(&kept("jane@example.com", json!("value"))).unwrap();
        let shown = &world.payloads("baton.step.memo")[0];
        assert_eq!(shown["key"], "[REDACTED]");
        let work = world.state.step_work(&NodeId::new("call"), STEP).unwrap();
        assert!(work.memo("jane@example.com").is_some());
    } else {
        panic!("{:?}", world.types());
    }
}
