//! Remarks about runs.

use baton_model::RunId;

use super::sample::{append, at, attempt, row, start, write};
use crate::{AnnotationRow, Pruned, Store, Write};

fn annotation(run: &str, id: &str) -> AnnotationRow {
    AnnotationRow {
        run: RunId::new(run),
        id: id.to_owned(),
        at: at(4),
        body: format!("{{\"id\":\"{id}\",\"note\":\"\0 \u{1} \u{10FFFF} '\"}}"),
    }
}

async fn listed(store: &impl Store, run: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let rows = store.annotations(&RunId::new(run), after, limit).await.expect("readable");
    rows.into_iter().map(|row| row.id).collect()
}

pub(super) async fn annotations_are_listed_by_id(store: impl Store) {
    start(&store, row("run_a"), 1).await;
    let (a, b) = (annotation("run_a", "ann_a"), annotation("run_a", "ann_B"));
    write(&store, vec![Write::Annotate(a.clone()), Write::Annotate(annotation("run_b", "ann_a"))]).await;
    write(&store, vec![Write::Annotate(b.clone()), Write::Annotate(annotation("run_a", "ann_c"))]).await;
    assert_eq!(listed(&store, "run_a", None, 9).await, ["ann_B", "ann_a", "ann_c"], "by bytes");
    assert_eq!(listed(&store, "run_a", Some("ann_B"), 1).await, ["ann_a"], "page by page");
    assert_eq!(listed(&store, "run_x", None, 9).await, [""; 0]);
    assert_eq!(store.annotations(&RunId::new("run_a"), None, 1).await.expect("readable"), [b]);
    assert_eq!(store.annotation(&RunId::new("run_a"), "ann_a").await.expect("readable"), Some(a));
    assert_eq!(store.annotation(&RunId::new("run_b"), "ann_c").await.expect("readable"), None, "of another run");
    assert_eq!(store.count_annotations(&RunId::new("run_a")).await.expect("counted"), 3);
    assert_eq!(store.count_annotations(&RunId::new("run_x")).await.expect("counted"), 0);
}

pub(super) async fn annotations_go_with_the_log(store: impl Store) {
    start(&store, row("run_a"), 1).await;
    start(&store, row("run_b"), 1).await;
    let puts = ["run_a", "run_b"].map(|run| Write::Annotate(annotation(run, "ann_a")));
    write(&store, puts.to_vec()).await;
    let prune = |run: &str, log| Write::Prune { run: RunId::new(run), pruned: Pruned { at: at(10), log } };
    write(&store, vec![prune("run_a", false)]).await;
    assert_eq!(listed(&store, "run_a", None, 9).await, ["ann_a"], "its log is there");
    let (a, b) = (annotation("run_a", "ann_b"), annotation("run_b", "ann_b"));
    attempt(&store, vec![prune("run_a", true), append(row("run_a"), 7, 1)]).await.expect_err("a conflict");
    assert_eq!(listed(&store, "run_a", None, 9).await, ["ann_a"], "all or nothing");
    write(&store, vec![Write::Annotate(a), prune("run_a", true), Write::Annotate(b)]).await;
    assert_eq!(listed(&store, "run_a", None, 9).await, [""; 0], "in the order they were written");
    assert_eq!(listed(&store, "run_b", None, 9).await, ["ann_a", "ann_b"], "another run's stay");
}
