//! Forgetting: history, whole versioned stores, logs.

use baton_model::{RunId, TenantId, Versions};

use super::sample::{append, at, attempt, changes, delete, next_seq, notes, put, row, seqs, start, write};
use crate::{Pruned, ReadView, RunRow, Store, StoredRecord, VersionedStoreId, VersionedStoreKind, Write};

async fn held(store: &impl Store) -> Vec<u64> {
    let changes = store.versioned_changes(&notes(), None, None, usize::MAX).await.expect("readable");
    changes.into_iter().map(|change| change.version).collect()
}

async fn shown(store: &impl Store, version: u64) -> Vec<u64> {
    let lens = ReadView { version, ..ReadView::default() };
    let items = store.versioned_items(&notes(), &lens).await.expect("readable");
    items.into_iter().map(|change| change.version).collect()
}

fn forget(below: u64) -> Vec<Write> {
    vec![Write::ForgetHistory { ledger: notes(), below }]
}

pub(super) async fn what_was_replaced_is_forgotten(store: impl Store) {
    let all = [put(1, "a"), put(2, "b"), put(3, "a"), put(4, "a"), put(5, "b"), put(6, "c"), put(7, "a")];
    write(&store, changes(&notes(), all)).await;
    let other = VersionedStoreId::memory(&TenantId::new("other"), "notes");
    write(&store, changes(&other, [put(1, "a"), put(2, "a")])).await;
    let before = [shown(&store, 4).await, shown(&store, 5).await, shown(&store, 7).await];

    write(&store, forget(0)).await;
    assert_eq!(held(&store).await, [7, 6, 5, 4, 3, 2, 1], "nothing lies below 0");
    write(&store, forget(4)).await;
    assert_eq!(held(&store).await, [7, 6, 5, 4, 2], "what was replaced by 4; not what was replaced later");
    assert_eq!(
        [shown(&store, 4).await, shown(&store, 5).await, shown(&store, 7).await],
        before,
        "from 4 on all is as it was"
    );
    assert_eq!(store.versioned_head(&notes()).await.expect("readable"), 7);
    write(&store, forget(4)).await;
    assert_eq!(held(&store).await, [7, 6, 5, 4, 2], "twice is once");
    write(&store, forget(u64::MAX)).await;
    assert_eq!(held(&store).await, [7, 6, 5], "what is current stays");
    assert_eq!(shown(&store, 7).await, before[2]);
    let elsewhere = store.versioned_changes(&other, None, None, 9).await.expect("readable");
    assert_eq!(elsewhere.len(), 2, "another tenant's ledger of that name is left alone");
    write(&store, changes(&notes(), [put(8, "a")])).await;
    assert_eq!(shown(&store, 8).await, [8, 6, 5], "and it goes on");
}

pub(super) async fn deletions_are_forgotten_last(store: impl Store) {
    let all = [put(1, "a"), delete(2, "a"), put(3, "b"), delete(4, "b"), put(5, "b"), put(6, "c"), delete(7, "c")];
    write(&store, changes(&notes(), all)).await;
    write(&store, forget(1)).await;
    assert_eq!(held(&store).await, [7, 6, 5, 4, 3, 2, 1], "not yet deleted at 1");
    write(&store, forget(2)).await;
    assert_eq!(held(&store).await, [7, 6, 5, 4, 3], "nothing is left of a key that is gone for good");
    write(&store, forget(4)).await;
    assert_eq!(held(&store).await, [7, 6, 5, 4], "a deletion that something followed is still history");
    assert_eq!(shown(&store, 4).await, [0; 0]);
    write(&store, forget(6)).await;
    assert_eq!(held(&store).await, [7, 6, 5], "a deletion above the line still hides");
    assert_eq!((shown(&store, 6).await, shown(&store, 7).await), (vec![6, 5], vec![5]));
    write(&store, forget(7)).await;
    assert_eq!(held(&store).await, [5]);
    write(&store, changes(&notes(), [delete(8, "b")])).await;
    assert_eq!(store.ledgers(&notes().tenant, VersionedStoreKind::Memory).await.expect("readable").len(), 1);
    write(&store, forget(8)).await;
    assert_eq!(held(&store).await, [0; 0]);
    let listed = store.ledgers(&notes().tenant, VersionedStoreKind::Memory).await.expect("readable");
    assert_eq!(listed, [], "a ledger that holds nothing is not listed");
    assert_eq!(store.versioned_head(&notes()).await.expect("readable"), 8, "but it is remembered");
}

pub(super) async fn a_dropped_versioned_store_counts_on(store: impl Store) {
    let other = VersionedStoreId::workspace(&notes().tenant, "notes");
    write(&store, changes(&notes(), [put(1, "a"), put(2, "b")])).await;
    write(&store, changes(&other, [put(1, "a")])).await;
    write(&store, vec![Write::DropVersionedStore(notes())]).await;
    assert_eq!((held(&store).await, shown(&store, 9).await), (vec![], vec![]));
    assert_eq!(store.ledgers(&notes().tenant, VersionedStoreKind::Memory).await.expect("readable"), []);
    assert_eq!(store.versioned_head(&other).await.expect("readable"), 1);
    assert_eq!(store.versioned_changes(&other, None, None, 9).await.expect("readable").len(), 1, "only that one");
    assert_eq!(store.versioned_head(&notes()).await.expect("readable"), 2);
    attempt(&store, changes(&notes(), [put(1, "a")])).await.expect_err("versions are not used twice");
    write(&store, changes(&notes(), [put(3, "b")])).await;
    assert_eq!((held(&store).await, shown(&store, 9).await), (vec![3], vec![3]));
}

