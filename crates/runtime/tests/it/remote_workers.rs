//! Workers on other hosts, with the other host and the clock in the test's hands.

use crate::common;
use crate::forking;
use crate::remotes;
use crate::transferring;

use std::sync::Arc;

use baton_model::event::DrainPolicy;
use baton_model::{
    Digest, Event, EventId, ForeignCause, ForkMode, Record, RunId, RunSnapshot, RunStatus, Secret, code,
};
use baton_runtime::{Idempotent, Options, PauseRun, StartRun, StartedRun};
use baton_store::reads::*;
use baton_store::{Disk, MemoryStore, RunFilter};
use baton_testkit::{Flow, SimClock};
use common::scenario::{call, delegate, parent};
use common::{World, in_time, tenant, who};
use forking::fork;
use remotes::{Far, Line, PATIENCE_MS, WORKER};
use serde_json::{Value, json};

async fn world(options: Options, flows: impl IntoIterator<Item = Flow>) -> World {
    let world = World::open(Disk::default(), Arc::default(), options).await;
    for flow in flows {
        world.register(flow).await;
    }
    world
}

/// A team whose only worker is on the other host, started.
async fn led(far: &Arc<Far>) -> (World, RunId) {
    let world = world(far.options(512), [delegate("team", WORKER)]).await;
    let run = world.start("team").await;
    world.settle().await;
    (world, run)
}

/// Time passes, and everybody does what they can.
async fn pass(world: &World, ms: u64) {
    for _ in 0..ms.div_ceil(500) {
        world.clock.advance(500);
        world.settle().await;
    }
}

async fn log(world: &World, run: &RunId) -> Vec<Record> {
    let stored = world.reader.records(run, 0, usize::MAX).await.unwrap();
    stored.iter().map(|stored| stored.decode(run).unwrap()).collect()
}

/// The handoffs of a run: phase, child, and the code of what went wrong. Each is caused by the one before.
async fn chain(world: &World, run: &RunId) -> Vec<(String, Option<String>, Option<String>)> {
    let log = log(world, run).await;
    let mut cause = None;
    let mut chain = Vec::new();
    for record in &log {
        match &record.event {
            Event::OrchestratorDecided(_) => cause = Some(record.seq),
            Event::ChainEvent(event) => {
                assert_eq!(record.causation, cause, "{event:?}");
                cause = Some(record.seq);
                let phase = serde_json::to_value(event.phase).unwrap().as_str().unwrap().to_owned();
                let child = event.child_run_id.as_ref().map(ToString::to_string);
                chain.push((phase, child, event.error.as_ref().map(|error| error.code.clone())));
            }
            _ => {}
        }
    }
    chain
}

fn steps(steps: &[(&str, &str, &str)]) -> Vec<(String, Option<String>, Option<String>)> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    steps.iter().map(|(phase, child, code)| ((*phase).to_owned(), some(child), some(code))).collect()
}

async fn fault(world: &World, run: &RunId) -> Value {
    let log = log(world, run).await;
    let failed = log.iter().find_map(|record| match &record.event {
        Event::ChainEvent(event) => event.error.clone(),
        _ => None,
    });
    json!(failed.unwrap())
}

fn harvested() -> Vec<(String, Option<String>, Option<String>)> {
    steps(&[
        ("dispatch.began", "", ""),
        ("dispatch.succeeded", "far_0", ""),
        ("child.completed", "far_0", ""),
        ("output.harvested", "far_0", ""),
    ])
}

