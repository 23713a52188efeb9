//! Whatever a tenant can make expensive is computed on the step threads, whoever asks for it and however; and whatever
//! goes wrong there is the trouble of whoever asked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_conformance::Conformance;
use baton_model::{EventId, ForeignCause, InvocationSource, RunId, RunStatus, SideEffects, TenantId, code};
use baton_runtime::{
    BeforeStep, BeforeWork, Error, ErrorKind, ForkRun, Idempotent, Options, StartRun, StepThreads, Work, WorkKind,
};
use baton_store::reads::*;
use baton_store::{Disk, RunRow};
use baton_testkit::Flow;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::agents::{AGENT, Brain, card, says};
use crate::common::{World, accept, in_time, options, request, tenant, who};
use crate::forking::{branch_at, replay_from};
use crate::transferring::{elsewhere, export, import};

/// Where each kind of work was done.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<BTreeSet<(WorkKind, bool)>>>);

impl Places {
    fn note(&self, kind: WorkKind) {
        self.0.lock().insert((kind, std::thread::current().name() == Some("baton-step")));
    }

    fn options(&self, options: Options) -> Options {
        let (steps, works) = (self.clone(), self.clone());
        Options {
            step_threads: Some(StepThreads::with(2).unwrap()),
            before_step: Some(BeforeStep(Arc::new(move |_: &RunRow, _| steps.note(WorkKind::Step)))),
            before_work: Some(BeforeWork(Arc::new(move |work| works.note(work.kind)))),
            ..options
        }
    }

    fn elsewhere(&self) -> Vec<WorkKind> {
        self.0.lock().iter().filter(|(_, there)| !there).map(|(kind, _)| *kind).collect()
    }

    fn seen(&self) -> BTreeSet<WorkKind> {
        self.0.lock().iter().map(|(kind, _)| *kind).collect()
    }
}

fn gate() -> Flow {
    Flow::chain("gate", &[("ask", "core.approvalGate", json!({})), ("after", "core.noop", json!({}))])
}

fn now(id: &str) -> Flow {
    Flow::chain(id, &[("a", "core.noop", json!({})), ("b", "core.noop", json!({}))])
}

