//! An agent's tools: which it may have, what is recorded before and after, and what happens when nobody knows.

use crate::support;

use baton_engine::{Returned, Start, ToolCall};
use baton_model::ModelReply;
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{
    AGENT, FREE, LACKING, NOT_ALLOWED, broken, calling, ok, one, started, started_with, tool_calls, wants, working,
};
use support::models::{asked, said};
use support::{minds, start_command, workflow};

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
    let cause = |record: &baton_model::Record| record.causation.map(|seq| world.log[seq as usize].event.type_name());
    let refused = world.log.iter().filter(|record| record.event.type_name() == "agent.toolReturned");
    assert!(refused.map(cause).all(|cause| cause == Some("provider.usage")), "caused by what the model said");
    let messages = &world.call().request.semantic.messages;
    assert!(messages[3].content().as_str().unwrap().contains("There is no such tool here"), "the model is told");
    world.says(said("Done."));
    Audit::check(&world.log);
}

#[test]
fn every_list_of_tools_narrows_and_none_widens() {
    let count = |config: Value, grant: Option<&[&str]>| {
        let grant = grant.map(|grant| grant.iter().map(|id| (*id).to_owned()).collect());
        let start = {
            let mut start = start_command(json!({"text": "x"}));
            start.settings.tool_grant = grant;
            start
        };
        let world = started_with(one(FREE, config, json!({})), start);
        world.payloads("agent.invocation.started")[0]["toolSurfaceCount"].as_u64().unwrap()
    };
    assert_eq!(count(json!({}), None), 12);
    assert_eq!(count(json!({"tools": ["mcp:look", "mcp:mail"]}), None), 2);
    assert_eq!(count(json!({"tools": ["mcp:look", "mcp:mail"]}), Some(&["mcp:mail", "mcp:pay"])), 1);
    assert_eq!(count(json!({"tools": [NOT_ALLOWED]}), None), 0);
    assert_eq!(count(json!({}), Some(&[])), 0);
}

#[test]
fn an_agent_that_lacks_tools_says_so_and_goes_to_work() {
    let mut world = working(LACKING);
    let types = world.agent_types().join(" ");
    assert!(types.starts_with("agent.invocation.started") && !types.contains("completed"), "{types}");
    let told = world.payloads("baton.tools.missing");
    let invocation = &world.payloads("agent.invocation.started")[0]["invocationId"];
    assert_eq!(
        told,
        [json!({
            "nodeId": "work", "agentId": LACKING, "invocationId": invocation,
            "tools": ["openwop:core.rag.finder", "mcp:gone.x"],
        })]
    );
    world.says(said("Done."));
    assert_eq!(world.outcomes(), ["completed"]);
    Audit::check(&world.log);
    assert!(working(FREE).payloads("baton.tools.missing").is_empty());
}

#[test]
fn whoever_requires_the_tools_gets_no_agent_without_them() {
    let run = |agent: &str, config: Value, configurable: Value| {
        let Value::Object(configurable) = configurable else { panic!("an object") };
        started_with(one(agent, config, json!({})), {
            let mut start = start_command(json!({"text": "x"}));
            start.settings.configurable = configurable;
            start
        })
    };
    for (config, configurable) in
        [(json!({"requireTools": true}), json!({})), (json!({}), json!({"requireTools": true}))]
    {
        let world = run(LACKING, config.clone(), configurable.clone());
        assert!(world.question().is_none(), "nobody is asked");
        assert_eq!(world.outcomes(), ["failed"]);
        let error = &world.payloads("node.failed")[0]["error"];
        assert_eq!(error["code"], "capability_not_provided");
        assert_eq!(error["details"]["missingTools"], json!(["openwop:core.rag.finder", "mcp:gone.x"]), "{error}");
        assert!(error["message"].as_str().unwrap().contains("tool_aliases"), "{error}");
        Audit::check(&world.log);
        assert!(run(FREE, config, configurable).outcomes().is_empty(), "an agent that has them all is at work");
    }
    // What a node leaves out on purpose is not missed there.
    let narrow = run(LACKING, json!({"requireTools": true, "tools": ["mcp:look"]}), json!({}));
    assert!(narrow.outcomes().is_empty() && narrow.payloads("baton.tools.missing").is_empty());
    let off = run(LACKING, json!({"requireTools": false}), json!({"requireTools": false}));
    assert!(off.outcomes().is_empty());
}

