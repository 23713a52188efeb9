//! Random stories of people and runs that write, wait, expire, are pruned and restarted, told to a host and to the
//! simplest model of two append-only versioned stores there is. After every step, what anybody can see is what the model says.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Decision, Event, RunId, RunSnapshot, RunStatus, Timestamp, Versions, code};
use baton_runtime::{Clock as _, Host, NewMemory};
use baton_store::{Change, Disk, Item, MemoryStore, Meta, RunRow, VersionedStoreId};
use baton_testkit::{Flow, SeededIds, SimClock};
use common::versioned_stores::{FILES, LIST, PUT, VersionedStores, WRITE, as_of, new_file, new_memory, paths, scoped};
use common::{World, accept, in_time, options, tenant, who};
use serde_json::{Value, json};

const STORIES: u64 = 40;
const STEPS: usize = 45;
const TTL_MS: u64 = 5000;
const SCOPES: [Option<&str>; 3] = [None, Some("team"), Some("club")];
const PATHS: [&str; 3] = ["a.md", "b.md", "run.md"];
/// More than any story remembers in one scope.
const MOST: usize = 60;

fn look(into: &str) -> Value {
    json!({"into": into, "limit": 1000})
}

fn flows() -> Vec<Flow> {
    let brief = json!({"content": "by a run", "ttlSeconds": 5});
    let write = json!({"path": "run.md", "content": "by a run"});
    let sizes = (0..MOST).flat_map(|entries| (0..=PATHS.len()).map(move |files| (entries, files)));
    let mut rules = vec![json!({
        "when": "iteration == 1", "decide": {"kind": "next-worker", "nextWorkerIds": ["writer", "writer"]}
    })];
    rules.extend(sizes.map(|(entries, files)| {
        json!({
            "when": format!("size(memory) == {entries} && size(workspace) == {files}"),
            "decide": {"kind": "terminate", "reason": format!("{entries} {files}")}
        })
    }));
    let lead = json!({"rules": rules, "otherwise": {"kind": "terminate", "reason": "too many"}});
    vec![
        Flow::chain(
            "writer",
            &[
                ("before", LIST, look("before")),
                ("put", PUT, brief.clone()),
                ("write", WRITE, write.clone()),
                ("after", LIST, look("after")),
                ("files", FILES, json!({"into": "files"})),
            ],
        ),
        Flow::chain(
            "waiter",
            &[
                ("before", LIST, look("before")),
                ("put", PUT, brief),
                ("gate", "core.approvalGate", json!({"title": "Go on?"})),
                ("write", WRITE, write),
                ("after", LIST, look("after")),
                ("files", FILES, json!({"into": "files"})),
            ],
        ),
        Flow::chain(
            "team",
            &[("lead", "core.orchestrator.supervisor", lead), ("dispatch", "core.dispatch", json!({}))],
        )
        .edge("dispatch", "lead"),
    ]
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { Some(&from[self.roll(from.len())]) }
    }
}

/// What ought to be, and where each run stood when it began.
#[derive(Default)]
struct Model {
    ledgers: VersionedStores,
    /// How far each versioned store has been written; goes on when a versioned store is dropped.
    versions: BTreeMap<VersionedStoreId, u64>,
    began: BTreeMap<RunId, Versions>,
    read: BTreeMap<RunId, u64>,
    checked: BTreeSet<RunId>,
    pruned: BTreeMap<RunId, bool>,
}

impl Model {
    fn version(&self, ledger: &VersionedStoreId) -> u64 {
        self.versions.get(ledger).copied().unwrap_or(0)
    }

    fn add(&mut self, ledger: &VersionedStoreId, change: Change, context: &str) {
        let version = self.versions.entry(ledger.clone()).or_default();
        assert_eq!(change.version, *version + 1, "{context}: {ledger:?}");
        *version += 1;
        self.ledgers.entry(ledger.clone()).or_default().push(change);
    }

