//! Agents that are stopped, held up or let down while a model or a tool is being called: cancelled, paused, out of time,
//! or with a provider in trouble. Brackets and calls are closed all the same, and nobody is called for nothing.

use crate::agents;
use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agents::{AGENT, Brain, Calls, Sink, armed, options, says, task, told, wants};
use baton_model::event::DrainPolicy;
use baton_model::{OutcomePolicy, RunId, RunStatus, code};
use baton_provider::ProviderFault;
use baton_runtime::{Options, PauseRun, StartRun};
use baton_store::Disk;
use baton_testkit::Flow;
use common::scenario::{call, parent};
use common::{World, in_time, request, who};
use serde_json::{Value, json};

const PAY: &str = "mcp:srv.pay";

struct Scene {
    brain: Arc<Brain>,
    sink: Arc<Sink>,
    world: World,
}

/// Pays, then says so. What else the node says is up to the test.
async fn scene(settings: Value) -> Scene {
    let brain = Brain::new(|request| if told(request) == 0 { wants(&[(PAY, json!({}))]) } else { says("paid") });
    of(brain, settings).await
}

async fn of(brain: Arc<Brain>, settings: Value) -> Scene {
    let sink = Sink::new(PAY, OutcomePolicy::Ask);
    let world = World::open(Disk::default(), Arc::default(), with(&brain, &sink)).await;
    let mut more = task("Do it.");
    more["settings"] = settings;
    world.register(Flow::new("asks").node_with("work", "vendor.baton.agent", json!({"agentId": AGENT}), more)).await;
    world.register(parent("calls", call("asks"))).await;
    Scene { brain, sink, world }
}

fn with(brain: &Arc<Brain>, sink: &Arc<Sink>) -> Options {
    options(vec![armed(AGENT, &[PAY])], brain, vec![Arc::clone(sink) as _], 512)
}

/// Where the agent is when something happens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Model,
    Tool,
}

impl Scene {
    /// Starts a run and waits until the call is under way.
    async fn begun(&self, at: At, start: StartRun) -> RunId {
        match at {
            At::Model => self.brain.open.send_replace(false),
            At::Tool => self.sink.open.send_replace(false),
        };
        let run = self.world.host.start_run(&who(), start, None).await.unwrap().run_id;
        match at {
            At::Model => in_time("the question", self.brain.called(1)).await,
            At::Tool => in_time("the call", self.sink.called(1)).await,
        }
        self.world.settle().await;
        run
    }

    fn hung_up(&self) -> (usize, usize) {
        (self.brain.abandoned(), self.sink.abandoned())
    }

    fn answer(&self) {
        self.brain.open.send_replace(true);
        self.sink.open.send_replace(true);
    }

    /// Whoever is called answers too late: it changes nothing.
    async fn too_late(&self, run: &RunId) {
        let length = self.world.records_of(run).await.len();
        self.answer();
        self.world.settle().await;
        self.world.clock.advance(5000);
        self.world.settle().await;
        assert_eq!(self.world.records_of(run).await.len(), length, "nobody waits for it any more");
    }

    async fn agents_run(&self) -> RunId {
        let rows = self.world.rows().await;
        rows.into_iter().find(|row| row.workflow.as_str() == "asks").unwrap().id
    }
}

/// How the log of a run that was ended from outside goes on after what was under way.
fn closed(at: At) -> &'static [&'static str] {
    match at {
        At::Model => &["agent.invocation.completed", "node.cancelled"],
        At::Tool => &["baton.effect.unknown", "agent.toolReturned", "agent.invocation.completed", "node.cancelled"],
    }
}

#[tokio::test]
async fn cancelling_hangs_up_and_closes_everything() {
    for workflow in ["asks", "calls"] {
        for at in [At::Model, At::Tool] {
            let context = format!("{workflow}, {at:?}");
            let scene = scene(json!({})).await;
            let Scene { world, .. } = &scene;
            let root = scene.begun(at, request(workflow)).await;
            let run = scene.agents_run().await;
            let before = world.records_of(&run).await.len();
            world.host.cancel(&who(), &root, None).await.unwrap();
            assert_eq!(world.ended(&root).await.status, RunStatus::Cancelled, "{context}");
            world.settle().await;
            assert_eq!(scene.hung_up(), (usize::from(at == At::Model), usize::from(at == At::Tool)), "{context}");
            let log = world.kinds_of(&run, "").await;
            let expected: Vec<&str> = closed(at).iter().copied().chain(["run.cancelled"]).collect();
            assert_eq!(log[before..], expected, "{context}");
            let lost = usize::from(at == At::Tool);
            let calls = world.calls_of(&run, PAY).await;
            assert_eq!(
                calls,
                Calls { announced: lost, unknown: lost, returned: lost, ..Calls::default() },
                "{context}"
            );
            scene.too_late(&run).await;
            world.audit_agents(&context).await;
        }
    }
}

