//! What is done once stays done: an answer that breaks off is asked for again as the same call, and another attempt of
//! a node goes on with the conversation instead of having it again.

use crate::support;

use baton_engine::{Command, Effect, Made, outstanding};
use baton_model::{Fault, RunStatus, Usage, code};
use serde_json::json;
use support::World;
use support::agent_audit::Audit;
use support::agents::{FREE, STRICT, ok, one, started, tool_calls, wants};
use support::models::{Asked, said};

fn broken(call: &Asked, usage: Option<Usage>, again: bool) -> Command {
    let Asked { node, visit, attempt, call, .. } = call.clone();
    let fault = Fault::new(code::PROVIDER_UNAVAILABLE, "No answer: it broke off.");
    Command::ModelBroke { node, visit, attempt, call, fault, again, usage, cost_usd: None, made: Box::default() }
}

fn breaks(world: &mut World, usage: Option<Usage>) {
    let call = world.call();
    world.command(&broken(&call, usage, true)).unwrap();
}

/// The instant before which the one call is not made, and which try of it that is.
fn next_try(world: &World) -> (Option<u64>, u32) {
    let calls = outstanding(&world.state).into_iter().filter_map(|effect| match effect {
        Effect::CallModel { not_before, again, .. } => Some((not_before.map(|at| at.millis_since(world.now)), again)),
        _ => None,
    });
    let calls: Vec<_> = calls.collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls[0]
}

/// An agent that has called two tools in one round and has heard of both.
fn amid(settings: serde_json::Value) -> World {
    let mut world = started(one(FREE, json!({}), settings));
    world.says(wants(&[("mcp:mail", json!({"n": 1})), ("mcp:look", json!({"n": 2}))]));
    for call in tool_calls(&world.state) {
        assert!(world.returns(&call, ok(json!("sent"))));
    }
    world
}

#[test]
fn a_broken_answer_is_asked_for_again_as_the_same_call() {
    let mut world = amid(json!({}));
    let call = world.call();
    assert_eq!(call.request.key, "run_test/work/1/0/1");
    let used = Usage { input_tokens: 100, output_tokens: 7, ..Usage::default() };
    for (times, pause) in [(1, 1000), (2, 2000), (3, 4000)] {
        world.mutters(&world.call(), 0, &["Half a "]);
        breaks(&mut world, Some(used).filter(|_| times < 3));
        assert_eq!(next_try(&world), (Some(pause), times), "the pauses grow");
        let again = world.call();
        assert_eq!((&again.request, again.call), (&call.request, call.call), "the same question under the same key");
        assert_eq!(outstanding(&world.refolded()), outstanding(&world.state), "a restart waits for the same");
    }
    assert!(tool_calls(&world.state).is_empty(), "nobody is called a second time");
    world.says(said("Done."));
    assert_eq!(world.status(), RunStatus::Completed);
    let told = world.payloads("baton.model.retried");
    let attempts: Vec<_> = told.iter().map(|event| (event["attempt"].as_u64(), event["begun"].as_bool())).collect();
    assert_eq!(attempts, [(Some(2), Some(true)), (Some(3), Some(true)), (Some(4), Some(true))]);
    assert_eq!(told[0]["error"]["code"], code::PROVIDER_UNAVAILABLE);
    let usage: Vec<_> = world.payloads("provider.usage").iter().map(|event| event["totalTokens"].clone()).collect();
    assert_eq!(usage.len(), 4, "two answers, and what two halves had cost: {usage:?}");
    assert_eq!(usage.iter().filter(|tokens| **tokens == json!(107)).count(), 2);
    assert_eq!(world.payloads("agent.toolCalled").len(), 2);
    assert_eq!(world.payloads("agent.invocation.started").len(), 1, "it is one piece of work");
    Audit::check(&world.log);
}

#[test]
fn a_vendor_that_always_breaks_ends_it_and_what_was_done_stays() {
    let mut world = amid(json!({}));
    for _ in 0..4 {
        breaks(&mut world, None);
    }
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some(code::PROVIDER_UNAVAILABLE)));
    let failed = &world.payloads("node.failed")[0];
    assert_eq!(failed["error"]["details"]["attempts"], 4);
    assert_eq!(world.payloads("baton.model.retried").len(), 3);
    assert_eq!((world.payloads("agent.toolReturned").len(), world.outcomes()), (2, vec!["failed".to_owned()]));
    Audit::check(&world.log);
    // What trying again cannot mend is not tried again.
    let mut world = amid(json!({}));
    let call = world.call();
    world.command(&broken(&call, Some(Usage { input_tokens: 5, ..Usage::default() }), false)).unwrap();
    assert_eq!(world.status(), RunStatus::Failed);
    assert!(world.payloads("baton.model.retried").is_empty());
    assert_eq!(world.payloads("provider.usage").len(), 2, "what it had cost is counted all the same");
}

