//! Small, plain rows and the few moves every check makes; also for what adapters test by themselves.

use std::sync::Arc;

use baton_model::{Digest, Part, RunId, RunStatus, TenantId, Timestamp, Versions, WorkflowId};
use parking_lot::Mutex;

use crate::{
    Change, Commit, CommitError, CommitReceipt, Committed, Item, Journal, LogChain, LostPart, Meta, Observer,
    RunFilter, RunRow, Store, StoredRecord, VersionedStoreCommitted, VersionedStoreId, Write,
};

pub(super) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + micros)
}

/// A run that has just been created and is at work.
pub fn row(id: &str) -> RunRow {
    RunRow {
        id: RunId::new(id),
        tenant: TenantId::new("acme"),
        workflow: WorkflowId::new("echo"),
        digest: Digest::of_bytes("echo"),
        status: RunStatus::Running,
        created_at: at(0),
        updated_at: at(0),
        next_seq: 0,
        wake_at: None,
        busy: true,
        parent: None,
        root: None,
        scope: None,
        tags: Vec::new(),
        current_node: None,
        error_code: None,
        memory_scope: id.to_owned(),
        workspace_scope: "default".to_owned(),
        origin: None,
        pruned: None,
        summary: None,
        chain: LogChain::default(),
    }
}

pub fn record(seq: u64) -> StoredRecord {
    StoredRecord {
        seq,
        at: at(seq.cast_signed()),
        kind: "node.started".to_owned(),
        body: format!(r#"{{"sequence":{seq}}}"#),
        private: seq.is_multiple_of(2).then(|| format!(r#"{{"key":{seq}}}"#)),
        versions: Versions { memory: seq * 3, workspace: seq * 5 },
        part: [None, Some(Part { outside: seq.is_multiple_of(3), first: seq.is_multiple_of(2) })][usize::from(seq > 0)],
        sum: None,
    }
}

/// The memory scope most checks write to.
pub fn notes() -> VersionedStoreId {
    VersionedStoreId::memory(&TenantId::new("acme"), "notes")
}

/// A plain change from outside. Version, instant and content are the same number.
pub fn put(version: u64, key: &str) -> Change {
    let item = Item { content: version.to_string(), expires_at: None, meta: Meta::default() };
    Change { version, key: key.to_owned(), at: at(version.cast_signed()), run: None, item: Some(item) }
}

pub(super) fn delete(version: u64, key: &str) -> Change {
    Change { item: None, ..put(version, key) }
}

pub(super) fn changes(ledger: &VersionedStoreId, changes: impl IntoIterator<Item = Change>) -> Vec<Write> {
    changes.into_iter().map(|change| Write::Change { ledger: ledger.clone(), change }).collect()
}

/// `count` records at `expected`, and the row that follows from them.
pub fn append(mut row: RunRow, expected: u64, count: u64) -> Write {
    row.next_seq = expected + count;
    row.updated_at = at(row.next_seq.cast_signed());
    Write::Append { row, expected, records: (expected..expected + count).map(record).collect() }
}

/// The same with the checksums that the records must have, behind what the row says of the chain.
pub fn sealed(mut row: RunRow, expected: u64, mut records: Vec<StoredRecord>) -> Write {
    row.seal(&mut records);
    Write::Append { row, expected, records }
}

/// Queues a commit in the current generation.
pub fn submit(store: &impl Journal, writes: Vec<Write>) -> CommitReceipt {
    store.submit(Commit::new(store.generation(), writes))
}

/// Commits in the current generation, which must succeed.
pub(super) async fn write(store: &impl Store, writes: Vec<Write>) {
    attempt(store, writes).await.expect("a valid commit succeeds");
}

/// Commits in the current generation.
pub(super) async fn attempt(store: &impl Store, writes: Vec<Write>) -> Result<(), CommitError> {
    submit(store, writes).await
}

/// Recovers from a failure, after which everything is this host's again: on a shared store that is a new session.
pub(super) async fn recover(store: &impl Store) -> u64 {
    let generation = store.recover().await.expect("a refused commit can be recovered from");
    if let Some(shared) = store.shared() {
        let all = store.runs(&RunFilter { limit: 1000, ..RunFilter::default() }).await.expect("runs can be listed");
        for row in all.items {
            shared.adopt_tree(&row.id).await.expect("a tree can be taken over");
        }
    }
    generation
}

/// A new run with `count` records, in one commit.
pub(super) async fn start(store: &impl Store, row: RunRow, count: u64) {
    write(store, vec![Write::CreateRun(row.clone()), append(row, 0, count)]).await;
}

pub(super) async fn next_seq(store: &impl Store, id: &str) -> Option<u64> {
    store.run(&RunId::new(id)).await.expect("a run can be read").map(|row| row.next_seq)
}

pub(super) async fn seqs(store: &impl Store, id: &str) -> Vec<u64> {
    let records = store.records(&RunId::new(id), 0, usize::MAX).await.expect("records can be read");
    records.into_iter().map(|record| record.seq).collect()
}

/// Remembers what it was told.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) committed: Mutex<Vec<Committed>>,
    pub(super) ledgers: Mutex<Vec<VersionedStoreCommitted>>,
    pub(super) lost: Mutex<Vec<LostPart>>,
    pub(super) failed: Mutex<Vec<(u64, CommitError)>>,
}

impl Observer for Heard {
    fn committed(&self, runs: &[Committed], ledgers: &[VersionedStoreCommitted]) {
        self.committed.lock().extend_from_slice(runs);
        self.ledgers.lock().extend_from_slice(ledgers);
    }
    fn lost(&self, parts: &[LostPart]) {
        self.lost.lock().extend_from_slice(parts);
    }
    fn failed(&self, generation: u64, error: &CommitError) {
        self.failed.lock().push((generation, error.clone()));
    }
}

pub(super) fn listen(store: &impl Store) -> Arc<Heard> {
    let heard = Arc::new(Heard::default());
    store.observe(Arc::<Heard>::clone(&heard));
    heard
}
