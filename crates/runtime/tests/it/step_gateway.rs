//! Programs that ask models and keep values while they have a step in hand: on the log before they are told, there when the
//! step is given out again, and for nobody else.

use crate::agents;
use crate::budget;
use crate::common;
use crate::runners;
use crate::sharing;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agents::{Brain, heard, says, wants};
use baton_model::tool::SafetyTier;
use baton_model::{Event, RunId, SemanticRequest, StopReason, cache_key, code};
use baton_runtime::{Error, ErrorKind, Options, StepClaims, StepQuestion, StepReply};
use baton_store::Disk;
use baton_testkit::Flow;
use common::{World, in_time, who};
use runners::{Hand, TOOL, pass, text, tiered, with};
use serde_json::{Value, json};

const LEASE_MS: u64 = 30_000;

/// Says something else every time.
fn brain() -> Arc<Brain> {
    let count = AtomicUsize::new(0);
    Brain::new(move |request| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        match heard(request).contains("call") {
            true => wants(&[("look", json!({"n": n}))]),
            false => says(format!("answer {n} to {}", heard(request))),
        }
    })
}

fn flow() -> Flow {
    Flow::chain("steps", &[("step", "vendor.baton.tool", json!({"tool": TOOL, "into": "out"}))])
}

async fn open(options: Options) -> World {
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(flow()).await;
    world
}

fn reading(brain: &Arc<Brain>) -> Options {
    tiered(brain, SafetyTier::Read)
}

fn question(text: &str) -> StepQuestion {
    let messages = cache_key::messages(&json!([{"role": "user", "content": text}]), "messages").unwrap();
    let mut raw = json!({"provider": "brain", "model": "big", "messages": []});
    let raw = raw.as_object_mut().unwrap();
    let semantic = SemanticRequest { messages, ..SemanticRequest::read(raw).unwrap() };
    StepQuestion { semantic, retried: false }
}

fn again(text: &str) -> StepQuestion {
    StepQuestion { retried: true, ..question(text) }
}

fn claims(world: &World, token: &str) -> StepClaims {
    world.host.step_claims(token).expect("this host signed it")
}

async fn ask(world: &World, token: &str, question: StepQuestion) -> Result<StepReply, Error> {
    in_time("a model answers", world.host.ask_for_step(&claims(world, token), question)).await
}

async fn said(world: &World, token: &str, text: &str) -> (String, bool) {
    let reply = ask(world, token, question(text)).await.unwrap();
    (reply.reply.content, reply.recorded)
}

async fn refused(world: &World, token: &str, text: &str) -> (ErrorKind, &'static str) {
    let error = ask(world, token, question(text)).await.unwrap_err();
    (error.kind, error.code)
}

const LATE: (ErrorKind, &str) = (ErrorKind::Conflict, code::STEP_NOT_LEASED);

async fn keep(world: &World, token: &str, key: &str, value: Value) -> Result<(Value, bool), &'static str> {
    let kept = world.host.keep_for_step(&claims(world, token), key.to_owned(), value).await;
    kept.map(|kept| (kept.value, kept.created)).map_err(|error| error.code)
}

async fn kept(world: &World, token: &str, key: &str) -> Result<Value, &'static str> {
    world.host.kept_for_step(&claims(world, token), key).await.map_err(|error| error.code)
}

/// The calls of models that are on the log, as the disk has it.
async fn recorded(world: &World, run: &RunId) -> usize {
    let events = world.events_of(run).await;
    events.iter().filter(|event| matches!(event, Event::ProviderUsage(_))).count()
}

async fn finish(world: &World, hand: &Hand, run: &RunId, step: &baton_runtime::DispatchFrame) {
    assert_eq!(hand.answer(world, step, text("done")).await, Ok(false));
    world.ended(run).await;
}

#[tokio::test]
async fn an_answer_is_on_the_log_before_it_is_given_and_counts_for_the_run() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("steps").await;
    let (step, token) = hand.step_with_token().await;
    assert_eq!(said(&world, &token, "a").await, ("answer 0 to a".to_owned(), false));
    assert_eq!(recorded(&world, &run).await, 1, "on the disk by then");
    let call = ask(&world, &token, question("call")).await.unwrap().reply;
    assert_eq!((call.stop, call.tools[0].name.as_str()), (StopReason::ToolUse, "look"));
    let usage = serde_json::to_value(world.snapshot(&run).await).unwrap()["metrics"].clone();
    assert!(usage.to_string().contains("20"), "{usage}");
    finish(&world, &hand, &run, &step).await;
    assert_eq!(refused(&world, &token, "a").await, LATE, "the step is done");
    assert_eq!(brain.count(), 2);
    let told = world.log_of(&run).await;
    assert!(!told.iter().any(|event| event.to_string().contains("answer 0") || event.to_string().contains(&token)));
}