    fn held(&self, ledger: &VersionedStoreId, version: u64, at: Timestamp) -> Vec<&Change> {
        self.ledgers.get(ledger).map(|changes| as_of(changes, version, at)).unwrap_or_default()
    }

    /// What a run sees: its scope as of its start, and what it wrote itself.
    fn in_sight(&self, row: &RunRow, at: Timestamp) -> Vec<String> {
        let ledger = memory_of(row);
        let began = self.began[&row.id].memory;
        let counts = |change: &&Change| change.version <= began || change.run.as_ref() == Some(&row.id);
        let changes: Vec<Change> = self.ledgers.get(&ledger).into_iter().flatten().filter(counts).cloned().collect();
        as_of(&changes, u64::MAX, at).into_iter().map(|change| change.key.clone()).collect()
    }
}

fn memory_of(row: &RunRow) -> VersionedStoreId {
    VersionedStoreId::memory(&row.tenant, row.memory_scope.clone())
}

fn workspace() -> VersionedStoreId {
    VersionedStoreId::workspace(&tenant(), DEFAULT_WORKSPACE)
}

struct Story {
    world: World,
    model: Model,
    dice: Dice,
    ids: Arc<SeededIds>,
    records_ahead: usize,
    context: String,
}

async fn open(disk: Disk, clock: Arc<SimClock>, records_ahead: usize, ids: &Arc<SeededIds>) -> World {
    let store = Arc::new(MemoryStore::from_disk(disk));
    let reader = Arc::clone(&store) as Arc<dyn baton_store::Store>;
    let ids = Arc::clone(ids);
    let host =
        Host::open_with(Arc::clone(&reader), options(records_ahead), Arc::clone(&clock) as _, ids).await.unwrap();
    World { host, store, reader, clock }
}

