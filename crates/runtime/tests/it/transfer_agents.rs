//! Runs of agents on their way to a host that never had them: the agents they are pinned to come along.

use crate::agents;
use crate::common;
use crate::forking;
use crate::transferring;

use std::sync::Arc;

use agents::{AGENT, Brain, Sink, armed, asks, heard, options, says, told, wants};
use baton_model::{AgentCard, Digest, OutcomePolicy, RunId};
use baton_store::Disk;
use common::World;
use forking::branch_at;
use serde_json::{Value, json};
use transferring::{export, import, lines, sealed};

const NOTE: &str = "mcp:srv.note";

fn brain() -> Arc<Brain> {
    Brain::new(|request| match (told(request), request.semantic.tools.is_empty()) {
        (0, false) => wants(&[(NOTE, json!({}))]),
        _ => says("done"),
    })
}

fn secretary() -> AgentCard {
    AgentCard { system_prompt: "You are one of a kind.".to_owned(), ..armed(AGENT, &[NOTE]) }
}

/// A host that names its runs like no other.
async fn host(life: u64, cards: Vec<AgentCard>) -> (World, Arc<Brain>) {
    let brain = brain();
    let note = Sink::new(NOTE, OutcomePolicy::Retry);
    let own = options(cards, &brain, vec![note as _], 512);
    let world = forking::reopened(Disk::default(), Arc::default(), life, own).await;
    (world, brain)
}

/// A run of the agent that has ended, as a file.
async fn exported() -> (String, RunId) {
    let brain = brain();
    let note = Sink::new(NOTE, OutcomePolicy::Retry);
    let own = options(vec![secretary()], &brain, vec![note as _], 512);
    let world = World::open(Disk::default(), Arc::default(), own).await;
    world.register(asks("asks", AGENT)).await;
    let run = world.start("asks").await;
    world.completed_with(&run, &json!("done"), "at home").await;
    (export(&world, &run).await, run)
}

fn agent_line(all: &mut [Value]) -> &mut Value {
    &mut all.iter_mut().find(|line| line.get("agent").is_some()).unwrap()["agent"]
}

/// The file with these lines, as if somebody had written it that way.
fn forged(all: &[Value]) -> String {
    let text = sealed(all);
    let mut all = lines(&text);
    let agents = all.iter().filter(|line| line.get("agent").is_some()).count();
    all.last_mut().unwrap()["footer"]["agents"] = json!(agents);
    let body: String = all[..all.len() - 1].iter().map(|line| format!("{line}\n")).collect();
    all.last_mut().unwrap()["footer"]["digest"] = json!(Digest::of_bytes(&body));
    format!("{body}{}\n", all.last().unwrap())
}

#[tokio::test]
async fn an_agent_works_on_where_nobody_installed_it() {
    let (file, run) = exported().await;
    let mut all = lines(&file);
    assert!(file.lines().next().unwrap().contains("\"version\":4"), "its records have checksums");
    assert_eq!(agent_line(&mut all)["card"]["systemPrompt"], "You are one of a kind.");
    let (world, brain) = host(7, Vec::new()).await;
    let imported = import(&world.host, &file).await.unwrap();
    assert_eq!((imported.holds.agents, imported.new_runs), (1, 1));
    world.verified(&run, "elsewhere").await;
    assert_eq!(brain.count(), 0);
    // Its manifest is only a file's word here, so it may have what somebody who is installed may have: nothing.
    let branch = world.fork(&run, branch_at(1)).await;
    world.completed_with(&branch, &json!("done"), "a branch").await;
    assert!(heard(&brain.asked.lock()[0]).contains("You are one of a kind."));
    assert_eq!((brain.count(), brain.asked.lock()[0].semantic.tools.len()), (1, 0));
    // Again and onwards, from there.
    let again = export(&world, &branch).await;
    let colleague = AgentCard { agent_id: "local.test.colleague".to_owned(), ..armed(AGENT, &[NOTE]) };
    let (world, brain) = host(8, vec![colleague]).await;
    import(&world.host, &again).await.unwrap();
    let branch = world.fork(&branch, branch_at(1)).await;
    world.completed_with(&branch, &json!("done"), "a branch of a branch").await;
    assert_eq!((brain.count(), brain.asked.lock()[0].semantic.tools.len()), (2, 1), "as a colleague may");
}

#[tokio::test]
async fn a_file_brings_no_agent_but_those_its_runs_work_with() {
    let (file, _) = exported().await;
    let refusal = async |change: &dyn Fn(&mut Vec<Value>)| {
        let mut all = lines(&file);
        change(&mut all);
        let (world, _) = host(7, Vec::new()).await;
        let refused = import(&world.host, &forged(&all)).await.unwrap_err();
        assert!(world.rows().await.is_empty());
        refused.message
    };
    let stronger = |all: &mut Vec<Value>| agent_line(all)["card"]["tools"] = json!([NOTE, "mcp:srv.shell"]);
    assert!(refusal(&stronger).await.contains("not the one its digest names"));
    let stranger = |all: &mut Vec<Value>| {
        let mut card = secretary();
        card.tools.push("mcp:srv.shell".to_owned());
        let place = all.iter().position(|line| line.get("agent").is_some()).unwrap();
        all.insert(place, json!({"agent": {"digest": card.digest(), "card": card}}));
    };
    let refused = refusal(&stranger).await;
    assert!(refused.contains("works with its agent"), "{refused}");
    let twice = |all: &mut Vec<Value>| {
        let place = all.iter().position(|line| line.get("agent").is_some()).unwrap();
        all.insert(place, all[place].clone());
    };
    assert!(refusal(&twice).await.contains("twice"));
    let late = |all: &mut Vec<Value>| {
        let place = all.iter().position(|line| line.get("agent").is_some()).unwrap();
        let line = all.remove(place);
        let end = all.len() - 1;
        all.insert(end, line);
    };
    assert!(refusal(&late).await.contains("cannot come here"));
}

#[tokio::test]
async fn a_file_without_agents_counts_none() {
    let (world, _) = host(7, Vec::new()).await;
    world.register(common::scenario::pipeline("pipeline")).await;
    let run = world.start("pipeline").await;
    world.drive(50).await;
    let all = lines(&export(&world, &run).await);
    assert!(all.last().unwrap()["footer"].get("agents").is_none());
}
