//! An agent's tools: which it may have, what is recorded before and after, and what happens when nobody knows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use baton_engine::{Returned, Start, ToolCall};
use baton_model::event::DrainPolicy;
use baton_model::{Event, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{FREE, NOT_ALLOWED, broken, ok, one, started, started_with, tool_calls, unknown, wants, working};
use support::models::{asked, said};
use support::{World, minds, start_command};

const QUESTION: &str = "x-host-baton-effect-unknown";

/// An agent that has asked for this tool, once.
fn calling(tool: &str) -> (World, ToolCall) {
    calling_within(tool, json!({}))
}

fn calling_within(tool: &str, settings: Value) -> (World, ToolCall) {
    let mut world = started(one(FREE, json!({}), settings));
    world.says(wants(&[(tool, json!({"n": 1}))]));
    let call = world.tool();
    (world, call)
}

/// The events about calls and their outcomes, in order.
fn story(world: &World) -> Vec<String> {
    let told = world.log.iter().filter_map(|record| match &record.event {
        Event::AgentToolCalled(_) => Some("called".to_owned()),
        Event::AgentToolReturned(event) => Some(match &event.error {
            Some(error) => format!("returned {}", error.code),
            None => "returned".to_owned(),
        }),
        Event::EffectUnknown(event) => Some(format!("unknown, {}", json!(event.policy).as_str().unwrap())),
        Event::EffectRetried(event) => Some(if event.verify { "looked up" } else { "again" }.to_owned()),
        Event::InterruptRequested(event) if event.kind == QUESTION => Some("asked".to_owned()),
        Event::InterruptResolved(event) => Some(format!("{:?}", event.outcome).to_lowercase()),
        _ => None,
    });
    told.collect()
}

#[test]
fn an_agent_gets_no_tool_that_it_was_not_given() {
    let mut world = working(FREE);
    world.says(wants(&[(NOT_ALLOWED, json!({"cmd": "rm"})), ("mcp:nowhere", json!({})), ("", json!(null))]));
    assert!(tool_calls(&world.state).is_empty());
    assert!(world.payloads("agent.toolCalled").is_empty(), "never called, so never announced");
    let returned = world.payloads("agent.toolReturned");
    assert!(returned.iter().all(|event| event["status"] == "forbidden" && event["error"]["code"] == "forbidden"));
    assert_eq!(returned.len(), 3);
    assert!(returned.iter().all(|event| event.get("durationMs").is_none()));
    let messages = &world.call().request.semantic.messages;
    assert!(messages[3].content().as_str().unwrap().contains("There is no such tool here"), "the model is told");
    world.says(said("Done."));
    Audit::check(&world.log);
}

#[test]
fn every_list_of_tools_narrows_and_none_widens() {
    let count = |config: Value, grant: Option<&[&str]>| {
        let grant = grant.map(|grant| grant.iter().map(|id| (*id).to_owned()).collect());
        let start = Start { tool_grant: grant, ..start_command(json!({"text": "x"})) };
        let world = started_with(one(FREE, config, json!({})), start);
        world.payloads("agent.invocation.started")[0]["toolSurfaceCount"].as_u64().unwrap()
    };
    assert_eq!(count(json!({}), None), 11);
    assert_eq!(count(json!({"tools": ["mcp:look", "mcp:mail"]}), None), 2);
    assert_eq!(count(json!({"tools": ["mcp:look", "mcp:mail"]}), Some(&["mcp:mail", "mcp:pay"])), 1);
    assert_eq!(count(json!({"tools": [NOT_ALLOWED]}), None), 0);
    assert_eq!(count(json!({}), Some(&[])), 0);
}

#[test]
fn arguments_are_judged_before_anybody_is_called() {
    let table = [
        ("mcp:mail", json!({"n": "a secret sauce"}), "/n breaks the rule"),
        ("mcp:mail", json!("a secret sauce"), "it breaks the rule"),
        ("openwop:memory.put", json!({"contnt": "a secret sauce"}), "contnt"),
        ("openwop:memory.put", json!({"content": "x", "ttlSeconds": -1}), "ttlSeconds"),
        ("openwop:memory.put", json!({"content": "x", "tags": [""]}), "a tag has"),
        ("openwop:workspace.put", json!({"path": "../up", "content": "x"}), "path"),
        ("mcp:look", minds::deep(), "it breaks the rule"),
    ];
    for (tool, arguments, why) in table {
        let mut world = working(FREE);
        world.says(wants(&[(tool, arguments.clone())]));
        assert!(world.question().is_none() && tool_calls(&world.state).is_empty());
        assert_eq!(story(&world), ["called", "returned validation_error"], "{tool} {arguments}");
        let error = world.payloads("agent.toolReturned")[0]["error"]["message"].as_str().unwrap().to_owned();
        assert!(error.contains(why) && !error.contains("secret sauce"), "{error}");
        let (called, returned) = (causes(&world, "agent.toolCalled"), causes(&world, "agent.toolReturned"));
        assert_eq!(returned[0].1, Some(called[0].0));
        assert_eq!(asked(&world.state).len(), 1, "the model may do better");
    }
}

/// Places and causes of the records of one type.
fn causes(world: &World, kind: &str) -> Vec<(u64, Option<u64>)> {
    let of_kind = world.log.iter().filter(|record| record.event.type_name() == kind);
    of_kind.map(|record| (record.seq, record.causation)).collect()
}

#[test]
fn the_intent_comes_first_and_the_result_names_it() {
    let (mut world, call) = calling("mcp:mail");
    let called = world.log.last().unwrap();
    assert_eq!(called.event.type_name(), "agent.toolCalled", "on the log before anything leaves the process");
    let payload = &world.payloads("agent.toolCalled")[0];
    assert_eq!((&payload["inputs"], &payload["transport"]), (&json!({"n": 1}), &json!("mcp")));
    assert_eq!(payload["argsHash"], json!(baton_model::Digest::of_json(&json!({"n": 1}))));
    assert_eq!((call.call_id.as_str(), call.key.as_str(), call.again), ("work:1:0:0:0", "run_test/work:1:0:0:0", 0));
    assert_eq!(tool_calls(&world.refolded()), [call.clone()], "a restart wants the same, under the same key");
    assert!(world.returns(&call, ok(json!({"id": 5}))));
    let returned = &world.payloads("agent.toolReturned")[0];
    assert_eq!(
        (&returned["outcome"], &returned["status"], &returned["durationMs"]),
        (&json!({"id": 5}), &json!("ok"), &json!(7))
    );
    assert_eq!(causes(&world, "agent.toolReturned")[0].1, Some(causes(&world, "agent.toolCalled")[0].0));
    assert!(!world.returns(&call, ok(json!(6))), "a result counts once");
    for stranger in ["work:1:0:0:1", "work:2:0:0:0", ""] {
        assert!(!world.returns(&ToolCall { call_id: stranger.to_owned(), ..call.clone() }, ok(json!(6))));
    }
}

#[test]
fn what_lives_in_the_process_is_done_with_its_record() {
    let mut world = working(FREE);
    world.says(wants(&[
        ("openwop:memory.put", json!({"content": "Tea at four.", "tags": ["plan"], "ttlSeconds": 60})),
        ("openwop:memory.list", json!({"tag": "plan"})),
        ("openwop:workspace.put", json!({"path": "plan.md", "content": "Tea."})),
        ("openwop:workspace.get", json!({"path": "plan.md"})),
    ]));
    let kinds: Vec<&str> = world.types().into_iter().skip_while(|kind| *kind != "agent.reasoned").collect();
    assert_eq!(
        kinds,
        [
            "agent.reasoned",
            "agent.toolCalled",
            "agent.toolCalled",
            "agent.toolCalled",
            "agent.toolCalled",
            "memory.written",
            "agent.toolReturned",
            "agent.toolReturned",
            "workspace.updated",
            "agent.toolReturned",
            "agent.toolReturned",
        ],
        "what was written comes right before the record of it"
    );
    let written = &world.payloads("memory.written")[0];
    assert_eq!((&written["agentId"], &written["nodeId"]), (&json!(FREE), &json!("work")));
    assert!(written.get("content").is_none());
    let outcomes: Vec<Value> =
        world.payloads("agent.toolReturned").iter().map(|event| event["outcome"].clone()).collect();
    assert_eq!(outcomes[0]["entry"]["content"], "Tea at four.");
    assert_eq!(outcomes[1]["entries"][0]["id"], written["memoryId"], "an agent sees what it wrote itself");
    assert_eq!(outcomes[2]["file"]["version"], 1);
    assert_eq!(outcomes[3]["file"], Value::Null, "a run sees its files as they were at its start");
    assert_eq!(world.ledgers.versions().memory, 1);
    world.says(said("Done."));
    Audit::check(&world.log);
}

#[test]
fn a_native_call_that_cannot_be_done_is_told_to_the_model() {
    let mut world = working(FREE);
    world.answering = false;
    world.says(wants(&[("openwop:memory.put", json!({"content": "x"}))]));
    let consult = world.question().unwrap();
    assert_eq!((consult.call.as_deref(), consult.visit, consult.attempt), (Some("work:1:0:0:0"), 1, 0));
    let fault = baton_model::Fault::new("memory_full", "There is no room.");
    assert!(world.consulted(&consult, baton_engine::Answer::failed(fault)));
    assert!(!world.answer_from_ledgers(&consult), "once");
    assert_eq!(story(&world), ["called", "returned memory_full"]);
    assert_eq!(asked(&world.state).len(), 1);
}

/// What is done about a call of which nobody knows, tool by tool: what the shell says each time it is asked, and what
/// the log says of it.
#[test]
fn nobody_knows_and_that_is_handled_as_the_tool_says() {
    let done = || ok(json!("done"));
    let table: [(&str, Vec<Returned>, &[&str]); 8] = [
        ("mcp:store", vec![unknown(), done()], &["called", "unknown, retry", "again", "returned"]),
        (
            "mcp:store",
            vec![unknown(), unknown(), unknown(), unknown()],
            &[
                "called",
                "unknown, retry",
                "again",
                "unknown, retry",
                "again",
                "unknown, retry",
                "again",
                "unknown, fail",
                "returned effect_outcome_unknown",
            ],
        ),
        ("mcp:pay", vec![unknown(), done()], &["called", "unknown, verify", "looked up", "returned"]),
        (
            "mcp:pay",
            vec![unknown(), Returned::NotDone, done()],
            &["called", "unknown, verify", "looked up", "again", "returned"],
        ),
        ("mcp:pay", vec![unknown(), unknown()], &["called", "unknown, verify", "looked up", "unknown, ask", "asked"]),
        (
            "mcp:pay",
            vec![unknown(), Returned::NotDone, unknown(), Returned::NotDone, unknown()],
            &[
                "called",
                "unknown, verify",
                "looked up",
                "again",
                "unknown, verify",
                "looked up",
                "again",
                "unknown, ask",
                "asked",
            ],
        ),
        ("mcp:mail", vec![unknown()], &["called", "unknown, ask", "asked"]),
        ("mcp:post", vec![unknown()], &["called", "unknown, fail", "returned effect_outcome_unknown"]),
    ];
    for (tool, says, told) in table {
        let (mut world, call) = calling(tool);
        for (time, what) in says.into_iter().enumerate() {
            let now = world.tool();
            assert_eq!((&now.key, now.again as usize), (&call.key, time), "{tool}: the same call, taken up again");
            assert!(world.returns(&now, what));
            assert_eq!(baton_engine::outstanding(&world.refolded()), baton_engine::outstanding(&world.state));
        }
        assert_eq!(story(&world), told, "{tool}");
        let seq = causes(&world, "agent.toolCalled")[0].0;
        for kind in ["baton.effect.unknown", "baton.effect.retried", "agent.toolReturned"] {
            assert!(causes(&world, kind).iter().all(|(_, cause)| *cause == Some(seq)), "{kind} is caused by the call");
        }
        world.cancel();
        Audit::check(&world.log);
    }
}

#[test]
fn a_human_says_what_became_of_a_call() {
    let table = [
        (json!({"action": "retry"}), "answered", "again"),
        (json!("retry"), "answered", "again"),
        (json!({"action": "done", "result": {"id": 7}}), "accepted", "returned"),
        (json!("done"), "accepted", "returned"),
        (json!({"action": "fail"}), "rejected", "returned effect_outcome_unknown"),
    ];
    for (value, outcome, then) in table {
        let (mut world, call) = calling("mcp:mail");
        world.returns(&call, unknown());
        assert_eq!(world.status(), RunStatus::WaitingApproval);
        assert!(world.is_quiet(), "nobody calls while somebody is asked");
        let question = &world.payloads("interrupt.requested")[0];
        assert_eq!(
            (&question["kind"], &question["data"]["toolName"], &question["data"]["inputs"]),
            (&json!(QUESTION), &json!("mcp:mail"), &json!({"n": 1}))
        );
        for bad in [json!({"action": "maybe"}), json!(null), json!({"result": 1})] {
            assert_eq!(world.answer("work", bad).unwrap_err().fault.code, "validation_error");
        }
        world.answer("work", value.clone()).unwrap();
        assert_eq!(story(&world)[3..], [outcome, then], "{value}");
        assert_eq!(world.answer("work", value).unwrap_err().fault.code, "interrupt_already_resolved");
        if then == "again" {
            let now = world.tool();
            assert_eq!((now.key.as_str(), now.again), (call.key.as_str(), 1));
            world.returns(&now, unknown());
            assert_eq!(world.status(), RunStatus::WaitingApproval, "and somebody is asked again");
            world.answer("work", json!("fail")).unwrap();
        }
        world.says(said("Done."));
        assert_eq!(world.status(), RunStatus::Completed);
        Audit::check(&world.log);
    }
}

#[test]
fn an_outcome_that_turns_up_makes_the_question_moot() {
    let (mut world, call) = calling("mcp:mail");
    world.returns(&call, unknown());
    assert!(world.returns(&call, ok(json!("sent after all"))));
    assert_eq!(story(&world), ["called", "unknown, ask", "asked", "cancelled", "returned"]);
    assert_eq!(world.status(), RunStatus::Running);
    assert_eq!(world.answer("work", json!("done")).unwrap_err().fault.code, "interrupt_already_resolved");
    world.says(said("Done."));
    Audit::check(&world.log);
}

#[test]
fn while_one_call_is_in_question_the_others_come_back() {
    let mut world = working(FREE);
    world.says(wants(&[("mcp:mail", json!({})), ("mcp:look", json!({})), ("mcp:mail", json!({"n": 2}))]));
    let calls = tool_calls(&world.state);
    world.returns(&calls[0], unknown());
    assert_eq!(world.status(), RunStatus::WaitingApproval);
    assert!(world.returns(&calls[1], ok(json!(1))), "a result is not lost");
    assert!(world.returns(&calls[2], unknown()));
    world.answer("work", json!("done")).unwrap();
    assert_eq!(world.status(), RunStatus::WaitingApproval, "one question after the other");
    world.answer("work", json!("fail")).unwrap();
    assert_eq!(asked(&world.state).len(), 1);
    world.says(said("Done."));
    Audit::check(&world.log);
}

#[test]
fn a_node_that_runs_out_of_time_does_not_do_it_twice() {
    // A call that may have changed the world is in doubt, and handled as its tool says.
    let (mut world, _) = calling_within("mcp:mail", json!({"timeout": 100, "maxRetries": 3}));
    world.wait(100);
    assert_eq!(story(&world), ["called", "unknown, ask", "asked"]);
    world.wait(100_000);
    assert_eq!(world.status(), RunStatus::WaitingApproval, "whoever is asked may take his time");
    world.answer("work", json!("done")).unwrap();
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(100)), "from here on the agent has its time again");
    world.says(said("Done."));
    assert_eq!((world.status(), world.payloads("node.retried").len()), (RunStatus::Completed, 0));
    Audit::check(&world.log);
    // A second try under the same key has its own time.
    let (mut world, call) = calling_within("mcp:store", json!({"timeout": 100}));
    world.wait(100);
    assert_eq!((world.tool().key, world.tool().again), (call.key, 1));
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(100)));
    // One that only looks may be made again with everything else.
    let (mut world, _) = calling_within("mcp:look", json!({"timeout": 100, "maxRetries": 1}));
    world.wait(100);
    assert_eq!(world.nodes_of("node.retried"), ["work"]);
    assert_eq!(story(&world), ["called", "unknown, fail", "returned effect_outcome_unknown"], "and that is said too");
    assert_eq!(world.outcomes(), ["failed"]);
}