impl Story {
    async fn step(&mut self) {
        let before = self.model.versions.clone();
        let rows = self.world.rows().await;
        let now = self.world.clock.now();
        let scope = *self.dice.pick(&["team", "club"]).unwrap();
        let ledger = VersionedStoreId::memory(&tenant(), scope);
        let what = match self.dice.roll(20) {
            0..=2 => {
                let ttl_ms = (self.dice.roll(2) == 0).then_some(TTL_MS);
                let new = NewMemory { ttl_ms, ..new_memory("by a person") };
                let entry = self.world.host.put_memory(&tenant(), scope, new, None).await.unwrap();
                let version = self.model.version(&ledger) + 1;
                let item = Item { content: entry.content, expires_at: entry.expires_at, meta: Meta::default() };
                assert_eq!(entry.expires_at, ttl_ms.map(|ttl| now.plus_millis(ttl)), "{}", self.context);
                let change = Change { version, key: entry.id, at: now, run: None, item: Some(item) };
                self.model.add(&ledger, change, &self.context);
                format!("remembered in {scope}")
            }
            3 => {
                let known: Vec<String> =
                    self.model.ledgers.get(&ledger).into_iter().flatten().map(|change| change.key.clone()).collect();
                if let Some(key) = self.dice.pick(&known) {
                    let there = self.model.held(&ledger, u64::MAX, now).iter().any(|change| change.key == *key);
                    let deleted = self.world.host.delete_memory(&tenant(), scope, key).await.unwrap();
                    assert_eq!(deleted, there, "{}: deleting {key}", self.context);
                    if there {
                        let version = self.model.version(&ledger) + 1;
                        let change = Change { version, key: key.clone(), at: now, run: None, item: None };
                        self.model.add(&ledger, change, &self.context);
                    }
                }
                format!("deleted in {scope}")
            }
            4..=5 => {
                let path = *self.dice.pick(&PATHS).unwrap();
                let there = self.model.held(&workspace(), u64::MAX, now).into_iter().find(|change| change.key == path);
                let expected = there.map_or(1, |change| change.item.as_ref().unwrap().meta.version.unwrap() + 1);
                let written = self
                    .world
                    .host
                    .put_file(&tenant(), DEFAULT_WORKSPACE, new_file(path, "by a person"))
                    .await
                    .unwrap();
                assert_eq!(written.meta.version, expected, "{}: {path}", self.context);
                let change = file_change(self.model.version(&workspace()) + 1, path, now, None, expected);
                self.model.add(&workspace(), change, &self.context);
                format!("wrote {path}")
            }
            6 => {
                let path = *self.dice.pick(&PATHS).unwrap();
                let there = self.model.held(&workspace(), u64::MAX, now).iter().any(|change| change.key == path);
                let deleted = self.world.host.delete_file(&tenant(), DEFAULT_WORKSPACE, path, None).await.unwrap();
                assert_eq!(deleted, there, "{}: deleting {path}", self.context);
                if there {
                    let version = self.model.version(&workspace()) + 1;
                    let change = Change { version, key: path.to_owned(), at: now, run: None, item: None };
                    self.model.add(&workspace(), change, &self.context);
                }
                format!("deleted {path}")
            }
            7..=11 => {
                let workflow = *self.dice.pick(&["writer", "waiter", "waiter", "team"]).unwrap();
                let scope = *self.dice.pick(&SCOPES).unwrap();
                let request = scope.map_or_else(|| common::request(workflow), |scope| scoped(workflow, scope));
                self.world.host.start_run(&who(), request, None).await.unwrap();
                format!("started {workflow} in {scope:?}")
            }
            12..=14 => {
                let open = self.world.open_interrupts().await;
                if let Some(open) = self.dice.pick(&open) {
                    self.world.resolve(&open.run, "gate", accept()).await.unwrap();
                }
                "answered".to_owned()
            }
            15..=16 => {
                let ms = 1 + self.dice.roll(4000) as u64;
                self.world.clock.advance(ms);
                format!("{ms} ms later")
            }
            17 => {
                let roots: Vec<RunRow> = rows.iter().filter(|row| row.root.is_none()).cloned().collect();
                match self.dice.pick(&roots).cloned() {
                    Some(root) => self.prune(&root, &rows).await,
                    None => "nothing to prune".to_owned(),
                }
            }
            _ => {
                let (disk, clock) = (self.world.store.disk(), Arc::clone(&self.world.clock));
                self.world.host.shutdown().await;
                self.world = open(disk, clock, self.records_ahead, &self.ids).await;
                "restarted".to_owned()
            }
        };
        self.context = format!("{}; {what}", self.context);
        self.world.settle().await;
        self.learn(&before).await;
        self.check().await;
    }

    async fn prune(&mut self, root: &RunRow, rows: &[RunRow]) -> String {
        let log = self.dice.roll(2) == 0;
        let pruned = self.world.host.prune(&tenant(), &root.id, log).await;
        let tree: Vec<&RunRow> =
            rows.iter().filter(|row| row.id == root.id || row.root.as_ref() == Some(&root.id)).collect();
        if tree.iter().any(|row| !row.status.is_terminal()) {
            assert_eq!(pruned.unwrap_err().code, code::RUN_CONFLICT, "{}", self.context);
            return "could not prune what runs".to_owned();
        }
        pruned.unwrap();
        for row in tree {
            *self.model.pruned.entry(row.id.clone()).or_default() |= log;
        }
        if root.scope.is_none() {
            self.model.ledgers.remove(&memory_of(root));
        }
        format!("pruned {} (log: {log})", root.workflow)
    }

