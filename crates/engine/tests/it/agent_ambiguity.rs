//! What a live supervisor says is done only where it can mean one thing. Anything else is asked for again, a bounded
//! number of times, and never carried out.

use crate::support;

use baton_engine::{Features, Plan};
use baton_model::RunStatus::{Completed, Failed, Running};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{PLANNER, STRICT, plan, working};
use support::models::said;
use support::{World, start_command, workflow};

const END: &str = r#"{"kind":"terminate","reason":"done"}"#;
const NEXT: &str = r#"{"kind":"next-worker","nextWorkerIds":["w"]}"#;

fn looped() -> World {
    let supervisor = json!({"agentId": PLANNER});
    let definition =
        workflow(&[("sup", "core.orchestrator.supervisor", supervisor), ("disp", "core.dispatch", json!({}))], &[]);
    World::started(plan(definition), start_command(json!({})))
}

fn ambiguous() -> Vec<String> {
    vec![
        format!("I would NOT do {END}."),
        format!("{NEXT}\n{END}"),
        format!("[{NEXT},{END}]"),
        format!("[{END}]"),
        format!("Either\n```json\n{NEXT}\n```\nor\n```json\n{END}\n```"),
        format!("```json\n{END}\n```\nunless you mind."),
        format!("<think>{NEXT}</think>{END}"),
        format!("// not {NEXT}\n{{kind: 'terminate'}}"),
        format!("{{\"decision\":{END}}}"),
        r#"{"kind":"terminate","kind":"next-worker","nextWorkerIds":["w"]}"#.to_owned(),
        r#"{"kind":"terminate","nextWorkerIds":["w"]}"#.to_owned(),
        r#"{"kind":"terminate","prompt":"Shall I?"}"#.to_owned(),
        r#"{"kind":"terminate","confidence":7}"#.to_owned(),
        r#"{"kind":"terminate","confidence":-0.1}"#.to_owned(),
        r#"{"kind":"terminate","confidence":"high"}"#.to_owned(),
        r#"{"kind":"terminate","confidence":"0.9"}"#.to_owned(),
        r#"{"kind":"terminate","confidence":null}"#.to_owned(),
        r#"{"kind":"terminate","confidence":NaN}"#.to_owned(),
        r#"{"kind":"terminate","confidence":1e999}"#.to_owned(),
        r#"{"kind":"terminate","agentConfidence":null}"#.to_owned(),
        r#"{"kind":"terminate","agentConfidence":70}"#.to_owned(),
    ]
}

#[test]
fn an_ambiguous_decision_is_asked_for_again_and_never_carried_out() {
    for text in ambiguous() {
        let mut world = looped();
        for attempt in 1..=3 {
            world.says(said(&text));
            assert!(world.payloads("runOrchestrator.decided").is_empty(), "{text}");
            let asked_again = world.payloads("envelope.retry.attempted").len();
            assert_eq!(asked_again, if attempt < 3 { attempt } else { 2 }, "{text}");
        }
        assert_eq!((world.status(), world.error_code()), (Failed, Some("envelope_invalid")), "{text}");
        assert!(world.payloads("core.workflowChain.event").is_empty(), "{text}");
        Audit::check(&world.log);
    }
}

#[test]
fn a_clear_answer_after_an_ambiguous_one_counts() {
    let mut world = looped();
    world.says(said(&format!("I would NOT do {END}.")));
    let nudge = world.call().request.semantic.messages.last().unwrap().content().to_string();
    assert!(nudge.contains("more than one JSON value") && !nudge.contains("NOT do"), "{nudge}");
    world.says(said(NEXT));
    assert_eq!((world.status(), world.payloads("runOrchestrator.decided").len()), (Running, 1));
}

#[test]
fn what_is_unambiguous_is_taken_in_its_wrapping() {
    for text in [
        END.to_owned(),
        format!("\u{feff}\n  {END}\n\n"),
        format!("```json\n{END}\n```"),
        format!("```\n{END}\n```\n"),
        "{kind: 'terminate', \"reason\": 'done',}".to_owned(),
        r#"{"kind":"terminate","nextWorkerIds":[],"prompt":null,"reason":"done","reasoning":"All is done.","confidence":1}"#.to_owned(),
        r#"{"kind":"terminate","confidence":0,"agentConfidence":0.9}"#.to_owned(),
    ] {
        let mut world = looped();
        world.says(said(&text));
        if text.contains("\"confidence\":0,") {
            assert_eq!(world.payloads("core.workflowChain.confidence-escalated").len(), 1, "nothing is less sure");
            continue;
        }
        assert_eq!(world.status(), Completed, "{text}");
        Audit::check(&world.log);
    }
}