#[tokio::test]
async fn a_run_that_is_out_of_time_hangs_up_and_keeps_what_it_has() {
    for at in [At::Model, At::Tool] {
        let scene = scene(json!({"maxRetries": 3})).await;
        let Scene { world, .. } = &scene;
        let configurable = json!({"runTimeoutMs": 1000}).as_object().cloned().unwrap();
        let run = scene.begun(at, StartRun { configurable, ..request("asks") }).await;
        let before = world.records_of(&run).await.len();
        world.clock.advance(1000);
        world.settle().await;
        assert_eq!(world.records_of(&run).await.len(), before, "just in time");
        world.clock.advance(1);
        let view = world.ended(&run).await;
        assert_eq!((view.status, view.error.unwrap().code.as_str()), (RunStatus::Failed, code::RUN_TIMEOUT));
        world.settle().await;
        assert_eq!(scene.hung_up(), (usize::from(at == At::Model), usize::from(at == At::Tool)), "{at:?}");
        let log = world.kinds_of(&run, "").await;
        let expected: Vec<&str> = ["cap.breached"].iter().chain(closed(at)).copied().chain(["run.failed"]).collect();
        assert_eq!(log[before..], expected, "{at:?}");
        scene.too_late(&run).await;
        world.audit_agents("out of time").await;
    }
}

/// Paused at once: what is under way comes back and is kept, and nothing follows from it before the run goes on. Also
/// after a restart.
#[tokio::test]
async fn a_paused_run_keeps_what_comes_back_and_calls_nobody() {
    for at in [At::Model, At::Tool] {
        for restart in [false, true] {
            let context = format!("{at:?}, restart: {restart}");
            let Scene { brain, sink, mut world } = {
                let scene = scene(json!({})).await;
                scene.begun(at, request("asks")).await;
                scene
            };
            let run = world.rows().await[0].id.clone();
            let pause = PauseRun { reason: None, drain: DrainPolicy::Immediate };
            world.host.pause(&who(), &run, pause).await.unwrap();
            world.settle().await;
            assert_eq!((brain.abandoned(), sink.abandoned()), (0, 0), "{context}: nobody hangs up");
            brain.open.send_replace(true);
            sink.open.send_replace(true);
            world.settle().await;
            let (usages, calls) = (world.kinds_of(&run, "provider.usage").await.len(), world.calls_of(&run, PAY).await);
            assert_eq!((usages, calls.returned), if at == At::Model { (1, 0) } else { (1, 1) }, "{context}: kept");
            let called = (brain.count(), sink.count());
            assert_eq!(called, if at == At::Model { (1, 0) } else { (1, 1) }, "{context}: and nothing follows");
            if restart {
                world = world.next(1, with(&brain, &sink)).await;
                world.settle().await;
                assert_eq!((brain.count(), sink.count()), called, "{context}: nor after a restart");
            }
            assert_eq!(world.status(&run).await, RunStatus::Paused, "{context}");
            world.host.resume(&who(), &run, None).await.unwrap();
            world.completed_with(&run, &json!("paid"), &context).await;
            assert_eq!((brain.count(), sink.count()), (2, 1), "{context}");
            assert_eq!(world.calls_of(&run, PAY).await.unknown, 0, "{context}: nothing was ever in doubt");
            world.audit_agents(&context).await;
        }
    }
}

/// A run that stops for a call's sake, and a host that stops while it is paused: the call is in doubt, and asked about
/// when the run goes on.
#[tokio::test]
async fn a_call_lost_while_paused_is_asked_about_when_the_run_goes_on() {
    let scene = scene(json!({})).await;
    let run = scene.begun(At::Tool, request("asks")).await;
    let pause = PauseRun { reason: None, drain: DrainPolicy::Immediate };
    scene.world.host.pause(&who(), &run, pause).await.unwrap();
    let Scene { brain, sink, world } = scene;
    let world = world.next(1, with(&brain, &sink)).await;
    sink.let_return(true);
    world.settle().await;
    assert_eq!((world.status(&run).await, sink.count()), (RunStatus::Paused, 1), "a paused run asks nobody");
    assert!(world.open_interrupts().await.is_empty());
    world.host.resume(&who(), &run, None).await.unwrap();
    assert_eq!(world.waiting(&run).await.status, RunStatus::WaitingApproval);
    assert_eq!(sink.count(), 1);
    world.resolve(&run, "work", json!({"action": "retry"})).await.unwrap();
    world.completed_with(&run, &json!("paid"), "asked").await;
    assert_eq!((sink.count(), sink.names().len()), (2, 1));
    world.audit_agents("asked").await;
}