async fn handed_over(world: &World) -> RunId {
    let cause = ForeignCause {
        host_id: "far".to_owned(),
        run_id: RunId::new("run_far"),
        event_id: EventId::new("run_far.3"),
        node_id: None,
        workflow_id: None,
        cause: "core.dispatch".to_owned(),
        well_known_url: "http://127.0.0.1:1/".to_owned(),
        depth: 1,
        simulated: false,
        scopes: None,
    };
    let asked = Idempotent {
        key: baton_model::Digest::of_bytes("key"),
        request: baton_model::Digest::of_bytes("request"),
        render: Box::new(|started: &baton_runtime::StartedRun| (201, started.run_id.to_string())),
    };
    let start = StartRun { cause: Some(cause), ..request("now") };
    world.host.start_run(&who(), start, Some(asked)).await.unwrap().run_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_command_is_computed_on_the_step_threads() {
    let places = Places::default();
    let brain = Brain::new(|_| says("done"));
    let with_agents = Options {
        test_hooks: Conformance::hooks(),
        ..crate::agents::options(vec![card(AGENT)], &brain, Vec::new(), 512)
    };
    let world = World::open(Disk::default(), Arc::default(), places.options(with_agents)).await;
    let host = &world.host;

    world.register(gate()).await;
    world.register(now("now")).await;
    host.validate_workflow(&tenant(), now("now").build()).await.unwrap().unwrap();
    host.register_test_workflow(&tenant(), now("seam").build()).await.unwrap();

    let plain = world.start("now").await;
    let only = StartRun { exclusive: true, scope_id: Some("s".to_owned()), ..request("now") };
    let only = host.start_run(&who(), only, None).await.unwrap().run_id;
    let far = handed_over(&world).await;
    let door = InvocationSource::RunApi;
    let agent = host.start_agent(&who(), AGENT, door, StartRun::default(), None).await.unwrap().run_id;
    for run in [&plain, &only, &far, &agent] {
        assert_eq!(world.ended(run).await.status, RunStatus::Completed);
    }
    let asked = world.start("gate").await;
    world.wait_for(&asked, |snapshot| snapshot.interrupt.is_some()).await;
    world.resolve(&asked, "ask", accept()).await.unwrap();
    world.ended(&asked).await;
    let unwanted = world.start("gate").await;
    world.wait_for(&unwanted, |snapshot| snapshot.interrupt.is_some()).await;
    host.cancel(&who(), &unwanted, None).await.unwrap();

    let real = ForkRun { side_effects: SideEffects::Real, ..branch_at(6) };
    for fork in [branch_at(0), branch_at(3), real, replay_from(0), replay_from(4)] {
        let fork = world.try_fork(&asked, fork).await.unwrap();
        world.wait_for(&fork, |now| now.status.is_terminal() || now.interrupt.is_some()).await;
    }
    assert!(host.verify(&tenant(), &asked).await.unwrap().difference.is_none());
    host.diff(&tenant(), &asked, &plain, 0).await.unwrap();

    let file = export(&world, &asked).await;
    let there = elsewhere(Disk::default(), Arc::default(), places.options(options(512))).await;
    import(&there.host, &file).await.unwrap();
    there.host.snapshot(&tenant(), &asked).await.unwrap();

    assert_eq!(places.elsewhere(), [], "not on an async worker");
    let missing: Vec<WorkKind> = [
        WorkKind::Step,
        WorkKind::Fold,
        WorkKind::Replay,
        WorkKind::Verify,
        WorkKind::Compile,
        WorkKind::Judge,
        WorkKind::Prepare,
        WorkKind::Answers,
        WorkKind::Compare,
        WorkKind::Import,
    ]
    .into_iter()
    .filter(|kind| !places.seen().contains(kind))
    .collect();
    assert_eq!(missing, [], "this test drives all of it");
    host.shutdown().await;
    there.host.shutdown().await;
}

/// Something that every piece of work of one kind does, while there is something to do.
type Deed = Arc<dyn Fn(&Work<'_>) + Send + Sync>;

fn before(kind: WorkKind, deed: Deed, options: Options) -> Options {
    let before = move |work: &Work<'_>| {
        if work.kind == kind {
            deed(work);
        }
    };
    Options { before_work: Some(BeforeWork(Arc::new(before))), ..options }
}

/// A tenant's definition takes for ever: everybody else is served, on the one async worker there is.
#[tokio::test]
async fn a_definition_that_takes_for_ever_keeps_nobody_waiting() {
    let (begun, until) = (Arc::new(Notify::new()), Arc::new(std::sync::Barrier::new(2)));
    let (starts, ends) = (Arc::clone(&begun), Arc::clone(&until));
    let slow = move |work: &Work<'_>| {
        if *work.tenant == TenantId::new("slow") {
            starts.notify_one();
            ends.wait();
        }
    };
    let options = Options { step_threads: Some(StepThreads::with(2).unwrap()), ..options(512) };
    let world = World::open(Disk::default(), Arc::default(), before(WorkKind::Compile, Arc::new(slow), options)).await;
    let host = world.host.clone();
    let registering =
        tokio::spawn(async move { host.register_workflow(&TenantId::new("slow"), now("x").build()).await });
    in_time("beginning to compile", begun.notified()).await;
    world.register(now("now")).await;
    let run = world.start("now").await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    until.wait();
    registering.await.unwrap().unwrap();
    world.host.shutdown().await;
}

#[tokio::test]
async fn a_panic_is_the_error_of_whoever_asked() {
    let bad = |work: &Work<'_>| assert!(*work.tenant != TenantId::new("bad"), "poison");
    let world =
        World::open(Disk::default(), Arc::default(), before(WorkKind::Compile, Arc::new(bad), options(512))).await;
    let failed = |result: Result<(), Error>| assert_eq!(result.unwrap_err().kind, ErrorKind::Internal);
    let bad = TenantId::new("bad");
    failed(world.host.register_workflow(&bad, now("now").build()).await.map(drop));
    failed(world.host.validate_workflow(&bad, now("now").build()).await.map(drop));
    world.register(now("now")).await;
    let run = world.start("now").await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
}

