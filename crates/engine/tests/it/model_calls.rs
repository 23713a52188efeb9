//! Asking models: what is asked, what becomes of the answer, and what a replay makes of both.

use crate::support;

use std::sync::Arc;

use baton_engine::{Features, Next, Phase, Plan, Replay, RunState, apply};
use baton_model::event::DrainPolicy;
use baton_model::{Event, ModelReply, Record, RunId, RunStatus, StopReason};
use serde_json::{Value, json};
use support::models::{CALL, asked, asking, config, fed, refused, said, unreachable, valid};
use support::second::second;
use support::{World, plan, run, start_command, stored, workflow};

/// One call.
fn one(extra: Value) -> Value {
    let mut settings = config();
    settings.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    asking(workflow(&[("ask", CALL, settings)], &[]))
}

/// Says the same as long as it is asked. Returns how often that was.
fn insists(world: &mut World, reply: &Result<ModelReply, baton_model::Fault>) -> usize {
    let mut times = 0;
    while let Some(call) = asked(&world.state).first().cloned() {
        assert!(world.reply(&call, reply.clone()), "an answer that is waited for counts");
        times += 1;
    }
    times
}

/// The same, with this among the node's settings.
fn with(key: &str, value: Value) -> Value {
    let mut definition = one(json!({}));
    definition["nodes"][0]["settings"] = json!({key: value});
    definition
}

#[test]
fn an_answer_is_recorded_before_it_is_judged() {
    let mut world = run(one(json!({})));
    assert_eq!(world.types(), ["run.started", "node.started"]);
    let call = world.call();
    assert!(world.reply(&call, Ok(valid())));
    assert_eq!(world.types(), ["run.started", "node.started", "provider.usage", "node.completed", "run.completed"]);
    let parts: Vec<bool> = world.log.iter().map(|record| record.part.unwrap().outside).collect();
    assert_eq!(parts, [true, false, true, false, false], "the judgement is the engine's own");
    assert_eq!(
        world.payloads("provider.usage"),
        [json!({
            "provider": "mock", "model": "mock-mini", "inputTokens": 3, "outputTokens": 5, "totalTokens": 8,
            "nodeId": "ask",
        })]
    );
    let Event::ProviderUsage(usage) = &world.log[2].event else { panic!("{:?}", world.log[2]) };
    assert_eq!(usage.private.reply.as_deref(), Some(&valid()));
    assert_eq!(usage.private.cache_key, Some(call.request.semantic.cache_key()));
    assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"data": {"valid": true}}));
}

#[test]
fn the_question_is_what_the_ports_and_the_settings_say() {
    let settings = json!({
        "systemPrompt": "Be brief.", "temperature": 0.5, "maxTokens": 50, "stopSequences": ["."], "seed": 3,
        "topP": 0.9, "topK": 4, "providerOptions": {"vendor.mock.x": 1},
    });
    let call = run(one(settings)).call();
    let request = serde_json::to_value(&*call.request.semantic).unwrap();
    assert_eq!(
        request,
        json!({
            "provider": "mock", "model": "mock-mini", "temperature": 0.5, "maxOutputTokens": 50, "stop": ["."],
            "seed": 3, "topP": 0.9, "topK": 4, "providerOptions": {"vendor.mock.x": 1},
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it?"}],
            "responseFormat": {"type": "json_schema", "schema": config()["outputSchema"]},
        })
    );
    assert_eq!(call.request.key, "run_test/ask/1/0/0");
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": "hi"}], "name": "ann"}]);
    let plain = workflow(&[("ask", CALL, config())], &[]);
    let call = run(fed(plain, "ask", "messages", json!({"type": "static", "value": messages}))).call();
    assert_eq!(serde_json::to_value(&call.request.semantic.messages).unwrap(), messages, "as they were written");
}