#[test]
fn logs_from_before_go_on_as_they_began() {
    for (text, decided) in [
        (format!("I would NOT do {END}."), true),
        (format!("{NEXT}\n{END}"), true),
        (r#"{"kind":"terminate","confidence":null}"#.to_owned(), true),
        (r#"{"kind":"terminate","prompt":"Shall I?"}"#.to_owned(), true),
        (r#"{"kind":"terminate","confidence":7}"#.to_owned(), false),
    ] {
        let mut world = looped();
        world.under_rule(3);
        world.says(said(&text));
        assert_eq!(world.payloads("runOrchestrator.decided").len(), usize::from(decided), "{text}");
    }
}

/// An agent's answer says how sure it is in a number that can be compared, or not at all.
#[test]
fn an_agent_that_is_sure_in_no_number_is_asked_again() {
    for said_so in ["7", "-1", "1.01", "\"high\"", "null", "true", "[0.9]"] {
        let text = format!(r#"{{"verdict":"hm","confidence":{said_so}}}"#);
        let mut world = working(STRICT);
        for _ in 0..3 {
            world.says(said(&text));
            assert!(world.payloads("agent.decided").is_empty(), "{text}");
        }
        assert_eq!(world.status(), Failed, "{text}");
        assert!(
            ["envelope_invalid", "handoff_return_schema_violation"].contains(&world.error_code().unwrap()),
            "{text}"
        );
        Audit::check(&world.log);
    }
    let mut world = working(STRICT);
    world.under_rule(3);
    world.says(said(r#"{"verdict":"hm","confidence":7}"#));
    assert_eq!(world.status(), Completed, "logs from before go on as they began");
}

/// Which of two answers is taken must not be for the reader to choose. One answer in words is one answer.
#[test]
fn an_answer_that_could_be_two_is_asked_for_again() {
    const NO: &str = r#"{"verdict":"no","confidence":0.1}"#;
    const YES: &str = r#"{"verdict":"yes, yes and yes","confidence":0.95}"#;
    for text in [
        format!("{NO}\n{YES}"),
        format!("<think>{NO}</think>{YES}"),
        format!("Either\n```json\n{NO}\n```\nor\n```json\n{YES}\n```"),
        r#"{"verdict":"x","confidence":0.1,"confidence":0.9}"#.to_owned(),
        r#"So: {"verdict":"no","verdict":"yes"}"#.to_owned(),
    ] {
        let mut world = working(STRICT);
        world.says(said(&text));
        assert!(world.payloads("agent.decided").is_empty(), "{text}");
        assert_eq!(world.payloads("envelope.retry.attempted").len(), 1, "{text}");
        world.says(said(YES));
        assert_eq!(world.status(), Completed, "{text}");
        Audit::check(&world.log);
        let mut world = working(STRICT);
        world.under_rule(4);
        world.says(said(&text));
        assert_eq!(world.payloads("agent.decided").len(), 1, "logs from before go on as they began: {text}");
    }
    for text in [
        format!("I say {YES}."),
        format!("As in [1], {YES}"),
        format!("{YES} and again {YES}"),
        format!("```json\n{YES}\n```"),
        format!("{{\"note\": 1}} {YES}"),
    ] {
        let mut world = working(STRICT);
        world.says(said(&text));
        assert_eq!(world.status(), Completed, "{text}");
    }
}

#[test]
fn a_rule_says_how_sure_it_is_or_leaves_it_out() {
    let definition = |decision: Value, otherwise: Value| {
        let rules = json!([{"when": "true", "decide": decision}]);
        let supervisor = json!({"rules": rules, "otherwise": otherwise});
        workflow(&[("sup", "core.orchestrator.supervisor", supervisor), ("disp", "core.dispatch", json!({}))], &[])
    };
    let end = json!({"kind": "terminate"});
    let unsure = json!({"kind": "terminate", "confidence": null});
    let features = Features { conformance: true, ..Features::default() };
    for (definition, pointer) in [
        (definition(unsure.clone(), end.clone()), "/nodes/0/config/rules/0/decide/confidence"),
        (definition(end.clone(), unsure.clone()), "/nodes/0/config/otherwise/confidence"),
    ] {
        let problems = Plan::compile(definition.clone(), features).unwrap_err();
        assert_eq!(problems[0].pointer, pointer);
        assert!(problems[0].message.contains("leave it out"), "{}", problems[0].message);
        assert!(
            Plan::compile(definition, Features { recorded: true, ..features }).is_ok(),
            "what is on record is read"
        );
    }
    for bad in [json!(7), json!("high"), json!(-0.5)] {
        let problems =
            Plan::compile(definition(json!({"kind": "terminate", "confidence": bad}), end.clone()), features);
        assert_eq!(problems.unwrap_err()[0].pointer, "/nodes/0/config/rules/0/decide");
    }
}

/// A condition between the two halves of the loop would be read by nobody, so it is refused.
#[test]
fn nothing_gates_a_decision_but_the_supervisor() {
    let drawn = |there: Value, back: Value| {
        let supervisor = json!({"rules": [], "otherwise": {"kind": "terminate"}});
        let nodes = [("sup", "core.orchestrator.supervisor", supervisor), ("disp", "core.dispatch", json!({}))];
        workflow(&nodes, &[("sup", "disp", there), ("disp", "sup", back)])
    };
    let never = json!({"condition": {"type": "expression", "expression": "false"}});
    let features = Features { conformance: true, ..Features::default() };
    for (definition, pointer) in [
        (drawn(never.clone(), Value::Null), "/edges/0/condition"),
        (drawn(Value::Null, never.clone()), "/edges/1/condition"),
        (drawn(json!({"triggerRule": "any_failed"}), Value::Null), "/edges/0/triggerRule"),
    ] {
        let problems = Plan::compile(definition.clone(), features).unwrap_err();
        assert_eq!((problems.len(), problems[0].pointer.as_str()), (1, pointer));
        assert!(problems[0].message.contains("supervisor's rules"), "{}", problems[0].message);
        assert!(
            Plan::compile(definition, Features { recorded: true, ..features }).is_ok(),
            "what is on record is read"
        );
    }
    assert!(Plan::compile(drawn(Value::Null, Value::Null), features).is_ok());
}