/// A pause that lets the node finish: its agent finishes, with all its calls.
#[tokio::test]
async fn a_draining_run_lets_its_agent_finish() {
    for at in [At::Model, At::Tool] {
        let scene = scene(json!({})).await;
        let Scene { brain, sink, world } = &scene;
        let more = Flow::new("more")
            .node_with("work", "vendor.baton.agent", json!({"agentId": AGENT}), task("Do it."))
            .node("after", "core.noop", json!({}))
            .edge("work", "after");
        world.register(more).await;
        let run = scene.begun(at, request("more")).await;
        let pause = PauseRun { reason: None, drain: DrainPolicy::DrainCurrentNode };
        world.host.pause(&who(), &run, pause).await.unwrap();
        assert_ne!(world.status(&run).await, RunStatus::Paused);
        scene.answer();
        world.wait_for(&run, |view| view.status == RunStatus::Paused).await;
        assert_eq!((brain.count(), sink.count()), (2, 1), "{at:?}");
        let started = world.kinds_of(&run, "node.started").await;
        assert_eq!(started.len(), 1, "{at:?}: nothing else begins");
        world.host.resume(&who(), &run, None).await.unwrap();
        world.completed_with(&run, &json!("paid"), "drained").await;
        world.audit_agents("drained").await;
    }
}

#[tokio::test]
async fn a_provider_in_trouble_is_tried_again_as_the_node_says() {
    // What the provider says first, how often it says it, how often the node tries again, and how it ends.
    type Case = (fn() -> ProviderFault, usize, u32, Result<usize, &'static str>);
    let cases: [Case; 6] = [
        (|| ProviderFault::Unavailable("down".to_owned()), 1, 1, Ok(2)),
        (|| ProviderFault::TimedOut, 2, 2, Ok(3)),
        (|| ProviderFault::Unavailable("down".to_owned()), 2, 1, Err(code::PROVIDER_UNAVAILABLE)),
        (|| ProviderFault::Exhausted, 1, 0, Err(code::PROVIDER_QUOTA_EXHAUSTED)),
        // Nothing that trying again could mend.
        (|| ProviderFault::Rejected("no such model".to_owned()), 1, 3, Err(code::VALIDATION_ERROR)),
        (|| ProviderFault::Rejected("no such model".to_owned()), 1, 0, Err(code::VALIDATION_ERROR)),
    ];
    for (fault, times, retries, ends) in cases {
        let context = format!("{:?} {times} times, {retries} retries", fault());
        let failed = AtomicUsize::new(0);
        let brain = Brain::moody(move |_| match failed.fetch_add(1, Ordering::SeqCst) {
            count if count < times => Err(fault()),
            _ => Ok(says("done")),
        });
        let Scene { brain, world, .. } = of(brain, json!({"maxRetries": retries, "retryDelayMs": 10})).await;
        let run = world.start("asks").await;
        world.drive(0).await;
        let view = world.ended(&run).await;
        let started = world.kinds_of(&run, "agent.invocation.started").await.len();
        match ends {
            Ok(attempts) => {
                assert_eq!(view.status, RunStatus::Completed, "{context}");
                assert_eq!((brain.count(), started), (attempts, attempts), "{context}: a bracket for each attempt");
                assert_eq!(world.kinds_of(&run, "provider.usage").await.len(), 1, "{context}: no answer, no usage");
                let keys: Vec<String> = brain.asked.lock().iter().map(|request| request.key.clone()).collect();
                let expected: Vec<String> = vec![format!("{run}/work/1/0/0"); attempts];
                assert_eq!(keys, expected, "{context}");
            }
            Err(code) => {
                assert_eq!(view.error.unwrap().code, code, "{context}");
                assert_eq!(
                    brain.count(),
                    if code == code::VALIDATION_ERROR { 1 } else { retries as usize + 1 },
                    "{context}"
                );
            }
        }
        world.audit_agents(&context).await;
    }
}

/// The model refuses: that is an answer, however often the node would try again.
#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    let brain =
        Brain::new(|_| baton_model::ModelReply { stop: baton_model::StopReason::Refusal, ..says("I will not.") });
    let Scene { brain, world, .. } = of(brain, json!({"maxRetries": 3, "retryDelayMs": 10})).await;
    let run = world.start("asks").await;
    let view = world.ended(&run).await;
    assert_eq!((view.status, view.error.unwrap().code.as_str()), (RunStatus::Failed, code::ENVELOPE_REFUSAL));
    assert_eq!((brain.count(), world.kinds_of(&run, "envelope.refusal").await.len()), (1, 1));
    world.audit_agents("refused").await;
}
