//! Forks: logs that begin in the middle, and versioned stores that see another one.

use baton_model::{
    Digest, ForkMode, Origin, Overlay, RunId, SideEffects, TenantId, Timestamp, Versions, WorkerVersions, WorkflowId,
};

use super::sample::{append, at, attempt, changes, delete, listen, next_seq, notes, put, row, seqs, start, write};
use crate::{
    Commit, CommitError, Committed, Pruned, ReadView, RunRow, Store, StoredRecord, VersionedStoreCommitted,
    VersionedStoreId, VersionedStoreKind, Write,
};

fn origin(source: &str, seq: u64, mode: ForkMode) -> Origin {
    Origin {
        source: RunId::new(source),
        seq,
        requested: Some(seq + 3),
        mode,
        at: at(50),
        moment: Some(at(20)),
        length: (mode == ForkMode::Replay).then_some(9),
        versions: Versions { memory: 3, workspace: 4 },
        overlay: Overlay { max_loop_iterations: Some(7), ..Overlay::default() },
        side_effects: SideEffects::Real,
        workers: Some(Box::new(workers())),
    }
}

fn workers() -> WorkerVersions {
    let used = [(WorkflowId::new("worker"), Digest::of_bytes("first"))].into_iter().collect();
    WorkerVersions { as_of: at(50), used }
}

pub(super) fn fork_of(source: &str, id: &str, seq: u64) -> RunRow {
    RunRow { origin: Some(origin(source, seq, ForkMode::Branch)), ..row(id) }
}

fn forked() -> VersionedStoreId {
    VersionedStoreId { scope: "forked".to_owned(), ..notes() }
}

fn fork_versioned_store(version: u64) -> Write {
    Write::ForkVersionedStore { ledger: forked(), base: notes(), version }
}

async fn own(store: &impl Store, ledger: &VersionedStoreId) -> Vec<u64> {
    let changes = store.versioned_changes(ledger, None, None, usize::MAX).await.expect("readable");
    changes.into_iter().map(|change| change.version).collect()
}

pub(super) async fn a_log_begins_at_its_fork_point(store: impl Store) {
    let heard = listen(&store);
    start(&store, row("run_a"), 5).await;
    let fork = fork_of("run_a", "run_b", 3);
    write(&store, vec![Write::CreateRun(RunRow { next_seq: 99, ..fork.clone() })]).await;
    let stored = store.run(&RunId::new("run_b")).await.expect("readable").expect("there");
    assert_eq!(stored, RunRow { next_seq: 3, ..fork.clone() }, "where it comes from reads back as it was written");
    assert_eq!(seqs(&store, "run_b").await, [0; 0], "what came before is the source's");
    assert_eq!(
        heard.committed.lock().last(),
        Some(&Committed { run: RunId::new("run_b"), next_seq: 3, terminal: false })
    );
    for expected in [0, 2, 4] {
        let early = attempt(&store, vec![append(fork.clone(), expected, 1)]).await;
        let conflict = CommitError::Conflict { run: RunId::new("run_b"), expected, actual: 3 };
        assert_eq!(early, Err(conflict), "neither before the fork point nor after a gap");
    }
    write(&store, vec![append(fork.clone(), 3, 2)]).await;
    assert_eq!((seqs(&store, "run_b").await, next_seq(&store, "run_b").await), (vec![3, 4], Some(5)));
    let replay = RunRow { origin: Some(origin("run_b", 4, ForkMode::Replay)), ..row("run_c") };
    write(&store, vec![Write::CreateRun(replay.clone()), append(replay.clone(), 4, 2)]).await;
    assert_eq!(seqs(&store, "run_c").await, [4, 5], "made and continued in one commit");
    let stored = store.run(&RunId::new("run_c")).await.expect("readable").expect("there");
    assert_eq!((stored.origin, stored.next_seq), (replay.origin, 6));
    assert_eq!(seqs(&store, "run_a").await, [0, 1, 2, 3, 4], "the source is as it was");
    let moved = RunRow { origin: None, ..fork.clone() };
    write(&store, vec![append(moved, 5, 1)]).await;
    let stored = store.run(&RunId::new("run_b")).await.expect("readable").expect("there");
    assert_eq!(stored.origin, fork.origin, "where a run comes from does not change");
}

