//! Whoever observes a host hears of every record once, in order, and not before it is durable; after a restart the old
//! part of a log comes as old news; replays are nobody's news.

use crate::common;
use crate::forking::over;
#[allow(dead_code)]
use crate::receiver;
use crate::remotes::{Far, WORKER};
use baton_conformance::Conformance;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::TraceContext;
use baton_model::event::RunStarted;
use baton_model::{ForkMode, ModelReply, ModelRequest, Origin, Record, RunId, Usage};
use baton_provider::{Provider, ProviderFault};
use baton_runtime::{Caller, Follower, ForkRun, Models, NewWebhook, Observer, Options};
use baton_store::{Disk, MemoryStore};
use baton_testkit::{Flow, SimClock};
use common::scenario::{self, gate};
use common::watched::Watched;
use common::{World, accept, in_time, options, tenant, who};
use parking_lot::Mutex;
use receiver::Receiver;
use serde_json::json;

/// What was told of each run: sequence, kind, and whether it was news.
type Told = BTreeMap<RunId, Vec<(u64, String, bool)>>;

#[derive(Clone, Debug, Default)]
struct DeltaSink {
    told: Arc<Mutex<Told>>,
    /// Whose records were told, one after the other.
    order: Arc<Mutex<Vec<RunId>>>,
    origins: Arc<Mutex<BTreeMap<RunId, Option<Origin>>>>,
}

struct One {
    run: RunId,
    next: u64,
    told: Arc<Mutex<Told>>,
    order: Arc<Mutex<Vec<RunId>>>,
}

impl Observer for DeltaSink {
    fn follow(&self, run: &RunId, origin: Option<&Origin>) -> Box<dyn Follower> {
        self.origins.lock().insert(run.clone(), origin.cloned());
        Box::new(One { run: run.clone(), next: 0, told: Arc::clone(&self.told), order: Arc::clone(&self.order) })
    }

    fn trace(&self, run: &RunId, _: &RunStarted, forked: bool, caller: Caller<'_>) -> TraceContext {
        TraceContext { parent: format!("{run}-{forked}-{caller:?}"), state: None }
    }
}

impl Follower for One {
    fn record(&mut self, record: &Record, fresh: bool) {
        assert_eq!(record.seq, self.next, "in order and without a gap");
        self.next += 1;
        self.order.lock().push(self.run.clone());
        let line = (record.seq, record.event.type_name().to_owned(), fresh);
        self.told.lock().entry(self.run.clone()).or_default().push(line);
    }
}

impl DeltaSink {
    fn options(&self, records_ahead: usize) -> Options {
        Options { observer: Some(Arc::new(self.clone())), ..options(records_ahead) }
    }

    fn told(&self) -> Told {
        self.told.lock().clone()
    }

    /// The kinds of what was news, in order.
    fn news(&self, run: &RunId) -> Vec<String> {
        let told = self.told.lock();
        let lines = told.get(run).map(Vec::as_slice).unwrap_or_default();
        lines.iter().filter(|(.., fresh)| *fresh).map(|(_, kind, _)| kind.clone()).collect()
    }
}

/// The kinds of a run's records on disk.
async fn log(world: &World, run: &RunId) -> Vec<String> {
    let page = world.host.events(&tenant(), run, None, 10_000).await.unwrap();
    page.events.iter().map(|line| line.kind.to_string()).collect()
}

