//! Nothing leaves before it is durable: a model is asked and a tool is called only for what is on disk. And what has
//! left is not forgotten, whatever becomes of the heads in memory.

use crate::agents;
use crate::common;

use std::sync::Arc;

use agents::{AGENT, Brain, Calls, Sink, armed, asks, call_again, options, says, told, wants};
use baton_model::{OutcomePolicy, RunId, RunStatus};
use baton_store::Disk;
use baton_tool::Tool;
use common::scenario::pipeline;
use common::{World, in_time, request, tenant, who};
use serde_json::json;

const PAY: &str = "mcp:srv.pay";
const NOTE: &str = "mcp:srv.note";

struct Scene {
    brain: Arc<Brain>,
    sink: Arc<Sink>,
    world: World,
}

/// One agent, one call that nobody may make twice.
async fn scene() -> Scene {
    let brain =
        Brain::new(|request| if told(request) == 0 { wants(&[(PAY, json!({"amount": 5}))]) } else { says("paid") });
    let sink = Sink::new(PAY, OutcomePolicy::Ask);
    let options = options(vec![armed(AGENT, &[PAY])], &brain, vec![Arc::clone(&sink) as _], 512);
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(asks("asks", AGENT)).await;
    world.register(pipeline("pipeline")).await;
    brain.witness.watch(&world.store);
    sink.witness.watch(&world.store);
    world.settle().await;
    Scene { brain, sink, world }
}

impl Scene {
    async fn paid_once(&self, run: &RunId) {
        self.world.completed_with(run, &json!("paid"), "the end").await;
        let once = Calls { announced: 1, returned: 1, ..Calls::default() };
        assert_eq!(self.world.calls_of(run, PAY).await, once);
        assert_eq!(self.sink.count(), 1);
        assert_eq!(self.brain.count(), 2);
        self.brain.witness.satisfied("the model");
        self.sink.witness.satisfied("the tool");
        self.world.audit_agents("the end").await;
    }

    /// Something else fails to be written, and takes the whole generation with it.
    async fn lose_the_generation(&self) {
        self.world.store.fail_after(0);
        self.world.try_start("pipeline").await.unwrap_err();
        assert!(!self.world.host.readiness().ready);
    }

    async fn heal(&self) {
        self.world.store.heal();
        self.world.recovered().await;
        // What could not be told is told again after a while.
        self.world.clock.advance(2000);
        self.world.settle().await;
    }
}

#[tokio::test]
async fn nobody_is_called_before_the_disk_has_what_it_follows_from() {
    let scene = scene().await;
    let Scene { brain, sink, world } = &scene;
    world.store.hold();
    let start = tokio::spawn({
        let host = world.host.clone();
        async move { host.start_run(&who(), request("asks"), None).await.unwrap().run_id }
    });
    world.settle().await;
    assert_eq!(brain.count(), 0, "asked on behalf of what may still be lost");
    brain.open.send_replace(false);
    world.store.release();
    let run = in_time("the start", start).await.unwrap();
    in_time("the question", brain.called(1)).await;

    world.store.hold();
    brain.open.send_replace(true);
    world.settle().await;
    assert_eq!(sink.count(), 0, "called on behalf of what may still be lost");
    let page = world.host.events(&tenant(), &run, None, 100).await.unwrap();
    assert!(!page.events.iter().any(|event| event.body.contains("agent.toolCalled")), "shown before the commit");
    sink.let_return(false);
    world.store.release();
    in_time("the call", sink.called(1)).await;

    world.store.hold();
    sink.let_return(true);
    world.settle().await;
    assert_eq!(brain.count(), 1, "told about what may still be lost");
    world.store.release();
    scene.paid_once(&run).await;
    world.audit_agents("held").await;
}

/// The intent does not get to the disk, so nobody is called; what is decided anew is called once, and asks nobody.
#[tokio::test]
async fn an_intent_that_was_lost_was_never_carried_out() {
    let scene = scene().await;
    let Scene { brain, sink, world } = &scene;
    brain.open.send_replace(false);
    let run = world.start("asks").await;
    in_time("the question", brain.called(1)).await;
    world.settle().await;
    world.store.fail_after(0);
    brain.open.send_replace(true);
    world.settle().await;
    assert_eq!((sink.count(), world.calls_of(&run, PAY).await), (0, Calls::default()), "lost, and not called");
    scene.heal().await;
    scene.paid_once(&run).await;
}

/// The heads of a generation are thrown away while a call is under way. It is nobody's to make again: its answer is
/// recorded when it comes, be that before the disk is well or after.
#[tokio::test]
async fn a_call_outlives_the_head_that_wanted_it() {
    for answers_first in [false, true] {
        let scene = scene().await;
        let Scene { sink, world, .. } = &scene;
        sink.let_return(false);
        let run = world.start("asks").await;
        in_time("the call", sink.called(1)).await;
        world.settle().await;
        scene.lose_the_generation().await;
        if answers_first {
            sink.let_return(true);
            world.settle().await;
            assert_eq!(world.calls_of(&run, PAY).await.returned, 0, "the disk takes nothing");
        }
        scene.heal().await;
        assert_eq!((sink.count(), sink.abandoned()), (1, 0), "still the same call");
        sink.let_return(true);
        scene.paid_once(&run).await;
    }
}

