#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use baton_model::RunId;
use baton_store::conformance::sample::{put, record};
use baton_store::reads::*;
use baton_store::{
    CommitError, Committed, Journal, LostPart, Observer, RunRow, StoredRecord, VersionedStoreCommitted, Write,
};
use baton_store_sqlite::SqliteStore;
use parking_lot::Mutex;

pub(crate) use baton_store::conformance::sample::{notes, row, submit};

pub(crate) fn append(id: &str, expected: u64, bodies: &[&str]) -> Write {
    let told = |(seq, body): (u64, &&str)| StoredRecord { body: (*body).to_owned(), ..record(seq) };
    let records: Vec<_> = (expected..).zip(bodies).map(told).collect();
    Write::Append { row: RunRow { next_seq: expected + records.len() as u64, ..row(id) }, expected, records }
}

pub(crate) fn change(version: u64, key: &str) -> Write {
    Write::Change { ledger: notes(), change: put(version, key) }
}

pub(crate) async fn bodies(store: &SqliteStore, id: &str) -> Vec<String> {
    let records = store.records(&RunId::new(id), 0, usize::MAX).await.unwrap();
    assert!((0u64..).zip(&records).all(|(seq, record)| record.seq == seq), "no gap");
    records.into_iter().map(|record| record.body).collect()
}

/// Holds the writer at its next commit until the returned sender is used or dropped, so that a test can decide what
/// is queued when the next transaction begins.
pub(crate) fn hold_writer(store: &SqliteStore) -> (Receiver<()>, SyncSender<()>) {
    struct Gate {
        reached: SyncSender<()>,
        open: Mutex<Receiver<()>>,
    }
    impl Observer for Gate {
        fn committed(&self, _: &[Committed], _: &[VersionedStoreCommitted]) {
            let _ = self.reached.send(());
            let _ = self.open.lock().recv();
        }
        fn lost(&self, _: &[LostPart]) {}
        fn failed(&self, _: u64, _: &CommitError) {}
    }
    let (reached, is_reached) = sync_channel(1024);
    let (opener, open) = sync_channel(1);
    store.observe(Arc::new(Gate { reached, open: Mutex::new(open) }));
    (is_reached, opener)
}