#[test]
fn a_question_without_words_fails_before_anybody_is_asked() {
    let plain = || workflow(&[("ask", CALL, config())], &[]);
    let static_ = |value: Value| json!({"type": "static", "value": value});
    let both = fed(asking(plain()), "ask", "messages", static_(json!([])));
    let cases = [
        (plain(), "input_missing"),
        (both, "input_missing"),
        (fed(plain(), "ask", "prompt", static_(json!(1))), "validation_error"),
        (fed(plain(), "ask", "messages", static_(json!("hi"))), "validation_error"),
        (fed(plain(), "ask", "messages", static_(json!([{"content": "hi"}]))), "validation_error"),
    ];
    for (definition, code) in cases {
        let world = run(definition);
        assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some(code)));
    }
}

#[test]
fn a_restart_asks_the_same_again_and_a_reply_on_the_log_is_not_asked_for_again() {
    let mut world = run(one(json!({})));
    let call = world.call();
    assert_eq!(asked(&world.refolded()), std::slice::from_ref(&call));
    let drafts = baton_engine::decide(&world.state, &call.answered(Ok(valid())), world.now).unwrap();
    world.apply(drafts);
    assert_eq!(asked(&world.refolded()), [], "the answer is on the log");
    assert!(world.refolded().has_ready_work(), "and waits to be judged");
    world.advance();
    assert_eq!(world.status(), RunStatus::Completed);
}

#[test]
fn what_was_asked_does_not_change_while_the_answer_is_on_its_way() {
    let definition = workflow(&[("ask", CALL, config())], &[]);
    let mut definition = fed(definition, "ask", "prompt", json!({"type": "variable", "variableName": "topic"}));
    definition["variables"] = json!([{"name": "topic", "type": "string", "defaultValue": "tides"}]);
    let mut world = run(definition);
    let call = world.call();
    let variables = json!({"topic": "winds"}).as_object().unwrap().clone();
    world.command(&baton_engine::Command::SetVariables { variables }).unwrap();
    assert_eq!(world.call(), call);
    assert_eq!(call.request.semantic.messages[0].content(), "tides");
}

#[test]
fn an_answer_nobody_waits_for_changes_nothing() {
    let mut world = run(with("maxRetries", json!(1)));
    let first = world.call();
    for stale in [
        support::models::Asked { visit: 2, ..first.clone() },
        support::models::Asked { attempt: 1, ..first.clone() },
        support::models::Asked { call: 1, ..first.clone() },
        support::models::Asked { node: "nobody".into(), ..first.clone() },
    ] {
        assert!(!world.reply(&stale, Ok(valid())), "{stale:?}");
    }
    assert!(world.reply(&first, Err(unreachable())));
    assert!(!world.reply(&first, Ok(valid())), "the attempt has failed");
    assert!(world.sleep_until_next());
    let second = world.call();
    assert_eq!((second.attempt, second.request.key.as_str()), (1, "run_test/ask/1/0/0"));
    assert!(world.reply(&second, Ok(valid())));
    assert!(!world.reply(&second, Ok(valid())), "the run has ended");
    assert_eq!(world.payloads("provider.usage").len(), 1);
}