#[test]
fn what_is_open_when_the_run_ends_is_said_to_be_unknown() {
    for (name, end) in [("cancelled", World::cancel as fn(&mut World)), ("out of time", |world| world.wait(2_000_000))]
    {
        let mut world = working(FREE);
        world.answering = false;
        world.says(wants(&[("mcp:mail", json!({})), ("openwop:memory.put", json!({"content": "x"}))]));
        let call = world.tool();
        end(&mut world);
        assert_eq!(
            story(&world),
            ["called", "called", "unknown, fail", "returned effect_outcome_unknown", "returned external_call_failed"],
            "{name}: one may have been made, the other was not"
        );
        assert_eq!(world.outcomes(), ["failed"]);
        assert!(!world.returns(&call, ok(json!(1))), "nobody hears it any more");
        assert_eq!(world.ledgers.versions().memory, 0);
        Audit::check(&world.log);
    }
}

#[test]
fn a_paused_run_takes_nothing_up_again() {
    let (mut world, call) = calling("mcp:pay");
    world.returns(&call, unknown());
    world.pause(DrainPolicy::Immediate).unwrap();
    let looking = world.tool();
    assert!(looking.verify);
    assert!(world.returns(&looking, Returned::NotDone), "what was found out is kept");
    assert!(world.is_quiet(), "and acted upon when the run goes on");
    world.resume().unwrap();
    assert_eq!((world.tool().verify, world.tool().again), (false, 2));
    let (mut world, call) = calling("mcp:mail");
    world.pause(DrainPolicy::Immediate).unwrap();
    assert!(world.returns(&call, unknown()), "that nobody knows is kept too");
    assert_eq!((world.status(), world.payloads("interrupt.requested").len()), (RunStatus::Paused, 0));
    world.resume().unwrap();
    assert_eq!(world.status(), RunStatus::WaitingApproval);
}

#[test]
fn what_a_tool_answers_is_bounded() {
    let (mut world, call) = calling("mcp:look");
    assert!(world.returns(
        &call,
        Returned::Outcome { outcome: baton_model::ToolOutcome::ok(minds::deep()).took(9), written: vec![] }
    ));
    assert_eq!(story(&world), ["called", "returned validation_error"]);
    assert_eq!(world.payloads("agent.toolReturned")[0]["durationMs"], 9);
    world.log.iter().for_each(|record| drop(support::stored(record)));
    let (mut world, call) = calling("mcp:look");
    world.returns(&call, broken());
    assert_eq!(story(&world), ["called", "returned external_call_failed"]);
    let told = world.call().request.semantic.messages[3].content().to_string();
    assert!(told.contains("external_call_failed") && told.contains("It broke."), "{told}");
}
