//! A live supervisor and its live workers: one decision a turn, each turn with what was remembered when it began, and
//! nothing decided that the supervisor is not sure of. Wherever the process dies, the team comes to the same end.

use crate::agents;
use crate::common;

use std::sync::Arc;

use agents::{Brain, REMEMBER, armed, asks, heard, options, says, says_json, told, wants};
use baton_model::{AgentCard, Event, ModelReply, ModelRequest, RunId, RunStatus};
use baton_runtime::Options;
use baton_store::Disk;
use baton_testkit::{Flow, SimClock};
use common::{World, accept, in_time};
use serde::Deserialize as _;
use serde_json::{Value, json};

const LEAD: &str = "local.test.lead";
const RESEARCHER: &str = "local.test.researcher";
const WRITER: &str = "local.test.writer";
/// More crashes than the team has commits: past this, something commits for ever.
const MOST_CRASHES: u64 = 200;

fn cards() -> Vec<AgentCard> {
    let agent = |id: &str, prompt: &str| AgentCard { system_prompt: prompt.to_owned(), ..armed(id, &[REMEMBER]) };
    vec![agent(LEAD, "You lead."), agent(RESEARCHER, "You research."), agent(WRITER, "You write.")]
}

/// A supervisor that an agent is, and a dispatch that brings back what workers say.
fn led() -> Flow {
    let workers = json!([{"id": "researching", "does": "finds out"}, {"id": "writing", "does": "writes it down"}]);
    let lead = json!({"agentId": LEAD, "workers": workers});
    let dispatch = json!({"fanOutPolicy": "parallel", "outputMapping": {"found": "result"}});
    Flow::chain("team", &[("lead", "core.orchestrator.supervisor", lead), ("dispatch", "core.dispatch", dispatch)])
        .edge("dispatch", "lead")
}

fn with(brain: &Arc<Brain>, ahead: usize) -> Options {
    options(cards(), brain, Vec::new(), ahead)
}

async fn world(brain: &Arc<Brain>) -> World {
    let world = World::open(Disk::default(), Arc::default(), with(brain, 512)).await;
    for flow in [led(), asks("researching", RESEARCHER), asks("writing", WRITER)] {
        world.register(flow).await;
    }
    world
}

/// What a supervisor is told about where it stands, if it is a supervisor that is asked.
fn situation(request: &ModelRequest) -> Option<Value> {
    let text = heard(request);
    let (_, told) = text.split_once("The situation, as the host recorded it:\n")?;
    // What happened in earlier turns comes after it.
    let told = told.split_once("\n\nWhat happened in the turns before").map_or(told, |(told, _)| told);
    let mut all = Value::deserialize(&mut serde_json::Deserializer::from_str(told)).unwrap();
    // What others wrote follows, each part under its name and in a fence, or in one for each place it is from.
    for part in told.split("\n\"").skip(1) {
        let Some((name, part)) = part.split_once("\":\n") else { continue };
        for block in part.split("<UNTRUSTED ").skip(1) {
            let (_, json) = block.split_once(">\n").unwrap();
            let value: Value = serde_json::from_str(json.split_once("\n</UNTRUSTED>").unwrap().0).unwrap();
            match (all[name].as_object_mut(), value) {
                (Some(known), Value::Object(more)) => known.extend(more),
                (_, value) => all[name] = value,
            }
        }
    }
    Some(all)
}

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

fn end() -> Value {
    json!({"kind": "terminate", "reason": "written"})
}

/// A worker: notes down what it did, and says so.
fn works(request: &ModelRequest) -> ModelReply {
    let who = if heard(request).contains("You research.") { "researched" } else { "wrote" };
    if told(request) == 0 { wants(&[(REMEMBER, json!({"content": who}))]) } else { says(who) }
}

/// Two workers side by side; then one, of which it is not sure, and a note of its own; then the end, of which the agent
/// is not sure.
fn team() -> Arc<Brain> {
    Brain::new(|request| {
        let Some(situation) = situation(request) else { return works(request) };
        match (situation["iteration"].as_u64().unwrap(), told(request)) {
            (1, _) => says_json(&next(&["researching", "writing"])),
            (2, 0) => wants(&[(REMEMBER, json!({"content": "the lead's note"}))]),
            (2, _) => says_json(&json!({"kind": "next-worker", "nextWorkerIds": ["writing"], "confidence": 0.3})),
            _ => says_json(&json!({"kind": "terminate", "reason": "written", "agentConfidence": 0.4})),
        }
    })
}

/// What the supervisor was asked in each of its turns.
fn turns(brain: &Brain) -> Vec<(u64, ModelRequest)> {
    let asked = brain.asked.lock();
    let of_lead = asked.iter().filter_map(|request| Some((situation(request)?, request.clone())));
    of_lead.map(|(situation, request)| (situation["iteration"].as_u64().unwrap(), request)).collect()
}