#[test]
fn what_becomes_of_an_answer() {
    let cut_off = |content: &str| ModelReply { stop: StopReason::MaxTokens, ..said(content) };
    let polite = ModelReply { refusal: Some("sorry".to_owned()), ..valid() };
    let table = [
        (valid(), None),
        (cut_off(r#"{"valid":true}"#), None),
        (refused(), Some("envelope_refusal")),
        (polite, Some("envelope_refusal")),
        (said("prose"), Some("envelope_invalid")),
        (said(r#"{"valid":1}"#), Some("envelope_invalid")),
        (said("{}"), Some("envelope_invalid")),
        (cut_off(r#"{"valid":t"#), Some("envelope_truncation_unrecoverable")),
    ];
    for (reply, code) in table {
        let mut world = run(one(json!({})));
        // One that cannot be used is asked for again, a refusal is not.
        let asked_for = if matches!(code, None | Some("envelope_refusal")) { 1 } else { 3 };
        assert_eq!(insists(&mut world, &Ok(reply.clone())), asked_for);
        assert_eq!(world.error_code(), code, "{reply:?}");
        assert_eq!(world.payloads("provider.usage").len(), asked_for);
        assert_eq!(world.payloads("envelope.refusal").len(), usize::from(code == Some("envelope_refusal")));
        let shown: String = world.log.iter().map(|record| record.public_json(&world.state.run)).collect();
        assert!(!shown.contains("prose") && !shown.contains("never") && !shown.contains("sorry"), "{shown}");
    }
}

#[test]
fn only_a_refusal_is_final() {
    // Three attempts of the node, and within each an answer is asked for three times.
    let table = [(Ok(refused()), 1, 1), (Ok(said("prose")), 3, 9), (Err(unreachable()), 3, 3), (Ok(said("{}")), 3, 9)];
    for (reply, attempts, calls) in table {
        let mut world = run(with("maxRetries", json!(2)));
        let mut asked_times = 0;
        while !world.status().is_terminal() {
            match insists(&mut world, &reply) {
                0 => assert!(world.sleep_until_next()),
                times => asked_times += times,
            }
        }
        assert_eq!(asked_times, calls, "{reply:?}");
        assert_eq!(world.payloads("provider.usage").len(), if reply.is_ok() { calls } else { 0 });
        assert_eq!(world.payloads("node.failed")[0]["attempts"], attempts);
    }
}

#[test]
fn somebody_may_take_over_from_a_refusal() {
    let nodes = [("ask", CALL, config()), ("sorry", "core.noop", json!({}))];
    let mut world = run(asking(workflow(&nodes, &[("ask", "sorry", json!({"triggerRule": "any_failed"}))])));
    let call = world.call();
    world.reply(&call, Ok(refused()));
    assert_eq!((world.status(), world.nodes_of("node.completed")), (RunStatus::Completed, vec!["sorry"]));
}

#[test]
fn an_answer_that_comes_too_late_is_nobodys() {
    let mut world = run(with("timeout", json!(1000)));
    let call = world.call();
    assert_eq!(call.request.timeout_ms, Some(1000));
    world.wait(1000);
    assert_eq!(world.error_code(), Some("node_timeout"));
    assert_eq!(asked(&world.state), []);
    assert!(!world.reply(&call, Ok(valid())));
}

#[test]
fn a_cancelled_run_asks_nobody_and_hears_nobody() {
    let mut world = run(one(json!({})));
    let call = world.call();
    world.cancel();
    assert_eq!(asked(&world.state), []);
    assert!(!world.reply(&call, Ok(valid())));
    assert_eq!(world.status(), RunStatus::Cancelled);
}

#[test]
fn a_paused_run_keeps_the_answer_and_judges_it_later() {
    let mut world = run(one(json!({})));
    let call = world.call();
    world.pause(DrainPolicy::Immediate).unwrap();
    assert!(matches!(world.state.phase(), Phase::Paused { .. }));
    assert!(!world.reply(&call, Err(unreachable())), "a fault is not an answer; it is asked for again");
    assert_eq!(world.call(), call);
    assert!(world.reply(&call, Ok(valid())));
    assert_eq!((world.status(), asked(&world.state).len()), (RunStatus::Paused, 0));
    assert_eq!(world.types().last(), Some(&"provider.usage"));
    world.resume().unwrap();
    assert_eq!(world.status(), RunStatus::Completed);

    let mut world = run(asking(workflow(
        &[("ask", CALL, config()), ("after", "core.noop", json!({}))],
        &[("ask", "after", Value::Null)],
    )));
    let call = world.call();
    world.pause(DrainPolicy::DrainCurrentNode).unwrap();
    assert_eq!(world.call(), call, "a draining run finishes what it does");
    world.reply(&call, Ok(valid()));
    assert_eq!(world.status(), RunStatus::Paused);
    assert_eq!(world.nodes_of("node.completed"), ["ask"]);
}

#[test]
fn what_a_model_makes_of_a_secret_is_a_secret() {
    let nodes = [("ask", CALL, config()), ("end", "core.end", json!({}))];
    let definition = workflow(&nodes, &[("ask", "end", Value::Null)]);
    let mut definition = fed(definition, "ask", "prompt", json!({"type": "variable", "variableName": "token"}));
    definition["variables"] =
        json!([{"name": "token", "type": "string", "defaultValue": "hunter2-hunter2", "sensitive": true}]);
    let mut world = run(definition);
    let call = world.call();
    assert_eq!(call.request.semantic.messages[0].content(), "hunter2-hunter2", "the model is asked in full");
    world.reply(&call, Ok(said(r#"{"valid":true,"echo":"hunter2-hunter2"}"#)));
    assert_eq!(world.payloads("node.completed")[0]["outputs"], json!({"data": "[REDACTED]"}));
    let shown: String = world.log.iter().map(|record| record.public_json(&world.state.run)).collect();
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn every_mistake_is_found_where_it_is() {
    let table = [
        (json!({"provider": 1}), "provider", "validation_error"),
        (json!({"modelClass": "clever"}), "modelClass", "validation_error"),
        (json!({"requiredModelCapabilities": "all"}), "requiredModelCapabilities", "validation_error"),
        (json!({"requiredModelCapabilities": ["Seeing"]}), "requiredModelCapabilities", "validation_error"),
        (json!({"requiredModelCapabilities": ["a", "a"]}), "requiredModelCapabilities", "validation_error"),
        (json!({"fallbackModel": {"provider": "mock"}}), "fallbackModel", "validation_error"),
        (json!({"fallbackModel": {"provider": "a", "model": "b", "c": 1}}), "fallbackModel", "validation_error"),
        (json!({"provider": "openai"}), "provider", "capability_required"),
        (json!({"model": ""}), "model", "validation_error"),
        (json!({"outputSchema": null}), "outputSchema", "validation_error"),
        (json!({"outputSchema": {"type": "nonsense"}}), "outputSchema", "validation_error"),
        (json!({"outputSchema": {"$ref": "http://127.0.0.1/x"}}), "outputSchema", "validation_error"),
        (json!({"temperature": "hot"}), "temperature", "validation_error"),
        (json!({"temperature": 3}), "temperature", "validation_error"),
        (json!({"maxTokens": -1}), "maxTokens", "validation_error"),
        (json!({"stopSequences": "."}), "stopSequences", "validation_error"),
        (json!({"systemPrompt": 1}), "systemPrompt", "validation_error"),
        (json!({"temprature": 1}), "temprature", "validation_error"),
    ];
    for (extra, field, code) in table {
        let refused = Plan::compile(one(extra.clone()), Features { conformance: true, ..Features::default() });
        let problems = refused.map(|_| ()).expect_err("refused");
        assert_eq!(
            (problems[0].pointer.as_str(), problems[0].code),
            (format!("/nodes/0/config/{field}").as_str(), code),
            "{extra}"
        );
    }
    let refused = Plan::compile(one(json!({})), Features::default()).map(|_| ()).expect_err("refused");
    assert_eq!(
        (refused[0].code, &refused[0].details["requiredCapability"]),
        ("capability_required", &json!("aiProviders"))
    );
}

/// Goes through a log again, asking the model again and hearing this.
fn heard(world: &World, replies: &[ModelReply]) -> (RunState, Vec<Record>, usize) {
    let log: Vec<Record> = world.log.iter().map(stored).collect();
    let mut state = RunState::new(world.state.run.clone(), Arc::clone(world.state.plan()));
    let mut replay = Replay::new(RunId::new("run_source"), 0);
    let (mut made, mut times) = (Vec::new(), 0);
    loop {
        let window = &log[usize::try_from(replay.position()).unwrap()..];
        if let Some(question) = replay.question(&state, window) {
            replay.heard(&state, &question, replies.get(times));
            times += 1;
        }
        match replay.step(&state, window, true) {
            Next::Append { drafts, at, .. } => made.extend(apply(&mut state, drafts, at).expect("it can follow")),
            Next::Done => return (state, made, times),
            Next::More => panic!("there is no more"),
        }
    }
}

fn events(log: &[Record]) -> Vec<Event> {
    log.iter().map(|record| record.event.clone()).collect()
}

/// A call with something after it, whether it is answered or refused.
fn answered(reply: ModelReply) -> World {
    let nodes = [("ask", CALL, config()), ("after", "core.noop", json!({})), ("else", "core.noop", json!({}))];
    let edges = [("ask", "after", Value::Null), ("ask", "else", json!({"triggerRule": "any_failed"}))];
    let mut world = run(asking(workflow(&nodes, &edges)));
    insists(&mut world, &Ok(reply));
    world
}

#[test]
fn a_replay_takes_the_recorded_answer_and_compares_its_kind() {
    let other = said(r#"{"valid":false}"#);
    let same_kind =
        [(valid(), other.clone()), (refused(), refused()), (said("prose"), refused()), (valid(), said("prose"))];
    for (first, again) in same_kind {
        let world = answered(first);
        let calls = world.payloads("provider.usage").len();
        let (state, log, times) = heard(&world, &vec![again; calls]);
        assert_eq!((events(&log), times), (events(&world.log), calls), "asked once for each call");
        assert_eq!(format!("{state:?}"), format!("{:?}", world.state));
    }
    let silent = answered(valid());
    assert_eq!(events(&heard(&silent, &[]).1), events(&silent.log), "no answer is no difference");
}

#[test]
fn a_refusal_on_one_side_only_ends_the_replay_there() {
    for (first, again, kinds) in
        [(valid(), refused(), ("valid", "refusal")), (refused(), valid(), ("refusal", "valid"))]
    {
        let world = answered(first);
        assert_eq!(world.status(), RunStatus::Completed);
        let (state, log, _) = heard(&world, &[again]);
        let types: Vec<&str> = log.iter().map(|record| record.event.type_name()).collect();
        assert_eq!(types, ["run.started", "node.started", "replay.divergedAtRefusal", "node.failed", "run.failed"]);
        assert_eq!(state.error().map(|error| error.code.as_str()), Some("replay_diverged_at_refusal"));
        let told = serde_json::to_value(log[2].event.payload()).unwrap();
        assert_eq!(
            (told["originalEnvelopeKind"].as_str(), told["replayEnvelopeKind"].as_str()),
            (Some(kinds.0), Some(kinds.1))
        );
        assert_eq!(
            (told["sourceRunId"].as_str(), &told["atSequence"], &told["nodeId"]),
            (Some("run_source"), &json!(2), &json!("ask"))
        );
        for record in &log {
            assert_eq!(support::schemas::violation(record, &world.state.run), None);
            assert_eq!(support::protocol::deviation(record), None);
        }
    }
}

#[test]
fn a_judgement_that_comes_out_otherwise_shows() {
    let world = answered(valid());
    let mut log: Vec<Record> = world.log.clone();
    let Event::ProviderUsage(usage) = &mut log[2].event else { panic!("{:?}", log[2]) };
    usage.private.reply.as_mut().unwrap().content = r#"{"valid":false}"#.to_owned();
    let replayed = second(&world.state.run, world.state.plan(), &log, 0, 50);
    assert_eq!(replayed.difference.map(|found| found.seq), Some(3), "node.completed has another output");
}

#[test]
fn what_a_node_of_chance_did_is_a_fact() {
    for (chance, differs) in [(true, None), (false, Some(2))] {
        let nodes = [("dice", "core.noop", json!({"nondeterministic": chance})), ("after", "core.noop", json!({}))];
        let world = World::started(plan(workflow(&nodes, &[("dice", "after", Value::Null)])), start_command(json!({})));
        let mut log = world.log.clone();
        // As if it had really thrown dice.
        let Event::NodeCompleted(completed) = &mut log[2].event else { panic!("{:?}", log[2]) };
        completed.outputs.insert("eyes".to_owned(), json!(4));
        let replayed = second(&world.state.run, world.state.plan(), &log, 0, 50);
        assert_eq!(replayed.difference.map(|found| found.seq), differs);
        if chance {
            assert_eq!(events(&replayed.log), events(&log));
        }
    }
}

#[test]
fn a_model_of_chance_is_not_asked_again() {
    let mut world = run(one(json!({"nondeterministic": true})));
    let call = world.call();
    world.reply(&call, Ok(valid()));
    let (_, log, times) = heard(&world, &[refused()]);
    assert_eq!((events(&log), times), (events(&world.log), 0));
}

/// What a run says about its models counts where their nodes say nothing, for runs that began under the rule.
#[test]
fn what_a_run_says_about_its_models_is_part_of_the_question() {
    let said = json!({"temperature": 0.25, "ai": {"maxTokens": 40}});
    let start = || {
        let mut start = start_command(json!({"text": "Go."}));
        start.settings.configurable = said.as_object().unwrap().clone();
        start
    };
    let manner = |world: &World| {
        let semantic = world.call().request.semantic;
        (semantic.temperature.as_ref().and_then(serde_json::Number::as_f64), semantic.max_output_tokens)
    };
    let mut world = World::started(plan(one(json!({}))), start());
    assert_eq!(manner(&world), (Some(0.25), Some(40)));
    let asked = world.call();
    assert_eq!(support::models::asked(&world.refolded()), std::slice::from_ref(&asked));
    assert!(world.reply(&asked, Ok(valid())));
    let own = World::started(plan(one(json!({"temperature": 1, "maxTokens": 7}))), start());
    assert_eq!(manner(&own), (Some(1.0), Some(7)), "the node's word goes first");

    let agent = support::agents::one(support::agents::FREE, json!({}), json!({}));
    let mut world = support::agents::started_with(agent, start());
    assert_eq!(manner(&world), (Some(0.25), Some(40)));
    world.under_rule(2);
    assert_eq!(manner(&world), (None, None), "earlier runs were asked without");
}

#[test]
fn options_of_one_vendor_reach_an_agents_model_and_its_key() {
    let asked = |config: Value, configurable: Value, rule: u32| {
        let Value::Object(configurable) = configurable else { panic!("an object") };
        let start = {
            let mut start = start_command(json!({"text": "Go."}));
            start.settings.configurable = configurable;
            start
        };
        let agent = support::agents::one(support::agents::FREE, config, json!({}));
        let mut world = support::agents::started_with(agent, start);
        world.under_rule(rule);
        let semantic = world.call().request.semantic;
        (json!(semantic.provider_options), semantic.cache_key())
    };
    let (effort, verbosity) = ("vendor.openai.reasoning_effort", "vendor.openai.verbosity");
    let (none, plain) = asked(json!({}), json!({}), 4);
    assert_eq!(none, Value::Null);
    let (own, of_node) = asked(json!({"providerOptions": {effort: "low"}}), json!({}), 4);
    assert_eq!(own, json!({effort: "low"}));
    assert_ne!(of_node, plain, "another question");
    let run = json!({"ai.providerOptions": {effort: "high", verbosity: "low"}});
    let (both, key) = asked(json!({"providerOptions": {effort: "low"}}), run.clone(), 4);
    assert_eq!(both, json!({effort: "low", verbosity: "low"}), "the node's word goes first");
    assert!(key != plain && key != of_node);
    assert_eq!(asked(json!({}), run, 3), (Value::Null, plain.clone()), "earlier runs were asked without");
    let odd = json!({"providerOptions": {"vendor.openai.model": "x"}});
    assert_eq!(asked(json!({}), odd, 4), (Value::Null, plain), "what a parent may have said is not passed on unjudged");
}

#[test]
fn what_a_provider_will_never_take_is_not_tried_again() {
    for code in [baton_model::code::CONTENT_TOO_LONG, baton_model::code::MODEL_NOT_SUPPORTED] {
        let fault = || Err(baton_model::Fault::new(code, "No answer."));
        let mut world = run(with("maxRetries", json!(2)));
        let call = world.call();
        assert!(world.reply(&call, fault()));
        assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some(code)));
        let mut earlier = run(with("maxRetries", json!(2)));
        earlier.under_rule(2);
        let call = earlier.call();
        assert!(earlier.reply(&call, fault()));
        assert_eq!(earlier.payloads("node.retried").len(), 1, "logs that were begun earlier go on as they did");
    }
}
