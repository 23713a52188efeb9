//! Trees that nobody may step.

use baton_model::{RunId, TenantId};

use super::sample::{append, at, attempt, row, start, write};
use crate::{Pruned, Quarantine, Store, Write};

pub(super) fn quarantine(root: &str) -> Quarantine {
    Quarantine {
        root: RunId::new(root),
        tenant: TenantId::new("acme"),
        run: RunId::new(format!("{root}_child")),
        seq: 7,
        cause: "step_panicked".to_owned(),
        detail: "index out of bounds: \0 \u{1} \u{10FFFF}".to_owned(),
        at: at(3),
    }
}

fn end(root: &str) -> Write {
    Write::EndQuarantine { root: RunId::new(root) }
}

async fn of(store: &impl Store, root: &str) -> Option<Quarantine> {
    store.quarantine(&RunId::new(root)).await.expect("readable")
}

pub(super) async fn a_quarantine_is_put_replaced_and_ended(store: impl Store) {
    assert_eq!((of(&store, "run_a").await, store.count_quarantined().await.expect("counted")), (None, 0));
    start(&store, row("run_a"), 1).await;
    write(&store, vec![Write::Quarantine(quarantine("run_a"))]).await;
    assert_eq!(of(&store, "run_a").await, Some(quarantine("run_a")));
    let again = Quarantine { cause: "stuck".to_owned(), at: at(9), ..quarantine("run_a") };
    write(&store, vec![Write::Quarantine(again.clone())]).await;
    assert_eq!(of(&store, "run_a").await, Some(again.clone()), "the latest counts");
    assert_eq!(store.count_quarantined().await.expect("counted"), 1);

    attempt(&store, vec![end("run_a"), append(row("run_a"), 7, 1)]).await.expect_err("a conflict");
    assert_eq!(of(&store, "run_a").await, Some(again), "all or nothing");
    write(&store, vec![end("run_a"), end("run_x")]).await;
    assert_eq!((of(&store, "run_a").await, store.count_quarantined().await.expect("counted")), (None, 0));
    write(&store, vec![Write::Quarantine(quarantine("run_a")), end("run_a")]).await;
    assert_eq!(of(&store, "run_a").await, None, "in the order they were written");
    write(&store, vec![end("run_a"), Write::Quarantine(quarantine("run_a"))]).await;
    assert_eq!(of(&store, "run_a").await, Some(quarantine("run_a")));

    let prune = |run: &str, log| Write::Prune { run: RunId::new(run), pruned: Pruned { at: at(10), log } };
    write(&store, vec![prune("run_b", true)]).await;
    assert_eq!(of(&store, "run_a").await, Some(quarantine("run_a")), "another run's stays");
    write(&store, vec![prune("run_a", true)]).await;
    assert_eq!(of(&store, "run_a").await, None, "what was pruned is in no quarantine");
}

pub(super) async fn quarantined_trees_are_listed_by_root(store: impl Store) {
    let other = Quarantine { tenant: TenantId::new("other"), ..quarantine("run_b") };
    let puts = [quarantine("run_c"), other.clone(), quarantine("run_a"), quarantine("run_d")];
    write(&store, puts.into_iter().map(Write::Quarantine).collect()).await;
    let listed = async |tenant: Option<&str>, after: Option<&str>, limit| {
        let (tenant, after) = (tenant.map(TenantId::new), after.map(RunId::new));
        let found = store.quarantined(tenant.as_ref(), after, limit).await.expect("readable");
        found.into_iter().map(|row| row.root.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, None, 10).await, ["run_a", "run_b", "run_c", "run_d"]);
    assert_eq!(listed(Some("acme"), None, 10).await, ["run_a", "run_c", "run_d"]);
    assert_eq!(listed(Some("acme"), Some("run_a"), 1).await, ["run_c"], "page by page");
    assert_eq!(listed(None, Some("run_b"), 1).await, ["run_c"]);
    assert_eq!(listed(Some("nobody"), None, 10).await, [""; 0]);
    assert_eq!(store.quarantined(Some(&other.tenant), None, 9).await.expect("readable"), [other]);
    assert_eq!(store.count_quarantined().await.expect("counted"), 4);
}