fn remembers(request: &ModelRequest) -> Vec<&'static str> {
    let text = heard(request);
    let Some((_, told)) = text.split_once("What you remember, newest first:\n") else { return Vec::new() };
    let told = told.split_once("</UNTRUSTED>").unwrap().0;
    ["researched", "wrote", "the lead's note"].into_iter().filter(|content| told.contains(content)).collect()
}

#[tokio::test]
async fn a_turn_sees_what_was_remembered_when_it_began() {
    let brain = team();
    let world = world(&brain).await;
    let run = world.start("team").await;
    world.drive(0).await;
    let view = world.ended(&run).await;
    assert_eq!(view.status, RunStatus::Completed, "{:?}", view.error);
    let turns = turns(&brain);
    let seen: Vec<(u64, usize, Vec<&str>)> =
        turns.iter().map(|(turn, request)| (*turn, told(request), remembers(request))).collect();
    let both = vec!["researched", "wrote"];
    let all = vec!["researched", "wrote", "the lead's note"];
    assert_eq!(seen, [(1, 0, vec![]), (2, 0, both.clone()), (2, 1, both), (3, 0, all)]);
    let (_, last) = turns.last().unwrap();
    let told = situation(last).unwrap();
    assert_eq!(told["decisions"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["variables"]["found"], "wrote", "{told}");
    assert_eq!(told["workers"][0]["id"], "researching", "{told}");
    assert_eq!(told["children"].as_array().map(Vec::len), Some(3), "{told}");
    // Every worker's agent is in a bracket of its own run, before its output is harvested.
    let rows = world.rows().await;
    assert_eq!(rows.len(), 4);
    for row in &rows[1..] {
        assert_eq!(row.parent.as_ref(), Some(&run));
        assert_eq!(world.kinds_of(&row.id, "agent.invocation").await.len(), 2);
    }
    let mut contents = world.recall(run.as_str()).await;
    contents.sort();
    assert_eq!(contents, ["researched", "the lead's note", "wrote", "wrote"]);
    world.audit_agents("the team").await;
}

#[tokio::test]
async fn the_team_comes_to_the_same_end_wherever_the_process_dies() {
    for ahead in [1, 512] {
        let steady = team();
        let disk = world(&steady).await.stop().await;
        let expected = {
            let world = World::open(disk.clone(), Arc::default(), with(&steady, ahead)).await;
            world.start("team").await;
            world.drive(0).await;
            let views = world.views().await;
            assert_eq!(views.len(), 4);
            world.stop().await;
            views
        };
        for commits in 0.. {
            let context = format!("{ahead} ahead, crashed after {commits}");
            assert!(commits < MOST_CRASHES, "{context}: never ends");
            let brain = team();
            let clock = Arc::new(SimClock::default());
            let life = World::open(disk.clone(), Arc::clone(&clock), with(&brain, ahead)).await;
            brain.witness.watch(&life.store);
            life.store.crash_after(commits);
            let lived = async {
                life.start("team").await;
                life.drive(0).await;
            };
            let died = tokio::select! {
                () = lived => false,
                () = life.store.crashed() => true,
            };
            let left = life.stop().await;
            if !died {
                assert!(commits >= if ahead == 1 { 30 } else { 10 }, "{context}: too few places to crash at");
                break;
            }
            let world = World::open(left, clock, with(&brain, ahead)).await;
            brain.witness.watch(&world.store);
            if world.rows().await.is_empty() {
                world.start("team").await;
            }
            in_time(&context, world.drive(0)).await;
            world.audit_ended(&context, &expected).await;
            world.audit_agents(&context).await;
            brain.witness.satisfied(&context);
            world.stop().await;
        }
    }
}

/// A question about the run's own decision, and what is on its log by then.
async fn held(world: &World, run: &RunId, kind: &str) -> Value {
    world.waiting(run).await;
    let [question] = &world.open_interrupts().await[..] else { panic!("one question") };
    assert_eq!((question.kind.as_str(), question.node.as_str()), (kind, "lead"));
    question.data.clone()
}

#[tokio::test]
async fn a_decision_the_supervisor_is_not_sure_of_waits_for_a_human() {
    for restart in [false, true] {
        let brain = Brain::new(|request| match situation(request) {
            None => works(request),
            Some(told) if told["iteration"] == 1 => {
                says_json(&json!({"kind": "next-worker", "nextWorkerIds": ["writing"], "confidence": 0.49}))
            }
            Some(_) => says_json(&end()),
        });
        let mut world = world(&brain).await;
        let run = world.start("team").await;
        let question = held(&world, &run, "approval").await;
        assert_eq!(question["artifactData"]["nextWorkerIds"], json!(["writing"]));
        if restart {
            world = world.next(1, with(&brain, 512)).await;
            world.settle().await;
        }
        assert!(world.decisions(&run).await.is_empty(), "nothing is decided before it is ratified");
        assert_eq!((world.rows().await.len(), brain.count()), (1, 1), "and nobody is asked or sent");
        let edited = next(&["researching"]);
        let answer = json!({"action": "edit-accept", "editedArtifactData": edited});
        world.resolve(&run, "lead", answer).await.unwrap();
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
        let decisions = world.decisions(&run).await;
        assert_eq!(json!(decisions[0].decision), edited, "the human's word");
        assert_eq!(world.rows().await[1].workflow.as_str(), "researching");
        world.audit_agents("held").await;
    }
}

/// The agents' own rule, beside the decision's: here it is the agent that is not sure.
#[tokio::test]
async fn an_agent_that_is_not_sure_of_itself_asks_a_human() {
    let unsure =
        json!({"kind": "next-worker", "nextWorkerIds": ["writing"], "confidence": 0.9, "agentConfidence": 0.2});
    let brain = Brain::new(move |request| match situation(request) {
        None => works(request),
        Some(told) if told["iteration"] == 1 => says_json(&unsure),
        Some(_) => says_json(&end()),
    });
    let world = world(&brain).await;
    let run = world.start("team").await;
    let question = held(&world, &run, "low-confidence").await;
    assert_eq!((&question["agentId"], &question["observed"]), (&json!(LEAD), &json!(0.2)));
    assert!(world.decisions(&run).await.is_empty());
    let suspended = world.events_of(&run).await.into_iter().find_map(|event| match event {
        Event::NodeSuspended(event) => Some(event),
        _ => None,
    });
    let suspended = suspended.unwrap();
    assert_eq!((suspended.reason.as_deref(), suspended.agent_id.as_deref()), (Some("low-confidence"), Some(LEAD)));
    world.resolve(&run, "lead", accept()).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(world.decisions(&run).await.len(), 2);

    // And the reverse: rejected, the run fails, and no worker was ever made.
    let run = world.start("team").await;
    held(&world, &run, "low-confidence").await;
    let rows = world.rows().await.len();
    world.resolve(&run, "lead", json!({"action": "reject"})).await.unwrap();
    let view = world.ended(&run).await;
    assert_eq!((view.status, view.error.unwrap().code.as_str()), (RunStatus::Failed, "approval_rejected"));
    assert_eq!((world.decisions(&run).await.len(), world.rows().await.len()), (0, rows));
    world.audit_agents("not sure").await;
}

/// What a human wants changed reaches the model, in the same turn, which sees what it saw before.
#[tokio::test]
async fn feedback_reaches_the_model_in_the_same_turn() {
    let brain = Brain::new(|request| match situation(request) {
        None => works(request),
        Some(told) if told["iteration"] != 1 => says_json(&end()),
        Some(told) if told["feedback"].is_null() => {
            says_json(&json!({"kind": "next-worker", "nextWorkerIds": ["writing"], "confidence": 0.1}))
        }
        Some(_) => says_json(&next(&["researching"])),
    });
    for restart in [false, true] {
        let mut world = world(&brain).await;
        brain.asked.lock().clear();
        let run = world.start("team").await;
        held(&world, &run, "approval").await;
        // What is remembered meanwhile is for the next turn.
        world.remember(run.as_str(), "the lead's note").await;
        if restart {
            world = world.next(1, with(&brain, 512)).await;
        }
        let feedback = json!({"scope": "whole", "instructions": "Find out first."});
        let answer = json!({"action": "refine", "refineFeedback": feedback});
        world.resolve(&run, "lead", answer).await.unwrap();
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
        let turns = turns(&brain);
        let seen: Vec<(u64, Vec<&str>)> = turns.iter().map(|(turn, request)| (*turn, remembers(request))).collect();
        assert_eq!(seen, [(1, vec![]), (1, vec![]), (2, vec!["researched", "the lead's note"])]);
        assert_eq!(situation(&turns[1].1).unwrap()["feedback"], feedback);
        let decisions = world.decisions(&run).await;
        assert_eq!(decisions.iter().map(|decided| decided.iteration).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(json!(decisions[0].decision), next(&["researching"]));
        world.audit_agents("refined").await;
    }
}

/// A decision that is none is asked for again; a supervisor that never gives one fails, and nothing is decided.
#[tokio::test]
async fn a_supervisor_that_talks_nonsense_is_asked_again_and_then_fails() {
    let brain = Brain::new(|request| match situation(request) {
        None => works(request),
        Some(_) => says_json(&json!({"kind": "next-worker", "nextWorkerIds": []})),
    });
    let world = world(&brain).await;
    let run = world.start("team").await;
    let view = world.ended(&run).await;
    assert_eq!((view.status, view.error.unwrap().code.as_str()), (RunStatus::Failed, "envelope_invalid"));
    assert_eq!((brain.count(), world.decisions(&run).await.len(), world.rows().await.len()), (3, 0, 1));
    assert!(brain.heard().contains("Your last answer could not be used."));
    world.audit_agents("nonsense").await;
}
