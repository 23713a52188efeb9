//! Commits that must not happen, and what happens to those around them.

use std::sync::Arc;

use baton_model::{Digest, RunId};

use super::sample::{append, attempt, changes, listen, next_seq, notes, put, record, recover, row, seqs, start, write};
use crate::{Chains, Commit, CommitError, RunRow, Store, Write, WriteChain};

fn conflict(id: &str, expected: u64, actual: u64) -> Result<(), CommitError> {
    Err(CommitError::Conflict { run: RunId::new(id), expected, actual })
}

pub(super) async fn a_stale_append_is_refused(store: impl Store) {
    start(&store, row("run_a"), 3).await;
    start(&store, row("run_b"), 1).await;
    assert_eq!(attempt(&store, vec![append(row("run_a"), 2, 1)]).await, conflict("run_a", 2, 3), "behind the log");
    assert_eq!(attempt(&store, vec![append(row("run_b"), 1, 1)]).await, Ok(()), "nobody else is the worse for it");
    assert_eq!(attempt(&store, vec![append(row("run_a"), 4, 1)]).await, conflict("run_a", 4, 3), "ahead of the log");
    assert_eq!((next_seq(&store, "run_a").await, next_seq(&store, "run_b").await), (Some(3), Some(2)));
    assert_eq!(store.generation(), 1);
}

pub(super) async fn a_lost_part_takes_its_chain_along_and_nothing_else(store: impl Store) {
    let heard = listen(&store);
    let generation = store.generation();
    let (a, b) = (chain("run_a"), chain("run_b"));
    let of = |chain: &Arc<WriteChain>, writes| Commit::of_chain(generation, writes, Arc::clone(chain));
    // Queued without waiting, so that an adapter with group commit gets them in few transactions.
    let created = store.submit(of(&a, vec![Write::CreateRun(row("run_a"))]));
    let before: Vec<_> = (0..20).map(|seq| store.submit(of(&a, vec![append(row("run_a"), seq, 1)]))).collect();
    let failing = store.submit(of(&a, vec![append(row("run_a"), 7, 1)]));
    let behind: Vec<_> = (20..40).map(|seq| store.submit(of(&a, vec![append(row("run_a"), seq, 1)]))).collect();
    let other = store.submit(of(&b, vec![Write::CreateRun(row("run_b")), append(row("run_b"), 0, 1)]));

    assert_eq!(created.await, Ok(()));
    for ticket in before {
        assert_eq!(ticket.await, Ok(()), "queued before the failure");
    }
    assert_eq!(failing.await, conflict("run_a", 7, 20));
    for ticket in behind {
        assert_eq!(ticket.await, Err(CommitError::Stale), "queued behind it");
    }
    assert_eq!(other.await, Ok(()), "another tree");
    assert_eq!(seqs(&store, "run_a").await, (0..20).collect::<Vec<_>>());
    assert_eq!(next_seq(&store, "run_b").await, Some(1));
    let broken = CommitError::Conflict { run: RunId::new("run_a"), expected: 7, actual: 20 };
    assert_eq!((a.broken_by(), b.broken_by()), (Some(&broken), None));
    assert_eq!(store.submit(of(&a, vec![append(row("run_a"), 20, 1)])).await, Err(CommitError::Stale), "for good");
    write(&store, vec![append(row("run_a"), 20, 1)]).await;
    assert!(heard.failed.lock().is_empty(), "the generation goes on");
    let lost = heard.lost.lock();
    assert_eq!((lost[0].run.as_ref().map(RunId::as_str), &lost[0].error), (Some("run_a"), &broken));
    assert_eq!(lost.iter().filter(|lost| lost.error == CommitError::Stale).count(), 21);
}

pub(super) async fn parts_of_one_commit_are_lost_one_by_one(store: impl Store) {
    let (a, b, c) = (chain("run_a"), chain("run_b"), chain("run_c"));
    start(&store, row("run_a"), 1).await;
    let part = |chain: &Arc<WriteChain>, writes| (writes, Chains::link(Arc::clone(chain)));
    let commit = Commit::of_parts(
        store.generation(),
        [
            part(&b, vec![Write::CreateRun(row("run_b")), append(row("run_b"), 0, 2)]),
            part(
                &a,
                vec![append(row("run_a"), 5, 1), Write::PutBlob { digest: Digest::of_bytes("x"), bytes: vec![1] }],
            ),
            part(&a, vec![append(row("run_a"), 1, 1)]),
            part(&c, vec![Write::CreateRun(row("run_c")), append(row("run_c"), 0, 1)]),
            part(&b, vec![append(row("run_b"), 2, 1)]),
        ],
    );
    assert_eq!(store.submit(commit).await, conflict("run_a", 5, 1), "whoever waits hears of the first");
    let ends = [next_seq(&store, "run_a").await, next_seq(&store, "run_b").await, next_seq(&store, "run_c").await];
    assert_eq!(ends, [Some(1), Some(3), Some(1)], "what was in order before it is not written behind it");
    assert_eq!(store.blob(&Digest::of_bytes("x")).await.expect("readable"), None, "all of a part or nothing");
    assert_eq!((a.is_broken(), b.is_broken(), c.is_broken()), (true, false, false));
}

