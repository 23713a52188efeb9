//! What is kept beside logs so that they need not be read again.

use baton_model::{Digest, RunId};

use super::sample::{append, at, attempt, row, start, write};
use crate::{Checkpoint, CheckpointChunk, CheckpointMark, CheckpointWrite, Pruned, SpendingRow, Store, Write};

fn state(run: &str, seq: u64, key: &str, chunks: &[&str]) -> Checkpoint {
    let body = format!("\0\u{1}state {seq} of {run}").into_bytes();
    let chunks = chunks.iter().map(|name| (*name).to_owned()).collect();
    Checkpoint { run: RunId::new(run), seq, key: key.to_owned(), chunks, digest: Digest::of_bytes(&body), body }
}

fn chunk(run: &str, name: &str) -> CheckpointChunk {
    CheckpointChunk { run: RunId::new(run), name: name.to_owned(), bytes: format!("\0{name}").into_bytes() }
}

fn put(checkpoint: Checkpoint, chunks: &[&str]) -> Write {
    let chunks = chunks.iter().map(|name| chunk(checkpoint.run.as_str(), name)).collect();
    Write::Checkpoint(CheckpointWrite::Put { checkpoint, chunks })
}

fn drop_of(run: &str, seqs: &[u64], chunks: &[&str]) -> Write {
    let chunks = chunks.iter().map(|name| (*name).to_owned()).collect();
    Write::Checkpoint(CheckpointWrite::Drop { run: RunId::new(run), seqs: seqs.to_vec(), chunks })
}

fn spent(run: &str, root: &str, seq: u64) -> SpendingRow {
    SpendingRow { run: RunId::new(run), root: RunId::new(root), seq, body: format!("{{\"seq\":{seq}}}") }
}

async fn found(store: &impl Store, run: &str, key: &str, from: u64, until: u64) -> Option<Checkpoint> {
    store.checkpoint(&RunId::new(run), key, from, until).await.expect("readable")
}

async fn seqs(store: &impl Store, run: &str) -> Vec<u64> {
    let marks = store.checkpoint_marks(&RunId::new(run)).await.expect("readable");
    marks.into_iter().map(|mark| mark.seq).collect()
}

async fn chunks(store: &impl Store, run: &str, names: &[&str]) -> Vec<CheckpointChunk> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut found = store.checkpoint_chunks(&RunId::new(run), &names).await.expect("readable");
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

pub(super) async fn the_newest_checkpoint_of_a_key_is_found(store: impl Store) {
    start(&store, row("run_a"), 9).await;
    start(&store, row("run_b"), 9).await;
    let (two, four) = (state("run_a", 2, "k", &[]), state("run_a", 4, "k", &["x", "y"]));
    let other = state("run_a", 6, "another", &["y"]);
    write(&store, vec![put(four.clone(), &["x", "y"]), put(two.clone(), &[])]).await;
    write(&store, vec![put(other.clone(), &["y"]), put(state("run_b", 4, "k", &[]), &[])]).await;
    assert_eq!(found(&store, "run_a", "k", 0, u64::MAX).await, Some(four.clone()));
    assert_eq!(found(&store, "run_a", "k", 0, 4).await, Some(four.clone()), "what is in it counts");
    assert_eq!(found(&store, "run_a", "k", 0, 3).await, Some(two));
    assert_eq!(found(&store, "run_a", "k", 3, 3).await, None);
    assert_eq!(found(&store, "run_a", "k", 5, 4).await, None, "nothing is between");
    assert_eq!(found(&store, "run_a", "another", 0, 9).await, Some(other));
    assert_eq!(found(&store, "run_a", "unknown", 0, 9).await, None);
    assert_eq!(found(&store, "run_x", "k", 0, 9).await, None);
    let marks = store.checkpoint_marks(&RunId::new("run_a")).await.expect("readable");
    let mark = CheckpointMark { seq: 4, key: "k".to_owned(), chunks: four.chunks, bytes: four.body.len() as u64 };
    assert_eq!((marks.len(), &marks[1]), (3, &mark));
    assert_eq!(chunks(&store, "run_a", &["y", "x", "z"]).await, [chunk("run_a", "x"), chunk("run_a", "y")]);
    assert_eq!(chunks(&store, "run_b", &["x"]).await, [], "of another run");
}

