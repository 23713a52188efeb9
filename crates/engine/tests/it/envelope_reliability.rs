//! Answers that must have a shape: how often they are asked for, what the model is told, and what ends it.

use crate::support;

use baton_model::{ModelReply, RunStatus, StopReason};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{STRICT, cut_off, ok, one, started, wants};
use support::fixtures::fixture;
use support::models::{CALL, asked, asking, config, refused, said};
use support::second::second;
use support::{World, run, stored, workflow};

/// One call, with these settings besides.
fn call(extra: Value) -> World {
    let mut settings = config();
    settings.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    run(asking(workflow(&[("ask", CALL, settings)], &[])))
}

/// Says these one after the other, and the last one as long as it is asked. Returns the room each call had.
fn hear(world: &mut World, replies: &[ModelReply]) -> Vec<Option<u64>> {
    let mut rooms = Vec::new();
    while let Some(call) = asked(&world.state).first().cloned() {
        rooms.push(call.request.semantic.max_output_tokens);
        let reply = replies.get(rooms.len() - 1).or(replies.last()).unwrap();
        assert!(world.reply(&call, Ok(reply.clone())));
    }
    rooms
}

fn envelope_events(world: &World) -> Vec<&str> {
    world.types().into_iter().filter(|kind| kind.starts_with("envelope.") || *kind == "cap.breached").collect()
}

const GOOD: &str = r#"{"valid":true}"#;