    /// Takes in what runs have written since the last step, as their logs tell it.
    async fn learn(&mut self, before: &BTreeMap<VersionedStoreId, u64>) {
        let mut written: BTreeMap<VersionedStoreId, BTreeMap<u64, Change>> = BTreeMap::new();
        let known_at_start = self.model.versions.clone();
        let rows = self.world.rows().await;
        let mut fresh = Vec::new();
        for row in &rows {
            if self.model.pruned.get(&row.id) == Some(&true) {
                continue;
            }
            let from = self.model.read.get(&row.id).copied().unwrap_or(0);
            for stored in self.world.reader.records(&row.id, from, usize::MAX).await.unwrap() {
                self.model.read.insert(row.id.clone(), stored.seq + 1);
                let run = Some(row.id.clone());
                let (at, memory) = (stored.at, memory_of(row));
                match stored.decode(&row.id).unwrap().event {
                    Event::RunStarted(event) => {
                        self.model.began.insert(row.id.clone(), event.private.versions);
                    }
                    Event::MemoryWritten(event) => {
                        let version = event.private.version;
                        let expires_at = Some(at.plus_millis(TTL_MS));
                        let item = Item { content: "by a run".to_owned(), expires_at, meta: Meta::default() };
                        let change = Change { version, key: event.memory_id, at, run, item: Some(item) };
                        assert!(
                            written.entry(memory).or_default().insert(version, change).is_none(),
                            "{}",
                            self.context
                        );
                    }
                    Event::WorkspaceUpdated(event) => {
                        let version = event.private.version;
                        let change = file_change(version, &event.path, at, run, event.version);
                        let twice = written.entry(workspace()).or_default().insert(version, change);
                        assert!(twice.is_none(), "{}", self.context);
                    }
                    _ => {}
                }
                fresh.push((row.clone(), stored));
            }
        }
        for (ledger, changes) in written {
            for change in changes.into_values() {
                self.model.add(&ledger, change, &self.context);
            }
        }
        // A run that began in this step saw what there was before it, or what its tree had written by then.
        for (row, stored) in fresh {
            let memory = memory_of(&row);
            let bounds = |ledger: &VersionedStoreId| {
                let low = before.get(ledger).copied().unwrap_or(0);
                low..=self.model.version(ledger)
            };
            assert!(bounds(&memory).contains(&stored.versions.memory), "{}: {stored:?}", self.context);
            assert!(bounds(&workspace()).contains(&stored.versions.workspace), "{}: {stored:?}", self.context);
            if stored.seq == 0 && row.parent.is_none() {
                let exact = |ledger| known_at_start.get(ledger).copied().unwrap_or(0);
                let expected = Versions { memory: exact(&memory), workspace: exact(&workspace()) };
                assert_eq!((stored.versions, self.model.began[&row.id]), (expected, expected), "{}", self.context);
            }
        }
    }

    async fn check(&mut self) {
        let now = self.world.clock.now();
        for scope in ["team", "club"] {
            let shown: Vec<String> =
                self.world.entries(&tenant(), scope).await.into_iter().map(|entry| entry.id).collect();
            let expected: Vec<String> = self
                .model
                .held(&VersionedStoreId::memory(&tenant(), scope), u64::MAX, now)
                .iter()
                .map(|change| change.key.clone())
                .collect();
            assert_eq!(shown, expected, "{}: {scope}", self.context);
        }
        let shown = self.world.host.files(&tenant(), DEFAULT_WORKSPACE, None).await.unwrap();
        assert_eq!(
            shown.iter().map(|file| (file.path.clone(), file.version)).collect::<Vec<_>>(),
            self.files_at(u64::MAX, now),
            "{}",
            self.context
        );
        let rows = self.world.rows().await;
        for row in &rows {
            let ended = row.status.is_terminal();
            if ended && !self.model.pruned.contains_key(&row.id) && self.model.checked.insert(row.id.clone()) {
                self.check_run(row, now).await;
            }
        }
        for _ in 0..3 {
            if let Some(row) = self.dice.pick(&rows) {
                let seq = self.dice.roll(usize::try_from(row.next_seq).unwrap()) as u64;
                self.check_history(&row.clone(), seq).await;
            }
        }
        let (reader, store) = (&self.world.reader, &self.world.store);
        assert_eq!((reader.generation(), store.lost()), (1, 0), "{}: a commit failed", self.context);
    }

    fn files_at(&self, version: u64, at: Timestamp) -> Vec<(String, u64)> {
        let held = self.model.held(&workspace(), version, at);
        let mut files: Vec<(String, u64)> =
            held.iter().map(|c| (c.key.clone(), c.item.as_ref().unwrap().meta.version.unwrap())).collect();
        files.sort();
        files
    }