pub(super) async fn checkpoints_are_replaced_and_dropped(store: impl Store) {
    start(&store, row("run_a"), 9).await;
    write(&store, vec![put(state("run_a", 2, "old", &["x"]), &["x"]), put(state("run_a", 4, "k", &[]), &[])]).await;
    let again = state("run_a", 2, "new", &[]);
    let changed = Write::Checkpoint(CheckpointWrite::Put {
        checkpoint: again.clone(),
        chunks: vec![CheckpointChunk { bytes: vec![9], ..chunk("run_a", "x") }],
    });
    write(&store, vec![changed]).await;
    assert_eq!(found(&store, "run_a", "old", 0, 9).await, None);
    assert_eq!(found(&store, "run_a", "new", 0, 9).await, Some(again));
    assert_eq!(chunks(&store, "run_a", &["x"]).await, [chunk("run_a", "x")], "a name stands for the same for ever");
    write(&store, vec![drop_of("run_a", &[2, 7], &["x", "unknown"]), put(state("run_a", 5, "k", &[]), &[])]).await;
    assert_eq!(seqs(&store, "run_a").await, [4, 5]);
    assert_eq!(chunks(&store, "run_a", &["x"]).await, []);
}

pub(super) async fn checkpoints_go_with_the_log(store: impl Store) {
    start(&store, row("run_a"), 9).await;
    start(&store, row("run_b"), 9).await;
    let all = |run: &str| vec![put(state(run, 2, "k", &["x"]), &["x"]), Write::PutSpending(spent(run, "run_a", 2))];
    write(&store, [all("run_a"), all("run_b")].concat()).await;
    let prune = |run: &str, log| Write::Prune { run: RunId::new(run), pruned: Pruned { at: at(10), log } };
    write(&store, vec![prune("run_a", false)]).await;
    assert_eq!(seqs(&store, "run_a").await, [2], "its log is there");
    attempt(&store, vec![prune("run_a", true), append(row("run_a"), 77, 1)]).await.expect_err("a conflict");
    assert_eq!(seqs(&store, "run_a").await, [2], "all or nothing");
    write(&store, vec![put(state("run_a", 3, "k", &[]), &[]), prune("run_a", true)]).await;
    assert_eq!(seqs(&store, "run_a").await, [0; 0]);
    assert_eq!(chunks(&store, "run_a", &["x"]).await, []);
    let root = RunId::new("run_a");
    assert_eq!(store.spending(&root, None, 9).await.expect("readable"), [spent("run_b", "run_a", 2)]);
    assert_eq!(seqs(&store, "run_b").await, [2], "another run's stay");
    // Written behind everything else, one may come when the log is gone, or for a run that nobody knows.
    write(&store, vec![put(state("run_a", 9, "k", &["x"]), &["x"]), put(state("run_x", 1, "k", &[]), &[])]).await;
    write(&store, vec![Write::PutSpending(spent("run_a", "run_a", 9)), Write::PutSpending(spent("run_x", "run_a", 9))])
        .await;
    assert_eq!(store.spending(&root, None, 9).await.expect("readable").len(), 1);
    assert_eq!((seqs(&store, "run_a").await, seqs(&store, "run_x").await), (vec![], vec![]));
    assert_eq!(chunks(&store, "run_a", &["x"]).await, []);
}

pub(super) async fn what_a_tree_has_spent_is_listed_by_run(store: impl Store) {
    for run in ["run_a", "run_B", "run_c"] {
        start(&store, row(run), 3).await;
    }
    write(&store, vec![Write::PutSpending(spent("run_a", "run_a", 1)), Write::PutSpending(spent("run_c", "run_c", 1))])
        .await;
    write(&store, vec![Write::PutSpending(spent("run_B", "run_a", 1)), Write::PutSpending(spent("run_a", "run_a", 2))])
        .await;
    let listed = async |root: &str, after: Option<&str>, limit| {
        let after = after.map(RunId::new);
        store.spending(&RunId::new(root), after.as_ref(), limit).await.expect("readable")
    };
    assert_eq!(listed("run_a", None, 9).await, [spent("run_B", "run_a", 1), spent("run_a", "run_a", 2)], "by bytes");
    assert_eq!(listed("run_a", Some("run_B"), 9).await, [spent("run_a", "run_a", 2)], "page by page");
    assert_eq!(listed("run_a", None, 1).await, [spent("run_B", "run_a", 1)]);
    assert_eq!(listed("run_x", None, 9).await, []);
    let of = async |run: &str| store.run_spending(&RunId::new(run)).await.expect("readable");
    assert_eq!((of("run_a").await, of("run_x").await), (Some(spent("run_a", "run_a", 2)), None));
}