#[test]
fn runs_that_began_earlier_neither_tell_nor_refuse() {
    let config = |agent: &str| json!({"agentId": agent, "requireTools": true});
    for (rule, told) in [(3, 0), (4, 1)] {
        let nodes = [("first", AGENT, config(FREE)), ("second", AGENT, config(LACKING))];
        let mut world = started(workflow(&nodes, &[("first", "second", json!({}))]));
        world.under_rule(rule);
        world.says(said("Done."));
        assert_eq!(world.payloads("baton.tools.missing").len(), told, "rule {rule}");
        assert_eq!(world.outcomes().len(), 1 + told, "rule {rule}: {:?}", world.outcomes());
    }
}

#[test]
fn arguments_are_judged_before_anybody_is_called() {
    let table = [
        ("mcp:mail", json!({"n": "a secret sauce"}), "/n breaks the rule"),
        ("mcp:mail", json!("a secret sauce"), "no JSON object"),
        ("openwop:memory.put", json!({"contnt": "a secret sauce"}), "contnt"),
        ("openwop:memory.put", json!({"content": "x", "ttlSeconds": 0}), "ttlSeconds"),
        ("openwop:memory.put", json!({"content": "x", "tags": [""]}), "a tag has"),
        ("openwop:workspace.put", json!({"path": "../up", "content": "x"}), "path"),
        ("mcp:look", minds::deep(), "no JSON object"),
    ];
    for (tool, arguments, why) in table {
        let mut world = working(FREE);
        world.says(wants(&[(tool, arguments.clone())]));
        assert!(world.question().is_none() && tool_calls(&world.state).is_empty());
        assert_eq!(world.story(), ["called", "returned validation_error"], "{tool} {arguments}");
        let error = world.payloads("agent.toolReturned")[0]["error"]["message"].as_str().unwrap().to_owned();
        assert!(error.contains(why) && !error.contains("secret sauce"), "{error}");
        let (called, returned) = (world.causes("agent.toolCalled"), world.causes("agent.toolReturned"));
        assert_eq!(returned[0].1, Some(called[0].0));
        assert_eq!(asked(&world.state).len(), 1, "the model may do better");
    }
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
    assert_eq!(
        tool_calls(&world.refolded()),
        std::slice::from_ref(&call),
        "a restart wants the same, under the same key"
    );
    assert!(world.returns(&call, ok(json!({"id": 5}))));
    let returned = &world.payloads("agent.toolReturned")[0];
    assert_eq!(
        (&returned["outcome"], &returned["status"], &returned["durationMs"]),
        (&json!({"id": 5}), &json!("ok"), &json!(7))
    );
    assert_eq!(world.causes("agent.toolReturned")[0].1, Some(world.causes("agent.toolCalled")[0].0));
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
    let node_request = world.question().unwrap();
    assert_eq!((node_request.call.as_deref(), node_request.visit, node_request.attempt), (Some("work:1:0:0:0"), 1, 0));
    let fault = baton_model::Fault::new("memory_full", "There is no room.");
    assert!(world.consulted(&node_request, baton_engine::Answer::failed(fault)));
    assert!(!world.answer_from_versioned_stores(&node_request), "once");
    assert_eq!(world.story(), ["called", "returned memory_full"]);
    assert_eq!(asked(&world.state).len(), 1);
}

#[test]
fn what_a_tool_answers_is_bounded() {
    let (mut world, call) = calling("mcp:look");
    assert!(world.returns(
        &call,
        Returned::Outcome { outcome: baton_model::ToolOutcome::ok(minds::deep()).took(9), written: vec![] }
    ));
    assert_eq!(world.story(), ["called", "returned validation_error"]);
    assert_eq!(world.payloads("agent.toolReturned")[0]["durationMs"], 9);
    world.log.iter().for_each(|record| drop(support::stored(record)));
    let (mut world, call) = calling("mcp:look");
    world.returns(&call, broken());
    assert_eq!(world.story(), ["called", "returned external_call_failed"]);
    let told = world.call().request.semantic.messages[3].content().to_string();
    assert!(told.contains("external_call_failed") && told.contains("It broke."), "{told}");
}

