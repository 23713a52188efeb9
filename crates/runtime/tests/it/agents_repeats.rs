//! A model whose answer breaks off is asked the same again; what its agent has done by then is not done again, however
//! often the process dies in between.

use crate::agents;
use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agents::{AGENT, Brain, Sink, armed, asks, options, says, told, wants};
use baton_model::{OutcomePolicy, RunStatus, Usage, code};
use baton_provider::{Broken, ProviderFault};
use baton_store::Disk;
use baton_testkit::SimClock;
use common::World;
use serde_json::json;

const POST: &str = "mcp:srv.post";

fn half() -> ProviderFault {
    let fault = ProviderFault::Unavailable("it reported overloaded_error instead of an answer".to_owned());
    let usage = Usage { input_tokens: 40, output_tokens: 2, ..Usage::default() };
    ProviderFault::Broken(Box::new(Broken { fault, usage, again: true }))
}

/// Calls one tool, and then breaks off this often before it answers.
fn brittle(times: usize) -> Arc<Brain> {
    let broken = AtomicUsize::new(0);
    Brain::moody(move |request| match told(request) {
        0 => Ok(wants(&[(POST, json!({"amount": 5}))])),
        _ if broken.fetch_add(1, Ordering::SeqCst) < times => Err(half()),
        _ => Ok(says("paid")),
    })
}

async fn world(brain: &Arc<Brain>, sink: &Arc<Sink>, disk: Disk, clock: &Arc<SimClock>) -> World {
    let options = options(vec![armed(AGENT, &[POST])], brain, vec![Arc::clone(sink) as _], 1);
    let world = World::open(disk, Arc::clone(clock), options).await;
    brain.witness.watch(&world.store);
    sink.witness.watch(&world.store);
    world
}

#[tokio::test]
async fn a_run_without_retries_survives_a_broken_answer() {
    for (times, ends) in [(1, true), (3, true), (4, false), (1000, false)] {
        let (brain, sink) = (brittle(times), Sink::new(POST, OutcomePolicy::Ask));
        let world = world(&brain, &sink, Disk::default(), &Arc::default()).await;
        world.register(asks("asks", AGENT)).await;
        let run = world.start("asks").await;
        world.drive(20).await;
        let end = world.ended(&run).await;
        match ends {
            true => assert_eq!(end.status, RunStatus::Completed, "{times}: {:?}", end.error),
            false => assert_eq!(end.error.unwrap().code, code::PROVIDER_UNAVAILABLE),
        }
        let broken = times.min(4);
        assert_eq!(sink.count(), 1, "{times}: the call is made once");
        assert_eq!(brain.count(), 1 + broken + usize::from(ends), "{times}");
        let mut keys: Vec<String> = brain.asked.lock().iter().map(|request| request.key.clone()).collect();
        keys.dedup();
        assert_eq!(keys, [format!("{run}/work/1/0/0"), format!("{run}/work/1/0/1")], "the same call, again");
        assert_eq!(world.kinds_of(&run, "baton.model.retried").await.len(), broken.min(3));
        let usage = world.kinds_of(&run, "provider.usage").await.len();
        assert_eq!(usage, 1 + broken + usize::from(ends), "what broke off was paid for, too");
        brain.witness.satisfied("broken");
        world.audit_agents("broken").await;
    }
}

/// The process dies after every commit.
#[tokio::test]
async fn nothing_is_done_twice_wherever_the_process_dies() {
    for commits in 1..60 {
        let (brain, sink) = (brittle(2), Sink::new(POST, OutcomePolicy::Retry));
        let clock = Arc::new(SimClock::default());
        let first = world(&brain, &sink, Disk::default(), &clock).await;
        first.register(asks("asks", AGENT)).await;
        let run = first.start("asks").await;
        first.store.crash_after(commits);
        let died = tokio::select! {
            () = first.drive(20) => false,
            () = first.store.crashed() => true,
        };
        let disk = first.stop().await;
        if !died {
            assert!(commits > 5, "it never died");
            return;
        }
        let next = world(&brain, &sink, disk, &clock).await;
        next.drive(20).await;
        assert_eq!(next.ended(&run).await.status, RunStatus::Completed, "after {commits}");
        assert_eq!(sink.names(), [format!("{run}/work:1:0:0:0")], "after {commits}: one call, under one key");
        brain.witness.satisfied("killed");
        sink.witness.satisfied("killed");
        next.audit_agents("killed").await;
    }
    panic!("it commits for ever");
}