#[tokio::test]
async fn a_worker_elsewhere_is_handed_its_part_and_harvested() {
    let far = Far::slow();
    let secrets = vec![Secret::new("key", "s3cr3t-s3cr3t")];
    let world = world(Options { secrets, ..far.options(512) }, [delegate("team", WORKER)]).await;
    let run = world.start("team").await;
    world.settle().await;
    let handed = far.only().handover;
    let began =
        log(&world, &run).await.into_iter().find(|record| matches!(record.event, Event::ChainEvent(_))).unwrap();
    let Event::ChainEvent(event) = &began.event else { unreachable!() };
    assert_eq!(handed.key, event.private.child.as_ref().unwrap().run.as_str());
    assert_eq!((handed.workflow_id.as_str(), Value::Object(handed.inputs)), ("work", json!({"n": 4})));
    let cause = handed.cause;
    assert_eq!((cause.host_id.as_str(), cause.run_id, cause.depth), ("near.example", run.clone(), 1));
    assert_eq!(cause.event_id, EventId::at(&run, began.seq));
    let place = (cause.node_id.as_ref().map(|id| id.as_str()), cause.workflow_id.as_ref().map(|id| id.as_str()));
    assert_eq!(place, (Some("dispatch"), Some("team")));
    assert_eq!(
        (cause.cause.as_str(), cause.well_known_url.as_str()),
        ("core.dispatch", "https://near.example/.well-known/openwop")
    );
    let child = &world.snapshot(&run).await.child_runs[0];
    assert_eq!(child.run_id.as_str(), "far_0");
    assert_eq!(
        (child.host_id.as_deref(), child.url.as_deref()),
        (Some("far"), Some("https://far.example/v1/runs/far_0"))
    );
    // What the other host masks does not come across, and what it should not know is not written down.
    far.all(RunStatus::Completed, json!({"m": "is s3cr3t-s3cr3t", "hidden": "[REDACTED]"}));
    pass(&world, 1000).await;
    let ended = world.ended(&run).await;
    assert_eq!((ended.status, &ended.variables["n"]), (RunStatus::Completed, &json!("is [REDACTED:key]")));
    assert_eq!(chain(&world, &run).await, harvested());
    assert_eq!(far.asked("create"), 1);
    world.audit("a worker elsewhere").await;
}

#[tokio::test]
async fn a_sub_workflow_may_be_elsewhere_too() {
    let far = Far::slow();
    let world = world(far.options(512), [parent("parent", call(WORKER))]).await;
    let run = world.start("parent").await;
    world.settle().await;
    assert_eq!(Value::Object(far.only().handover.inputs), json!({"n": 4}));
    assert_eq!(far.only().handover.cause.cause, "core.subWorkflow");
    far.all(RunStatus::WaitingApproval, json!({}));
    pass(&world, 1000).await;
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval, "a parent mirrors that its child waits");
    far.all(RunStatus::Running, json!({}));
    pass(&world, 1000).await;
    assert_eq!(world.status(&run).await, RunStatus::Running);
    far.all(RunStatus::Completed, json!({"m": 7}));
    pass(&world, 1000).await;
    assert_eq!(world.ended(&run).await.variables["seen"], json!(7));
}

#[tokio::test]
async fn an_answer_that_is_lost_makes_no_second_child() {
    let far = Far::prompt();
    far.line(Line::NoSink);
    let (world, run) = led(&far).await;
    pass(&world, 10_000).await;
    assert!(far.asked("create") > 3, "it asks again");
    assert_eq!(far.runs().len(), 1);
    assert_eq!(chain(&world, &run).await, steps(&[("dispatch.began", "", "")]));
    far.line(Line::Up);
    pass(&world, 20_000).await;
    assert_eq!(world.ended(&run).await.variables["n"], json!(40));
    assert_eq!((chain(&world, &run).await, far.runs().len()), (harvested(), 1));
}

#[tokio::test]
async fn silence_before_the_child_is_known_ends_the_handoff_and_not_the_loop() {
    for (line, outcome) in [(Line::Cut, "not-started"), (Line::NoSink, "unknown")] {
        let far = Far::slow();
        far.line(line);
        let (world, run) = led(&far).await;
        pass(&world, PATIENCE_MS - 15_000).await;
        assert_eq!(world.status(&run).await, RunStatus::Running);
        pass(&world, 30_000).await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "the next turn ended the run");
        let expected = steps(&[("dispatch.began", "", ""), ("dispatch.failed", "", code::REMOTE_UNREACHABLE)]);
        assert_eq!(chain(&world, &run).await, expected);
        let fault = fault(&world, &run).await;
        assert_eq!(fault["details"]["outcome"], outcome, "{fault}");
        assert_eq!(far.runs().len(), usize::from(line == Line::NoSink));
        // What may have been started is taken back as soon as that can be said.
        far.line(Line::Up);
        pass(&world, 20_000).await;
        assert!(far.runs().iter().all(|run| run.status == RunStatus::Cancelled), "{line:?}");
        assert_eq!(far.asked("withdraw") > 0, line == Line::NoSink);
    }
}

