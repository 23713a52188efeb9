//! One host over a memory store, with time and chance in the test's hands.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod audit;
pub mod racing;
pub mod scenario;
pub mod trouble;
pub mod versioned_stores;
pub mod watched;

use std::sync::Arc;
use std::time::Duration;

use baton_model::{NodeId, Principal, RunId, RunSnapshot, RunStatus, Scopes, TenantId, Timestamp};
use baton_runtime::{Answer, Clock, Error, Host, Options, Resolved, StartRun, StartedRun, Via};
use baton_store::{Disk, InterruptFilter, InterruptRow, MemoryStore, RunFilter, RunRow, Store};
use baton_testkit::{Flow, SeededIds, SimClock};
use serde_json::{Value, json};

/// Nothing here takes this long; whatever does, hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Waits longer than this are bounds, not delays: a run that has nothing nearer to wait for is stuck.
const LONGEST_DELAY_MS: u64 = 24 * 60 * 60 * 1000;

pub fn tenant() -> TenantId {
    TenantId::new("acme")
}

pub fn who() -> Principal {
    Principal { tenant: tenant(), subject: "key-1".to_owned(), acts_for: None, scopes: Scopes::all(), test: false }
}

pub fn other() -> Principal {
    Principal { tenant: TenantId::new("rival"), ..who() }
}

/// `TEST_SEED` from the environment, so that a failure can be repeated.
pub fn seed() -> u64 {
    std::env::var("TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7)
}

/// `TEST_CHECKPOINTS` from the environment: with 1, every run of every test goes on from a checkpoint wherever it can.
fn checkpoint_every() -> u64 {
    let said = std::env::var("TEST_CHECKPOINTS").ok().and_then(|text| text.parse().ok());
    said.unwrap_or(Options::default().checkpoint_every)
}

pub fn options(records_ahead: usize) -> Options {
    let link_secrets = vec![vec![7; 32]];
    Options { records_ahead, link_secrets, checkpoint_every: checkpoint_every(), ..Options::default() }
}

pub fn accept() -> Value {
    json!({"action": "accept"})
}

/// The answer that lets a run go on, whatever it asks.
pub fn go_on(question: &InterruptRow) -> Value {
    match question.kind.as_str() {
        "clarification" => json!({"answers": {"answer": "left"}}),
        _ => accept(),
    }
}

pub fn request(workflow: &str) -> StartRun {
    StartRun { workflow_id: workflow.to_owned(), ..StartRun::default() }
}

/// Fails the test instead of hanging it.
pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what}: hangs (seed {})", seed()))
}

pub struct World {
    pub host: Host,
    /// Where everything is kept, unless this world has another disk.
    pub store: Arc<MemoryStore>,
    pub reader: Arc<dyn Store>,
    pub clock: Arc<SimClock>,
}

impl World {
    pub async fn new() -> Self {
        Self::open(Disk::default(), Arc::default(), options(512)).await
    }

    /// A new process on what the last one left behind.
    pub async fn open(disk: Disk, clock: Arc<SimClock>, options: Options) -> Self {
        let store = Arc::new(MemoryStore::from_disk(disk));
        Self::over(Arc::clone(&store) as _, store, clock, options).await
    }

    /// A host over `store`, which keeps everything in `memory`.
    pub async fn over(store: Arc<dyn Store>, memory: Arc<MemoryStore>, clock: Arc<SimClock>, options: Options) -> Self {
        Self::seeded(store, memory, clock, options, seed()).await
    }

    /// The same, with names of its own.
    pub async fn seeded(
        store: Arc<dyn Store>,
        memory: Arc<MemoryStore>,
        clock: Arc<SimClock>,
        options: Options,
        seed: u64,
    ) -> Self {
        let ids = Arc::new(SeededIds::new(seed));
        let host = Host::open_with(Arc::clone(&store), options, Arc::clone(&clock) as _, ids).await.unwrap();
        Self { host, store: memory, reader: store, clock }
    }

    pub async fn with(flows: impl IntoIterator<Item = Flow>) -> Self {
        let world = Self::new().await;
        for flow in flows {
            world.register(flow).await;
        }
        world
    }

    pub async fn register(&self, flow: Flow) {
        self.host.register_workflow(&tenant(), flow.build()).await.unwrap();
    }

    pub async fn try_start(&self, workflow: &str) -> Result<StartedRun, Error> {
        self.host.start_run(&who(), request(workflow), None).await
    }

