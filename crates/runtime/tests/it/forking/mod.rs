//! Runs worth forking, and what must be true of their forks.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod forged;
pub mod library;

use std::sync::Arc;

use baton_model::{EventId, ForkMode, Origin, Overlay, RunId, RunStatus, SideEffects, WorkerVersions};
use baton_runtime::{Clock, Error, ForkRun, Host, Options, Surroundings};
use baton_store::{
    Commit, Disk, InterruptFilter, Journal as _, LogChain, MemoryStore, RunRow, Store, StoredRecord, VersionedStoreId,
    Write,
};
use baton_testkit::{SeededIds, SimClock};
use serde_json::{Map, Value, json};

use crate::common::scenario::{led, pipeline};
use crate::common::{World, go_on, options, tenant, who};

/// A process of its own on what another one left: its names are others, too.
pub async fn reopened(disk: Disk, clock: Arc<SimClock>, life: u64, options: Options) -> World {
    let store = Arc::new(MemoryStore::from_disk(disk));
    over(Arc::clone(&store) as _, store, clock, life, options).await
}

pub async fn over(
    reader: Arc<dyn Store>,
    store: Arc<MemoryStore>,
    clock: Arc<SimClock>,
    life: u64,
    options: Options,
) -> World {
    let ids = Arc::new(SeededIds::new(1000 + life));
    let host = Host::open_with(Arc::clone(&reader), options, Arc::clone(&clock) as _, ids).await.unwrap();
    World { host, store, reader, clock }
}

pub async fn next_life(world: World, life: u64) -> World {
    let clock = Arc::clone(&world.clock);
    reopened(world.stop().await, clock, life, options(512)).await
}

pub fn fork(mode: ForkMode, from_seq: u64) -> ForkRun {
    ForkRun {
        mode,
        from_seq,
        inputs: Map::new(),
        variables: Map::new(),
        configurable: Map::new(),
        side_effects: SideEffects::default(),
    }
}

pub fn replay_from(from_seq: u64) -> ForkRun {
    fork(ForkMode::Replay, from_seq)
}

pub fn branch_at(from_seq: u64) -> ForkRun {
    fork(ForkMode::Branch, from_seq)
}

/// A branch as older hosts wrote it: exactly where it was asked for, with the rest of the step that it was forked in, and
/// whatever versions of workers a row may say. The next process finds it.
pub async fn written_by_hand(
    world: World,
    source: &RunId,
    seq: u64,
    workers: Option<Box<WorkerVersions>>,
) -> (World, RunId) {
    let row = world.row(source).await;
    let (run, at) = (RunId::new("run_older"), world.clock.now());
    let later = world.reader.records(source, seq, usize::MAX).await.unwrap();
    let rest = later.iter().take_while(|record| record.part.is_some_and(|part| !part.first));
    let records: Vec<StoredRecord> =
        rest.map(|record| StoredRecord::encode(&run, &record.decode(source).unwrap())).collect();
    let last = seq + records.len() as u64 - 1;
    let before = world.reader.records(source, last, 1).await.unwrap().pop().unwrap();
    let origin = Origin {
        source: source.clone(),
        seq,
        requested: None,
        mode: ForkMode::Branch,
        at,
        moment: Some(before.at),
        length: None,
        versions: before.versions,
        overlay: Overlay::default(),
        side_effects: SideEffects::default(),
        workers,
    };
    let row = RunRow {
        id: run.clone(),
        status: RunStatus::Pending,
        next_seq: seq + records.len() as u64,
        wake_at: None,
        busy: true,
        parent: None,
        root: None,
        scope: None,
        memory_scope: run.to_string(),
        workspace_scope: run.to_string(),
        origin: Some(origin),
        summary: None,
        chain: LogChain::default(),
        ..row
    };
    let mut writes = vec![Write::CreateRun(row.clone()), Write::Append { row: row.clone(), expected: seq, records }];
    let (tenant, old) = (tenant(), world.row(source).await);
    for (ledger, base, version) in [
        (
            VersionedStoreId::memory(&tenant, &row.memory_scope),
            VersionedStoreId::memory(&tenant, &old.memory_scope),
            before.versions.memory,
        ),
        (
            VersionedStoreId::workspace(&tenant, &row.workspace_scope),
            VersionedStoreId::workspace(&tenant, &old.workspace_scope),
            before.versions.workspace,
        ),
    ] {
        writes.extend((version > 0).then_some(Write::ForkVersionedStore { ledger, base, version }));
    }
    world.store.submit(Commit::new(world.store.generation(), writes)).await.unwrap();
    (next_life(world, 7).await, run)
}

