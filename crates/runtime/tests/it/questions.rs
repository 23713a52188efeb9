//! One answer, one question: whoever answers twice, late, from another host or after a restart never answers the next.

use crate::common;
use crate::forking::branch_at;
use crate::sharing::{Company, kinds};

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::{NodeId, RunId, RunStatus, code};
use baton_runtime::{Answer, Error, ErrorKind, Via};
use baton_testkit::Flow;
use common::scenario::gate;
use common::{World, accept, options, other, tenant, who};
use serde_json::{Value, json};

const CROWD: usize = 1000;

/// A supervisor that is sure of neither of its two decisions.
fn doubtful() -> [Flow; 2] {
    let unsure = |mut decision: Value| {
        decision["confidence"] = json!(0.3);
        decision
    };
    let rules = json!({
        "rules": [{
            "when": "iteration == 1",
            "decide": unsure(json!({"kind": "next-worker", "nextWorkerIds": ["worker"]})),
        }],
        "otherwise": unsure(json!({"kind": "terminate"})),
    });
    let nodes = [("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", json!({}))];
    [Flow::chain("doubtful", &nodes), Flow::chain("worker", &[("work", "core.noop", json!({}))])]
}

async fn asked(world: &World, run: &RunId) -> String {
    world.waiting(run).await.interrupt.unwrap().interrupt_id
}

/// The first question is answered, the second is open.
async fn at_the_second(world: &World) -> (RunId, String, String) {
    let run = world.start("doubtful").await;
    let first = asked(world, &run).await;
    world.answer(&run, "lead", accept()).await.unwrap();
    let open =
        world.wait_for(&run, |view| view.interrupt.as_ref().is_some_and(|open| open.interrupt_id != first)).await;
    (run, first, open.interrupt.unwrap().interrupt_id)
}

fn late<T>(result: Result<T, Error>) -> Option<Value> {
    let error = result.err().unwrap();
    assert_eq!((error.kind, error.code), (ErrorKind::Conflict, code::INTERRUPT_ALREADY_RESOLVED), "{error:?}");
    error.details.get("openInterruptId").cloned()
}