pub(super) async fn retention_is_part_of_a_commit(store: impl Store) {
    start(&store, row("run_a"), 2).await;
    write(&store, changes(&notes(), [put(1, "a"), put(2, "a")])).await;
    let writes = |expected| {
        let mut writes = forget(2);
        writes.push(Write::Prune { run: RunId::new("run_a"), pruned: Pruned { at: at(9), log: true } });
        writes.push(Write::DropVersionedStore(notes()));
        writes.extend(changes(&notes(), [put(3, "b"), put(4, "b")]));
        writes.extend(forget(4));
        writes.push(append(row("run_a"), expected, 1));
        writes
    };
    attempt(&store, writes(7)).await.expect_err("a bad record");
    assert_eq!((held(&store).await, seqs(&store, "run_a").await), (vec![2, 1], vec![0, 1]), "nothing was forgotten");
    write(&store, writes(2)).await;
    assert_eq!(held(&store).await, [4], "in the order they were written");
    assert_eq!(seqs(&store, "run_a").await, [2], "numbering goes on after what was dropped");
    assert_eq!(store.records(&RunId::new("run_a"), 3, 9).await.expect("readable"), []);
}

pub(super) async fn a_pruned_run_keeps_its_row(store: impl Store) {
    start(&store, row("run_a"), 3).await;
    start(&store, row("run_b"), 2).await;
    let run = RunId::new("run_a");
    let before = store.run(&run).await.expect("readable").expect("there");
    assert_eq!(before.pruned, None);
    let prune = async |at_micros, log| {
        let pruned = Pruned { at: at(at_micros), log };
        write(&store, vec![Write::Prune { run: RunId::new("run_a"), pruned }]).await;
        store.run(&RunId::new("run_a")).await.expect("readable").expect("still there")
    };
    let marked = prune(10, false).await;
    assert_eq!(marked, RunRow { pruned: Some(Pruned { at: at(10), log: false }), ..before.clone() });
    assert_eq!(seqs(&store, "run_a").await, [0, 1, 2], "the log stays until the mark says so");
    let dropped = prune(20, true).await;
    assert_eq!(dropped, RunRow { pruned: Some(Pruned { at: at(20), log: true }), ..before.clone() });
    assert_eq!(seqs(&store, "run_a").await, [0; 0]);
    assert_eq!(next_seq(&store, "run_a").await, Some(3), "the row remembers how long the log was");
    assert_eq!(seqs(&store, "run_b").await, [0, 1], "another run's log is left alone");
    let again = prune(30, false).await;
    assert_eq!(again.pruned, Some(Pruned { at: at(30), log: true }), "gone is gone");
    let listed = store.runs(&crate::RunFilter { limit: 9, ..Default::default() }).await.expect("readable");
    assert_eq!(listed.items[1], again, "lists show the mark");
    attempt(&store, vec![append(row("run_a"), 0, 1)]).await.expect_err("an empty log is not a new one");
    let nobody = Write::Prune { run: RunId::new("run_x"), pruned: Pruned { at: at(9), log: true } };
    write(&store, vec![nobody]).await;
    assert_eq!(next_seq(&store, "run_x").await, None, "an unknown run has nothing to prune");
}

pub(super) async fn the_floor_is_what_runs_may_look_back_to(store: impl Store) {
    let begin = async |id: &str, tenant: &str, scope: &str, memory, workspace| {
        let run = RunRow { tenant: TenantId::new(tenant), memory_scope: scope.to_owned(), ..row(id) };
        let Write::Append { row, expected, mut records } = append(run.clone(), 0, 3) else { return };
        for StoredRecord { seq, versions, .. } in &mut records {
            *versions = Versions { memory: memory + *seq, workspace: workspace + *seq };
        }
        write(&store, vec![Write::CreateRun(run), Write::Append { row, expected, records }]).await;
    };
    let floor = async |ledger: VersionedStoreId| store.versioned_floor(&ledger).await.expect("readable");
    let memory = async |scope: &str| floor(VersionedStoreId::memory(&TenantId::new("acme"), scope)).await;
    let workspace = async |name: &str| floor(VersionedStoreId::workspace(&TenantId::new("acme"), name)).await;
    begin("run_a", "acme", "s", 20, 7).await;
    begin("run_b", "acme", "s", 10, 8).await;
    begin("run_c", "acme", "t", 5, 3).await;
    begin("run_d", "other", "s", 1, 1).await;
    write(&store, vec![Write::CreateRun(RunRow { memory_scope: "s".to_owned(), ..row("run_empty") })]).await;

    assert_eq!(memory("s").await, Some(10), "the earliest beginning of those that share the scope");
    assert_eq!(memory("t").await, Some(5));
    assert_eq!(memory("u").await, None, "nobody reads it");
    assert_eq!(workspace("default").await, Some(3), "every run of the tenant reads this one");
    assert_eq!(workspace("s").await, None);
    let prune = async |id: &str, log| {
        write(&store, vec![Write::Prune { run: RunId::new(id), pruned: Pruned { at: at(9), log } }]).await;
    };
    prune("run_b", false).await;
    assert_eq!(memory("s").await, Some(20), "a pruned run does not look back, with its log or without");
    prune("run_c", true).await;
    assert_eq!((memory("t").await, workspace("default").await), (None, Some(7)));
    prune("run_a", true).await;
    assert_eq!((memory("s").await, workspace("default").await), (None, None));
    assert_eq!(floor(VersionedStoreId::memory(&TenantId::new("other"), "s")).await, Some(1));
}
