//! Places of runners: nothing holds one that nobody works in, nothing waits in vain for one, and nothing of what is over
//! stays behind.

use crate::agents;
use crate::common;
use crate::runners;
use crate::sharing;

use agents::{AGENT, asks};
use baton_model::{Digest, RunStatus, Timestamp, code};
use baton_runtime::{Clock as _, RunnerCapabilities, RunnerRegistration, Told};
use baton_store::{Commit, Journal as _, RunnerReads as _, RunnerRow, RunnerWrite, StepRow, StepState, Write};
use baton_testkit::Flow;
use common::{World, who};
use runners::{Hand, TOOL, brain, done, open, pass, text, token, with};
use serde_json::{Value, json};
use sharing::{Company, settle};

#[tokio::test]
async fn a_call_that_is_cancelled_before_its_runner_saw_it_leaves_its_place_and_no_row() {
    let world = open(with(&brain())).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    world.settle().await;
    assert_eq!(world.host.runners(&who())[0].in_flight, 1);
    world.host.cancel(&who(), &run, None).await.unwrap();
    world.settle().await;
    assert_eq!(world.host.runners(&who())[0].in_flight, 0);
    assert_eq!(hand.beat(&world).await.cancel, []);
    assert_eq!(rows(&world, &hand, StepState::Leased).await, []);
    let run = world.start("asks").await;
    let step = hand.step().await;
    assert_eq!(step.run_id, run, "the place is free, and nobody is told of the other");
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
    done(&world, &run, "the next one").await;
}

/// The rows of steps of whoever this runner is for.
async fn rows(world: &World, hand: &Hand, state: StepState) -> Vec<StepRow> {
    let owner = Digest::of_json(&json!([hand.bearer.owner.tenant, hand.bearer.owner.subject]));
    world.store.steps_of(owner.as_str(), state, None, 100).await.unwrap()
}

fn step(config: Value) -> Flow {
    let mut config = config;
    config["tool"] = TOOL.into();
    Flow::chain("steps", &[("step", "vendor.baton.tool", config)])
}

/// Time passes slowly enough that what is due first happens first.
async fn slowly(world: &World, millis: u64) {
    for _ in 0..millis.div_ceil(100) {
        world.clock.advance(100);
        world.settle().await;
    }
}

#[tokio::test]
async fn a_call_that_no_runner_has_seen_when_the_time_of_its_node_is_up_has_certainly_failed() {
    for reads in [true, false] {
        let world = open(with(&brain())).await;
        world.register(step(json!({"arguments": {}, "timeoutMs": 10_000}))).await;
        let mut hand = Hand::signed_in(&world, &who(), "r1", 1).await;
        if !reads {
            // It is given the call, and never told.
            hand.connect(&world, None).await;
        }
        let run = world.start("steps").await;
        slowly(&world, 12_000).await;
        let view = world.ended(&run).await;
        assert_eq!(view.error.unwrap().code, code::RUNNER_UNAVAILABLE);
        assert_eq!(world.open_interrupts().await, []);
        assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0);
        assert_eq!(world.host.runners(&who())[0].in_flight, 0);
        assert_eq!(rows(&world, &hand, StepState::Leased).await, []);
    }
}

#[tokio::test]
async fn an_item_that_no_runner_has_seen_when_its_time_is_up_has_certainly_failed() {
    let world = open(with(&brain())).await;
    let config = json!({"tool": TOOL, "items": [1, 2], "argumentsExpression": "{'n': item}",
        "itemTimeoutMs": 10_000, "onItemError": "collect"});
    world.register(Flow::chain("maps", &[("each", "vendor.baton.map", config)])).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("maps").await;
    let step = hand.step().await;
    slowly(&world, 9_000).await;
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
    let view = world.ended(&run).await;
    assert_eq!(view.status, RunStatus::Completed, "{:?}", view.error);
    assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0, "the other one waited for the place");
}