/// How often something went wrong, and whether it still does.
#[derive(Clone, Default)]
struct Poison(Arc<AtomicUsize>, Arc<Mutex<bool>>);

impl Poison {
    fn deed(&self) -> Deed {
        let Self(times, cured) = self.clone();
        Arc::new(move |_: &Work<'_>| {
            if !*cured.lock() {
                times.fetch_add(1, Ordering::SeqCst);
                panic!("poison");
            }
        })
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn cure(&self) {
        *self.1.lock() = true;
    }
}

/// Lets time pass until whoever fails has failed for good.
async fn pass(world: &World) {
    for _ in 0..10 {
        world.clock.advance(1000);
        world.settle().await;
    }
}

async fn replayed(poison: &Poison) -> (World, RunId) {
    let world =
        World::open(Disk::default(), Arc::default(), before(WorkKind::Replay, poison.deed(), options(512))).await;
    world.register(now("now")).await;
    let source = world.start("now").await;
    world.ended(&source).await;
    let replay = world.fork(&source, replay_from(2)).await;
    pass(&world).await;
    (world, replay)
}

#[tokio::test]
async fn a_replay_that_panics_is_tried_once_more_and_then_left_alone() {
    let poison = Poison::default();
    let (world, replay) = replayed(&poison).await;
    assert_eq!(poison.times(), 2, "tried once more, and then no more");
    let held = world.host.quarantine(&tenant(), &replay).await.unwrap().expect("in quarantine");
    assert_eq!((held.cause.as_str(), &held.run), ("step_panicked", &replay));
    assert!(held.detail.contains("poison"), "{}", held.detail);

    // Nor does a restart try it.
    let clock = Arc::clone(&world.clock);
    let disk = world.stop().await;
    let world = elsewhere(disk, clock, before(WorkKind::Replay, poison.deed(), options(512))).await;
    pass(&world).await;
    assert_eq!(poison.times(), 2);

    // Released, it begins anew: nobody believes that somebody is still at it.
    poison.cure();
    world.host.release(&who(), &replay).await.unwrap();
    pass(&world).await;
    assert_eq!(world.row(&replay).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_replay_that_is_left_alone_can_be_cancelled() {
    let poison = Poison::default();
    let (world, replay) = replayed(&poison).await;
    let me = who();
    let cancelled = world.host.cancel(&me, &replay, Some("enough".to_owned()));
    assert_eq!(in_time("cancelling", cancelled).await.unwrap(), RunStatus::Cancelled);
    assert_eq!(poison.times(), 2, "nothing of it was gone through for that");
    assert_eq!(world.row(&replay).await.status, RunStatus::Cancelled);
    let last = world.store.records(&replay, 0, 100).await.unwrap().pop().unwrap();
    assert_eq!(last.kind.as_str(), "run.cancelled");
    assert_eq!(world.host.count_quarantined().await.unwrap(), 0);
    assert_eq!(world.host.cancel(&who(), &replay, None).await.unwrap(), RunStatus::Cancelled, "a second click");
}

/// Verifying what is left alone would do again what it is left alone for.
#[tokio::test]
async fn what_is_left_alone_is_not_verified_either() {
    let poison = Poison::default();
    let (world, replay) = replayed(&poison).await;
    assert_eq!(world.host.verify(&tenant(), &replay).await.unwrap_err().code, code::RUN_QUARANTINED);
}

/// What an agent is to do cannot be put together.
#[tokio::test]
async fn a_panic_beside_the_steps_counts_as_one_of_them() {
    let poison = Poison::default();
    let brain = Brain::new(|_| says("done"));
    let with_agents = crate::agents::options(vec![card(AGENT)], &brain, Vec::new(), 512);
    let world =
        World::open(Disk::default(), Arc::default(), before(WorkKind::Prepare, poison.deed(), with_agents)).await;
    world.register(crate::agents::asks("asks", AGENT)).await;
    let run = world.start("asks").await;
    pass(&world).await;
    assert_eq!(poison.times(), 2, "tried once more, and then no more");
    let held = world.host.quarantine(&tenant(), &run).await.unwrap().expect("in quarantine");
    assert_eq!(held.cause.as_str(), "step_panicked");
    poison.cure();
    world.host.release(&who(), &run).await.unwrap();
    pass(&world).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

/// A run that goes on without end, one burst after the other.
fn endless() -> Vec<Flow> {
    let rules = json!({
        "rules": [{"when": "iteration <= 100000", "decide": {"kind": "next-worker", "nextWorkerIds": ["now"]}}],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    vec![crate::common::scenario::led("endless", rules, "sequential"), now("now")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_goes_on_and_on_does_not_keep_the_host_from_stopping() {
    let limits = baton_model::Limits {
        max_loop_iterations: 1_000_000,
        max_children_per_tree: 1_000_000,
        max_node_executions: 1_000_000,
        ..baton_model::Limits::default()
    };
    let options = Options { step_threads: Some(StepThreads::with(2).unwrap()), limits, ..options(512) };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    for flow in endless() {
        world.register(flow).await;
    }
    let run = world.start("endless").await;
    world.wait_for(&run, |now| now.status == RunStatus::Running).await;
    world.host.shutdown().await;
    let row = world.rows().await.into_iter().find(|row| row.id == run).unwrap();
    assert!(!row.status.is_terminal() && row.busy, "the next start goes on with it: {row:?}");
}

/// One frozen step is left behind, and everything else is closed.
#[tokio::test]
async fn a_frozen_step_does_not_keep_the_host_from_stopping() {
    let (begun, until) = (Arc::new(Notify::new()), Arc::new(std::sync::Barrier::new(2)));
    let (starts, ends) = (Arc::clone(&begun), Arc::clone(&until));
    let frozen = move |work: &Work<'_>| {
        if *work.tenant == TenantId::new("slow") {
            starts.notify_one();
            ends.wait();
        }
    };
    let options = Options { step_threads: Some(StepThreads::with(2).unwrap()), ..options(512) };
    let world =
        World::open(Disk::default(), Arc::default(), before(WorkKind::Compile, Arc::new(frozen), options)).await;
    let host = world.host.clone();
    let asking = tokio::spawn(async move { host.register_workflow(&TenantId::new("slow"), now("x").build()).await });
    in_time("beginning to compile", begun.notified()).await;
    in_time("stopping", world.host.shutdown()).await;
    until.wait();
    drop(asking.await);
}

/// Every answer that somebody waits for is given, though whoever steps next never ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_run_of_a_scope_waits_for_its_own_scope_alone() {
    let (begun, until) = (Arc::new(Notify::new()), Arc::new(std::sync::Barrier::new(2)));
    let (starts, ends) = (Arc::clone(&begun), Arc::clone(&until));
    let frozen = move |row: &RunRow, _: bool| {
        if row.tags.iter().any(|tag| tag == "frozen") {
            starts.notify_one();
            ends.wait();
        }
    };
    let step_threads = Some(StepThreads::with(4).unwrap());
    let options = Options { step_threads, before_step: Some(BeforeStep(Arc::new(frozen))), ..options(512) };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(now("now")).await;
    let only = |scope: &str| StartRun { exclusive: true, scope_id: Some(scope.to_owned()), ..request("now") };
    let host = world.host.clone();
    let first = StartRun { tags: vec!["frozen".to_owned()], ..only("one") };
    let starting = tokio::spawn(async move { host.start_run(&who(), first, None).await });
    in_time("beginning to step", begun.notified()).await;
    let other = in_time("another scope", world.host.start_run(&who(), only("two"), None)).await.unwrap().run_id;
    assert_eq!(world.ended(&other).await.status, RunStatus::Completed);
    until.wait();
    starting.await.unwrap().unwrap();
    world.host.shutdown().await;
}
