//! What an agent's model thinks: told in pieces while it does, and whole when it is done.

use crate::support;

use baton_engine::Command;
use baton_model::event::DrainPolicy;
use baton_model::{ModelReply, RunStatus};
use serde_json::{Value, json};
use support::agent_audit::Audit;
use support::agents::{FREE, STRICT, cut_off, ok, one, started, started_with, wants, working};
use support::models::{fed, refused, said, unreachable};
use support::{World, start_command};

fn talking(agent: &str, verbosity: &str) -> World {
    let configurable = json!({"reasoningVerbosity": verbosity}).as_object().unwrap().clone();
    started_with(one(agent, json!({}), json!({})), {
        let mut start = start_command(json!({"text": "Do it."}));
        start.settings.configurable = configurable;
        start
    })
}

fn thought(text: &str, content: &str) -> ModelReply {
    ModelReply { reasoning: Some(text.to_owned()), ..said(content) }
}

/// Pieces and wholes, in order.
fn told(world: &World) -> Vec<String> {
    let shown = world.log.iter().filter_map(|record| {
        let payload = serde_json::to_value(record.event.payload()).unwrap();
        match record.event.type_name() {
            "agent.reasoning.delta" => Some(format!("{} {}", payload["sequence"], payload["delta"].as_str().unwrap())),
            "agent.reasoned" => Some(format!("= {}", payload["reasoning"].as_str().unwrap())),
            _ => None,
        }
    });
    shown.collect()
}

#[test]
fn pieces_come_before_the_whole_and_count_from_nought_in_every_round() {
    let mut world = working(FREE);
    let call = world.call();
    assert!(call.reasoning_chars > 0);
    assert_eq!(world.mutters(&call, 0, &["First ", "", "I look. "]), 2, "nothing is no piece");
    assert_eq!(world.mutters(&call, 2, &["Then I see."]), 1);
    let asked =
        ModelReply { reasoning: Some("First I look. Then I see.".to_owned()), ..wants(&[("mcp:look", json!({}))]) };
    world.says(asked);
    let tool = world.tool();
    world.returns(&tool, ok(json!(1)));
    let call = world.call();
    assert_eq!(world.mutters(&call, 0, &["Enough."]), 1);
    world.says(thought("Enough.", "Done."));
    assert_eq!(
        told(&world),
        ["0 First ", "1 I look. ", "2 Then I see.", "= First I look. Then I see.", "0 Enough.", "= Enough."]
    );
    let deltas = world.payloads("agent.reasoning.delta");
    assert_eq!(deltas[0], json!({"agentId": FREE, "delta": "First ", "sequence": 0, "verbosity": "summary"}));
    assert_eq!(world.status(), RunStatus::Completed);
    Audit::check(&world.log);
}

#[test]
fn a_piece_that_is_missing_or_late_ends_the_telling_and_not_the_thought() {
    let mut world = working(FREE);
    let call = world.call();
    assert_eq!(world.mutters(&call, 1, &["too early"]), 0);
    assert_eq!(world.mutters(&call, 0, &["One. "]), 1);
    assert_eq!(world.mutters(&call, 0, &["One. "]), 0, "once is enough");
    assert_eq!(world.mutters(&call, 2, &["Three. "]), 0);
    assert_eq!(
        world.call().reasoning_chars,
        0,
        "a call that is made again tells nothing: pieces of two answers make no thought"
    );
    world.says(thought("One. Two. Three.", "Done."));
    assert_eq!(world.mutters(&call, 1, &["late"]), 0);
    assert_eq!(told(&world), ["0 One. ", "= One. Two. Three."]);
    Audit::check(&world.log);
}

#[test]
fn as_much_is_told_as_the_run_wants_to_know() {
    for (verbosity, reasoning_chars, shown, whole) in
        [("off", 0, 0, None), ("summary", 2048, 2048, Some(2049)), ("full", 65_536, 3000, Some(3000))]
    {
        let mut world = talking(FREE, verbosity);
        let call = world.call();
        assert_eq!((call.reasoning_chars, call.request.reasoning), (reasoning_chars, verbosity != "off"));
        let text = "a".repeat(1500);
        world.mutters(&call, 0, &[&text, &text]);
        world.says(thought(&text.repeat(2), "Done."));
        let length = |kind: &str, field: &str| -> Vec<usize> {
            world.payloads(kind).iter().map(|event| event[field].as_str().unwrap().chars().count()).collect()
        };
        assert_eq!(length("agent.reasoning.delta", "delta").iter().sum::<usize>(), shown, "{verbosity}");
        assert_eq!(length("agent.reasoned", "reasoning").first().copied(), whole, "{verbosity}");
        Audit::check(&world.log);
    }
    let mut world = talking(FREE, "full");
    let (call, letters) = (world.call(), vec!["x"; 600]);
    assert_eq!(world.mutters(&call, 0, &letters), 512, "and in no more pieces than anybody can use");
}

