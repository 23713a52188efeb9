//! The process dies after every single commit of an agent at work, before, while and after its tools are called. The
//! next one always comes to the end, and nothing that touches the world is done twice without somebody saying so.

use crate::agents;
use crate::common;

use std::sync::Arc;

use agents::{
    AGENT, Brain, Calls, REMEMBER, Sink, armed, asks, call_again, it_failed, options, says, says_json, told, wants,
    was_done,
};
use baton_model::{AgentCard, Event, MemoryShape, OutcomePolicy, RunId, RunStatus};
use baton_runtime::Options;
use baton_store::{Disk, InterruptRow};
use baton_testkit::{Flow, SimClock};
use common::{World, in_time};
use serde_json::{Value, json};

const CAREFUL: &str = "mcp:srv.pay";
const ROBUST: &str = "mcp:srv.note";
/// More crashes than the run has commits: past this, something commits for ever.
const MOST_CRASHES: u64 = 100;

type Says = fn(&InterruptRow) -> Value;

/// Two tools outside and one inside, and an answer that has to be put right once.
struct Scene {
    brain: Arc<Brain>,
    /// Nobody knows whether a second call does harm.
    careful: Arc<Sink>,
    /// A second call under the same key does none.
    robust: Arc<Sink>,
}

fn result() -> Value {
    json!({"verdict": "paid"})
}

impl Scene {
    fn new() -> Self {
        let brain = Brain::new(|request| match told(request) {
            0 => wants(&[
                (CAREFUL, json!({"amount": 5})),
                (REMEMBER, json!({"content": "paid 5"})),
                (ROBUST, json!({"text": "paid"})),
            ]),
            // What the tools said was the last thing it heard: it forgets the shape, and is told.
            _ if request.semantic.messages.last().is_some_and(|last| last.role() == "tool") => says("{\"verdict\": 5}"),
            _ => says_json(&result()),
        });
        let careful = Sink::new(CAREFUL, OutcomePolicy::Ask);
        Self { brain, careful, robust: Sink::new(ROBUST, OutcomePolicy::Retry) }
    }

    fn options(&self, ahead: usize) -> Options {
        let schema = json!({"type": "object", "required": ["verdict"], "properties": {"verdict": {"type": "string"}}});
        let agent = AgentCard {
            return_schema: Some(schema),
            memory: MemoryShape { long_term: true, ..MemoryShape::default() },
            ..armed(AGENT, &[CAREFUL, ROBUST, REMEMBER])
        };
        options(vec![agent], &self.brain, vec![Arc::clone(&self.careful) as _, Arc::clone(&self.robust) as _], ahead)
    }

    /// A process of its own.
    async fn life(&self, disk: Disk, clock: &Arc<SimClock>, ahead: usize) -> World {
        let world = World::open(disk, Arc::clone(clock), self.options(ahead)).await;
        self.brain.witness.watch(&world.store);
        self.careful.witness.watch(&world.store);
        self.robust.witness.watch(&world.store);
        world
    }

    /// Nobody was called before what the call follows from was on disk.
    fn satisfied(&self, context: &str) {
        self.brain.witness.satisfied(context);
        self.careful.witness.satisfied(context);
        self.robust.witness.satisfied(context);
    }

    async fn prepared(&self) -> Disk {
        let world = World::open(Disk::default(), Arc::default(), self.options(1)).await;
        world.register(asks("asks", AGENT)).await;
        world.stop().await
    }
}

/// Starts the run unless an earlier life has, and sees it through.
async fn to_the_end(world: &World, says: Says) -> RunId {
    if world.rows().await.is_empty() {
        world.start("asks").await;
    }
    world.drive_saying(says).await;
    world.rows().await[0].id.clone()
}

/// Dies after `commits` commits. `None` when the run ended without dying.
async fn dies(
    scene: &Scene,
    disk: Disk,
    clock: &Arc<SimClock>,
    ahead: usize,
    commits: u64,
    says: Says,
) -> Option<Disk> {
    let world = scene.life(disk, clock, ahead).await;
    // Before anything of it has run: a host that opens picks up what it finds.
    world.store.crash_after(commits);
    let died = tokio::select! {
        _ = to_the_end(&world, says) => false,
        () = world.store.crashed() => true,
    };
    let disk = world.stop().await;
    died.then_some(disk)
}

