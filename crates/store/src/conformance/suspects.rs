//! Trees that their owners may have died of.

use baton_model::{RunId, RunStatus};

use super::quarantine::quarantine;
use super::sample::{append, at, row, start, write};
use super::shared::{Hosts, adopt_tree, adopted, below, forwarded, of, to_run};
use crate::{Journal as _, Owner, RunRow, Store, Write};

/// Later than any clock that judges it.
const FAR: i64 = 1_000_000_000_000_000;

async fn suspects(store: &impl Store) -> Vec<(String, u64, u64)> {
    let found = of(store).suspects().await.expect("readable");
    found.into_iter().map(|suspect| (suspect.root.to_string(), suspect.takeovers, suspect.deaths)).collect()
}

async fn mark(store: &impl Store, root: &str) {
    of(store).mark_suspect(&RunId::new(root)).await.expect("a tree of one's own can be marked");
}

async fn clear(store: &impl Store, root: &str) {
    of(store).clear_suspect(&RunId::new(root)).await.expect("a tree of one's own can be cleared");
}

/// The host of `from` dies, and `to` takes over what there is to do.
async fn dies(hosts: &impl Hosts, from: &impl Store, to: &impl Store) {
    hosts.lapse(of(from).epoch()).await;
    of(to).end_lapsed().await.expect("ends it");
    adopted(to, 100).await;
}

fn known(root: &str, takeovers: u64, deaths: u64) -> (String, u64, u64) {
    (root.to_owned(), takeovers, deaths)
}

pub(super) async fn a_tree_that_was_at_work_at_a_death_is_suspect(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    let quiet = |id: &str| RunRow { busy: false, ..row(id) };
    start(&a, row("run_busy"), 1).await;
    start(&a, quiet("run_parent"), 1).await;
    start(&a, below("run_child", "run_parent"), 1).await;
    start(&a, RunRow { wake_at: Some(at(-1)), ..quiet("run_due") }, 1).await;
    start(&a, RunRow { wake_at: Some(at(FAR)), ..quiet("run_later") }, 1).await;
    start(&a, quiet("run_asked"), 1).await;
    start(&a, quiet("run_waits"), 1).await;
    of(&b).send(forwarded("l1", to_run("run_asked"))).await.expect("sent");
    assert_eq!(suspects(&a).await, [], "nothing is held against what was never taken over");
    dies(&hosts, &a, &b).await;
    for waiting in ["run_later", "run_waits"] {
        assert_eq!(adopt_tree(&b, waiting).await, Some(Owner::Taken));
    }
    let counted = ["run_asked", "run_busy", "run_due", "run_parent"].map(|root| known(root, 1, 0));
    assert_eq!(suspects(&b).await, counted, "only what there was something to do in");

    clear(&b, "run_due").await;
    write(&b, vec![append(quiet("run_asked"), 1, 1)]).await;
    let c = hosts.join().await;
    assert_eq!(suspects(&c).await, [], "of the trees this session owns");
    of(&c).clear_suspect(&RunId::new("run_busy")).await.expect("is no error");
    of(&c).mark_suspect(&RunId::new("run_busy")).await.expect_err("the tree is another's");
    of(&c).mark_suspect(&RunId::new("run_none")).await.expect_err("there is no such tree");
    dies(&hosts, &b, &c).await;
    let counted =
        [known("run_asked", 2, 0), known("run_busy", 2, 0), known("run_due", 1, 0), known("run_parent", 2, 0)];
    assert_eq!(suspects(&c).await, counted, "progress clears, and what nobody marked has killed nobody");
}

pub(super) async fn a_death_under_a_mark_is_counted(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    for id in ["run_a", "run_b"] {
        start(&a, row(id), 1).await;
    }
    start(&a, RunRow { busy: false, ..row("run_idle") }, 1).await;
    mark(&a, "run_idle").await;
    dies(&hosts, &a, &b).await;
    assert_eq!(adopt_tree(&b, "run_idle").await, Some(Owner::Taken));
    assert_eq!(suspects(&b).await, [known("run_a", 1, 0), known("run_b", 1, 0), known("run_idle", 1, 1)]);
    mark(&b, "run_a").await;
    mark(&b, "run_a").await;
    mark(&b, "run_b").await;
    of(&b).unmark_suspect(&RunId::new("run_b")).await.expect("stepped, and alive");
    // Too late: it is being stepped again.
    clear(&b, "run_a").await;
    let c = hosts.join().await;
    dies(&hosts, &b, &c).await;
    adopt_tree(&c, "run_idle").await;
    let counted = [known("run_a", 2, 1), known("run_b", 2, 0), known("run_idle", 1, 1)];
    assert_eq!(suspects(&c).await, counted, "a mark counts once, and dies with who set it");
    // Nobody marks it again, so nobody dies of it again.
    let d = hosts.join().await;
    dies(&hosts, &c, &d).await;
    assert_eq!(suspects(&d).await, [known("run_a", 3, 1), known("run_b", 3, 0)]);
}

pub(super) async fn who_leaves_by_themselves_has_died_of_nothing(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    start(&a, row("run_a"), 1).await;
    mark(&a, "run_a").await;
    a.close().await;
    assert_eq!(adopted(&b, 10).await, ["run_a"]);
    assert_eq!(suspects(&b).await, [known("run_a", 0, 0)], "closed, not dead");
    mark(&b, "run_a").await;
    hosts.lapse(of(&b).epoch()).await;
    let c = hosts.join().await;
    of(&c).end_lapsed().await.expect("ends it");
    of(&b).mark_suspect(&RunId::new("run_a")).await.expect_err("a session that has ended marks nothing");
    of(&b).clear_suspect(&RunId::new("run_a")).await.expect_err("nor does it clear anything");
}

pub(super) async fn a_quarantined_tree_is_not_counted_and_released_on_probation(hosts: impl Hosts) {
    let (a, b, c) = (hosts.join().await, hosts.join().await, hosts.join().await);
    start(&a, row("run_a"), 1).await;
    mark(&a, "run_a").await;
    dies(&hosts, &a, &b).await;
    mark(&b, "run_a").await;
    dies(&hosts, &b, &c).await;
    assert_eq!(suspects(&c).await, [known("run_a", 2, 2)]);
    write(&c, vec![Write::Quarantine(quarantine("run_a"))]).await;
    let d = hosts.join().await;
    dies(&hosts, &c, &d).await;
    assert_eq!(suspects(&d).await, [known("run_a", 2, 2)], "nobody stepped it");
    write(&d, vec![Write::EndQuarantine { root: RunId::new("run_a") }]).await;
    assert_eq!(suspects(&d).await, [known("run_a", 1, 1)], "one more is one too many");
    let ended = RunRow { status: RunStatus::Cancelled, busy: false, ..row("run_a") };
    write(&d, vec![append(ended, 1, 1)]).await;
    of(&d).end_lapsed().await.expect("tidies up");
    assert_eq!(suspects(&d).await, [], "what has ended needs no watching");
}