#[tokio::test]
async fn a_refusal_ends_the_handoff_at_once_and_says_what_to_do() {
    let cases = [
        ((401, "unauthenticated"), code::REMOTE_REFUSED, "[remotes.far]"),
        ((403, "forbidden"), code::REMOTE_REFUSED, "runs:create"),
        ((404, "workflow_not_found"), code::UNKNOWN_CHILD_WORKFLOW, "far"),
        ((400, "validation_error"), code::REMOTE_REFUSED, "refused"),
    ];
    for (refusal, code, hint) in cases {
        let far = Far::slow();
        far.refuse(Some(refusal));
        let secrets = vec![Secret::new("key", "s3cr3t-s3cr3t")];
        let world = world(Options { secrets, ..far.options(512) }, [delegate("team", WORKER)]).await;
        let run = world.start("team").await;
        world.settle().await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
        let expected = steps(&[("dispatch.began", "", ""), ("dispatch.failed", "", code)]);
        assert_eq!(chain(&world, &run).await, expected);
        let fault = fault(&world, &run).await;
        assert!(fault["message"].as_str().unwrap().contains(hint), "{fault}");
        assert!(!fault.to_string().contains("s3cr3t-s3cr3t"), "{fault}");
        assert_eq!((fault["details"]["remoteCode"].as_str(), far.requests()), (Some(refusal.1), 1));
    }
}

#[tokio::test]
async fn an_address_nobody_configured_is_an_unknown_worker() {
    let far = Far::slow();
    let bad = [
        "https://near.example/workflows/work",
        "http://far.example/workflows/work",
        "https://far.example:8443/workflows/work",
        "https://far.example/v1/runs",
    ];
    for worker in bad {
        let world = world(far.options(512), [delegate("team", worker)]).await;
        let run = world.start("team").await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
        let fault = fault(&world, &run).await;
        assert_eq!(fault["code"], code::UNKNOWN_CHILD_WORKFLOW);
        let message = fault["message"].as_str().unwrap();
        assert!(message.contains("[remotes.NAME]") || message.contains("https://host/workflows/ID"), "{message}");
    }
    // A remote that is there for somebody else is as good as none.
    let world = world(far.options(512), []).await;
    world.host.register_workflow(&common::other().tenant, delegate("team", WORKER).build()).await.unwrap();
    let run = world.host.start_run(&common::other(), common::request("team"), None).await.unwrap().run_id;
    world.settle().await;
    assert_eq!(fault(&world, &run).await["code"], code::UNKNOWN_CHILD_WORKFLOW);
    assert_eq!(far.requests(), 0);
}

#[tokio::test]
async fn a_child_that_exists_is_followed_however_long_its_host_is_silent() {
    let far = Far::slow();
    let (world, run) = led(&far).await;
    far.line(Line::Cut);
    pass(&world, 10 * PATIENCE_MS).await;
    assert_eq!(world.status(&run).await, RunStatus::Running);
    far.all(RunStatus::Failed, json!({"m": 1}));
    far.line(Line::Up);
    pass(&world, 20_000).await;
    assert_eq!(world.ended(&run).await.variables["n"], json!(4), "nothing is harvested from a failed worker");
    let expected =
        steps(&[("dispatch.began", "", ""), ("dispatch.succeeded", "far_0", ""), ("child.failed", "far_0", "broke")]);
    assert_eq!(chain(&world, &run).await, expected);
}