pub(super) async fn a_run_knows_its_forks(store: impl Store) {
    start(&store, row("run_a"), 5).await;
    let forks = async |id: &str| store.forks(&RunId::new(id)).await.expect("readable");
    assert_eq!(forks("run_a").await, [], "none yet");
    for (source, id, seq) in [("run_a", "run_z", 2), ("run_a", "run_b", 0), ("run_b", "run_c", 0)] {
        write(&store, vec![Write::CreateRun(fork_of(source, id, seq))]).await;
    }
    assert_eq!(forks("run_a").await, [RunId::new("run_z"), RunId::new("run_b")], "its own, in order of creation");
    assert_eq!(forks("run_b").await, [RunId::new("run_c")]);
    assert_eq!((forks("run_c").await, forks("run_x").await), (vec![], vec![]));
}

pub(super) async fn a_forked_versioned_store_goes_on_from_there(store: impl Store) {
    let heard = listen(&store);
    write(&store, changes(&notes(), [put(1, "a"), put(2, "b"), put(3, "a")])).await;
    let base = async |ledger: VersionedStoreId| store.versioned_base(&ledger).await.expect("readable");
    assert_eq!((base(notes()).await, base(forked()).await), (None, None));
    write(&store, vec![fork_versioned_store(2)]).await;
    assert_eq!(heard.ledgers.lock().last(), Some(&VersionedStoreCommitted { ledger: forked(), version: 2 }));
    assert_eq!((base(notes()).await, base(forked()).await), (None, Some((notes(), 2))));
    assert_eq!(store.versioned_head(&forked()).await.expect("readable"), 2);
    assert_eq!(own(&store, &forked()).await, [0; 0], "it has nothing of its own");
    let everything = ReadView { version: 99, ..ReadView::default() };
    assert_eq!(store.versioned_items(&forked(), &everything).await.expect("readable"), [], "nor is it asked for more");
    let rows = store.ledgers(&notes().tenant, VersionedStoreKind::Memory).await.expect("readable");
    let listed: Vec<_> = rows.into_iter().map(|row| (row.scope, row.version, row.updated_at)).collect();
    let expected = [("forked".to_owned(), 2, Timestamp::default()), ("notes".to_owned(), 3, at(3))];
    assert_eq!(listed, expected, "it is listed, though nobody wrote to it");

    let early = attempt(&store, changes(&forked(), [put(2, "a")])).await;
    assert_eq!(early, Err(CommitError::VersionConflict { ledger: forked(), wanted: 2, actual: 2 }));
    write(&store, changes(&forked(), [put(3, "c"), delete(4, "a")])).await;
    write(&store, changes(&notes(), [put(4, "d")])).await;
    assert_eq!((own(&store, &forked()).await, own(&store, &notes()).await), (vec![4, 3], vec![4, 3, 2, 1]));
    assert_eq!(base(forked()).await, Some((notes(), 2)), "what it sees of the other one stays what it was");
    let second = VersionedStoreId { scope: "second".to_owned(), ..notes() };
    let fork = Write::ForkVersionedStore { ledger: second.clone(), base: forked(), version: 3 };
    let mut writes = vec![fork];
    writes.extend(changes(&second, [put(4, "e")]));
    write(&store, writes).await;
    assert_eq!((base(second.clone()).await, own(&store, &second).await), (Some((forked(), 3)), vec![4]));
}

