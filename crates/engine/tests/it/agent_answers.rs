//! What an agent says: how sure it is and who ratifies it, how much of its thinking shows, and what never does.

use crate::support;

use baton_engine::{Command, snapshot};
use baton_model::{ModelReply, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{FREE, STRICT, ok, one, started, started_with, wants, working};
use support::models::{fed, said};
use support::{World, start_command};

/// A run with something in its `configurable`.
fn configured(definition: Value, configurable: Value) -> World {
    let configurable = configurable.as_object().unwrap().clone();
    started_with(definition, {
        let mut start = start_command(json!({"text": "Do it."}));
        start.settings.configurable = configurable;
        start
    })
}

fn public(world: &World) -> String {
    world.log.iter().map(|record| record.public_json(&world.state.run)).collect()
}

#[test]
fn how_sure_is_sure_enough() {
    let strict = || one(STRICT, json!({}), json!({}));
    let says = |confidence: &str| format!(r#"{{"verdict":"hm"{confidence}}}"#);
    let table = [
        (json!({}), "", true),
        (json!({}), r#","confidence":0.7"#, true),
        (json!({}), r#","confidence":0.69"#, false),
        (json!({"escalationThreshold": 0.9}), r#","confidence":0.89"#, false),
        (json!({"escalationThreshold": 0.2}), r#","confidence":0.3"#, true),
    ];
    for (configurable, confidence, sure) in table {
        let threshold = configurable["escalationThreshold"].as_f64();
        let mut start = start_command(json!({"text": "x"}));
        // The shell reads the setting into the rule of the run.
        start.settings.escalation.agent_threshold = threshold.unwrap_or(0.7);
        start.settings.configurable = configurable.as_object().unwrap().clone();
        let mut world = started_with(strict(), start);
        world.says(said(&says(confidence)));
        assert_eq!(world.status() == RunStatus::Completed, sure, "{configurable} {confidence}");
        if !sure {
            let suspended = &world.payloads("node.suspended")[0];
            let observed = confidence.rsplit(':').next().unwrap().parse::<f64>().unwrap();
            assert_eq!(suspended["reason"], "low-confidence");
            assert_eq!(suspended["agentId"], STRICT);
            assert_eq!(
                (suspended["threshold"].as_f64(), suspended["observed"].as_f64()),
                (threshold.or(Some(0.7)), Some(observed))
            );
            let tail: Vec<&str> = world.types().into_iter().skip_while(|kind| *kind != "agent.decided").collect();
            assert_eq!(tail, ["agent.decided", "agent.invocation.completed", "node.suspended", "interrupt.requested"]);
            assert_eq!(world.payloads("interrupt.requested")[0]["data"]["decision"]["verdict"], "hm");
        }
    }
}

#[test]
fn a_manifest_may_ask_for_more_and_a_run_has_the_last_word() {
    let mut world = World::new(support::agents::plan(one(STRICT, json!({}), json!({}))));
    world.answering = false;
    world.command(&Command::Start(Box::new(start_command(json!({"text": "x"}))))).unwrap();
    let node_request = world.question().unwrap();
    let baton_engine::Request::Invoke(request) = &node_request.request else { panic!("{node_request:?}") };
    let mut brief = support::agents::brief(request, vec![]);
    brief.card.threshold = Some(0.95);
    assert!(world.consulted(
        &node_request,
        baton_engine::Answer::found(baton_engine::Found::InvocationContext(Box::new(brief)))
    ));
    world.says(said(r#"{"verdict":"hm","confidence":0.94}"#));
    assert_eq!(world.payloads("node.suspended")[0]["threshold"], 0.95);
}

#[test]
fn what_a_human_may_say_about_a_doubtful_answer() {
    let held = json!({"verdict": "hm", "confidence": 0.1});
    let edited = json!({"verdict": "no"});
    let edit = |data: Value| json!({"action": "edit-accept", "editedArtifactData": data});
    let table = [
        (json!({"action": "accept"}), Ok(held.clone())),
        (json!("accept"), Ok(held.clone())),
        (edit(edited.clone()), Ok(edited.clone())),
        (edited.clone(), Ok(edited)),
        (edit(json!({"verdict": 5})), Err("validation_error")),
        (json!({"action": "edit-accept"}), Err("validation_error")),
        (json!({"action": "refine"}), Err("validation_error")),
        (json!({"verdict": 5}), Err("validation_error")),
        (json!("maybe"), Err("validation_error")),
        (json!(null), Err("validation_error")),
        (json!({"action": "reject"}), Err("approval_rejected")),
        (json!("reject"), Err("approval_rejected")),
    ];
    for (value, outcome) in table {
        let mut world = working(STRICT);
        world.says(said(&held.to_string()));
        let before = world.log.len();
        let answered = world.answer("work", value.clone());
        match outcome {
            Ok(result) => {
                assert_eq!(
                    (world.status(), world.variable("result")),
                    (RunStatus::Completed, Some(&result)),
                    "{value}"
                );
                assert!(
                    !world.types()[before..].iter().any(|kind| kind.starts_with("agent.")),
                    "nobody works any more"
                );
            }
            Err("approval_rejected") => assert_eq!(world.error_code(), Some("approval_rejected"), "{value}"),
            Err(code) => {
                assert_eq!(answered.unwrap_err().fault.code, code, "{value}");
                assert_eq!((world.status(), world.log.len()), (RunStatus::WaitingApproval, before), "it still waits");
                world.answer("work", json!("accept")).unwrap();
            }
        }
        Audit::check(&world.log);
    }
}

#[test]
fn silence_ratifies_nothing() {
    let mut world = started(one(STRICT, json!({"escalationTimeoutMs": 50}), json!({"maxRetries": 2})));
    world.says(said(r#"{"verdict":"hm","confidence":0.1}"#));
    world.wait(50);
    assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("approval_rejected")));
    Audit::check(&world.log);
}

#[test]
fn how_much_of_its_thinking_shows() {
    let thought = "a".repeat(3000);
    for (word, shown) in [("summary", Some(2049)), ("full", Some(3000)), ("off", None)] {
        let mut world = configured(one(FREE, json!({}), json!({})), json!({"reasoningVerbosity": word}));
        let call = world.call();
        assert_eq!(call.request.reasoning, word != "off");
        world.says(ModelReply { reasoning: Some(thought.clone()), ..said("Done.") });
        let reasoned = world.payloads("agent.reasoned");
        assert_eq!(reasoned.first().map(|event| event["reasoning"].as_str().unwrap().chars().count()), shown);
        assert!(reasoned.iter().all(|event| event["verbosity"] == word));
    }
    let mut world = working(STRICT);
    world.says(said(r#"{"verdict":"good","reasoning":"Because."}"#));
    assert_eq!(world.payloads("agent.reasoned")[0]["reasoning"], "Because.", "an answer may say why");
}

#[test]
fn what_an_agent_makes_of_a_secret_shows_nowhere() {
    let mut definition =
        fed(one(STRICT, json!({}), json!({})), "work", "key", json!({"type": "variable", "variableName": "token"}));
    definition["variables"] =
        json!([{"name": "token", "type": "string", "defaultValue": "hunter2-hunter2", "sensitive": true}]);
    let mut world = started(definition.clone());
    let call = world.says(ModelReply {
        reasoning: Some("They gave me hunter2-hunter2.".to_owned()),
        ..wants(&[
            ("mcp:mail", json!({"n": 1, "body": "hunter2-hunter2"})),
            ("mcp:look", json!({"n": "hunter2-hunter2"})),
        ])
    });
    assert!(serde_json::to_string(&call.request.semantic).unwrap().contains("hunter2"), "the model is told in full");
    let tool = world.tool();
    assert_eq!(tool.arguments["body"], "hunter2-hunter2", "and so is the tool");
    world.returns(&tool, ok(json!({"echo": "hunter2-hunter2"})));
    let told = world.call().request.semantic.messages[3].content().to_string();
    assert!(told.contains("hunter2-hunter2"), "and what it answered: {told}");
    world.says(said(r#"{"verdict":"hunter2-hunter2","confidence":0.1}"#));
    assert_eq!(world.payloads("interrupt.requested")[0]["data"]["decision"], "[REDACTED]");
    world.answer("work", json!({"action": "accept"})).unwrap();
    assert_eq!(world.variable("result").unwrap()["verdict"], "hunter2-hunter2", "the run has it");
    assert!(!public(&world).contains("hunter2"), "{}", public(&world));
    let view = serde_json::to_string(&snapshot(&world.state)).unwrap();
    assert!(!view.contains("hunter2"), "{view}");
    assert_eq!(world.payloads("agent.toolCalled")[0]["inputs"], "[REDACTED]");
    assert_eq!(world.payloads("agent.toolReturned")[1]["outcome"], "[REDACTED]");
    // Without a port that names it, an agent is not told.
    definition["nodes"][0]["inputs"] = json!({});
    let start = start_command(json!({"token": "hunter2-hunter2", "text": "x"}));
    let world = started_with(definition, start);
    assert!(!serde_json::to_string(&world.call().request.semantic).unwrap().contains("hunter2"));
}