#[tokio::test]
async fn the_nodes_own_time_limit_binds_although_nobody_answers() {
    let far = Far::slow();
    let mut flow = delegate("team", WORKER).build();
    flow["nodes"][1]["settings"] = json!({"timeout": 5_000});
    let world = world(far.options(512), []).await;
    world.host.register_workflow(&tenant(), flow).await.unwrap();
    let run = world.start("team").await;
    world.settle().await;
    assert_eq!(far.only().handover.timeout_ms, Some(5_000), "the other host keeps it too");
    far.line(Line::Cut);
    pass(&world, PATIENCE_MS).await;
    assert_eq!(world.status(&run).await, RunStatus::Running);
    pass(&world, 20_000).await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(chain(&world, &run).await[2].2.as_deref(), Some(code::NODE_TIMEOUT));
}

#[tokio::test]
async fn a_run_the_other_host_does_not_know_any_more_has_failed() {
    let far = Far::slow();
    let (world, run) = led(&far).await;
    far.refuse(Some((404, "run_not_found")));
    far.line(Line::Up);
    pass(&world, PATIENCE_MS + 15_000).await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(chain(&world, &run).await[2].2.as_deref(), Some(code::REMOTE_REFUSED));
}

#[tokio::test]
async fn a_cancellation_reaches_the_child_and_waits_for_its_end() {
    let far = Far::slow();
    let (world, run) = led(&far).await;
    far.line(Line::Cut);
    world.host.cancel(&who(), &run, None).await.unwrap();
    pass(&world, 20_000).await;
    assert_eq!(world.status(&run).await, RunStatus::Cancelling);
    far.line(Line::Up);
    pass(&world, 20_000).await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Cancelled);
    assert_eq!(far.only().status, RunStatus::Cancelled);
    assert_eq!(chain(&world, &run).await[2], steps(&[("child.cancelled", "far_0", code::CHILD_CANCELLED)])[0]);
}

#[tokio::test]
async fn a_run_that_is_over_does_not_wait_for_ever_for_a_host_that_is_gone() {
    for worker in [true, false] {
        let far = Far::slow();
        let flow = if worker { delegate("top", WORKER) } else { parent("top", call(WORKER)) };
        let world = world(far.options(512), [flow]).await;
        let run = world.start("top").await;
        world.settle().await;
        far.line(Line::Cut);
        world.host.cancel(&who(), &run, None).await.unwrap();
        pass(&world, PATIENCE_MS + 15_000).await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Cancelled);
        let reasons: Vec<Option<String>> = log(&world, &run)
            .await
            .into_iter()
            .filter_map(|record| match record.event {
                Event::ChainEvent(event) => event.error.map(|error| Some(error.code)),
                Event::NodeCancelled(event) if !worker => Some(event.reason),
                _ => None,
            })
            .collect();
        let expected = if worker { code::REMOTE_UNREACHABLE } else { "remote-unreachable" };
        assert_eq!(reasons, [Some(expected.to_owned())], "what is not known is said");
    }
}

#[tokio::test]
async fn a_child_that_may_or_may_not_exist_is_taken_back() {
    for line in [Line::Cut, Line::NoSink] {
        let far = Far::slow();
        far.line(line);
        let (world, run) = led(&far).await;
        world.host.cancel(&who(), &run, None).await.unwrap();
        pass(&world, 5_000).await;
        far.line(Line::Up);
        pass(&world, 20_000).await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Cancelled, "{line:?}");
        let left = far.only();
        // One that never arrived has never done anything either.
        assert_eq!((left.status, left.handover.withdrawn), (RunStatus::Cancelled, line == Line::Cut), "{line:?}");
        let expected = steps(&[
            ("dispatch.began", "", ""),
            ("dispatch.succeeded", "far_0", ""),
            ("child.cancelled", "far_0", code::CHILD_CANCELLED),
        ]);
        assert_eq!(chain(&world, &run).await, expected, "{line:?}");
    }
}