pub(super) async fn a_versioned_store_that_exists_is_not_forked_over(store: impl Store) {
    write(&store, changes(&notes(), [put(1, "a"), put(2, "a")])).await;
    write(&store, vec![fork_versioned_store(1)]).await;
    let refused = |wanted, actual| Err(CommitError::VersionConflict { ledger: forked(), wanted, actual });
    assert_eq!(attempt(&store, vec![fork_versioned_store(2)]).await, refused(2, 1), "it was forked already");
    let twice = VersionedStoreId { scope: "twice".to_owned(), ..notes() };
    let fork = Write::ForkVersionedStore { ledger: twice.clone(), base: notes(), version: 1 };
    attempt(&store, vec![fork.clone(), fork]).await.expect_err("twice in one commit");
    assert_eq!(store.versioned_head(&twice).await.expect("readable"), 0, "all or nothing");
    let back = Write::ForkVersionedStore { ledger: notes(), base: forked(), version: 1 };
    attempt(&store, vec![back]).await.expect_err("somebody wrote to it");
    assert_eq!(store.versioned_base(&notes()).await.expect("readable"), None);
}

pub(super) async fn what_a_fork_sees_is_looked_back_to(store: impl Store) {
    let floor = async |ledger: VersionedStoreId| store.versioned_floor(&ledger).await.expect("readable");
    let files = VersionedStoreId::workspace(&TenantId::new("acme"), "notes");
    write(&store, changes(&notes(), [put(1, "a"), put(2, "a"), put(3, "a"), put(4, "a")])).await;
    write(&store, changes(&files, [put(1, "f"), put(2, "f")])).await;
    assert_eq!(floor(notes()).await, None, "nobody reads it");
    write(&store, vec![fork_versioned_store(3)]).await;
    let files_forked = VersionedStoreId { scope: "forked".to_owned(), ..files.clone() };
    write(&store, vec![Write::ForkVersionedStore { ledger: files_forked, base: files.clone(), version: 1 }]).await;
    assert_eq!((floor(notes()).await, floor(files).await, floor(forked()).await), (Some(3), Some(1), None));
    let second = VersionedStoreId { scope: "second".to_owned(), ..notes() };
    write(&store, vec![Write::ForkVersionedStore { ledger: second.clone(), base: notes(), version: 2 }]).await;
    assert_eq!(floor(notes()).await, Some(2), "the one that looks furthest back");
    let elsewhere = VersionedStoreId { tenant: TenantId::new("other"), ..notes() };
    assert_eq!(floor(elsewhere).await, None);
    write(&store, vec![Write::DropVersionedStore(second.clone())]).await;
    assert_eq!(floor(notes()).await, Some(3), "one that was dropped sees nothing any more");
    assert_eq!(store.versioned_base(&second).await.expect("readable"), None);
    assert_eq!(store.versioned_head(&second).await.expect("readable"), 2, "and counts on");
}

/// A fork's log does not begin with the first record, so its own first one says how far back it looks.
pub(super) async fn a_fork_looks_back_to_its_own_beginning(store: impl Store) {
    let floor = async |scope: &str| {
        let ledger = VersionedStoreId::memory(&TenantId::new("acme"), scope);
        store.versioned_floor(&ledger).await.expect("readable")
    };
    let fork = RunRow { memory_scope: "s".to_owned(), workspace_scope: "w".to_owned(), ..fork_of("run_a", "run_b", 4) };
    let Write::Append { row, expected, mut records } = append(fork.clone(), 4, 2) else { return };
    for StoredRecord { seq, versions, .. } in &mut records {
        *versions = Versions { memory: 10 + *seq, workspace: 20 + *seq };
    }
    write(&store, vec![Write::CreateRun(fork.clone())]).await;
    assert_eq!(floor("s").await, None, "it has nothing to look back to yet");
    write(&store, vec![Write::Append { row, expected, records }]).await;
    assert_eq!(floor("s").await, Some(14));
    let files = VersionedStoreId::workspace(&TenantId::new("acme"), "w");
    assert_eq!(store.versioned_floor(&files).await.expect("readable"), Some(24));
    let default = VersionedStoreId::workspace(&TenantId::new("acme"), "default");
    assert_eq!(store.versioned_floor(&default).await.expect("readable"), None, "it has a workspace of its own");
    write(&store, vec![Write::Prune { run: RunId::new("run_b"), pruned: Pruned { at: at(9), log: false } }]).await;
    assert_eq!((floor("s").await, store.versioned_floor(&files).await.expect("readable")), (None, None));
}

