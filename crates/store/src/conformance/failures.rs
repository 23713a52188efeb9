//! Commits that must not happen, and what happens to those around them.

use baton_model::RunId;

use super::sample::{append, attempt, listen, next_seq, record, recover, row, seqs, start, write};
use crate::{Commit, CommitError, RunRow, Store, Write};

fn conflict(id: &str, expected: u64, actual: u64) -> Result<(), CommitError> {
    Err(CommitError::Conflict { run: RunId::new(id), expected, actual })
}

pub(super) async fn a_stale_append_ends_the_generation(store: impl Store) {
    start(&store, row("run_a"), 3).await;
    start(&store, row("run_b"), 1).await;
    assert_eq!(attempt(&store, vec![append(row("run_a"), 2, 1)]).await, conflict("run_a", 2, 3), "behind the log");
    let innocent = attempt(&store, vec![append(row("run_b"), 1, 1)]).await;
    assert_eq!(innocent, Err(CommitError::Stale), "the generation has ended for every run");
    assert_eq!(next_seq(&store, "run_a").await, Some(3), "reads go on");

    recover(&store).await;
    assert_eq!(attempt(&store, vec![append(row("run_a"), 4, 1)]).await, conflict("run_a", 4, 3), "ahead of the log");
}

pub(super) async fn a_failure_spares_what_came_before_it(store: impl Store) {
    let generation = store.generation();
    let submit = |writes| store.submit(Commit::new(generation, writes));
    // Queued without waiting, so that an adapter with group commit gets them in few transactions.
    let created = submit(vec![Write::CreateRun(row("run_a"))]);
    let before: Vec<_> = (0..20).map(|seq| submit(vec![append(row("run_a"), seq, 1)])).collect();
    let failing = submit(vec![append(row("run_a"), 7, 1)]);
    let behind: Vec<_> = (20..40).map(|seq| submit(vec![append(row("run_a"), seq, 1)])).collect();
    let other = submit(vec![Write::CreateRun(row("run_b"))]);

    assert_eq!(created.await, Ok(()));
    for ticket in before {
        assert_eq!(ticket.await, Ok(()), "queued before the failure");
    }
    assert_eq!(failing.await, conflict("run_a", 7, 20));
    for ticket in behind {
        assert_eq!(ticket.await, Err(CommitError::Stale), "queued behind the failure");
    }
    assert_eq!(other.await, Err(CommitError::Stale));
    assert_eq!(seqs(&store, "run_a").await, (0..20).collect::<Vec<_>>());
    assert_eq!(next_seq(&store, "run_b").await, None);
}

pub(super) async fn recovery_opens_the_next_generation(store: impl Store) {
    assert_eq!(store.generation(), 1);
    assert_eq!(recover(&store).await, 1, "no failure, no new generation");
    start(&store, row("run_a"), 1).await;
    attempt(&store, vec![append(row("run_a"), 5, 1)]).await.expect_err("a conflict");

    assert_eq!(recover(&store).await, 2);
    assert_eq!(store.generation(), 2);
    assert_eq!(recover(&store).await, 2);
    let old = Commit::new(1, vec![append(row("run_a"), 1, 1)]);
    assert_eq!(store.submit(old).await, Err(CommitError::Stale), "derived from state that is gone");
    write(&store, vec![append(row("run_a"), 1, 2)]).await;
    assert_eq!(seqs(&store, "run_a").await, [0, 1, 2], "numbering goes on where the durable log ends");
}

pub(super) async fn a_run_is_created_once(store: impl Store) {
    start(&store, row("run_a"), 4).await;
    let again = RunRow { scope: Some("again".to_owned()), ..row("run_a") };
    assert_eq!(attempt(&store, vec![Write::CreateRun(again)]).await, conflict("run_a", 0, 4));
    recover(&store).await;
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
    recover(&store).await;
    let boast = Write::Append { row: RunRow { next_seq: 5, ..row("run_a") }, expected: 1, records: vec![record(1)] };
    assert_eq!(attempt(&store, vec![boast]).await, conflict("run_a", 5, 2), "a row ahead of its log");
    assert_eq!(seqs(&store, "run_a").await, [0]);
}

pub(super) async fn the_observer_hears_of_a_failure_once(store: impl Store) {
    let heard = listen(&store);
    start(&store, row("run_a"), 1).await;
    let error = attempt(&store, vec![append(row("run_a"), 5, 1)]).await.expect_err("a conflict");
    attempt(&store, vec![append(row("run_a"), 1, 1)]).await.expect_err("the generation has ended");
    assert_eq!(*heard.failed.lock(), [(1, error)], "told once, before the ticket resolves");
    assert_eq!(heard.committed.lock().len(), 1, "nothing is told of that did not happen");
}