    pub async fn start(&self, workflow: &str) -> RunId {
        self.try_start(workflow).await.unwrap().run_id
    }

    pub async fn snapshot(&self, run: &RunId) -> RunSnapshot {
        self.host.snapshot_for(&who(), run).await.unwrap()
    }

    pub async fn status(&self, run: &RunId) -> RunStatus {
        self.snapshot(run).await.status
    }

    /// Answers what the node asks, as somebody does who has looked.
    pub async fn resolve(&self, run: &RunId, node: &str, value: Value) -> Result<Resolved, Error> {
        let node = NodeId::new(node);
        let open = self.reader.interrupt(run, &node).await.unwrap();
        self.answer(run, node.as_str(), Answer { value, interrupt_id: open.map(|open| open.interrupt_id) }).await
    }

    /// Answers as it is said.
    pub async fn answer(&self, run: &RunId, node: &str, answer: impl Into<Answer>) -> Result<Resolved, Error> {
        let via = Via::Bearer { subject: "key-1".to_owned() };
        self.host.resolve(&tenant(), run, &NodeId::new(node), answer, via).await
    }

    pub async fn open_interrupts(&self) -> Vec<InterruptRow> {
        self.host.interrupts(&InterruptFilter { limit: 1000, ..InterruptFilter::default() }).await.unwrap()
    }

    /// Every run in the store, oldest first.
    pub async fn rows(&self) -> Vec<RunRow> {
        let mut rows = self.reader.runs(&RunFilter { limit: usize::MAX, ..RunFilter::default() }).await.unwrap().items;
        rows.reverse();
        rows
    }

    /// Waits until the run's durable state is what `wanted` asks for.
    pub async fn wait_for(&self, run: &RunId, wanted: impl Fn(&RunSnapshot) -> bool) -> RunSnapshot {
        let mut log = self.host.subscribe(run);
        let reached = async {
            loop {
                let snapshot = self.snapshot(run).await;
                if wanted(&snapshot) {
                    return snapshot;
                }
                log.changed().await;
            }
        };
        in_time("waiting for a state", reached).await
    }

    pub async fn ended(&self, run: &RunId) -> RunSnapshot {
        self.wait_for(run, |snapshot| snapshot.status.is_terminal()).await
    }

    pub async fn waiting(&self, run: &RunId) -> RunSnapshot {
        self.wait_for(run, |snapshot| snapshot.status.is_waiting()).await
    }

    /// Lets the host do everything it can do at this instant. For single-threaded tests: every task gets its turns,
    /// and none of them waits for anything but the clock and the test.
    pub async fn settle(&self) {
        let (mut quiet, mut commits) = (0, self.store.commits());
        while quiet < 100 {
            tokio::task::yield_now().await;
            let now = self.store.commits();
            quiet = if now == commits { quiet + 1 } else { 0 };
            commits = now;
        }
    }

    /// Answers what is asked and moves time until every run has ended. With nothing left to answer or to wait for,
    /// time moves a second `ticks` times before the runs count as stuck.
    pub async fn drive(&self, mut ticks: u32) {
        loop {
            self.settle().await;
            let rows = self.rows().await;
            if !rows.is_empty() && rows.iter().all(|row| row.status.is_terminal()) {
                return;
            }
            if let Some(open) = self.open_interrupts().await.first() {
                self.resolve(&open.run, open.node.as_str(), go_on(open)).await.unwrap();
                continue;
            }
            let horizon = self.clock.now().plus_millis(LONGEST_DELAY_MS);
            match rows.iter().filter_map(|row| row.wake_at).min().filter(|at| *at <= horizon) {
                Some(at) => self.clock.advance_to(at.max(soonest(&self.clock))),
                None if ticks > 0 => {
                    ticks -= 1;
                    self.clock.advance(1000);
                }
                None => panic!("stuck (seed {}): {rows:#?}", seed()),
            }
        }
    }

    /// Ends this host's tasks. What it had not committed is gone.
    pub async fn stop(self) -> Disk {
        let disk = self.store.disk();
        self.host.shutdown().await;
        disk
    }
}

/// Time must move, or a timer that does not fire would be waited for without end.
fn soonest(clock: &SimClock) -> Timestamp {
    Timestamp::from_micros(clock.now().as_micros() + 1)
}