/// In a versioned store that sees another one, a deletion hides what is there, however old it is.
pub(super) async fn a_deletion_in_a_fork_hides_for_good(store: impl Store) {
    write(&store, changes(&notes(), [put(1, "a"), put(2, "b")])).await;
    write(&store, vec![fork_versioned_store(2)]).await;
    write(&store, changes(&forked(), [put(3, "a"), delete(4, "a"), put(5, "b"), put(6, "b")])).await;
    write(&store, vec![Write::ForgetHistory { ledger: forked(), below: 6 }]).await;
    assert_eq!(own(&store, &forked()).await, [6, 4], "what was replaced is forgotten, the deletion is not");
    write(&store, changes(&forked(), [put(7, "a")])).await;
    write(&store, vec![Write::ForgetHistory { ledger: forked(), below: 7 }]).await;
    assert_eq!(own(&store, &forked()).await, [7, 6]);
}

pub(super) async fn a_log_stays_while_a_fork_begins_with_it(store: impl Store) {
    let alone = async |writes: Vec<Write>| store.submit(Commit::new(store.generation(), writes)).await;
    let prune = |id: &str, log| Write::Prune { run: RunId::new(id), pruned: Pruned { at: at(9), log } };
    let needed =
        |id: &str, fork: &str| Err::<(), _>(CommitError::LogNeeded { run: RunId::new(id), fork: RunId::new(fork) });
    let gone = |id: &str| Err::<(), _>(CommitError::LogGone { run: RunId::new(id) });
    start(&store, row("run_a"), 5).await;
    write(&store, vec![Write::CreateRun(fork_of("run_a", "run_b", 3))]).await;
    assert_eq!(alone(vec![prune("run_a", true)]).await, needed("run_a", "run_b"));
    assert_eq!(seqs(&store, "run_a").await, [0, 1, 2, 3, 4]);
    alone(vec![prune("run_a", false)]).await.expect("what it remembers may go");
    write(&store, vec![Write::CreateRun(fork_of("run_a", "run_c", 1))]).await;
    assert_eq!(alone(vec![prune("run_b", true), prune("run_a", true)]).await, needed("run_a", "run_c"));
    assert_eq!(store.run(&RunId::new("run_b")).await.expect("readable").expect("there").pruned, None, "all or nothing");

    alone(vec![prune("run_b", true), prune("run_c", true), prune("run_a", true)]).await.expect("nobody needs it");
    assert_eq!(seqs(&store, "run_a").await, [0; 0]);
    assert_eq!(alone(vec![Write::CreateRun(fork_of("run_a", "run_d", 3))]).await, gone("run_a"));
    assert_eq!(next_seq(&store, "run_d").await, None);

    start(&store, row("run_e"), 2).await;
    let both = vec![Write::CreateRun(fork_of("run_e", "run_f", 1)), prune("run_e", true)];
    assert_eq!(alone(both.clone()).await, needed("run_e", "run_f"), "in one commit");
    assert_eq!(alone(both.into_iter().rev().collect()).await, gone("run_e"), "either way");
    // Queued together, they share a transaction where there is one.
    let forking = store.submit(Commit::new(store.generation(), vec![Write::CreateRun(fork_of("run_e", "run_f", 1))]));
    let pruning = store.submit(Commit::new(store.generation(), vec![prune("run_e", true)]));
    assert_eq!((forking.await, pruning.await), (Ok(()), needed("run_e", "run_f")));
    let pruning = store.submit(Commit::new(store.generation(), vec![prune("run_f", true)]));
    let forking = store.submit(Commit::new(store.generation(), vec![Write::CreateRun(fork_of("run_f", "run_g", 1))]));
    assert_eq!((pruning.await, forking.await), (Ok(()), gone("run_f")));
}