/// What is true of every life: the same result, one entry in memory, and no call without an intent of its own.
async fn check(world: &World, run: &RunId, context: &str) -> (Calls, Calls) {
    world.completed_with(run, &result(), context).await;
    world.audit_agents(context).await;
    assert!(world.open_interrupts().await.is_empty(), "{context}");
    assert_eq!(world.recall(run.as_str()).await, ["paid 5"], "{context}: remembered once");
    let written = world.kinds_of(run, "memory.written").await;
    assert_eq!(written.len(), 1, "{context}");
    let repairs = world.kinds_of(run, "envelope.retry.attempted").await;
    assert_eq!(repairs.len(), 1, "{context}: put right once");
    let (careful, robust) = (world.calls_of(run, CAREFUL).await, world.calls_of(run, ROBUST).await);
    for calls in [&careful, &robust] {
        assert_eq!((calls.announced, calls.returned), (1, 1), "{context}");
    }
    assert_eq!(careful.answered, careful.unknown, "{context}: whatever was lost was asked about, and only that");
    assert_eq!(robust.again, robust.unknown, "{context}: called again without asking anybody");
    (careful, robust)
}

/// The records that stood on the disk when the process died.
async fn found(disk: &Disk) -> Vec<Event> {
    let store = Arc::new(baton_store::MemoryStore::from_disk(disk.clone()));
    let world = World::over(Arc::clone(&store) as _, store, Arc::default(), common::options(1)).await;
    let rows = world.rows().await;
    let events = match rows.first() {
        Some(row) => world.events_of(&row.id).await,
        None => Vec::new(),
    };
    world.stop().await;
    events
}

/// Whether this tool's call was open on a disk.
fn was_open(log: &[Event], tool: &str) -> bool {
    let called = log.iter().any(|event| matches!(event, Event::AgentToolCalled(event) if event.tool_name == tool));
    let returned = log.iter().any(|event| matches!(event, Event::AgentToolReturned(event) if event.tool_name == tool));
    called && !returned
}

/// In the second life the tools may have been called (`true`), or the process may have died just before.
async fn crash_everywhere(ahead: usize, says: Says, had_called: bool) {
    let mut lost = 0;
    for commits in 0.. {
        let context = format!("{ahead} ahead, crashed after {commits}, had called: {had_called}");
        assert!(commits < MOST_CRASHES, "{context}: never ends");
        let scene = Scene::new();
        let clock = Arc::new(SimClock::default());
        let disk = scene.prepared().await;
        let Some(left) = in_time(&context, dies(&scene, disk, &clock, ahead, commits, says)).await else {
            assert!(commits >= if ahead == 1 { 12 } else { 3 }, "{context}: too few places to crash at");
            assert!(lost > 0, "{context}: no crash around the calls");
            return;
        };
        let log = found(&left).await;
        let unsure = was_open(&log, CAREFUL);
        lost += u32::from(unsure);
        let before = (scene.careful.count(), scene.robust.count());
        let scene = if had_called { scene } else { Scene::new() };
        let world = scene.life(left, &clock, ahead).await;
        let run = in_time(&context, to_the_end(&world, says)).await;
        let (careful, robust) = check(&world, &run, &context).await;
        assert_eq!(careful.unknown, usize::from(unsure), "{context}: a call that was open is in doubt, no other");
        assert_eq!(robust.unknown, usize::from(was_open(&log, ROBUST)), "{context}");
        // Of the careful one: the first call, and one for each time a human said so.
        let again = careful.again;
        assert!(again == 0 || unsure, "{context}");
        if had_called {
            let (made, note) = (scene.careful.count(), scene.robust.count());
            assert!(before.0 <= 1 && made <= 1 + again, "{context}: {made} calls, {again} times on purpose");
            assert!(before.1 <= 1 && note <= 1 + robust.again, "{context}");
            assert!(
                scene.careful.names().len() <= 1 && scene.robust.names().len() <= 1,
                "{context}: one call, one key"
            );
        } else if unsure {
            assert_eq!(scene.careful.count(), again, "{context}: only when somebody says so");
        }
        world.stop().await;
        scene.satisfied(&context);
    }
}

#[tokio::test]
async fn a_crash_at_any_commit_calls_nothing_twice_in_silence() {
    for says in [call_again as Says, was_done, it_failed] {
        crash_everywhere(1, says, true).await;
    }
    crash_everywhere(512, call_again, true).await;
}

#[tokio::test]
async fn a_crash_just_before_a_call_asks_too_for_nobody_can_tell() {
    for says in [call_again as Says, was_done] {
        crash_everywhere(1, says, false).await;
    }
}

