//! What the host promises whoever calls it: starts, workflows, tenants, bounds.

use crate::common;

use std::sync::Arc;

use baton_model::event::DrainPolicy;
use baton_model::{Digest, Limits, NodeId, Principal, RunId, RunStatus, code};
use baton_runtime::{Error, ErrorKind, Host, Idempotent, KeyLookup, Options, PauseRun, StartRun, StartedRun, Via};
use baton_store::{Disk, InterruptFilter, MemoryStore, RunFilter};
use baton_testkit::Flow;
use common::scenario::{call, gate, noop, parent, pipeline};
use common::{World, accept, in_time, options, other, request, tenant, who};
use serde_json::{Value, json};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn code_of<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code
}

fn idempotent(key: &Digest, asked: &Digest) -> Option<Idempotent<StartedRun>> {
    let render = Box::new(|started: &StartedRun| (201, format!("{}:{}", started.run_id, started.status)));
    Some(Idempotent { key: key.clone(), request: asked.clone(), render })
}

#[tokio::test]
async fn the_reply_to_an_idempotent_start_is_kept_for_a_day() {
    let world = World::with([pipeline("pipeline")]).await;
    let (key, asked) = (Digest::of_bytes("key"), Digest::of_bytes("asked"));
    assert_eq!(world.host.recall(&who().tenant, &key, &asked).await.unwrap(), KeyLookup::New);
    let started = world.host.start_run(&who(), request("pipeline"), idempotent(&key, &asked)).await.unwrap();
    // Rendered from what the caller got: a live status, although the run is already over.
    let reply = KeyLookup::Replay { status: 201, body: format!("{}:running", started.run_id) };
    assert_eq!(world.host.recall(&who().tenant, &key, &asked).await.unwrap(), reply);
    assert_eq!(
        world.host.recall(&who().tenant, &key, &Digest::of_bytes("something else")).await.unwrap(),
        KeyLookup::Mismatch
    );
    assert_eq!(world.host.recall(&who().tenant, &Digest::of_bytes("other key"), &asked).await.unwrap(), KeyLookup::New);
    world.clock.advance(DAY_MS - 1);
    assert_eq!(world.host.recall(&who().tenant, &key, &asked).await.unwrap(), reply);
    world.clock.advance(1);
    assert_eq!(world.host.recall(&who().tenant, &key, &asked).await.unwrap(), KeyLookup::New);
}