#[tokio::test]
async fn what_happens_while_the_parent_is_paused_is_heard_when_it_goes_on() {
    let far = Far::slow();
    let (world, run) = led(&far).await;
    let pause = PauseRun { reason: None, drain: DrainPolicy::Immediate };
    for status in [RunStatus::WaitingApproval, RunStatus::Running, RunStatus::Completed] {
        world.host.pause(&who(), &run, pause.clone()).await.unwrap();
        far.all(status, json!({"m": 9}));
        pass(&world, 1000).await;
        let asked = far.requests();
        pass(&world, 5000).await;
        assert!(far.requests() <= asked + 1, "nobody asks in a circle");
        assert_eq!(world.status(&run).await, RunStatus::Paused);
        world.host.resume(&who(), &run, None).await.unwrap();
        pass(&world, 1000).await;
        if status.is_terminal() {
            break;
        }
        assert_eq!(world.status(&run).await, status);
        if status.is_waiting() {
            // Only a running run can be paused.
            far.all(RunStatus::Running, json!({}));
            pass(&world, 1000).await;
        }
    }
    assert_eq!(world.ended(&run).await.variables["n"], json!(9));
    assert_eq!((chain(&world, &run).await, far.runs().len()), (harvested(), 1));
}

#[tokio::test]
async fn the_losers_of_a_race_are_ended_over_there() {
    let far = Far::slow();
    let rules = json!({
        "rules": [{"when": "iteration == 1", "decide": {"kind": "next-worker", "nextWorkerIds": [WORKER, "here", WORKER]}}],
        "otherwise": {"kind": "terminate"}
    });
    let dispatch = json!({"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"}});
    let nodes = [("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)];
    let here = Flow::chain("here", &[("wait", "core.delay", json!({"ms": 3000}))]);
    let world = world(far.options(512), [Flow::chain("race", &nodes), here]).await;
    let run = world.start("race").await;
    world.settle().await;
    assert_eq!(far.runs().len(), 2);
    pass(&world, 10_000).await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert!(far.runs().iter().all(|run| run.status == RunStatus::Cancelled));
    assert_eq!(far.runs().len(), 2);
}

#[tokio::test]
async fn a_replay_asks_nobody_and_a_branch_has_a_child_of_its_own() {
    let far = Far::slow();
    let (world, run) = led(&far).await;
    let unfinished = world.snapshot(&run).await.at_seq + 1;
    far.all(RunStatus::Completed, json!({"m": 1}));
    pass(&world, 1000).await;
    world.ended(&run).await;
    let asked = far.requests();
    let log_of = async |run: RunId| -> Vec<Event> { log(&world, &run).await.into_iter().map(|r| r.event).collect() };
    let replay = world.host.fork(&who(), &run, fork(ForkMode::Replay, 0), None).await.unwrap().run_id;
    world.ended(&replay).await;
    assert_eq!(log_of(replay).await, log_of(run.clone()).await);
    let verified = world.host.verify(&tenant(), &run).await.unwrap();
    assert!(verified.difference.is_none(), "{verified:?}");
    pass(&world, 5000).await;
    assert_eq!(far.requests(), asked, "nobody was asked");
    let branch = world.host.fork(&who(), &run, fork(ForkMode::Branch, unfinished), None).await.unwrap().run_id;
    world.settle().await;
    assert_eq!(far.runs().len(), 2, "the unfinished child is the source's; the branch has its own");
    far.all(RunStatus::Completed, json!({"m": 2}));
    pass(&world, 1000).await;
    let snapshot: RunSnapshot = world.ended(&branch).await;
    assert_eq!((snapshot.status, &snapshot.variables["n"]), (RunStatus::Completed, &json!(2)));
    let runs = far.runs();
    let own: Vec<_> = runs.iter().filter(|far| far.handover.cause.run_id == branch).collect();
    assert_eq!(own.len(), 1);
    // A branch only tries things out unless it is told otherwise, and so does what works for it.
    let simulated = |far: &&remotes::FarRun| far.handover.cause.simulated;
    assert_eq!((own.iter().copied().filter(simulated).count(), runs.iter().filter(simulated).count()), (1, 1));
}

/// Both ends of a handoff can leave their hosts as files, each without the other.
#[tokio::test]
async fn a_parent_and_a_child_leave_their_hosts_apart() {
    let far = Far::prompt();
    let (world, run) = led(&far).await;
    pass(&world, 1000).await;
    world.ended(&run).await;
    let child = handed_over(&world, far.only().handover.cause).await;
    for run in [run, child] {
        let file = transferring::export(&world, &run).await;
        let other = transferring::fresh().await;
        assert_eq!(transferring::import(&other.host, &file).await.unwrap().holds.runs, 1, "only what was here");
        assert_eq!(other.snapshot(&run).await.child_runs, world.snapshot(&run).await.child_runs);
        assert_eq!(log(&other, &run).await, log(&world, &run).await);
        assert!(other.host.verify(&tenant(), &run).await.unwrap().difference.is_none());
        let (there, here) = (other.host.ancestry(&tenant(), &run).await, world.host.ancestry(&tenant(), &run).await);
        assert_eq!(there.unwrap().parent, here.unwrap().parent);
    }
}

/// A run of this host that another one asked for, ended.
async fn handed_over(world: &World, cause: ForeignCause) -> RunId {
    world.register(Flow::chain("work", &[("n", "core.noop", json!({}))])).await;
    let request = StartRun { cause: Some(cause), ..common::request("work") };
    let asked = Idempotent {
        key: Digest::of_bytes("key"),
        request: Digest::of_bytes("request"),
        render: Box::new(|_: &StartedRun| (201, String::new())),
    };
    let run = world.host.start_run(&who(), request, Some(asked)).await.unwrap().run_id;
    world.ended(&run).await;
    run
}

/// Whether it is on disk that a worker is wanted.
async fn has_begun(disk: &Disk) -> bool {
    let store = MemoryStore::from_disk(disk.clone());
    let rows = store.runs(&RunFilter { limit: 1, ..RunFilter::default() }).await.unwrap().items;
    let Some(row) = rows.first() else { return false };
    let log = store.records(&row.id, 0, usize::MAX).await.unwrap();
    log.iter().any(|record| record.kind == "core.workflowChain.event")
}

/// Dies after every commit in turn, with a line that works, loses answers, or is cut until the next life: there is one
/// child and the same end.
#[tokio::test]
async fn a_crash_anywhere_leaves_one_child() {
    for line in [Line::Up, Line::NoSink, Line::Cut] {
        for commits in 0..200 {
            let context = format!("{line:?}, crashed after {commits}");
            let far = Far::prompt();
            far.line(line);
            let clock = Arc::new(SimClock::default());
            let first = World::open(Disk::default(), Arc::clone(&clock), far.options(1)).await;
            first.register(delegate("team", WORKER)).await;
            first.store.crash_after(commits);
            let lived = async {
                let run = first.try_start("team").await;
                pass(&first, 5000).await;
                run
            };
            tokio::select! {
                _ = lived => {}
                () = first.store.crashed() => {}
            }
            let whole = first.rows().await.first().is_some_and(|row| row.status.is_terminal());
            let (asked, disk) = (far.requests(), first.stop().await);
            assert!(asked == 0 || has_begun(&disk).await, "{context}: asked for before that was on disk");
            let next = World::open(disk, clock, far.options(1)).await;
            far.line(Line::Up);
            if let Some(row) = next.rows().await.first() {
                in_time(&context, pass(&next, 30_000)).await;
                assert_eq!(next.ended(&row.id).await.variables["n"], json!(40), "{context}");
                assert_eq!(chain(&next, &row.id).await, harvested(), "{context}");
                assert_eq!(far.runs().len(), 1, "{context}");
            }
            next.audit(&context).await;
            next.stop().await;
            if whole || (line != Line::Up && commits > 20) {
                assert!(commits > 5, "{context}: too few places to crash at");
                break;
            }
        }
    }
}