#[test]
fn another_attempt_repeats_no_call_that_was_answered() {
    let mut world = amid(json!({"maxRetries": 1, "retryDelayMs": 10}));
    let before = world.call();
    for _ in 0..4 {
        breaks(&mut world, None);
    }
    assert_eq!(world.payloads("node.retried").len(), 1);
    assert!(world.sleep_until_next());
    let call = world.call();
    assert_eq!((call.attempt, call.call), (1, before.call));
    assert_eq!(call.request, before.request, "it goes on with the very call that broke");
    assert_eq!(next_try(&world), (None, 0));
    assert_eq!(world.outcomes(), ["failed"]);
    world.says(wants(&[("mcp:mail", json!({"n": 3}))]));
    let tool = world.tool();
    assert_eq!(tool.key, "run_test/work:1:0:1:0", "the next round of the same conversation");
    assert!(world.returns(&tool, ok(json!("sent"))));
    world.says(said("Done."));
    assert_eq!(
        (world.status(), world.outcomes()),
        (RunStatus::Completed, vec!["failed".to_owned(), "completed".to_owned()])
    );
    assert_eq!(world.payloads("agent.toolCalled").len(), 3);
    let ids: Vec<_> = world.payloads("agent.toolCalled").iter().map(|event| event["callId"].clone()).collect();
    assert_eq!(ids, ["work:1:0:0:0", "work:1:0:0:1", "work:1:0:1:0"]);
    Audit::check(&world.log);
}

#[test]
fn an_answer_that_never_fits_is_asked_for_anew_and_its_tools_are_not() {
    let mut world = started(one(STRICT, json!({}), json!({"maxRetries": 1, "retryDelayMs": 10})));
    world.says(wants(&[("mcp:mail", json!({"n": 1}))]));
    let tool = world.tool();
    assert!(world.returns(&tool, ok(json!("sent"))));
    for _ in 0..3 {
        world.says(said(r#"{"verdict": 5}"#));
    }
    assert!(world.sleep_until_next());
    assert_eq!((world.call().attempt, world.call().call), (1, 4), "calls are counted on");
    assert_eq!(world.call().request.semantic.messages.len(), 4, "with what the tool said, without what did not fit");
    world.says(said(r#"{"verdict": "good"}"#));
    assert_eq!((world.status(), world.payloads("agent.toolCalled").len()), (RunStatus::Completed, 1));
    Audit::check(&world.log);
}

#[test]
fn what_the_provider_tried_before_it_answered_is_told() {
    let mut world = started(one(FREE, json!({}), json!({})));
    let Asked { node, visit, attempt, call, .. } = world.call();
    let fault = |why: &str| Fault::new(code::PROVIDER_UNAVAILABLE, why);
    let made = Box::new(Made { cap: Some(90), retried: vec![fault("503"), fault("504")] });
    let reply = Ok(said("Done."));
    world.command(&Command::ModelReplied { node, visit, attempt, call, reply, cost_usd: None, made }).unwrap();
    let told = world.payloads("baton.model.retried");
    let told: Vec<_> = told.iter().map(|event| (&event["attempt"], &event["begun"])).collect();
    assert_eq!(told, [(&json!(2), &json!(false)), (&json!(3), &json!(false))]);
    assert_eq!(world.status(), RunStatus::Completed);
    Audit::check(&world.log);
}

#[test]
fn a_paused_run_counts_what_broke_and_asks_when_it_goes_on() {
    let mut world = amid(json!({}));
    let call = world.call();
    world.pause(baton_model::event::DrainPolicy::Immediate).unwrap();
    world.command(&broken(&call, Some(Usage { input_tokens: 5, ..Usage::default() }), true)).unwrap();
    assert_eq!((world.payloads("provider.usage").len(), world.payloads("baton.model.retried").len()), (2, 0));
    world.resume().unwrap();
    assert_eq!(world.call().request, call.request);
    world.says(said("Done."));
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn a_run_of_an_earlier_rule_goes_the_way_it_went() {
    let mut world = started(one(FREE, json!({}), json!({"maxRetries": 1, "retryDelayMs": 10})));
    world.under_rule(3);
    world.says(wants(&[("mcp:mail", json!({"n": 1}))]));
    let tool = world.tool();
    assert!(world.returns(&tool, ok(json!("sent"))));
    breaks(&mut world, Some(Usage { input_tokens: 5, ..Usage::default() }));
    assert_eq!((world.payloads("baton.model.retried").len(), world.payloads("provider.usage").len()), (0, 1));
    assert!(world.sleep_until_next());
    assert_eq!(world.call().request.key, "run_test/work/1/1/0");
    assert_eq!(world.call().request.semantic.messages.len(), 2, "it starts over");
    world.says(wants(&[("mcp:mail", json!({"n": 1}))]));
    assert_eq!(world.tool().key, "run_test/work:1:1:0:0");
}