#[tokio::test]
async fn a_step_that_is_given_out_again_gets_the_same_answers_in_their_order() {
    let brain = brain();
    let world = open(reading(&brain)).await;
    let mut first = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("steps").await;
    let (_, old) = first.step_with_token().await;
    for (text, n) in [("a", 0), ("b", 1), ("a", 2)] {
        assert_eq!(said(&world, &old, text).await, (format!("answer {n} to {text}"), false));
    }
    first.stream = None;
    let mut second = Hand::new(&world, &who(), "r2", 1).await;
    pass(&world, LEASE_MS + 1_000).await;
    let (step, token) = second.step_with_token().await;
    assert_eq!(refused(&world, &old, "a").await, LATE, "the number before");
    for (text, n) in [("a", 0), ("a", 2), ("b", 1)] {
        assert_eq!(said(&world, &token, text).await, (format!("answer {n} to {text}"), true));
    }
    assert_eq!(brain.count(), 3, "nobody was asked");
    assert_eq!(said(&world, &token, "a").await, ("answer 3 to a".to_owned(), false), "one more than there were");
    let retried = ask(&world, &token, again("a")).await.unwrap();
    assert_eq!((retried.reply.content.as_str(), retried.recorded), ("answer 3 to a", true), "it did not arrive");
    finish(&world, &second, &run, &step).await;
    assert_eq!((brain.count(), recorded(&world, &run).await), (4, 4));
    // The same from any point of the log, and nobody is asked.
    let source = world.log_of(&run).await;
    for from in 0..=source.len() as u64 {
        let replay = world.replayed(&run, from).await;
        assert_eq!(world.log_of(&replay).await, source, "from {from}");
    }
    world.verified(&run, "with answers of a step").await;
    assert_eq!(brain.count(), 4);
}

#[tokio::test]
async fn a_host_that_dies_between_answer_and_record_asks_again_and_records_once() {
    let brain = brain();
    let mut world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("steps").await;
    let (step, token) = hand.step_with_token().await;
    assert_eq!(said(&world, &token, "a").await.0, "answer 0 to a");
    world.store.crash_after(0);
    let (host, asking) = (world.host.clone(), claims(&world, &token));
    let lost = tokio::spawn(async move { host.ask_for_step(&asking, question("b")).await });
    in_time("the model is asked", brain.called(2)).await;
    world.settle().await;
    assert!(!lost.is_finished(), "nobody is told what is not on the disk");
    lost.abort();
    hand.stream = None;
    world = world.next(1, with(&brain)).await;
    world.settle().await;
    assert_eq!(recorded(&world, &run).await, 1);
    assert_eq!(said(&world, &token, "b").await, ("answer 2 to b".to_owned(), false), "the runner still has the step");
    let retried = ask(&world, &token, again("a")).await.unwrap();
    assert_eq!((retried.reply.content.as_str(), retried.recorded), ("answer 0 to a", true));
    finish(&world, &hand, &run, &step).await;
    assert_eq!(recorded(&world, &run).await, 2);
}

#[tokio::test]
async fn a_caller_that_hangs_up_has_paid_and_gets_the_answer_when_it_asks_again() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("steps").await;
    let (_, token) = hand.step_with_token().await;
    brain.open.send_replace(false);
    let (host, asking) = (world.host.clone(), claims(&world, &token));
    let hung_up = tokio::spawn(async move { host.ask_for_step(&asking, question("a")).await });
    in_time("the model is asked", brain.called(1)).await;
    hung_up.abort();
    let (host, asking) = (world.host.clone(), claims(&world, &token));
    let waiting = tokio::spawn(async move { host.ask_for_step(&asking, again("a")).await });
    world.settle().await;
    assert!(!waiting.is_finished());
    brain.open.send_replace(true);
    let answer = in_time("it is answered", waiting).await.unwrap().unwrap();
    assert_eq!((answer.reply.content.as_str(), answer.recorded), ("answer 0 to a", true));
    assert_eq!((brain.count(), recorded(&world, &run).await), (1, 1));
}