#[tokio::test]
async fn a_second_answer_is_refused_and_told_who_was_faster() {
    let world = World::with(doubtful()).await;
    let (run, first, second) = at_the_second(&world).await;
    assert_eq!(late(world.answer(&run, "lead", accept()).await), Some(json!(second)));
    let error = world.answer(&run, "lead", Answer::to(first.as_str(), accept())).await.unwrap_err();
    assert_eq!((&error.details["resolvedBy"], &error.details["outcome"]), (&json!("key-1"), &json!("accepted")));
    assert_eq!(late::<()>(Err(error)), Some(json!(second)));
    assert_eq!(asked(&world, &run).await, second, "the next turn is nobody's yet");

    // Another process knows as much, and a question that is open says its name in every list.
    let clock = Arc::clone(&world.clock);
    let world = World::open(world.stop().await, clock, options(512)).await;
    assert_eq!(world.open_interrupts().await[0].interrupt_id, second);
    assert_eq!(late(world.answer(&run, "lead", accept()).await), Some(json!(second)));
    world.answer(&run, "lead", Answer::to(second.as_str(), accept())).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    for id in [&first, &second] {
        assert_eq!(late(world.answer(&run, "lead", Answer::to(id.as_str(), accept())).await), None);
    }
    assert_eq!(kinds(&world, &run).await["runOrchestrator.decided"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_answers_at_once_exactly_one_counts() {
    let world = World::with(doubtful()).await;
    let run = world.start("doubtful").await;
    let open = world.waiting(&run).await.interrupt.unwrap();
    let (first, token) = (open.interrupt_id, open.interrupt_token.unwrap());
    let answers = (0..CROWD).map(|place| {
        let (host, run, first, token) = (world.host.clone(), run.clone(), first.clone(), token.clone());
        tokio::spawn(async move {
            let via = Via::Bearer { subject: format!("key-{place}") };
            let node = NodeId::new("lead");
            match place % 3 {
                0 => host.resolve(&tenant(), &run, &node, Answer::to(first, accept()), via).await,
                1 => host.resolve(&tenant(), &run, &node, accept(), via).await,
                _ => host.resolve_token(&token, accept()).await,
            }
        })
    });
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for answer in answers.collect::<Vec<_>>() {
        *outcomes.entry(answer.await.unwrap().map_or_else(|error| error.code, |_| "taken")).or_default() += 1;
    }
    assert_eq!(outcomes, BTreeMap::from([("taken", 1), (code::INTERRUPT_ALREADY_RESOLVED, CROWD - 1)]));
    let next =
        world.wait_for(&run, |view| view.interrupt.as_ref().is_some_and(|open| open.interrupt_id != first)).await;
    assert_eq!(next.status, RunStatus::WaitingApproval);
    assert_eq!(kinds(&world, &run).await["runOrchestrator.decided"], 1, "the second turn waits");
}

#[tokio::test]
async fn a_link_is_for_the_question_it_was_made_for() {
    let world = World::with(doubtful()).await;
    let run = world.start("doubtful").await;
    let token = world.waiting(&run).await.interrupt.unwrap().interrupt_token.unwrap();
    let first = asked(&world, &run).await;
    // What the answer names has to be what the link leads to.
    assert_eq!(late(world.host.resolve_token(&token, Answer::to("int:lead:2", accept())).await), Some(json!(first)));
    world.host.resolve_token(&token, Answer::to(first.as_str(), accept())).await.unwrap();
    world.wait_for(&run, |view| view.interrupt.as_ref().is_some_and(|open| open.interrupt_id != first)).await;
    late(world.host.resolve_token(&token, accept()).await);
    late(world.host.inspect_token(&token).await);
    assert_eq!(kinds(&world, &run).await["runOrchestrator.decided"], 1);
}

#[tokio::test]
async fn the_question_of_another_run_or_tenant_is_not_this_one() {
    let world = World::with(doubtful().into_iter().chain([gate("gated")])).await;
    let (run, _, second) = at_the_second(&world).await;
    let gated = world.start("gated").await;
    let of_gate = asked(&world, &gated).await;
    assert_eq!(late(world.answer(&run, "lead", Answer::to(of_gate.as_str(), accept())).await), Some(json!(second)));
    assert_eq!(late(world.answer(&gated, "gate", Answer::to(second.as_str(), accept())).await), Some(json!(of_gate)));
    let via = Via::Bearer { subject: "rival".to_owned() };
    let answer = Answer::to(second.as_str(), accept());
    let stranger = world.host.resolve(&other().tenant, &run, &NodeId::new("lead"), answer, via).await.unwrap_err();
    assert_eq!(
        (stranger.kind, stranger.code),
        (ErrorKind::NotFound, code::RUN_NOT_FOUND),
        "and it hears nothing of the id"
    );
    assert!(stranger.details.get("openInterruptId").is_none());
    for odd in ["", "\0", "int:lead:1\r\n", "{\"$ne\":1}", &"x".repeat(1_000_000)] {
        assert_eq!(late(world.answer(&run, "lead", Answer::to(odd, accept())).await), Some(json!(second)));
    }
}

#[tokio::test]
async fn a_branch_answers_for_itself() {
    let world = World::with(doubtful()).await;
    let (run, _, second) = at_the_second(&world).await;
    let length = world.length(&run).await;
    let branch = world.fork(&run, branch_at(length)).await;
    assert_eq!(asked(&world, &branch).await, second, "the place is the same");
    assert_eq!(late(world.answer(&branch, "lead", accept()).await), Some(json!(second)));
    world.answer(&branch, "lead", Answer::to(second.as_str(), accept())).await.unwrap();
    assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
    assert_eq!(asked(&world, &run).await, second, "the source's own question is still open");
}

#[tokio::test]
async fn an_answer_that_another_host_carries_out_says_which_question_it_means() {
    let (_company, a, b) = Company::two(doubtful()).await;
    let (run, first, second) = at_the_second(&a).await;
    assert_eq!(late(b.answer(&run, "lead", accept()).await), Some(json!(second)));
    let error = b.answer(&run, "lead", Answer::to(first.as_str(), accept())).await.unwrap_err();
    assert_eq!(error.details["resolvedBy"], "key-1");
    assert_eq!(late::<()>(Err(error)), Some(json!(second)));
    assert_eq!(late(b.answer(&run, "lead", Answer::to("\0…", accept())).await), Some(json!(second)));
    b.answer(&run, "lead", Answer::to(second.as_str(), accept())).await.unwrap();
    assert_eq!(b.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(late(b.answer(&run, "lead", Answer::to(second.as_str(), accept())).await), None);
}

#[tokio::test]
async fn an_answer_that_races_a_cancellation_loses_or_wins_whole() {
    let world = World::with(doubtful()).await;
    let (run, _, second) = at_the_second(&world).await;
    let answer = Answer::to(second.as_str(), accept());
    let me = who();
    let (cancelled, answered) = tokio::join!(world.host.cancel(&me, &run, None), world.answer(&run, "lead", answer));
    cancelled.unwrap();
    let end = world.ended(&run).await.status;
    match answered {
        Ok(_) => assert!(matches!(end, RunStatus::Completed | RunStatus::Cancelled)),
        Err(error) => {
            assert_eq!(end, RunStatus::Cancelled);
            assert!([code::INTERRUPT_CANCELLED, code::INTERRUPT_ALREADY_RESOLVED].contains(&error.code), "{error:?}");
        }
    }
}