/// What was said, what the log tells of it, how many calls that took, and what became of the node.
#[test]
fn every_answer_counts_as_something() {
    type Row = (&'static str, Vec<ModelReply>, &'static [&'static str], usize, Option<&'static str>);
    let table: [Row; 12] = [
        ("good", vec![said(GOOD)], &[], 1, None),
        ("broken, then good", vec![said("{"), said(GOOD)], &["envelope.retry.attempted"], 2, None),
        ("wrong, then good", vec![said("{}"), said(GOOD)], &["envelope.retry.attempted"], 2, None),
        (
            "twice wrong, then good",
            vec![said("{}"), said("{"), said(GOOD)],
            &["envelope.retry.attempted", "envelope.retry.attempted"],
            3,
            None,
        ),
        (
            "always wrong",
            vec![said("{}")],
            &["envelope.retry.attempted", "envelope.retry.attempted", "envelope.retry.exhausted", "cap.breached"],
            3,
            Some("envelope_invalid"),
        ),
        ("refused", vec![refused()], &["envelope.refusal"], 1, Some("envelope_refusal")),
        (
            "wrong, then refused",
            vec![said("{}"), refused()],
            &["envelope.retry.attempted", "envelope.refusal"],
            2,
            Some("envelope_refusal"),
        ),
        (
            "cut off, then good",
            vec![cut_off("{\"va"), said(GOOD)],
            &["envelope.truncated", "envelope.retry.attempted"],
            2,
            None,
        ),
        (
            "always cut off",
            vec![cut_off("{\"va")],
            &[
                "envelope.truncated",
                "envelope.retry.attempted",
                "envelope.truncated",
                "envelope.retry.attempted",
                "envelope.truncated",
                "envelope.retry.exhausted",
                "cap.breached",
            ],
            3,
            Some("envelope_truncation_unrecoverable"),
        ),
        ("wrapped", vec![said("```json\n{\"valid\":true}\n```")], &["envelope.recovery.applied"], 1, None),
        (
            "prose, put into shape",
            vec![said("It is valid."), said("Well, yes it is."), said("I said so."), said(GOOD)],
            &["envelope.retry.attempted", "envelope.retry.attempted", "envelope.nlToFormat.engaged"],
            4,
            None,
        ),
        (
            "nothing but prose",
            vec![said("It is valid.")],
            &[
                "envelope.retry.attempted",
                "envelope.retry.attempted",
                "envelope.nlToFormat.engaged",
                "envelope.retry.exhausted",
                "cap.breached",
            ],
            4,
            Some("envelope_invalid"),
        ),
    ];
    for (name, replies, events, calls, code) in table {
        let mut world = call(json!({"maxTokens": 50}));
        assert_eq!(hear(&mut world, &replies).len(), calls, "{name}");
        assert_eq!(envelope_events(&world), events, "{name}");
        assert_eq!(world.error_code(), code, "{name}");
        assert_eq!(world.payloads("provider.usage").len(), calls, "{name}: one for each call");
        let attempts: Vec<u64> =
            world.payloads("envelope.retry.attempted").iter().map(|e| e["attempt"].as_u64().unwrap()).collect();
        assert_eq!(attempts, (2..).take(attempts.len()).collect::<Vec<u64>>(), "{name}");
        if let Some(exhausted) = world.payloads("envelope.retry.exhausted").first() {
            assert_eq!(exhausted["totalAttempts"], 3, "{name}");
            let cap = &world.payloads("cap.breached")[0];
            assert_eq!((&cap["kind"], &cap["limit"], &cap["observed"]), (&json!("schema"), &json!(3), &json!(4)));
            let place = |kind: &str| world.types().iter().position(|known| *known == kind).unwrap();
            assert!(place("envelope.retry.exhausted") < place("node.failed"));
        }
        Audit::check(&world.log);
        let log: Vec<_> = world.log.iter().map(stored).collect();
        let again = second(&world.state.run, world.state.plan(), &log, 0, 4);
        assert_eq!((again.difference, again.log.len()), (None, log.len()), "{name}");
    }
}

#[test]
fn one_that_was_cut_off_gets_more_room_and_no_advice() {
    let mut world = call(json!({"maxTokens": 50}));
    let asked_before = world.call().request.semantic.messages.len();
    world.says(cut_off("{"));
    assert_eq!(world.call().request.semantic.messages.len(), asked_before, "the shape was not the problem");
    assert_eq!(hear(&mut world, &[cut_off("{"), said("{}")]), [Some(100), Some(200)]);
    let truncated = &world.payloads("envelope.truncated")[0];
    assert_eq!(
        truncated,
        &json!({"nodeId": "ask", "provider": "mock", "model": "mock-mini", "stopReason": "max_tokens",
            "partialPayloadAvailable": true, "outputTokenCount": 5})
    );
    let mut world = call(json!({"maxTokens": 50}));
    world.says(cut_off(" "));
    assert_eq!(world.payloads("envelope.truncated")[0]["partialPayloadAvailable"], false, "nothing was said");
    // Where nothing is said about room, what it took is where doubling begins.
    let mut world = call(json!({}));
    assert_eq!(hear(&mut world, &[cut_off("{"), said(GOOD)]), [None, Some(10)]);
    // Misshapen answers do not get more.
    let mut world = call(json!({"maxTokens": 50}));
    assert_eq!(hear(&mut world, &[said("{}"), said("{}"), said(GOOD)]), [Some(50), Some(50), Some(50)]);
    // There is an end to room.
    let mut world = call(json!({"maxTokens": 40_000}));
    assert_eq!(hear(&mut world, &[cut_off("{")]), [Some(40_000), Some(65_536)]);
    assert_eq!(world.payloads("envelope.retry.exhausted")[0]["totalAttempts"], 2);
    assert_eq!(world.error_code(), Some("envelope_truncation_unrecoverable"));
}

#[test]
fn the_model_is_told_what_is_wrong_in_the_hosts_words() {
    let mut world = call(json!({}));
    for bad in [r#"{"valid":"sauce"}"#, "sauce {", r#"{"sauce":1}"#] {
        world.says(said(bad));
        let messages = world.state_messages();
        assert!(!messages.contains("sauce"), "{messages}");
    }
    let shown: String = world.log.iter().map(|record| record.public_json(&world.state.run)).collect();
    assert!(!shown.contains("sauce"), "{shown}");
    let retries = world.payloads("envelope.retry.attempted");
    assert_eq!(retries[0]["previousError"], "The answer breaks the schema's rule /properties/valid/type.");
    assert_eq!(retries[1]["previousError"], "The answer is not JSON.");
    // Only the call that puts prose into shape shows the model its own words, as its own.
    let mut world = call(json!({}));
    for _ in 0..3 {
        world.says(said("It is quite valid."));
    }
    let messages = world.call().request.semantic.messages.clone();
    let [.., assistant, user] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!((assistant.role(), assistant.content()), ("assistant", &json!("It is quite valid.")));
    assert_eq!(user.role(), "user");
    assert!(!user.content().as_str().unwrap().contains("quite"));
    assert_eq!(messages.len(), 3);
    let engaged = &world.payloads("envelope.nlToFormat.engaged")[0];
    assert_eq!(engaged, &json!({"nodeId": "ask", "originalEnvelopeType": "structured-output", "fallbackCalls": 1}));
}

impl World {
    /// Everything the open call says, as one text; nothing if there is none.
    fn state_messages(&self) -> String {
        asked(&self.state).iter().map(|call| serde_json::to_string(&call.request.semantic.messages).unwrap()).collect()
    }
}

#[test]
fn an_agents_answer_is_treated_the_same_within_its_bracket() {
    let mut world = started(one(STRICT, json!({"maxTokens": 50}), json!({})));
    let good = r#"{"verdict":"good"}"#;
    assert_eq!(hear(&mut world, &[cut_off("{"), said("{}"), said(good)]), [Some(50), Some(100), Some(100)]);
    assert_eq!((world.status(), world.outcomes()), (RunStatus::Completed, vec!["completed".to_owned()]));
    assert_eq!(
        world.types().iter().filter(|kind| **kind == "agent.reasoned").count(),
        1,
        "what does not count was not thought"
    );
    Audit::check(&world.log);
    // Tools begin a new answer, with attempts of its own.
    let mut world = started(one(STRICT, json!({}), json!({})));
    world.says(said("{}"));
    world.says(said("{}"));
    world.says(wants(&[("mcp:look", json!({}))]));
    let call = world.tool();
    world.returns(&call, ok(json!(1)));
    assert!(!world.state_messages().contains("could not be used"), "the advice was about another answer");
    assert_eq!(hear(&mut world, &[said("{}"), said("{}"), said(good)]).len(), 3);
    assert_eq!(world.status(), RunStatus::Completed);
    Audit::check(&world.log);
    // A call of a tool that was cut off is nobody's wish.
    let mut world = started(one(STRICT, json!({"maxTokens": 50}), json!({})));
    world.says(ModelReply { stop: StopReason::MaxTokens, ..wants(&[("mcp:mail", json!({}))]) });
    assert!(world.payloads("agent.toolCalled").is_empty());
    assert_eq!(world.payloads("envelope.truncated").len(), 1);
    assert_eq!(hear(&mut world, &[said("A prose answer."), said("A prose answer."), said(good)]).len(), 3);
    assert_eq!(world.payloads("envelope.nlToFormat.engaged")[0]["originalEnvelopeType"], "Review");
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn a_setting_of_other_hosts_is_taken_and_changes_nothing() {
    for (value, calls) in [(json!(0), 3), (json!(5), 3)] {
        let mut world = call(json!({"retryOnInvalidJson": value}));
        assert_eq!(hear(&mut world, &[said("{}")]).len(), calls);
    }
}

/// The protocol's own workflows, with what their scenarios make the model say.
#[test]
fn the_protocols_fixtures_do_what_their_scenarios_say() {
    let prose = || said("I think that the result should be just fine.");
    type Row = (&'static str, Vec<ModelReply>, &'static [(&'static str, usize)], usize, Option<&'static str>);
    let table: [Row; 7] = [
        (
            "recovery-applied",
            vec![said("```json\n{\"result\":\"ok\"}\n```")],
            &[("envelope.recovery.applied", 1), ("envelope.retry.attempted", 0)],
            1,
            None,
        ),
        (
            "refusal",
            vec![refused()],
            &[("envelope.refusal", 1), ("envelope.retry.attempted", 0), ("envelope.retry.exhausted", 0)],
            1,
            Some("envelope_refusal"),
        ),
        ("retry-attempted", vec![said("not json"), said(GOOD)], &[("envelope.retry.attempted", 1)], 2, None),
        ("retry-exhausted", vec![said("{\"valid\":")], &[("envelope.retry.exhausted", 1)], 3, Some("envelope_invalid")),
        (
            "truncated",
            vec![cut_off("{\"va"), said(GOOD)],
            &[("envelope.truncated", 1), ("envelope.retry.attempted", 1)],
            2,
            None,
        ),
        (
            "truncation-cap-exhaustion",
            vec![cut_off("{\"va")],
            &[("envelope.retry.exhausted", 1), ("cap.breached", 1)],
            3,
            Some("envelope_truncation_unrecoverable"),
        ),
        (
            "nl-to-format-engaged",
            vec![prose(), prose(), prose(), said("{\"result\":\"ok\"}")],
            &[("envelope.nlToFormat.engaged", 1), ("envelope.retry.exhausted", 0)],
            4,
            None,
        ),
    ];
    for (name, replies, events, calls, code) in table {
        let Some(mut world) = fixture(&format!("conformance-envelope-{name}")) else { return };
        assert_eq!(hear(&mut world, &replies).len(), calls, "{name}");
        assert_eq!(world.error_code(), code, "{name}");
        for (kind, count) in events {
            assert_eq!(world.payloads(kind).len(), *count, "{name}: {kind}");
        }
        Audit::check(&world.log);
    }
}