#[tokio::test]
async fn a_token_is_for_one_dispatch_of_one_step() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 2).await;
    let (one, two) = (world.start("steps").await, world.start("steps").await);
    let (step, token) = hand.step_with_token().await;
    let (other_step, other) = hand.step_with_token().await;
    assert_eq!((&step.run_id, &other_step.run_id), (&one, &two));
    assert_eq!(keep(&world, &token, "k", json!(1)).await, Ok((json!(1), true)));
    assert_eq!(kept(&world, &other, "k").await, Err(code::NOT_FOUND), "each step has its own");
    let real = claims(&world, &token);
    for wrong in [
        StepClaims { seq: real.seq + 1, ..real.clone() },
        StepClaims { seq: other_step.seq, ..real.clone() },
        StepClaims { runner: "r2".to_owned(), ..real.clone() },
        StepClaims { step_id: "x".to_owned(), ..real.clone() },
        StepClaims { tenant: common::other().tenant, ..real.clone() },
    ] {
        let error = world.host.ask_for_step(&wrong, question("a")).await.unwrap_err();
        assert_eq!((error.kind, error.code), LATE, "{wrong:?}");
        assert_eq!(world.host.kept_for_step(&wrong, "k").await.unwrap_err().code, code::STEP_NOT_LEASED);
    }
    assert_eq!(world.host.step_claims(&hand.bearer.token), None);
    world.host.cancel(&who(), &one, None).await.unwrap();
    world.settle().await;
    assert_eq!(refused(&world, &token, "a").await, LATE, "nobody wants the step");
    hand.stream = None;
    pass(&world, LEASE_MS + 1_000).await;
    assert_eq!(refused(&world, &other, "a").await, LATE, "its time is up");
    assert_eq!(brain.count(), 0);
    let missing = StepQuestion {
        semantic: SemanticRequest { provider: "nobody".to_owned(), ..question("a").semantic },
        retried: false,
    };
    let run = world.start("steps").await;
    hand.connect(&world, None).await;
    hand.beat(&world).await;
    let (step, token) = hand.step_with_token().await;
    assert_eq!(step.run_id, run);
    let error = ask(&world, &token, missing).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::NotFound, code::MODEL_NOT_FOUND));
    assert!(world.host.step_models().contains("brain/big"));
}

#[tokio::test]
async fn a_budget_that_is_used_up_is_told_and_nobody_is_asked_whatever_it_says_about_people() {
    for on_exhaustion in ["fail", "interrupt"] {
        let brain = brain();
        let world = open(with(&brain)).await;
        let mut hand = Hand::new(&world, &who(), "r1", 1).await;
        let run = budget::start(&world, "steps", json!({"maxTokens": 100, "onExhaustion": on_exhaustion})).await;
        let (step, token) = hand.step_with_token().await;
        let mut told = None;
        for n in 0..20 {
            match ask(&world, &token, question(&format!("q{n}"))).await {
                Ok(_) => {}
                Err(error) => {
                    told = Some((error.kind, error.code, error.details["dimension"].clone()));
                    break;
                }
            }
        }
        assert_eq!(told, Some((ErrorKind::TooMany, code::BUDGET_EXCEEDED, json!("tokens"))), "{on_exhaustion}");
        let spent: u64 = recorded(&world, &run).await as u64 * 15;
        assert!((45..=100).contains(&spent), "{spent}");
        assert!(world.open_interrupts().await.is_empty(), "a program in the middle of its work waits for nobody");
        finish(&world, &hand, &run, &step).await;
        assert_eq!(world.status(&run).await, baton_model::RunStatus::Completed);
    }
}