/// Dies right after the commit that made the run: the reply must have been in it.
#[tokio::test]
async fn run_and_reply_are_durable_together() {
    let first = World::with([pipeline("pipeline")]).await;
    let world = World::open(first.stop().await, Arc::default(), options(1)).await;
    let (key, asked) = (Digest::of_bytes("key"), Digest::of_bytes("asked"));
    world.store.crash_after(1);
    let started = world.host.start_run(&who(), request("pipeline"), idempotent(&key, &asked)).await.unwrap();
    let again = World::open(world.stop().await, Arc::default(), options(1)).await;
    let reply = KeyLookup::Replay { status: 201, body: format!("{}:running", started.run_id) };
    assert_eq!(again.host.recall(&who().tenant, &key, &asked).await.unwrap(), reply);
    assert_eq!(again.ended(&started.run_id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_reply_without_an_effect_of_its_own_is_remembered() {
    let world = World::new().await;
    let (key, asked) = (Digest::of_bytes("key"), Digest::of_bytes("asked"));
    world.host.remember(&who().tenant, key.clone(), asked.clone(), 200, "{}".to_owned()).await.unwrap();
    let again = World::open(world.stop().await, Arc::default(), options(512)).await;
    let reply = KeyLookup::Replay { status: 200, body: "{}".to_owned() };
    assert_eq!(again.host.recall(&who().tenant, &key, &asked).await.unwrap(), reply);
}

/// A gate, then `x` set to this value.
fn versioned(x: u32) -> Value {
    let set = json!({"name": "x", "value": x});
    Flow::chain("flow", &[("gate", "core.approvalGate", json!({})), ("set", "core.setVariable", set)]).build()
}

#[tokio::test]
async fn a_run_keeps_the_version_it_started_with() {
    let world = World::new().await;
    let first = world.host.register_workflow(&tenant(), versioned(1)).await.unwrap();
    assert_eq!((first.version, first.created), (1, true));
    let old = world.start("flow").await;
    let same = world.host.register_workflow(&tenant(), versioned(1)).await.unwrap();
    assert_eq!((same.version, same.created, &same.digest), (1, false, &first.digest));
    let second = world.host.register_workflow(&tenant(), versioned(2)).await.unwrap();
    assert_eq!((second.version, second.created), (2, true));
    assert_eq!(world.host.workflow(&tenant(), "flow").await.unwrap().1, versioned(2));

    // Another process has no plan in memory and must find the right one.
    let world = World::open(world.stop().await, Arc::default(), options(512)).await;
    world.resolve(&old, "gate", accept()).await.unwrap();
    let ended = world.ended(&old).await;
    assert_eq!((&ended.variables["x"], ended.workflow_digest.as_str()), (&json!(1), first.digest.as_str()));
    let listed = world.host.workflows(&tenant()).await.unwrap();
    assert_eq!(listed.iter().map(|w| (w.id.as_str(), w.version)).collect::<Vec<_>>(), [("flow", 2)]);
}

#[tokio::test]
async fn a_tenants_own_workflow_comes_before_the_shared_one() {
    let world = World::new().await;
    let says = |x: &str| Flow::chain("flow", &[("set", "core.setVariable", json!({"name": "x", "value": x}))]).build();
    let x = async |who: &Principal| {
        let run = world.host.start_run(who, request("flow"), None).await.unwrap().run_id;
        let snapshot = world.host.snapshot(&who.tenant, &run).await.unwrap();
        snapshot.variables["x"].as_str().unwrap().to_owned()
    };
    world.host.register_shared_workflow(says("shared")).await.unwrap();
    assert_eq!((x(&who()).await.as_str(), x(&other()).await.as_str()), ("shared", "shared"));
    world.host.register_workflow(&tenant(), says("own")).await.unwrap();
    assert_eq!((x(&who()).await.as_str(), x(&other()).await.as_str()), ("own", "shared"));
    assert_eq!(world.host.workflow(&other().tenant, "flow").await.unwrap().1, says("shared"));
    assert_eq!(world.host.workflows(&tenant()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_not_a_workflow_is_refused_with_its_problems() {
    let world = World::new().await;
    let broken = Flow::chain("flow", &[("a", "core.noop", noop())]).edge("a", "nowhere").build();
    let error = world.host.register_workflow(&tenant(), broken).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Invalid, code::VALIDATION_ERROR));
    assert!(error.details["problems"].as_array().is_some_and(|problems| !problems.is_empty()));
    assert_eq!(code_of(world.try_start("flow").await), code::WORKFLOW_NOT_FOUND);
}

/// What every method that names a run says about it.
async fn answers(host: &Host, who: &Principal, run: &RunId) -> Vec<(ErrorKind, &'static str, String)> {
    let node = NodeId::new("gate");
    let bearer = Via::Bearer { subject: who.subject.clone() };
    let pause = PauseRun { reason: None, drain: DrainPolicy::Immediate };
    let errors = [
        host.snapshot(&who.tenant, run).await.err(),
        host.events(&who.tenant, run, None, 10).await.err(),
        host.cancel(who, run, None).await.err(),
        host.pause(who, run, pause).await.err(),
        host.resume(who, run, None).await.err(),
        host.resolve(&who.tenant, run, &node, accept(), bearer).await.err(),
    ];
    errors.into_iter().map(|error| error.map(|error| (error.kind, error.code, error.message)).unwrap()).collect()
}

#[tokio::test]
async fn a_foreign_run_looks_exactly_like_an_unknown_one() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    let foreign = answers(&world.host, &other(), &run).await;
    assert!(foreign.iter().all(|(kind, code, _)| (*kind, *code) == (ErrorKind::NotFound, code::RUN_NOT_FOUND)));
    assert_eq!(foreign, answers(&world.host, &other(), &RunId::new("run_unknown")).await);
    // The same once the run has left memory.
    let world = World::open(world.stop().await, Arc::default(), options(512)).await;
    assert_eq!(foreign, answers(&world.host, &other(), &run).await);
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);

    let runs = RunFilter { tenant: Some(other().tenant), limit: 10, ..RunFilter::default() };
    assert!(world.host.runs(&runs).await.unwrap().items.is_empty());
    let questions = InterruptFilter { tenant: Some(other().tenant), limit: 10, ..InterruptFilter::default() };
    assert!(world.host.interrupts(&questions).await.unwrap().is_empty());
    assert_eq!(code_of(world.host.start_run(&other(), request("gated"), None).await), code::WORKFLOW_NOT_FOUND);
    assert_eq!(code_of(world.host.workflow(&other().tenant, "gated").await), code::WORKFLOW_NOT_FOUND);
}

fn configured(workflow: &str, configurable: Value) -> StartRun {
    StartRun { configurable: configurable.as_object().cloned().unwrap(), ..request(workflow) }
}

#[tokio::test]
async fn a_run_may_ask_for_tighter_bounds_and_never_for_looser_ones() {
    let limits = Limits { max_node_executions: 3, ..Limits::default() };
    let world = World::open(Disk::default(), Arc::default(), Options { limits, ..options(512) }).await;
    world.register(pipeline("pipeline")).await;
    world.register(Flow::chain("slow", &[("wait", "core.delay", json!({"ms": 5000}))])).await;
    for (limit, nodes) in [(2, 2), (100, 3)] {
        let asked = configured("pipeline", json!({"recursionLimit": limit}));
        let run = world.host.start_run(&who(), asked, None).await.unwrap().run_id;
        let ended = world.ended(&run).await;
        assert_eq!(ended.error.unwrap().code, code::RECURSION_LIMIT_EXCEEDED);
        assert_eq!(ended.node_states.len(), nodes, "asked for {limit}");
    }
    let asked = configured("slow", json!({"runTimeoutMs": 1000}));
    let run = world.host.start_run(&who(), asked, None).await.unwrap().run_id;
    world.clock.advance(1000);
    world.settle().await;
    assert_eq!(world.status(&run).await, RunStatus::Running, "exactly the limit is not over it");
    world.clock.advance(1);
    let ended = world.ended(&run).await;
    assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, code::RUN_TIMEOUT));
}