/// Two hundred rounds, each asked with what the ones before it brought and nothing twice.
#[test]
fn an_agent_may_work_for_two_hundred_rounds() {
    let mut world = started_with(one(FREE, json!({}), json!({})), rounds_of_the_run(200));
    let mut grown = Vec::new();
    for round in 0..200_usize {
        world.says(wants(&[("mcp:look", json!({"round": round}))]));
        let call = world.tool();
        assert!(world.returns(&call, ok(json!({"seen": round}))));
        let asked = world.call().request.semantic;
        assert_eq!(asked.messages.len(), 2 + 2 * (round + 1), "one answer and one result more");
        grown.push(world.log.len());
    }
    let each: Vec<usize> = grown.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(each.iter().all(|records| *records == each[0]), "a round costs what a round costs: {each:?}");
    world.says(said("Done."));
    assert_eq!(world.payloads("cap.breached").len(), 0, "reaching the bound is not passing it");
    assert_eq!((world.outcomes(), world.payloads("agent.toolCalled").len()), (vec!["completed".to_owned()], 200));
    assert_eq!(world.payloads("node.completed")[0]["outputs"].get("stoppedBy"), None);
    Audit::check(&world.log);
}

fn rounds_of_the_run(most: u64) -> Start {
    let configurable = json!({"maxToolRounds": most});
    {
        let mut start = start_command(json!({"text": "Do it."}));
        start.settings.configurable = configurable.as_object().unwrap().clone();
        start
    }
}

/// Who wants one round more than there is hears so, and the work that was done is not lost.
#[test]
fn the_bound_on_rounds_is_told_before_it_ends_anything() {
    let stopped = |world: &mut support::World| {
        world.says(wants(&[("mcp:look", json!({}))]));
        let call = world.tool();
        world.returns(&call, ok(json!("found")));
        world.says(ModelReply { content: "Half of it is there.".to_owned(), ..wants(&[("mcp:look", json!({}))]) });
        assert!(tool_calls(&world.state).is_empty(), "nobody is called");
        let breach = world.payloads("cap.breached")[0].clone();
        assert_eq!(breach, json!({"kind": "tool-rounds", "limit": 1, "observed": 2, "nodeId": "work"}));
        let refused = world.payloads("agent.toolReturned").pop().unwrap().clone();
        assert_eq!(
            (&refused["status"], &refused["error"]["code"]),
            (&json!("forbidden"), &json!("tool_rounds_exceeded"))
        );
        let told = world.call().request.semantic;
        assert!(told.messages.last().unwrap().content().as_str().unwrap().contains("Answer now with what you have"));
    };
    // It answers with what it has.
    let mut world = started_with(one(FREE, json!({"maxToolRounds": 1}), json!({})), rounds_of_the_run(9));
    stopped(&mut world);
    world.says(said("Half an answer."));
    assert_eq!(world.outcomes(), ["completed"]);
    let outputs = &world.payloads("node.completed")[0]["outputs"];
    assert_eq!((&outputs["result"], &outputs["stoppedBy"]), (&json!("Half an answer."), &json!("tool-rounds")));
    Audit::check(&world.log);
    // It does not stop, and is stopped; what it said is there.
    let mut world = started_with(one(FREE, json!({}), json!({})), rounds_of_the_run(1));
    stopped(&mut world);
    world.says(wants(&[("mcp:look", json!({}))]));
    assert_eq!((world.outcomes(), world.error_code()), (vec!["failed".to_owned()], Some("tool_rounds_exceeded")));
    let details = &world.payloads("node.failed")[0]["error"]["details"];
    assert_eq!((&details["limit"], &details["partial"]), (&json!(1), &json!("Half of it is there.")));
    Audit::check(&world.log);
    // A run of an earlier rule ends as it always did, and has the rounds it always had.
    let mut world = started_with(one(FREE, json!({}), json!({})), rounds_of_the_run(1));
    world.under_rule(3);
    for _ in 0..8 {
        world.says(wants(&[("mcp:look", json!({}))]));
        let call = world.tool();
        world.returns(&call, ok(json!("found")));
    }
    world.says(wants(&[("mcp:look", json!({}))]));
    assert_eq!((world.error_code(), world.payloads("cap.breached").len()), (Some("tool_rounds_exceeded"), 0));
}