#[tokio::test]
async fn what_is_over_is_forgotten_within_minutes_and_what_is_lost_keeps_no_arguments() {
    let world = open(with(&brain())).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
    done(&world, &run, "answered").await;
    assert_eq!(rows(&world, &hand, StepState::Done).await.len(), 1);
    world.start("asks").await;
    let lost = hand.step().await;
    pass(&world, 60_000).await;
    let [row] = &rows(&world, &hand, StepState::Lost).await[..] else { panic!("one is lost") };
    assert!(!row.body.contains(r#""n":1"#), "{}", row.body);
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(true), "known for a while");
    pass(&world, 11 * 60_000).await;
    assert_eq!(rows(&world, &hand, StepState::Done).await, []);
    assert_eq!(hand.answer(&world, &lost, text("late")).await, Ok(false), "a late result needs what is known");
}

#[tokio::test]
async fn revoking_a_token_ends_the_streams_that_it_opened() {
    let world = open(with(&brain())).await;
    let mut hand = Hand::signed_in(&world, &who(), "r1", 1).await;
    let first = hand.bearer.clone();
    let (second, _) = token(&world, &who()).await;
    hand.bearer = second.clone();
    hand.connect(&world, None).await;
    world.host.revoke_runner_token(&who(), &second.token).await.unwrap();
    assert_eq!(hand.next().await, Told::Gone);
    assert_eq!(world.host.runners(&who()).len(), 1, "it signed in with the other one");
    // Nothing that was under way with a token when it was revoked stays.
    assert!(!hand.bearer.token.is_empty() && world.host.runner_stream(&second, "r1", None).await.is_err());
    let frame = |id: &str| RunnerRegistration {
        runner_id: id.to_owned(),
        subject: second.owner.subject.clone(),
        capabilities: RunnerCapabilities::default(),
    };
    assert!(world.host.register_runner(&second, frame("r2")).await.is_err());
    assert!(world.host.put_runner_tools(&second, "r1", runners::tools(1)).await.is_err());
    assert_eq!(world.host.runners(&who()), [], "the last to speak for it was the revoked one");
    assert!(world.host.register_runner(&first, frame("r1")).await.unwrap());
}

async fn company(hosts: u64) -> (Company, Vec<World>) {
    let company = Company::new();
    let brain = brain();
    let mut all = Vec::new();
    for seed in 0..hosts {
        all.push(company.join(7 + seed, with(&brain)).await);
    }
    all[0].register(asks("asks", AGENT)).await;
    (company, all)
}

#[tokio::test]
async fn what_waits_on_another_host_is_taken_as_soon_as_there_is_a_place() {
    let (company, hosts) = company(2).await;
    let all: Vec<&World> = hosts.iter().collect();
    let mut hand = Hand::new(&hosts[1], &who(), "r1", 1).await;
    company.pass(&all, 2_000).await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(hosts[0].start("asks").await);
    }
    company.pass(&all, 2_000).await;
    let before = company.clock.now();
    let mut told = Vec::new();
    for _ in 0..6 {
        settle(&all).await;
        let step = hand.step().await;
        told.push(step.run_id.clone());
        let answering = hand.answer(&hosts[1], &step, text("done"));
        assert_eq!(sharing::while_time_passes(&company, &all, answering).await, Ok(false));
    }
    let took = company.clock.now().millis_since(before);
    told.sort();
    runs.sort();
    assert_eq!(told, runs);
    assert!(took < 3_000, "the next one does not wait for somebody to look: {took} ms");
}

#[tokio::test]
async fn a_step_that_nobody_waits_for_is_taken_by_no_other_host() {
    let (company, hosts) = company(2).await;
    let all: Vec<&World> = hosts.iter().collect();
    let mut hand = Hand::signed_in(&hosts[1], &who(), "r1", 1).await;
    company.pass(&all, 2_000).await;
    let run = hosts[0].start("asks").await;
    settle(&all).await;
    assert_eq!(rows(&hosts[0], &hand, StepState::Queued).await.len(), 1);
    // It is withdrawn while the other host takes it.
    hand.connect(&hosts[1], None).await;
    hosts[0].host.cancel(&who(), &run, None).await.unwrap();
    company.pass(&all, 3_000).await;
    assert_eq!(rows(&hosts[0], &hand, StepState::Leased).await, []);
    assert_eq!(rows(&hosts[0], &hand, StepState::Queued).await, []);
    assert_eq!(hosts[1].host.runners(&who())[0].in_flight, 0);
}

#[tokio::test]
async fn any_host_forgets_a_runner_whose_own_host_is_gone() {
    let (company, hosts) = company(2).await;
    let all: Vec<&World> = hosts.iter().collect();
    Hand::signed_in(&hosts[0], &who(), "r1", 1).await;
    company.pass(&all, 2_000).await;
    let [row] = &hosts[0].store.runners(9).await.unwrap()[..] else { panic!("one runner") };
    // As it would be a day after that host ended.
    let day_ago = Timestamp::from_micros(company.clock.now().as_micros() - 25 * 3_600 * 1_000_000);
    let old = RunnerRow {
        key: row.key.clone(),
        version: row.version + 1,
        epoch: 999,
        seen_at: day_ago,
        body: row.body.clone(),
    };
    let generation = hosts[0].store.generation();
    let write = Write::Runners(RunnerWrite::PutRunner(old));
    hosts[0].store.submit(Commit::new(generation, vec![write])).await.unwrap();
    for world in &hosts {
        // Nobody here heard of it since.
        assert_eq!(world.host.runners(&who()).len(), 1);
    }
    let fresh = company.join(99, with(&brain())).await;
    company.pass(&[&hosts[0], &hosts[1], &fresh], 65_000).await;
    assert_eq!(fresh.host.runners(&who()), []);
}