#[test]
fn a_thought_that_was_begun_is_closed_whatever_becomes_of_the_answer() {
    let begun = |definition: Value| {
        let mut world = started(definition);
        let call = world.call();
        world.mutters(&call, 0, &["Well, "]);
        world
    };
    // An answer that does not count.
    let mut world = begun(one(STRICT, json!({}), json!({})));
    world.says(ModelReply { reasoning: Some("Well, no.".to_owned()), ..said("{}") });
    assert_eq!(told(&world), ["0 Well, ", "= Well, no."]);
    let call = world.call();
    assert_eq!(world.mutters(&call, 0, &["Again."]), 1, "the next attempt thinks anew");
    world.says(cut_off("{"));
    world.says(said(r#"{"verdict":"good"}"#));
    assert_eq!(told(&world), ["0 Well, ", "= Well, no.", "0 Again.", "= Again."]);
    Audit::check(&world.log);
    // A refusal.
    let mut world = begun(one(STRICT, json!({}), json!({})));
    world.says(refused());
    assert_eq!((told(&world), world.outcomes()), (vec!["0 Well, ".into(), "= Well, ".into()], vec!["refused".into()]));
    Audit::check(&world.log);
    // No answer at all, a time limit, somebody who cancels.
    let mut world = begun(one(FREE, json!({}), json!({})));
    let call = world.call();
    world.reply(&call, Err(unreachable()));
    assert_eq!(told(&world), ["0 Well, ", "= Well, "]);
    Audit::check(&world.log);
    let mut world = begun(one(FREE, json!({}), json!({"timeout": 50})));
    world.wait(60);
    assert_eq!((told(&world), world.error_code()), (vec!["0 Well, ".into(), "= Well, ".into()], Some("node_timeout")));
    Audit::check(&world.log);
    let mut world = begun(one(FREE, json!({}), json!({})));
    world.command(&Command::Cancel { reason: None, by: None, parent: None }).unwrap();
    assert_eq!((told(&world), world.status()), (vec!["0 Well, ".into(), "= Well, ".into()], RunStatus::Cancelled));
    Audit::check(&world.log);
    // More rounds of tools than it may have.
    let mut world = begun(one(FREE, json!({"maxToolRounds": 0}), json!({})));
    world.says(ModelReply { reasoning: Some("Well, a tool.".to_owned()), ..wants(&[("mcp:look", json!({}))]) });
    assert_eq!(told(&world), ["0 Well, ", "= Well, a tool."]);
    world.says(wants(&[("mcp:look", json!({}))]));
    assert_eq!(world.error_code(), Some("tool_rounds_exceeded"));
    Audit::check(&world.log);
}

#[test]
fn a_paused_run_is_told_nothing() {
    let mut world = working(FREE);
    let call = world.call();
    world.mutters(&call, 0, &["One. "]);
    world.command(&Command::Pause { reason: None, drain: DrainPolicy::Immediate }).unwrap();
    assert_eq!(world.mutters(&call, 1, &["Two. "]), 0);
    world.command(&Command::Resume { reason: None }).unwrap();
    assert_eq!(world.mutters(&call, 2, &["Three. "]), 0, "what was missed is not made up for");
    world.says(thought("One. Two. Three.", "Done."));
    assert_eq!(told(&world), ["0 One. ", "= One. Two. Three."]);
    Audit::check(&world.log);
}

#[test]
fn what_nobody_should_read_is_not_told() {
    let mut definition =
        fed(one(FREE, json!({}), json!({})), "work", "key", json!({"type": "variable", "variableName": "token"}));
    definition["variables"] =
        json!([{"name": "token", "type": "string", "sensitive": true, "defaultValue": "hunter2"}]);
    let mut world = started(definition);
    let call = world.call();
    assert_eq!((call.reasoning_chars, world.mutters(&call, 0, &["It is hunter2."])), (0, 0));
    world.says(thought("It is hunter2.", "Done."));
    assert_eq!(told(&world), ["= [REDACTED]"]);
}

#[test]
fn silence_is_mentioned_once() {
    let mut world = working(FREE);
    for _ in 0..2 {
        world.says(ModelReply { content: String::new(), ..wants(&[("mcp:look", json!({}))]) });
        let tool = world.tool();
        world.returns(&tool, ok(json!(1)));
    }
    world.says(said("Done."));
    assert_eq!(told(&world), ["= "], "an agent that calls something has said something before");
    let kinds = world.agent_types();
    let pair = ["agent.toolCalled", "agent.toolReturned"];
    let begun = ["agent.invocation.started", "agent.promptResolved", "agent.reasoned"];
    assert_eq!(kinds, [&begun[..], &pair, &pair, &["agent.decided", "agent.invocation.completed"]].concat());
    Audit::check(&world.log);
    // One that calls nothing says it with its decision.
    let mut world = working(FREE);
    world.says(said("Done."));
    assert_eq!(world.agent_types()[2..4], ["agent.reasoned", "agent.decided"]);
    // A log from before that says it with the decision, and replays so.
    let mut world = working(FREE);
    world.under_rule(2);
    world.says(ModelReply { content: String::new(), ..wants(&[("mcp:look", json!({}))]) });
    let tool = world.tool();
    world.returns(&tool, ok(json!(1)));
    world.says(said("Done."));
    assert_eq!(world.agent_types()[2..6], [pair[0], pair[1], "agent.reasoned", "agent.decided"]);
    // Whoever gave a reason once need not say that there is none.
    let mut world = working(FREE);
    world.says(wants(&[("mcp:look", json!({}))]));
    let tool = world.tool();
    world.returns(&tool, ok(json!(1)));
    world.says(said("Done."));
    assert_eq!(told(&world), ["= Let me see."]);
    Audit::check(&world.log);
}