#[tokio::test]
async fn malformed_bounds_are_refused() {
    let world = World::with([pipeline("pipeline")]).await;
    for key in ["recursionLimit", "runTimeoutMs"] {
        for bad in [json!(0), json!(-1), json!(1.5), json!("10"), json!(null), json!([1])] {
            let asked = configured("pipeline", json!({key: bad}));
            let error = world.host.start_run(&who(), asked, None).await.unwrap_err();
            assert_eq!((error.kind, error.code), (ErrorKind::Invalid, code::VALIDATION_ERROR), "{key} = {bad}");
        }
    }
    assert!(world.rows().await.is_empty());
}

#[tokio::test]
async fn test_features_are_for_test_keys() {
    let world = World::with([pipeline("pipeline")]).await;
    let tester = Principal { test: true, ..who() };
    let mock = |id: &str| configured("pipeline", json!({"mockProvider": {"id": id}}));
    let start = async |who: &Principal, asked: StartRun| world.host.start_run(who, asked, None).await;
    assert_eq!(code_of(start(&who(), mock("stream-text")).await), code::MOCK_PROVIDER_FORBIDDEN);
    assert_eq!(code_of(start(&tester, mock("nobody")).await), code::UNSUPPORTED_MOCK_PROVIDER);
    start(&tester, mock("stream-text")).await.unwrap();

    let forced = |version| StartRun { force_engine_version: Some(version), ..request("pipeline") };
    assert_eq!(code_of(start(&who(), forced(1)).await), code::FORCE_ENGINE_VERSION_FORBIDDEN);
    let error = start(&tester, forced(9999)).await.unwrap_err();
    assert_eq!(error.code, code::UNSUPPORTED_FORCE_ENGINE_VERSION);
    start(&tester, forced(error.details["max"].as_i64().unwrap())).await.unwrap();
}

fn exclusive(scope: &str) -> StartRun {
    StartRun { scope_id: Some(scope.to_owned()), exclusive: true, ..request("gated") }
}

#[tokio::test]
async fn an_exclusive_start_is_alone_in_its_scope() {
    let world = World::with([gate("gated")]).await;
    world.host.register_workflow(&other().tenant, gate("gated").build()).await.unwrap();
    let first = world.host.start_run(&who(), exclusive("s"), None).await.unwrap().run_id;
    let error = world.host.start_run(&who(), exclusive("s"), None).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Conflict, code::RUN_ALREADY_ACTIVE));
    assert_eq!(error.details["activeRunId"], first.as_str());
    world.host.start_run(&who(), exclusive("another"), None).await.unwrap();
    world.host.start_run(&other(), exclusive("s"), None).await.unwrap();
    world.host.cancel(&who(), &first, None).await.unwrap();
    world.host.start_run(&who(), exclusive("s"), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_exclusive_starts_one_wins() {
    let world = World::with([gate("gated")]).await;
    let host = &world.host;
    let starts = (0..20).map(|_| {
        let host = host.clone();
        tokio::spawn(async move { host.start_run(&who(), exclusive("s"), None).await })
    });
    let mut won = 0;
    for start in starts.collect::<Vec<_>>() {
        match in_time("a start", start).await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert_eq!(error.code, code::RUN_ALREADY_ACTIVE),
        }
    }
    assert_eq!((won, world.rows().await.len()), (1, 1));
}