pub(super) async fn what_builds_on_a_lost_version_is_lost_with_it(store: impl Store) {
    let heard = listen(&store);
    let (a, b, c, notes_chain) = (chain("run_a"), chain("run_b"), chain("run_c"), Arc::new(WriteChain::of_store()));
    let (generation, notes) = (store.generation(), notes());
    for run in ["run_a", "run_b", "run_c"] {
        start(&store, row(run), 1).await;
    }
    write(&store, changes(&notes, [put(1, "k")])).await;
    let change = |version| changes(&notes, [put(version, "k")]).remove(0);
    let link = |chain: &Arc<WriteChain>| vec![Arc::clone(chain), Arc::clone(&notes_chain)];
    // The record does not fit, and the change that was made with it is lost.
    let lost = vec![append(row("run_a"), 9, 1), change(2)];
    let next = vec![append(row("run_b"), 1, 1), change(3)];
    let looked = vec![append(row("run_c"), 1, 1)];
    let tickets = [
        (lost, Chains { links: link(&a), ..Chains::default() }),
        (next, Chains { links: link(&b), ..Chains::default() }),
        (
            looked,
            Chains { links: vec![Arc::clone(&c)], builds_on: vec![Arc::clone(&notes_chain)], ..Chains::default() },
        ),
    ]
    .map(|part| store.submit(Commit::of_parts(generation, [part])));
    let [lost, next, looked] = tickets;
    assert_eq!(lost.await, conflict("run_a", 9, 1));
    assert_eq!(next.await, Err(CommitError::Stale), "it wrote the version after the lost one");
    assert_eq!(looked.await, Err(CommitError::Stale), "it has seen the lost one");
    let blamed: Vec<_> = heard.lost.lock().iter().map(|lost| lost.error != CommitError::Stale).collect();
    assert_eq!(blamed, [true, false, false], "only one is to blame");
    assert_eq!(store.versioned_head(&notes).await.expect("readable"), 1);
    write(&store, vec![change(2), append(row("run_b"), 1, 1)]).await;
    assert_eq!(store.versioned_head(&notes).await.expect("readable"), 2, "versions stay consecutive");
}

pub(super) async fn recovery_without_a_failure_changes_nothing(store: impl Store) {
    assert_eq!(store.generation(), 1);
    assert_eq!(recover(&store).await, 1, "no failure, no new generation");
    start(&store, row("run_a"), 1).await;
    attempt(&store, vec![append(row("run_a"), 5, 1)]).await.expect_err("a conflict");
    assert_eq!(recover(&store).await, 1, "a refusal is no failure");
    let other = Commit::new(2, vec![append(row("run_a"), 1, 1)]);
    assert_eq!(store.submit(other).await, Err(CommitError::Stale), "of another generation");
    write(&store, vec![append(row("run_a"), 1, 2)]).await;
    assert_eq!(seqs(&store, "run_a").await, [0, 1, 2]);
}

pub(super) async fn a_run_is_created_once(store: impl Store) {
    start(&store, row("run_a"), 4).await;
    let again = RunRow { scope: Some("again".to_owned()), ..row("run_a") };
    assert_eq!(attempt(&store, vec![Write::CreateRun(again)]).await, conflict("run_a", 0, 4));
    let twice = vec![Write::CreateRun(row("run_b")), Write::CreateRun(row("run_b"))];
    assert_eq!(attempt(&store, twice).await, conflict("run_b", 0, 0), "not twice in one commit either");
    assert_eq!(next_seq(&store, "run_b").await, None);
    let kept = store.run(&RunId::new("run_a")).await.expect("readable").expect("still there");
    assert_eq!((kept.scope, kept.next_seq), (None, 4), "the first one stays as it was");
}

pub(super) async fn an_unknown_run_takes_no_records(store: impl Store) {
    assert_eq!(attempt(&store, vec![append(row("run_a"), 0, 1)]).await, conflict("run_a", 0, 0));
    assert_eq!(next_seq(&store, "run_a").await, None);
}

pub(super) async fn misnumbered_records_are_refused(store: impl Store) {
    start(&store, row("run_a"), 1).await;
    let gap =
        Write::Append { row: RunRow { next_seq: 3, ..row("run_a") }, expected: 1, records: vec![record(1), record(3)] };
    assert_eq!(attempt(&store, vec![gap]).await, conflict("run_a", 3, 2), "a gap in the records");
    let boast = Write::Append { row: RunRow { next_seq: 5, ..row("run_a") }, expected: 1, records: vec![record(1)] };
    assert_eq!(attempt(&store, vec![boast]).await, conflict("run_a", 5, 2), "a row ahead of its log");
    assert_eq!(seqs(&store, "run_a").await, [0]);
}

fn chain(root: &str) -> Arc<WriteChain> {
    Arc::new(WriteChain::of_tree(RunId::new(root)))
}