/// Four hundred turns: a log longer than what is read and written at a time, so that a replay may die in the middle.
pub async fn long() -> (World, RunId) {
    let rules = json!({
        "rules": [{"when": "iteration <= 400", "decide": {"kind": "next-worker", "nextWorkerIds": ["pipeline"]}}],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    let world = World::with([led("long", rules, "sequential"), pipeline("pipeline")]).await;
    let run = world.start("long").await;
    world.ended(&run).await;
    (world, run)
}

/// An event without what a fork has otherwise by nature. Its cause is a place in the same log.
fn comparable(run: &RunId, body: &str) -> Value {
    let mut event: Value = serde_json::from_str(body).unwrap();
    // A child's beginning follows from an event of its parent.
    if event["type"] != "run.started"
        && let Some(cause) = event.get("causationId").cloned()
    {
        let id: EventId = serde_json::from_value(cause).unwrap();
        event["causationId"] = json!(id.sequence_in(run).expect("the cause is in this very log"));
    }
    strip(&mut event);
    event
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"] {
                map.remove(key);
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

/// What is outside of logs: what a replay must not touch.
#[derive(Debug, PartialEq)]
pub struct Outside {
    children: Vec<RunId>,
    questions: Vec<String>,
    timers: Vec<RunId>,
    deliveries: usize,
    ledgers: crate::common::versioned_stores::VersionedStores,
}

impl World {
    pub async fn row(&self, run: &RunId) -> RunRow {
        self.reader.run(run).await.unwrap().unwrap()
    }

    pub async fn length(&self, run: &RunId) -> u64 {
        self.row(run).await.next_seq
    }

    pub async fn try_fork(&self, run: &RunId, request: ForkRun) -> Result<RunId, Error> {
        Ok(self.host.fork(&who(), run, request, None).await?.run_id)
    }

    pub async fn fork(&self, run: &RunId, request: ForkRun) -> RunId {
        self.try_fork(run, request).await.unwrap()
    }

    /// The replay from here, gone through.
    pub async fn replayed(&self, run: &RunId, from: u64) -> RunId {
        let replay = self.fork(run, replay_from(from)).await;
        self.ended(&replay).await;
        replay
    }

    /// The whole log in its public form, a few events at a time.
    pub async fn log_of(&self, run: &RunId) -> Vec<Value> {
        let mut log = Vec::new();
        let mut after = None;
        loop {
            let page = self.host.events(&tenant(), run, after, 7).await.unwrap();
            let Some(last) = page.events.last() else { return log };
            after = Some(last.seq);
            for event in &page.events {
                let raw: Value = serde_json::from_str(&event.body).unwrap();
                assert_eq!(raw["runId"], json!(run), "shown as its own");
                assert_eq!(raw["eventId"], json!(EventId::at(run, event.seq)));
                assert_eq!((event.seq, raw["sequence"].as_u64()), (log.len() as u64, Some(event.seq)), "no gap");
                log.push(comparable(run, &event.body));
            }
        }
    }

    /// Goes through a log again without writing anything down: nothing must differ.
    pub async fn verified(&self, run: &RunId, context: &str) {
        let verified = self.host.verify(&tenant(), run).await.unwrap();
        assert!(verified.difference.is_none(), "{context}: {:?}", verified.difference);
        assert_eq!(verified.events, self.length(run).await, "{context}: all of it");
        assert!(verified.decided > 0, "{context}: nothing was decided anew");
    }

    pub async fn outside(&self) -> Outside {
        let rows = self.rows().await;
        let all = InterruptFilter { limit: 10_000, ..InterruptFilter::default() };
        let questions = self.reader.interrupts(&all).await.unwrap();
        let far = self.clock_end();
        let timers = self.reader.due(far, 10_000).await.unwrap();
        Outside {
            children: rows.iter().filter(|row| row.origin.is_none()).map(|row| row.id.clone()).collect(),
            questions: questions.iter().map(|row| format!("{} {}", row.run, row.node)).collect(),
            timers: timers.into_iter().map(|(run, _)| run).collect(),
            deliveries: self.reader.deliveries(far, 10_000).await.unwrap().len(),
            ledgers: self.ledgers().await,
        }
    }

    fn clock_end(&self) -> baton_model::Timestamp {
        baton_model::Timestamp::from_micros(i64::MAX / 2)
    }

    /// Memory and workspace as of a record, without instants: the contents and the files' versions.
    pub async fn looked(&self, run: &RunId, seq: u64) -> (Vec<String>, Vec<(String, u64)>) {
        let Surroundings { memory, workspace, .. } = self.host.surroundings(&tenant(), run, seq).await.unwrap();
        let files = workspace.into_iter().map(|file| (file.path, file.version)).collect();
        (memory.into_iter().map(|entry| entry.content).collect(), files)
    }

    /// Sees everything through, also what was paused. As [`World::drive`], but everybody is answered at once: forks
    /// come in dozens.
    pub async fn see_through(&self) {
        for _ in 0..1000 {
            self.settle().await;
            let rows = self.rows().await;
            if rows.iter().all(|row| row.status.is_terminal()) {
                return;
            }
            let mut said = false;
            for row in rows.iter().filter(|row| row.status == RunStatus::Paused) {
                self.host.resume(&who(), &row.id, None).await.unwrap();
                said = true;
            }
            for open in self.open_interrupts().await {
                self.resolve(&open.run, open.node.as_str(), go_on(&open)).await.unwrap();
                said = true;
            }
            if !said {
                let due = rows.iter().filter_map(|row| row.wake_at).min();
                let due = due.unwrap_or_else(|| panic!("stuck: {rows:#?}"));
                self.clock.advance_to(due.max(self.clock.now().plus_millis(1)));
            }
        }
        panic!("no end: {:#?}", self.rows().await);
    }

    /// Where a branch stops being its source: at the point that was asked for, or before it.
    pub async fn beginning_of(&self, branch: &RunId, asked: u64) -> u64 {
        let origin = self.row(branch).await.origin.unwrap();
        assert!(origin.seq <= asked && origin.requested == (origin.seq != asked).then_some(asked));
        origin.seq
    }
}