/// Dies after every single commit, in life after life. What a human says was done need not be called again.
#[tokio::test]
async fn a_process_that_dies_after_every_commit_still_arrives() {
    let scene = Scene::new();
    let clock = Arc::new(SimClock::default());
    let mut disk = scene.prepared().await;
    let mut lives = 0;
    while let Some(left) = in_time("a life", dies(&scene, disk.clone(), &clock, 1, 1, was_done)).await {
        disk = left;
        lives += 1;
        assert!(lives < MOST_CRASHES, "no progress");
    }
    let world = scene.life(disk, &clock, 1).await;
    let run = in_time("the last life", to_the_end(&world, was_done)).await;
    world.completed_with(&run, &result(), "the last life").await;
    world.audit_agents("the last life").await;
    assert_eq!(scene.careful.count(), 1, "a human said that it was done");
    let robust = world.calls_of(&run, ROBUST).await;
    assert_eq!(robust.again, 3, "given up after a few times");
    assert!((1..=4).contains(&scene.robust.count()) && scene.robust.names().len() == 1);
    assert_eq!(world.recall(run.as_str()).await, ["paid 5"]);
    scene.satisfied("every life");
    assert!(scene.brain.witness.looked() > 2 && scene.careful.witness.looked() == 1);
    world.stop().await;
}

/// Every commit fails once, and the host heals itself without dying: what it has in hand is not lost.
#[tokio::test]
async fn a_failure_at_every_commit_calls_nothing_twice() {
    for ahead in [1, 512] {
        let steady = Scene::new();
        let disk = steady.prepared().await;
        let world = steady.life(disk.clone(), &Arc::default(), ahead).await;
        world.settle().await;
        let opening = world.store.commits();
        to_the_end(&world, call_again).await;
        let commits = world.store.commits() - opening;
        world.stop().await;
        assert_eq!((steady.careful.count(), steady.robust.count()), (1, 1));
        for failing in 0..commits {
            let context = format!("{ahead} ahead, commit {failing} failed");
            let scene = Scene::new();
            let world = scene.life(disk.clone(), &Arc::default(), ahead).await;
            world.settle().await;
            world.store.fail_after(failing);
            let run = in_time(&context, world.through_trouble("asks", call_again)).await;
            let (careful, robust) = check(&world, &run, &context).await;
            // It never stopped, so it knows what it has called.
            assert_eq!((careful.unknown, robust.unknown), (0, 0), "{context}: nothing is in doubt");
            assert_eq!((scene.careful.count(), scene.robust.count()), (1, 1), "{context}");
            scene.satisfied(&context);
            world.stop().await;
        }
    }
}

/// A call that a workflow makes without an agent is as careful.
#[tokio::test]
async fn a_crash_around_a_workflows_own_call_is_asked_about_too() {
    const HTTP: &str = "openwop:http.request";
    let brain = Brain::new(|_| says("unasked"));
    let posts = json!({"method": "POST", "url": "https://example.com", "body": {"amount": 5}, "into": "receipt"});
    let flow = Flow::chain("posts", &[("post", "vendor.baton.http", posts), ("after", "core.noop", json!({}))]);
    for says in [call_again as Says, was_done] {
        let mut lost = 0;
        for commits in 0.. {
            let context = format!("crashed after {commits}");
            assert!(commits < MOST_CRASHES, "{context}: never ends");
            let sink = Sink::new(HTTP, OutcomePolicy::Ask);
            let options = || options(Vec::new(), &brain, vec![Arc::clone(&sink) as _], 1);
            let clock = Arc::new(SimClock::default());
            let life = World::open(Disk::default(), Arc::clone(&clock), options()).await;
            life.register(flow.clone()).await;
            life.settle().await;
            sink.witness.watch(&life.store);
            life.store.crash_after(commits);
            let lived = async {
                life.start("posts").await;
                life.drive_saying(says).await;
            };
            let died = tokio::select! {
                () = lived => false,
                () = life.store.crashed() => true,
            };
            let left = life.stop().await;
            if !died {
                assert_eq!((sink.count(), lost), (1, 1), "{context}");
                break;
            }
            let unsure = was_open(&found(&left).await, HTTP);
            lost += u32::from(unsure);
            let world = World::open(left, clock, options()).await;
            sink.witness.watch(&world.store);
            if world.rows().await.is_empty() {
                world.start("posts").await;
            }
            in_time(&context, world.drive_saying(says)).await;
            let run = world.rows().await[0].id.clone();
            let view = world.ended(&run).await;
            assert_eq!(view.status, RunStatus::Completed, "{context}");
            assert!(view.variables["receipt"]["did"] != Value::Null, "{context}: {:?}", view.variables);
            let calls = world.calls_of(&run, HTTP).await;
            assert_eq!((calls.announced, calls.returned, calls.unknown), (1, 1, usize::from(unsure)), "{context}");
            assert_eq!(sink.count(), 1 + calls.again, "{context}");
            assert_eq!(sink.names().len(), 1, "{context}");
            sink.witness.satisfied(&context);
            world.audit_agents(&context).await;
            world.stop().await;
        }
    }
}