#[tokio::test]
async fn a_workflow_that_calls_itself_ends_at_the_nesting_limit() {
    let limits = Limits { max_nesting_depth: 5, ..Limits::default() };
    for limits in [limits, Limits::default()] {
        let deepest = limits.max_nesting_depth as usize;
        let world = World::open(Disk::default(), Arc::default(), Options { limits, ..options(512) }).await;
        world.register(Flow::chain("again", &[("call", "core.subWorkflow", call("again"))])).await;
        let run = world.start("again").await;
        assert_eq!(world.ended(&run).await.error.unwrap().code, code::CHILD_FAILED);
        let rows = world.rows().await;
        assert_eq!(rows.len(), deepest + 1);
        assert_eq!(rows[deepest].error_code.as_deref(), Some(code::NESTING_LIMIT_EXCEEDED));
        world.audit("nested to the limit").await;
    }
}

#[tokio::test]
async fn an_unknown_child_workflow_fails_its_node() {
    let world = World::with([parent("parent", call("nobody"))]).await;
    let run = world.start("parent").await;
    let ended = world.ended(&run).await;
    assert_eq!(ended.error.unwrap().code, code::UNKNOWN_CHILD_WORKFLOW);
    assert!(ended.child_runs.is_empty());
    assert_eq!(world.rows().await.len(), 1);
}

#[tokio::test]
async fn cancelling_what_has_ended_says_how_it_ended() {
    let world = World::with([pipeline("pipeline"), gate("gated")]).await;
    let run = world.start("pipeline").await;
    let length = world.ended(&run).await.at_seq;
    assert_eq!(world.host.cancel(&who(), &run, None).await.unwrap(), RunStatus::Completed);
    assert_eq!(world.snapshot(&run).await.at_seq, length);
    let run = world.start("gated").await;
    for _ in 0..2 {
        assert_eq!(world.host.cancel(&who(), &run, None).await.unwrap(), RunStatus::Cancelled);
    }
    world.audit("cancelled twice").await;
}

#[tokio::test]
async fn a_paused_parent_hears_of_its_childs_end_when_it_goes_on() {
    let slow = Flow::chain("slow", &[("wait", "core.delay", json!({"ms": 1000}))]);
    let world = World::with([parent("parent", call("slow")), slow]).await;
    let run = world.start("parent").await;
    world.settle().await;
    let pause = PauseRun { reason: None, drain: DrainPolicy::Immediate };
    world.host.pause(&who(), &run, pause).await.unwrap();
    world.clock.advance(1000);
    world.settle().await;
    let child = world.snapshot(&run).await.child_runs[0].run_id.clone();
    assert_eq!((world.status(&child).await, world.status(&run).await), (RunStatus::Completed, RunStatus::Paused));
    world.host.resume(&who(), &run, None).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    world.audit("paused parent").await;
}

/// Timers that have come near are read from the store, which may take long. Those that are in memory fire meanwhile.
#[tokio::test]
async fn a_timer_fires_while_the_store_is_slow_to_read() {
    let world = World::with([common::scenario::delayed("delayed", 30_000)]).await;
    let run = world.start("delayed").await;
    world.settle().await;
    world.store.take_readers();
    for _ in 0..30 {
        world.clock.advance(1000);
        world.settle().await;
    }
    // What is on disk is looked at from outside: nobody here gets to read.
    let row = baton_store::RunReads::run(&baton_store::MemoryStore::from_disk(world.store.disk()), &run).await.unwrap();
    assert_eq!(row.unwrap().status, baton_model::RunStatus::Completed);
}

#[tokio::test]
async fn a_host_that_is_gone_keeps_no_store() {
    let store = Arc::new(MemoryStore::new());
    let host = Host::open(Arc::clone(&store) as _, Options::default()).await.unwrap();
    host.shutdown().await;
    drop(host);
    assert_eq!(Arc::strong_count(&store), 1, "whoever opens the folder next must find it closed");
}