#[tokio::test]
async fn everything_that_happens_is_told_once() {
    for scenario in scenario::all() {
        for ahead in [1, 512] {
            let ear = DeltaSink::default();
            let world = World::open(Disk::default(), Arc::default(), ear.options(ahead)).await;
            let root = scenario.flows[0].clone().build()["id"].as_str().unwrap().to_owned();
            for flow in scenario.flows.clone() {
                world.register(flow).await;
            }
            world.start(&root).await;
            in_time(scenario.name, world.drive(50)).await;
            let mut logs = BTreeMap::new();
            for row in world.rows().await {
                logs.insert(row.id.clone(), log(&world, &row.id).await);
            }
            world.stop().await;
            let told: Vec<RunId> = ear.told().into_keys().collect();
            assert_eq!(told, logs.keys().cloned().collect::<Vec<_>>(), "{}", scenario.name);
            for (run, log) in logs {
                assert_eq!(ear.news(&run), log, "{} {ahead}", scenario.name);
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_told_before_it_is_durable() {
    let ear = DeltaSink::default();
    let world = World::open(Disk::default(), Arc::default(), ear.options(512)).await;
    world.register(gate("gated")).await;
    let run = world.start("gated").await;
    world.waiting(&run).await;
    world.settle().await;
    let before = ear.told();
    assert_eq!(before[&run].len(), log(&world, &run).await.len());
    world.store.hold();
    let answer = tokio::spawn({
        let host = world.host.clone();
        let (run, node) = (run.clone(), baton_model::NodeId::new("gate"));
        let via = baton_runtime::Via::Bearer { subject: "key-1".to_owned() };
        async move { host.resolve(&tenant(), &run, &node, accept(), via).await }
    });
    world.settle().await;
    assert_eq!(ear.told(), before);
    world.store.release();
    in_time("the answer", answer).await.unwrap().unwrap();
    world.ended(&run).await;
    world.settle().await;
    assert_eq!(ear.news(&run), log(&world, &run).await);
}

/// A log may be read further than the notes have come. The last ones are no news then, also when the run has ended.
#[tokio::test]
async fn what_was_read_ahead_of_its_note_is_told_once() {
    let ear = DeltaSink::default();
    let store = Arc::new(MemoryStore::new());
    let watched = Arc::new(Watched::new(Arc::clone(&store)));
    let world = over(Arc::clone(&watched) as _, store, Arc::default(), 0, ear.options(512)).await;
    world.register(gate("gated")).await;
    let run = world.start("gated").await;
    world.waiting(&run).await;
    world.settle().await;
    watched.tell_in_parts(true);
    let answer = tokio::spawn({
        let host = world.host.clone();
        let (run, node) = (run.clone(), baton_model::NodeId::new("gate"));
        let via = baton_runtime::Via::Bearer { subject: "key-1".to_owned() };
        async move { host.resolve(&tenant(), &run, &node, accept(), via).await }
    });
    world.settle().await;
    let whole = ear.news(&run);
    assert_eq!(whole.last().map(String::as_str), Some("run.completed"), "read already");
    watched.tell_in_parts(false);
    in_time("the answer", answer).await.unwrap().unwrap();
    world.ended(&run).await;
    world.settle().await;
    assert_eq!(log(&world, &run).await, whole);
    assert_eq!(ear.news(&run), whole, "each record is news once");
    world.stop().await;
}

/// A run of many records that then waits at its gate.
fn long() -> Flow {
    let mut flow = Flow::new("long").node("n0", "core.noop", json!({}));
    for number in 1..600 {
        let (before, id) = (format!("n{}", number - 1), format!("n{number}"));
        flow = flow.node(&id, "core.noop", json!({})).edge(&before, &id);
    }
    flow.node("gate", "core.approvalGate", json!({"title": "Go on?"})).edge("n599", "gate")
}

/// A process that is new to a long log has to read all of it, and others are told of meanwhile.
#[tokio::test]
async fn a_long_log_takes_turns_with_others() {
    let clock: Arc<SimClock> = Arc::default();
    let world = World::open(Disk::default(), Arc::clone(&clock), DeltaSink::default().options(512)).await;
    world.register(long()).await;
    world.register(gate("gated")).await;
    let run = world.start("long").await;
    world.waiting(&run).await;
    let disk = world.stop().await;

    let (ear, store) = (DeltaSink::default(), Arc::new(MemoryStore::from_disk(disk)));
    // With names of its own: one more run is started.
    let world = World::seeded(Arc::clone(&store) as _, store, clock, ear.options(512), 8).await;
    world.settle().await;
    world.store.hold();
    let host = world.host.clone();
    let answer = tokio::spawn({
        let (host, run, node) = (host.clone(), run.clone(), baton_model::NodeId::new("gate"));
        let via = baton_runtime::Via::Bearer { subject: "key-1".to_owned() };
        async move { host.resolve(&tenant(), &run, &node, accept(), via).await.map(drop) }
    });
    world.settle().await;
    let start = tokio::spawn(async move { host.start_run(&who(), common::request("gated"), None).await });
    world.settle().await;
    // Both are on disk before anybody is told of either.
    world.store.release();
    in_time("the answer", answer).await.unwrap().unwrap();
    let short = in_time("the start", start).await.unwrap().unwrap().run_id;
    world.ended(&run).await;
    world.settle().await;
    let order = ear.order.lock().clone();
    let (first_of_short, last_of_long) =
        (order.iter().position(|told| *told == short).unwrap(), order.iter().rposition(|told| *told == run).unwrap());
    assert!(order.len() > 1100, "{} records are no long log", order.len());
    assert!(first_of_short < last_of_long, "{first_of_short} {last_of_long}");
    assert_eq!(ear.told()[&run].len(), log(&world, &run).await.len());
    world.stop().await;
}

/// Whoever stops does not wait for a read that does not come back; what is left to be told has a few seconds.
#[tokio::test]
async fn the_observer_does_not_keep_the_host_from_stopping() {
    let ear = DeltaSink::default();
    let world = World::open(Disk::default(), Arc::default(), ear.options(512)).await;
    world.register(gate("gated")).await;
    world.store.hold();
    let host = world.host.clone();
    let start = tokio::spawn(async move { host.start_run(&who(), common::request("gated"), None).await });
    world.settle().await;
    world.store.take_readers();
    world.store.release();
    world.settle().await;
    assert!(ear.told().is_empty(), "the log could not be read");
    in_time("stopping", world.host.shutdown()).await;
    drop(start);
}

#[tokio::test]
async fn what_the_disk_did_not_take_is_not_told() {
    for commits in 0..8 {
        let ear = DeltaSink::default();
        let world = World::open(Disk::default(), Arc::default(), ear.options(1)).await;
        world.register(gate("gated")).await;
        world.store.fail_after(commits);
        let started = world.try_start("gated").await;
        world.settle().await;
        world.store.heal();
        if started.is_err() {
            let again = async {
                while world.try_start("gated").await.is_err() {
                    world.clock.advance(1000);
                    world.settle().await;
                }
            };
            in_time("storage comes back", again).await;
        }
        in_time("the run", world.drive(50)).await;
        let rows = world.rows().await;
        assert!(!rows.is_empty());
        for row in rows {
            let log = log(&world, &row.id).await;
            world.settle().await;
            assert_eq!(ear.news(&row.id), log, "after {commits} commits");
        }
    }
}

#[tokio::test]
async fn a_restart_hears_the_rest_as_news() {
    let clock: Arc<SimClock> = Arc::default();
    let first = DeltaSink::default();
    let world = World::open(Disk::default(), Arc::clone(&clock), first.options(512)).await;
    world.register(gate("gated")).await;
    let run = world.start("gated").await;
    world.waiting(&run).await;
    let disk = world.stop().await;

    let second = DeltaSink::default();
    let world = World::open(disk, clock, second.options(512)).await;
    world.settle().await;
    assert_eq!(second.told(), Told::new(), "nothing has happened yet");
    world.resolve(&run, "gate", accept()).await.unwrap();
    world.ended(&run).await;
    let whole = log(&world, &run).await;
    world.stop().await;
    let (before, after) = (first.news(&run), second.news(&run));
    assert!(!before.is_empty() && !after.is_empty());
    assert_eq!([before, after].concat(), whole, "each record is news once");
    assert_eq!(second.told()[&run].len(), whole.len(), "but the old ones are told too");
}

#[tokio::test]
async fn a_branch_is_news_and_a_replay_is_not() {
    let ear = DeltaSink::default();
    let world = World::open(Disk::default(), Arc::default(), ear.options(512)).await;
    world.register(gate("gated")).await;
    let source = world.start("gated").await;
    world.waiting(&source).await;
    world.resolve(&source, "gate", accept()).await.unwrap();
    world.ended(&source).await;
    let whole = log(&world, &source).await;
    let fork = async |mode, from_seq| {
        let request = ForkRun { mode, from_seq, ..common_fork() };
        world.host.fork(&who(), &source, request, None).await.unwrap().run_id
    };
    let replay = fork(ForkMode::Replay, 0).await;
    world.ended(&replay).await;
    // At the gate: the branch asks again, and is answered.
    let at = whole.iter().position(|kind| kind == "node.resumed").unwrap() as u64;
    let branch = fork(ForkMode::Branch, at).await;
    world.waiting(&branch).await;
    world.resolve(&branch, "gate", accept()).await.unwrap();
    world.ended(&branch).await;
    world.settle().await;
    world.host.shutdown().await;
    assert!(!ear.told().contains_key(&replay), "a replay has no side effects");
    assert_eq!(ear.told()[&branch].len(), whole.len(), "the source's part is told as old news");
    assert_eq!(ear.news(&branch), whole[at as usize..]);
    let origins = ear.origins.lock().clone();
    assert_eq!(origins[&source], None);
    assert_eq!(origins[&branch].as_ref().map(|origin| (&origin.source, origin.seq)), Some((&source, at)));
}

fn common_fork() -> ForkRun {
    ForkRun {
        mode: ForkMode::Branch,
        from_seq: 0,
        inputs: Default::default(),
        variables: Default::default(),
        configurable: Default::default(),
        side_effects: Default::default(),
    }
}

#[tokio::test]
async fn webhooks_carry_the_trace_that_the_observer_names() {
    let ear = DeltaSink::default();
    let clock: Arc<SimClock> = Arc::default();
    let receiver = Receiver::start(&clock, &[]).await;
    let options = Options { allow_private_webhooks: true, ..ear.options(512) };
    let world = World::open(Disk::default(), Arc::clone(&clock), options).await;
    world.register(gate("gated")).await;
    let webhook = NewWebhook { url: receiver.url.clone(), events: vec!["run.started".to_owned()], tags: Vec::new() };
    world.host.register_webhook(&who(), webhook).await.unwrap();
    let run = world.start("gated").await;
    let arrived = async {
        while receiver.got().is_empty() {
            clock.advance(20);
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    in_time("the letter", arrived).await;
    assert_eq!(receiver.got()[0].kind(), "run.started");
    assert_eq!(receiver.got()[0].headers.get("traceparent"), Some(&format!("{run}-false-Run")));
}

/// A model that notes what its calls carry.
#[derive(Default)]
struct Noting(Mutex<Vec<Option<TraceContext>>>);

#[async_trait]
impl Provider for Noting {
    async fn call(
        &self,
        request: &ModelRequest,
        _: &dyn baton_provider::DeltaSink,
    ) -> Result<ModelReply, ProviderFault> {
        self.0.lock().push(request.trace.clone());
        Ok(ModelReply::text(r#"{"valid":true}"#, Usage::default()))
    }
}

#[tokio::test]
async fn calls_of_models_carry_the_trace_of_their_node() {
    let flow = || {
        let config = json!({"provider": "mock", "model": "m", "outputSchema": {"type": "object"}});
        let inputs = json!({"inputs": {"prompt": {"type": "static", "value": "Is it?"}}});
        Flow::new("conformance-asks").node_with("ask", "core.ai.structuredOutput", config, inputs)
    };
    let given =
        TraceContext { parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(), state: None };
    for observed in [true, false] {
        let noting = Arc::new(Noting::default());
        let models = Models::default().with("mock", Arc::clone(&noting) as _);
        let observer = observed.then(|| Arc::new(DeltaSink::default()) as Arc<dyn Observer>);
        let options = Options { test_hooks: Conformance::hooks(), models, observer, ..options(512) };
        let world = World::open(Disk::default(), Arc::default(), options).await;
        world.register(flow()).await;
        let request = baton_runtime::StartRun { trace: Some(given.clone()), ..common::request("conformance-asks") };
        let run = world.host.start_run(&who(), request, None).await.unwrap().run_id;
        world.ended(&run).await;
        let node = format!("{run}-false-Node {{ node: NodeId(\"ask\"), visit: 1 }}");
        let expected = if observed { node } else { given.parent.clone() };
        let carried: Vec<_> = noting.0.lock().iter().map(|trace| trace.clone().unwrap().parent).collect();
        assert_eq!(carried, [expected]);
    }
}

/// A child on another host hangs below the node that hands it over, as one here does.
#[tokio::test]
async fn children_elsewhere_carry_the_trace_of_the_node_that_dispatches_them() {
    let far = Far::prompt();
    let options = Options { observer: Some(Arc::new(DeltaSink::default())), ..far.options(512) };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(scenario::delegate("team", WORKER)).await;
    let run = world.start("team").await;
    in_time("the run", world.drive(50)).await;
    let carried = far.only().handover.trace.unwrap().parent;
    assert_eq!(carried, format!("{run}-false-Node {{ node: NodeId(\"dispatch\"), visit: 1 }}"));
    world.stop().await;
}