/// The same for a model, which costs money.
#[tokio::test]
async fn a_question_outlives_the_head_that_asked_it() {
    for answers_first in [false, true] {
        let scene = scene().await;
        let Scene { brain, world, .. } = &scene;
        brain.open.send_replace(false);
        let run = world.start("asks").await;
        in_time("the question", brain.called(1)).await;
        world.settle().await;
        scene.lose_the_generation().await;
        if answers_first {
            brain.open.send_replace(true);
            world.settle().await;
        }
        scene.heal().await;
        assert_eq!((brain.count(), brain.abandoned()).0, if answers_first { 2 } else { 1 });
        brain.open.send_replace(true);
        scene.paid_once(&run).await;
    }
}

/// A host that stops waits for nobody. The next one asks what became of the call before it makes it again.
#[tokio::test]
async fn a_call_under_way_when_the_host_stops_is_in_doubt() {
    let first = scene().await;
    first.sink.let_return(false);
    let run = first.world.start("asks").await;
    in_time("the call", first.sink.called(1)).await;
    let Scene { brain, sink, world } = first;
    let options = options(vec![armed(AGENT, &[PAY])], &brain, vec![Arc::clone(&sink) as _], 512);
    let world = in_time("the stop", world.next(1, options)).await;
    assert_eq!(sink.abandoned(), 1);
    sink.let_return(true);
    sink.witness.watch(&world.store);
    assert_eq!(world.waiting(&run).await.status, RunStatus::WaitingApproval);
    assert_eq!(sink.count(), 1, "asks first");
    world.drive_saying(call_again).await;
    assert_eq!((sink.count(), sink.names().len()), (2, 1), "a human said so, and it is the same call");
    sink.witness.satisfied("the tool");
    world.completed_with(&run, &json!("paid"), "the end").await;
    world.audit_agents("the end").await;
}

/// The disk fails and heals again and again under agents at work. Nobody is called twice, and nobody is asked anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flapping_disk_calls_nothing_twice() {
    let brain = Brain::new(|request| match told(request) {
        0 => wants(&[(PAY, json!({"amount": 1})), (NOTE, json!({}))]),
        2 => wants(&[(PAY, json!({"amount": 2}))]),
        _ => says("paid"),
    });
    let (pay, note) = (Sink::new(PAY, OutcomePolicy::Ask), Sink::new(NOTE, OutcomePolicy::Retry));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&pay) as _, Arc::clone(&note) as _];
    let options = options(vec![armed(AGENT, &[PAY, NOTE])], &brain, tools, 2);
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(asks("asks", AGENT)).await;
    brain.witness.watch(&world.store);
    pay.witness.watch(&world.store);
    note.witness.watch(&world.store);
    let mut runs = Vec::new();
    // Answers what is asked, lets time pass, and says whether everybody is done.
    let stir = async |runs: &[RunId]| {
        for open in world.open_interrupts().await {
            // It may have been answered, or lost, by now.
            let _ = world.resolve(&open.run, open.node.as_str(), call_again(&open)).await;
        }
        world.clock.advance(10);
        tokio::task::yield_now().await;
        for run in runs {
            if !world.status(run).await.is_terminal() {
                return false;
            }
        }
        true
    };
    in_time("trouble", async {
        for round in 0..60 {
            world.store.fail_after(round % 13);
            for _ in 0..2 {
                runs.extend(world.try_start("asks").await.map(|started| started.run_id));
            }
            while world.host.readiness().ready && !stir(&runs).await {}
            world.store.heal();
            while !world.host.readiness().ready {
                world.clock.advance(50);
                tokio::task::yield_now().await;
            }
        }
        while !stir(&runs).await {}
    })
    .await;
    assert!(runs.len() > 20, "too few runs: {}", runs.len());
    assert!(world.reader.generation() > 20, "too little trouble: {}", world.reader.generation());
    for run in &runs {
        world.completed_with(run, &json!("paid"), "flapping").await;
        for (tool, sink, announced) in [(PAY, &pay, 2), (NOTE, &note, 1)] {
            // The process never stopped, so it knows what it has called.
            let calls = world.calls_of(run, tool).await;
            assert_eq!(calls, Calls { announced, returned: announced, ..Calls::default() }, "{run}");
            let made = sink.keys.lock().iter().filter(|key| key.starts_with(run.as_str())).count();
            assert_eq!(made, announced, "{run}: {tool}");
        }
    }
    brain.witness.satisfied("flapping");
    pay.witness.satisfied("flapping");
    note.witness.satisfied("flapping");
    world.audit_agents("flapping").await;
}
