//! Whose turn it is when much is queued.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use baton_model::{RunId, TenantId};
use parking_lot::Mutex;

use super::sample::{record, row, sealed};
use crate::{
    Commit, CommitError, Committed, Journal, LostPart, Observer, RunRow, Store, StoredRecord, VersionedStoreCommitted,
    Write,
};

/// A writer that stands still at its first commit, so that a test decides what is queued when it goes on.
pub struct HeldWriter {
    /// Says that the first commit is there.
    pub reached: Receiver<()>,
    /// Lets it go on, and all after it, once it is dropped.
    pub open: SyncSender<()>,
    /// What was committed, in order.
    pub heard: Arc<Mutex<Vec<Committed>>>,
}

struct Gate {
    reached: SyncSender<()>,
    open: Mutex<Receiver<()>>,
    heard: Arc<Mutex<Vec<Committed>>>,
}

impl Observer for Gate {
    fn committed(&self, runs: &[Committed], _: &[VersionedStoreCommitted]) {
        self.heard.lock().extend_from_slice(runs);
        let _ = self.reached.try_send(());
        // An error once the other end is gone: then nobody holds it any more.
        let _ = self.open.lock().recv();
    }
    fn lost(&self, _: &[LostPart]) {}
    fn failed(&self, _: u64, _: &CommitError) {}
}

pub fn hold_writer(store: &impl Journal) -> HeldWriter {
    let (reached, is_reached) = sync_channel(1);
    let (open, is_open) = sync_channel(1);
    let heard = Arc::new(Mutex::new(Vec::new()));
    store.observe(Arc::new(Gate { reached, open: Mutex::new(is_open), heard: Arc::clone(&heard) }));
    HeldWriter { reached: is_reached, open, heard }
}

/// Several times what is written in one transaction.
const BACKLOG: u64 = 64;
const LARGE: usize = 200 * 1024;

/// While the writer is busy one tenant queues a backlog, and then another one a single commit. That one is written after
/// what the first may have in one turn, and not after all of it. For stores whose writer is a thread of its own.
pub async fn a_light_tenant_overtakes_a_backlog(store: &impl Store) {
    let held = hold_writer(store);
    let of = |tenant: &str, writes| Commit::new(store.generation(), writes).of_tenant(TenantId::new(tenant));
    let (heavy, light) = (row("run_heavy"), row("run_light"));
    let created = [Write::CreateRun(heavy.clone()), Write::CreateRun(light.clone())];
    let first = store.submit(Commit::new(store.generation(), created.into()));
    held.reached.recv().expect("the writer gets to the first commit");
    held.heard.lock().clear();

    let mut receipts = Vec::new();
    let mut now = heavy;
    for seq in 0..BACKLOG {
        let body = "x".repeat(LARGE);
        let next = sealed(RunRow { next_seq: seq + 1, ..now }, seq, vec![StoredRecord { body, ..record(seq) }]);
        let Write::Append { row, .. } = &next else { unreachable!("it is an append") };
        now = row.clone();
        receipts.push(store.submit(of("heavy", vec![next])));
    }
    receipts.push(store.submit(of("light", vec![sealed(RunRow { next_seq: 1, ..light }, 0, vec![record(0)])])));
    drop(held.open);
    first.await.expect("the first commit is written");
    for receipt in receipts {
        receipt.await.expect("everybody is served in the end");
    }

    let heard = held.heard.lock().clone();
    let place = heard.iter().position(|committed| committed.run == RunId::new("run_light"));
    let place = place.expect("the light tenant is served");
    assert!(place <= 2, "{place} commits of the heavy tenant came before the light one's");
    let heavy: Vec<u64> =
        heard.iter().filter(|committed| committed.run == RunId::new("run_heavy")).map(|c| c.next_seq).collect();
    assert_eq!(heavy, (1..=BACKLOG).collect::<Vec<_>>(), "and one tenant's commits keep their order");
}
