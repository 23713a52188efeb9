//! Whether writes get through, and how large they may be.

use baton_model::{Digest, RunId};

use super::sample::{append, attempt, row, start, submit, write};
use crate::{COMMIT_BYTES, Commit, CommitError, Store, Write};

pub(super) async fn a_probe_goes_all_the_way(store: impl Store) {
    assert_eq!(store.last_probe().await.expect("readable"), None);
    for number in 1..=3 {
        store.probe().await.expect("all is well");
        assert_eq!(store.last_probe().await.expect("readable"), Some(number));
    }
    attempt(&store, vec![append(row("run_x"), 0, 1)]).await.expect_err("there is no such run");
    store.probe().await.expect("a refusal is no trouble of the store's");
}

pub(super) async fn a_commit_that_is_too_large_is_refused(store: impl Store) {
    start(&store, row("run_a"), 1).await;
    let blob = |size: usize| Write::PutBlob { digest: Digest::of_bytes("large"), bytes: vec![0; size] };
    let large = || vec![append(row("run_a"), 1, 1), blob(COMMIT_BYTES)];
    let next = submit(&store, vec![append(row("run_a"), 1, 1)]);
    let alone = store.submit(Commit::new(store.generation(), large()));
    let after = submit(&store, vec![append(row("run_a"), 2, 1)]);
    assert_eq!(next.await, Ok(()));
    assert!(matches!(alone.await, Err(CommitError::Refused { run: Some(run), .. }) if run == RunId::new("run_a")));
    assert_eq!(after.await, Ok(()), "nobody else is the worse for it");
    assert!(matches!(attempt(&store, large()).await, Err(CommitError::Refused { .. })));
    write(&store, vec![append(row("run_a"), 3, 1)]).await;
}
