//! Live agents, from the brief to the bracket's end.

use crate::agents;
use crate::common;

use std::sync::Arc;

use agents::{AGENT, Brain, Sink, card, options, says, told, wants};
use baton_model::{AgentCard, Event, MemoryShape, OutcomePolicy, RunId, RunStatus};
use baton_store::Disk;
use baton_testkit::Flow;
use common::{World, in_time};
use serde_json::json;

fn flow() -> Flow {
    let inputs = json!({"inputs": {"task": {"type": "static", "value": "Do it."}}});
    Flow::new("asks").node_with("work", "vendor.baton.agent", json!({"agentId": AGENT}), inputs)
}

async fn events(world: &World, run: &RunId) -> Vec<Event> {
    let records = world.reader.records(run, 0, 1000).await.unwrap();
    records.iter().map(|stored| stored.decode(run).unwrap().event).collect()
}

async fn types(world: &World, run: &RunId) -> Vec<String> {
    events(world, run).await.iter().map(|event| event.type_name().to_owned()).collect()
}

#[tokio::test]
async fn an_agent_thinks_calls_its_tools_remembers_and_answers() {
    let brain = Brain::new(|request| match told(request) {
        0 => wants(&[
            ("openwop:memory.put", json!({"content": "a fact", "tags": ["x"]})),
            ("mcp:srv.act", json!({"n": 1})),
        ]),
        2 => {
            wants(&[("openwop:memory.list", json!({})), ("openwop:http.fetch", json!({"url": "https://example.com"}))])
        }
        _ => says("done"),
    });
    let sink = Sink::new("mcp:srv.act", OutcomePolicy::Ask);
    let agent = AgentCard {
        tools: vec!["openwop:memory.put".into(), "openwop:memory.list".into(), "mcp:srv.act".into()],
        memory: MemoryShape { long_term: true, ..MemoryShape::default() },
        ..card(AGENT)
    };
    let world =
        World::open(Disk::default(), Arc::default(), options(vec![agent], &brain, vec![Arc::clone(&sink) as _], 512))
            .await;
    world.register(flow()).await;
    let run = world.start("asks").await;
    let end = in_time("the agent", world.wait_for(&run, |snapshot| snapshot.status.is_terminal())).await;
    assert_eq!(end.status, RunStatus::Completed, "{:?}", end.error);
    assert_eq!(end.outputs, None);
    assert_eq!(end.variables["result"], json!("done"));
    assert_eq!(sink.count(), 1);
    let types = types(&world, &run).await;
    let expected = [
        "run.started",
        "node.started",
        "agent.invocation.started",
        "agent.promptResolved",
        "prompt.composed",
        "provider.usage",
        "agent.reasoned",
        "agent.toolCalled",
        "agent.toolCalled",
        "memory.written",
        "agent.toolReturned",
        "agent.toolReturned",
        "provider.usage",
        "agent.toolCalled",
        "agent.toolReturned",
        "agent.toolReturned",
        "provider.usage",
        "agent.decided",
        "agent.invocation.completed",
        "variable.changed",
        "node.completed",
        "run.completed",
    ];
    assert_eq!(types, expected);
    let last = brain.asked.lock().last().cloned().unwrap();
    let heard: Vec<String> = last.semantic.messages.iter().map(|message| message.content().to_string()).collect();
    assert!(heard.iter().any(|text| text.contains("<UNTRUSTED tool=")), "{heard:?}");
    assert!(heard.iter().any(|text| text.contains("There is no such tool here")), "{heard:?}");
}