    /// A run that has just ended, at this very instant, saw what it should have.
    async fn check_run(&self, row: &RunRow, now: Timestamp) {
        let snapshot = self.world.snapshot(&row.id).await;
        assert_eq!(snapshot.status, RunStatus::Completed, "{}: {:?}", self.context, snapshot.error);
        let began = self.model.began[&row.id];
        if row.workflow.as_str() == "team" {
            let decided = self.world.decisions(&row.id).await.pop().unwrap().decision;
            let Decision::Terminate { reason: Some(reason), .. } = decided else { panic!("{decided:?}") };
            let entries = self.model.held(&memory_of(row), u64::MAX, now).len();
            let files = self.files_at(u64::MAX, now).len();
            assert_eq!(reason, format!("{entries} {files}"), "{}: the second turn", self.context);
            return;
        }
        assert_eq!(seen(&snapshot, "after"), self.model.in_sight(row, now), "{}: {}", self.context, row.id);
        let files: Vec<String> = self.files_at(began.workspace, now).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths(&snapshot, "files"), files, "{}: {}", self.context, row.id);
    }

    /// Looking back at any record shows what the model had then, unless it was pruned.
    async fn check_history(&self, row: &RunRow, seq: u64) {
        let shown = self.world.host.surroundings(&tenant(), &row.id, seq).await;
        if let Some(log) = self.model.pruned.get(&row.id) {
            let refused = shown.unwrap_err();
            let reason = if *log { "event_log_unavailable" } else { "retention_expired" };
            assert_eq!(
                (refused.code, refused.details["reason"].as_str()),
                (code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE, Some(reason)),
                "{}",
                self.context
            );
            return;
        }
        let shown = shown.unwrap();
        let stored = self.world.reader.records(&row.id, seq, 1).await.unwrap().remove(0);
        let expected: Vec<String> = self
            .model
            .held(&memory_of(row), stored.versions.memory, stored.at)
            .iter()
            .map(|change| change.key.clone())
            .collect();
        let memory: Vec<String> = shown.memory.into_iter().map(|entry| entry.id).collect();
        assert_eq!(memory, expected, "{}: {} at {seq}", self.context, row.id);
        let files: Vec<(String, u64)> = shown.workspace.into_iter().map(|file| (file.path, file.version)).collect();
        assert_eq!(files, self.files_at(stored.versions.workspace, stored.at), "{}: {} at {seq}", self.context, row.id);
    }
}

fn seen(snapshot: &RunSnapshot, variable: &str) -> Vec<String> {
    let entries = snapshot.variables[variable].as_array().unwrap();
    entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
}

fn file_change(version: u64, path: &str, at: Timestamp, run: Option<RunId>, file_version: u64) -> Change {
    let meta = Meta { version: Some(file_version), ..Meta::default() };
    let item = Some(Item { content: String::new(), expires_at: None, meta });
    Change { version, key: path.to_owned(), at, run, item }
}

async fn tell(story: u64, records_ahead: usize) {
    let seed = common::seed().wrapping_mul(1000).wrapping_add(story);
    let ids = Arc::new(SeededIds::new(seed));
    let world = open(Disk::default(), Arc::default(), records_ahead, &ids).await;
    for flow in flows() {
        world.register(flow).await;
    }
    let context = format!("TEST_SEED {} story {story}, {records_ahead} ahead", common::seed());
    let mut told = Story { world, model: Model::default(), dice: Dice(seed), ids, records_ahead, context };
    for _ in 0..STEPS {
        told.step().await;
    }
    told.world.host.shutdown().await;
}

#[tokio::test]
async fn whatever_happens_everybody_sees_what_the_model_says() {
    for story in 0..STORIES {
        in_time("a story", tell(story, if story % 2 == 0 { 512 } else { 1 })).await;
    }
}