#[tokio::test]
async fn values_are_kept_over_dispatches_and_restarts_within_bounds() {
    let brain = brain();
    let mut world = open(reading(&brain)).await;
    let mut first = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("steps").await;
    let (_, old) = first.step_with_token().await;
    assert_eq!(keep(&world, &old, "k", json!({"at": 1})).await, Ok((json!({"at": 1}), true)));
    assert_eq!(keep(&world, &old, "k", json!({"at": 2})).await, Ok((json!({"at": 1}), false)), "the first one counts");
    assert_eq!(keep(&world, &old, "", json!(1)).await, Err(code::VALIDATION_ERROR));
    let large = json!("x".repeat(256 * 1024));
    assert_eq!(keep(&world, &old, "large", large).await, Err(code::PAYLOAD_TOO_LARGE));
    for n in 1..1_000 {
        assert_eq!(keep(&world, &old, &n.to_string(), json!(n)).await, Ok((json!(n), true)));
    }
    assert_eq!(keep(&world, &old, "one more", json!(1)).await, Err(code::CAP_BREACHED));
    first.stream = None;
    world = world.next(1, reading(&brain)).await;
    world.settle().await;
    assert_eq!(kept(&world, &old, "999").await, Ok(json!(999)), "the runner still has it");
    let mut second = Hand::new(&world, &who(), "r2", 1).await;
    pass(&world, LEASE_MS + 1_000).await;
    let (step, token) = second.step_with_token().await;
    assert_eq!(kept(&world, &old, "k").await, Err(code::STEP_NOT_LEASED));
    assert_eq!(kept(&world, &token, "k").await, Ok(json!({"at": 1})));
    assert_eq!(kept(&world, &token, "other").await, Err(code::NOT_FOUND));
    finish(&world, &second, &run, &step).await;
    let log = world.log_of(&run).await;
    assert!(!log.iter().any(|event| event.to_string().contains("{\"at\":1}")), "values are not shown");
    world.verified(&run, "with values").await;
}

#[tokio::test]
async fn a_step_asks_so_many_models_at_the_same_time() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    world.start("steps").await;
    let (_, token) = hand.step_with_token().await;
    brain.open.send_replace(false);
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..16 {
        let (host, claims) = (world.host.clone(), claims(&world, &token));
        asking.spawn(async move { host.ask_for_step(&claims, question(&n.to_string())).await });
    }
    in_time("all are asked", brain.called(16)).await;
    assert_eq!(refused(&world, &token, "one more").await, (ErrorKind::TooMany, code::RATE_LIMITED));
    brain.open.send_replace(true);
    while let Some(answer) = asking.join_next().await {
        assert!(answer.unwrap().is_ok());
    }
    assert!(ask(&world, &token, question("one more")).await.is_ok());
}

#[tokio::test]
async fn the_stream_the_run_and_the_call_may_be_on_three_hosts() {
    let (company, brain) = (sharing::Company::new(), brain());
    let mut hosts = Vec::new();
    for seed in 0..3 {
        hosts.push(company.join(7 + seed, reading(&brain)).await);
    }
    hosts[0].register(flow()).await;
    let all: Vec<&World> = hosts.iter().collect();
    let mut hand = Hand::new(&hosts[1], &who(), "r1", 1).await;
    company.pass(&all, 2_000).await;
    let run = budget::start(&hosts[0], "steps", json!({"maxTokens": 100})).await;
    company.pass(&all, 2_000).await;
    let (step, token) = hand.step_with_token().await;
    let asked = async |host: &World, text: &str| {
        let claims = claims(host, &token);
        let asking = host.host.ask_for_step(&claims, question(text));
        sharing::while_time_passes(&company, &all, Box::pin(asking)).await
    };
    for (n, host) in hosts.iter().enumerate() {
        let answer = asked(host, "a").await.unwrap();
        assert_eq!((answer.reply.content, answer.recorded), (format!("answer {n} to a"), false));
    }
    assert_eq!(recorded(&hosts[0], &run).await, 3);
    let mut told = None;
    for n in 0..20 {
        if let Err(error) = asked(&hosts[2], &format!("q{n}")).await {
            told = Some(error.code);
            break;
        }
    }
    assert_eq!(told, Some(code::BUDGET_EXCEEDED), "also where another host has the run");
    let claims = claims(&hosts[2], &token);
    let keeping = hosts[2].host.keep_for_step(&claims, "k".to_owned(), json!(1));
    assert!(sharing::while_time_passes(&company, &all, Box::pin(keeping)).await.unwrap().created);
    let looking = hosts[1].host.kept_for_step(&claims, "k");
    assert_eq!(sharing::while_time_passes(&company, &all, Box::pin(looking)).await.unwrap(), json!(1));
    let answering = hand.answer(&hosts[1], &step, text("done"));
    assert_eq!(sharing::while_time_passes(&company, &all, answering).await, Ok(false));
    company.pass(&all, 3_000).await;
    assert_eq!(asked(&hosts[2], "a").await.unwrap_err().code, code::STEP_NOT_LEASED);
}
