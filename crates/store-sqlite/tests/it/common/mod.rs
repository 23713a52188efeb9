#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use baton_model::{Digest, RunId, RunStatus, Timestamp, Versions};
use baton_store::{
    Change, Commit, CommitError, Committed, Item, Journal, LedgerCommitted, LedgerId, Meta, Observer, Reader, RunRow,
    StoredRecord, Ticket, Write,
};
use baton_store_sqlite::SqliteStore;
use parking_lot::Mutex;

pub(crate) fn row(id: &str) -> RunRow {
    RunRow {
        id: RunId::new(id),
        tenant: "acme".into(),
        workflow: "echo".into(),
        digest: Digest::of_bytes("echo"),
        status: RunStatus::Running,
        created_at: Timestamp::from_micros(1),
        updated_at: Timestamp::from_micros(1),
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
    }
}

pub(crate) fn append(id: &str, expected: u64, bodies: &[&str]) -> Write {
    let records: Vec<_> = (expected..)
        .zip(bodies)
        .map(|(seq, body)| StoredRecord {
            seq,
            at: Timestamp::from_micros(2),
            kind: "log.appended".to_owned(),
            body: (*body).to_owned(),
            private: None,
            versions: Versions::default(),
            part: None,
        })
        .collect();
    Write::Append { row: RunRow { next_seq: expected + records.len() as u64, ..row(id) }, expected, records }
}

/// A memory scope.
pub(crate) fn notes() -> LedgerId {
    LedgerId::memory(&"acme".into(), "notes")
}

pub(crate) fn change(version: u64, key: &str) -> Write {
    let item = Some(Item { content: version.to_string(), expires_at: None, meta: Meta::default() });
    let change = Change { version, key: key.to_owned(), at: Timestamp::from_micros(2), run: None, item };
    Write::Change { ledger: notes(), change }
}

pub(crate) fn submit(store: &SqliteStore, writes: Vec<Write>) -> Ticket {
    store.submit(Commit::new(store.generation(), writes))
}

pub(crate) async fn bodies(store: &SqliteStore, id: &str) -> Vec<String> {
    let records = store.records(&RunId::new(id), 0, usize::MAX).await.unwrap();
    assert!((0u64..).zip(&records).all(|(seq, record)| record.seq == seq), "no gap");
    records.into_iter().map(|record| record.body).collect()
}

/// Holds the writer at its next commit until the returned sender is used or dropped, so that a test can decide what
/// is queued when the next transaction begins.
pub(crate) fn hold_writer(store: &SqliteStore) -> (Receiver<()>, Sender<()>) {
    struct Gate {
        reached: Sender<()>,
        open: Mutex<Receiver<()>>,
    }
    impl Observer for Gate {
        fn committed(&self, _: &[Committed], _: &[LedgerCommitted]) {
            let _ = self.reached.send(());
            let _ = self.open.lock().recv();
        }
        fn failed(&self, _: u64, _: &CommitError) {}
    }
    let (reached, is_reached) = channel();
    let (opener, open) = channel();
    store.observe(Arc::new(Gate { reached, open: Mutex::new(open) }));
    (is_reached, opener)
}
