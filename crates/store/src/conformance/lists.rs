//! Finding runs.

use std::collections::BTreeSet;

use baton_model::{RunId, RunStatus, TenantId, WorkflowId};

use super::sample::{append, at, row, start, write};
use crate::{Page, RunFilter, RunPlace, RunRow, Store, Write};

async fn page(store: &impl Store, filter: RunFilter) -> Page<RunRow, RunPlace> {
    store.runs(&filter).await.expect("runs can be listed")
}

fn ids(page: &Page<RunRow, RunPlace>) -> Vec<&str> {
    page.items.iter().map(|row| row.id.as_str()).collect()
}

pub(super) async fn runs_are_filtered(store: impl Store) {
    let acme = Some(TenantId::new("acme"));
    start(&store, row("run_a1"), 1).await;
    start(&store, RunRow { status: RunStatus::Completed, created_at: at(10), ..row("run_a2") }, 1).await;
    start(&store, RunRow { workflow: WorkflowId::new("loop"), created_at: at(20), ..row("run_b1") }, 1).await;
    start(&store, RunRow { tags: vec!["x".to_owned(), "ü\"%".to_owned()], created_at: at(30), ..row("run_b2") }, 1)
        .await;
    start(
        &store,
        RunRow {
            parent: Some(RunId::new("run_a1")),
            root: Some(RunId::new("run_a1")),
            created_at: at(40),
            ..row("run_c%")
        },
        1,
    )
    .await;
    start(&store, RunRow { tenant: TenantId::new("other"), created_at: at(50), ..row("run_d") }, 1).await;
    start(&store, RunRow { status: RunStatus::Failed, created_at: at(60), ..row("run_e") }, 1).await;

    let all = || RunFilter { limit: 100, ..RunFilter::default() };
    let found = async |filter: RunFilter, expected: &[&str], what: &str| {
        assert_eq!(ids(&page(&store, filter).await), expected, "{what}");
    };
    let everything = ["run_e", "run_d", "run_c%", "run_b2", "run_b1", "run_a2", "run_a1"];
    found(all(), &everything, "no filter").await;
    found(RunFilter { tenant: Some(TenantId::new("other")), ..all() }, &["run_d"], "by tenant").await;
    found(RunFilter { tenant: Some(TenantId::new("none")), ..all() }, &[], "an unknown tenant").await;
    found(RunFilter { status: vec![RunStatus::Completed], ..all() }, &["run_a2"], "completed").await;
    found(RunFilter { status: vec![RunStatus::Failed], ..all() }, &["run_e"], "failed").await;
    let ended = vec![RunStatus::Failed, RunStatus::Completed, RunStatus::Cancelled];
    found(RunFilter { status: ended, ..all() }, &["run_e", "run_a2"], "several statuses").await;
    found(RunFilter { workflow: Some(WorkflowId::new("loop")), ..all() }, &["run_b1"], "by workflow").await;
    found(RunFilter { tag: Some("ü\"%".to_owned()), ..all() }, &["run_b2"], "by tag").await;
    found(RunFilter { tag: Some("%".to_owned()), ..all() }, &[], "a tag is compared whole").await;
    found(RunFilter { parent: Some(RunId::new("run_a1")), ..all() }, &["run_c%"], "by parent").await;
    found(RunFilter { root: Some(RunId::new("run_a1")), ..all() }, &["run_c%"], "by root").await;
    assert_eq!(store.descendants(&RunId::new("run_a1")).await.ok(), Some(1), "descendants of a root");
    assert_eq!(store.descendants(&RunId::new("run_b1")).await.ok(), Some(0), "descendants of a run without any");
    found(RunFilter { id_prefix: Some("run_b".to_owned()), ..all() }, &["run_b2", "run_b1"], "by id prefix").await;
    found(RunFilter { id_prefix: Some("run_c%".to_owned()), ..all() }, &["run_c%"], "a whole id").await;
    found(RunFilter { id_prefix: Some("run_%".to_owned()), ..all() }, &[], "a prefix is no pattern").await;
    found(RunFilter { id_prefix: Some(String::new()), ..all() }, &everything, "an empty prefix").await;
    let range = RunFilter { created_from: Some(at(20)), created_until: Some(at(40)), ..all() };
    found(range, &["run_c%", "run_b2", "run_b1"], "a range of creation, both ends included").await;
    let mixed = RunFilter {
        tenant: acme,
        status: vec![RunStatus::Running],
        workflow: Some(WorkflowId::new("echo")),
        created_from: Some(at(30)),
        id_prefix: Some("run_".to_owned()),
        ..all()
    };
    found(mixed, &["run_c%", "run_b2"], "all that is asked must hold").await;
}

pub(super) async fn runs_are_found_by_their_summaries(store: impl Store) {
    let told = |text: &str| Some(text.into());
    start(&store, row("run_plain"), 1).await;
    start(&store, RunRow { summary: told(r#"{"diverged":true}"#), ..row("run_diverged") }, 1).await;
    let spent = r#"{"usage":{"inputTokens":1,"outputTokens":2,"costUsd":0.5},"overBudget":true}"#;
    start(&store, RunRow { workflow: WorkflowId::new("loop"), ..row("run_spent") }, 1).await;
    write(&store, vec![append(RunRow { summary: told(spent), ..row("run_spent") }, 1, 1)]).await;
    start(&store, RunRow { parent: Some(RunId::new("run_plain")), ..row("run_child") }, 1).await;
    let foreign =
        RunRow { tenant: TenantId::new("other"), summary: told(r#"{"diverged":true}"#), ..row("run_foreign") };
    start(&store, foreign, 1).await;

    let summary = store.run(&RunId::new("run_spent")).await.expect("readable").and_then(|row| row.summary);
    assert_eq!(summary.as_deref(), Some(spent), "verbatim, and the latest");
    write(&store, vec![append(RunRow { summary: told(spent), ..row("run_spent") }, 2, 3)]).await;
    let kept = store.run(&RunId::new("run_spent")).await.expect("readable").and_then(|row| row.summary);
    assert_eq!(kept.as_deref(), Some(spent), "the same again changes nothing");

    let all = || RunFilter { tenant: Some(TenantId::new("acme")), limit: 100, ..RunFilter::default() };
    let found = async |filter: RunFilter, expected: &[&str], what: &str| {
        assert_eq!(ids(&page(&store, filter).await), expected, "{what}");
    };
    found(RunFilter { diverged: Some(true), ..all() }, &["run_diverged"], "diverged").await;
    let not = ["run_child", "run_spent", "run_plain"];
    found(RunFilter { diverged: Some(false), ..all() }, &not, "not diverged").await;
    found(RunFilter { over_budget: Some(true), ..all() }, &["run_spent"], "over budget").await;
    let not = ["run_child", "run_diverged", "run_plain"];
    found(RunFilter { over_budget: Some(false), ..all() }, &not, "not over budget").await;
    found(RunFilter { cost_usd_from: Some(0.5), ..all() }, &["run_spent"], "as costly").await;
    found(RunFilter { cost_usd_from: Some(0.6), ..all() }, &[], "not that costly").await;
    let text = |text: &str| RunFilter { text_prefix: Some(text.to_owned()), ..all() };
    let ids = |ids: &[&str]| RunFilter { ids: ids.iter().map(|id| RunId::new(*id)).collect(), ..all() };
    found(ids(&["run_plain", "run_foreign", "run_child", "run_none"]), &["run_child", "run_plain"], "by ids").await;
    found(text("loo"), &["run_spent"], "by the beginning of a workflow's id").await;
    found(text("run_d"), &["run_diverged"], "by the beginning of a run's id").await;
    found(text("oop"), &[], "only the beginning counts").await;
    found(RunFilter { top_level: true, ..text("run_") }, &["run_spent", "run_diverged", "run_plain"], "tops").await;
    found(RunFilter { updated_until: Some(at(1)), ..text("run_") }, &["run_child", "run_diverged", "run_plain"], "old")
        .await;
    found(RunFilter { updated_from: Some(at(2)), ..all() }, &["run_spent"], "moved since").await;

    write(&store, vec![append(row("run_diverged"), 1, 1)]).await;
    found(RunFilter { diverged: Some(true), ..all() }, &[], "a summary can go again").await;

    let counts = store.run_counts(&TenantId::new("acme")).await.expect("readable");
    let of = |status| counts.iter().filter(|(counted, _)| *counted == status).map(|(_, count)| *count).sum::<u64>();
    assert_eq!((of(RunStatus::Running), of(RunStatus::Completed), of(RunStatus::Failed)), (4, 0, 0));
    write(&store, vec![append(RunRow { status: RunStatus::Completed, busy: false, ..row("run_plain") }, 1, 1)]).await;
    let counts = store.run_counts(&TenantId::new("acme")).await.expect("readable");
    assert!(counts.contains(&(RunStatus::Running, 3)) && counts.contains(&(RunStatus::Completed, 1)), "{counts:?}");
    let usage = store.usage().await.expect("readable");
    let records = usage.classes.iter().find(|class| class.class == "records");
    assert!(usage.kind.is_empty() || records.is_some_and(|class| class.bytes > 0 && class.count >= 5), "{usage:?}");
}

pub(super) async fn active_trees_are_counted_by_their_top(store: impl Store) {
    let active = async || {
        let active = store.active_trees(&TenantId::new("acme")).await.expect("readable");
        (active.running, active.waiting)
    };
    assert_eq!(active().await, (0, 0));
    start(&store, row("run_a"), 1).await;
    start(&store, row("run_b"), 1).await;
    let below = RunRow { parent: Some(RunId::new("run_a")), root: Some(RunId::new("run_a")), ..row("run_c") };
    start(&store, below, 1).await;
    start(&store, RunRow { tenant: TenantId::new("other"), ..row("run_d") }, 1).await;
    assert_eq!(active().await, (2, 0), "neither children nor others");
    let at = |status| RunRow { status, ..row("run_a") };
    for (seq, status, expected) in [
        (1, RunStatus::WaitingApproval, (1, 1)),
        (2, RunStatus::Paused, (2, 0)),
        (3, RunStatus::WaitingExternal, (1, 1)),
        (4, RunStatus::Cancelled, (1, 0)),
    ] {
        write(&store, vec![append(at(status), seq, 1)]).await;
        assert_eq!(active().await, expected, "{status}");
    }
}

pub(super) async fn runs_are_paged_newest_first(store: impl Store) {
    for n in 0..25 {
        let tenant = TenantId::new(if n % 5 == 4 { "other" } else { "acme" });
        start(&store, RunRow { tenant, ..row(&format!("run_{n:02}")) }, 1).await;
    }
    let filter = RunFilter { tenant: Some(TenantId::new("acme")), limit: 6, ..RunFilter::default() };
    let mut seen = Vec::new();
    let mut cursor = None;
    for turn in 0.. {
        let page = page(&store, RunFilter { cursor, ..filter.clone() }).await;
        seen.extend(page.items.iter().map(|row| row.id.clone()));
        // Somebody starts and changes runs while the reader turns pages.
        start(&store, row(&format!("run_new_{turn}")), 1).await;
        write(&store, vec![append(row("run_03"), 1 + turn, 1)]).await;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        assert_eq!(page.items.len(), 6, "only the last page is short");
        assert!(turn < 10, "paging ends");
    }
    let expected: Vec<_> = (0..25).rev().filter(|n| n % 5 != 4).map(|n| RunId::new(format!("run_{n:02}"))).collect();
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "no run twice");
    assert_eq!(seen, expected, "no run missing, newest first");

    let exact = page(&store, RunFilter { limit: 5, tenant: Some(TenantId::new("other")), ..filter }).await;
    assert_eq!((exact.items.len(), exact.next), (5, None), "a full last page knows that it is the last");
}

pub(super) async fn unfinished_runs_are_the_busy_ones(store: impl Store) {
    for (n, status) in RunStatus::ALL.into_iter().enumerate() {
        start(&store, RunRow { status, busy: n % 2 == 0, ..row(&format!("run_{n}")) }, 1).await;
    }
    // Created in one state, now in another, at first without a change of status.
    start(&store, row("run_idle"), 1).await;
    write(&store, vec![append(RunRow { busy: false, ..row("run_idle") }, 1, 1)]).await;
    start(&store, RunRow { busy: false, ..row("run_back") }, 1).await;
    write(&store, vec![append(row("run_back"), 1, 1)]).await;
    let mut expected: Vec<_> = (0..RunStatus::ALL.len()).step_by(2).map(|n| RunId::new(format!("run_{n}"))).collect();
    expected.push(RunId::new("run_back"));

    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.unfinished(after, 2).await.expect("readable");
        let Some((last, _)) = page.last() else { break };
        assert!(page.len() <= 2, "at most the limit");
        assert!(after.is_none_or(|after| *last > after), "positions rise");
        after = Some(*last);
        found.extend(page.into_iter().map(|(_, id)| id));
    }
    assert_eq!(found, expected, "oldest first, each once");
}

pub(super) async fn due_runs_come_earliest_first(store: impl Store) {
    for (id, wake) in
        [("run_c", Some(30)), ("run_a", Some(10)), ("run_none", None), ("run_b", Some(20)), ("run_d", Some(40))]
    {
        let status = RunStatus::WaitingExternal;
        start(&store, RunRow { wake_at: wake.map(at), status, ..row(id) }, 1).await;
    }
    write(&store, vec![append(row("run_b"), 1, 1)]).await;
    write(&store, vec![append(RunRow { wake_at: Some(at(5)), ..row("run_none") }, 1, 1)]).await;
    let due = async |until, limit| store.due(at(until), limit).await.expect("readable");
    let expected = [("run_none", 5), ("run_a", 10), ("run_c", 30)].map(|(id, wake)| (RunId::new(id), at(wake)));
    assert_eq!(due(30, 10).await, expected, "not later than the instant, and what was cleared is gone");
    assert_eq!(due(1000, 2).await, expected[..2], "the earliest when there are more than fit");
    assert_eq!(due(4, 10).await, []);
}

pub(super) async fn the_active_run_of_a_scope(store: impl Store) {
    let scoped = |id: &str, tenant: &str, scope: Option<&str>, status| RunRow {
        tenant: TenantId::new(tenant),
        scope: scope.map(str::to_owned),
        status,
        ..row(id)
    };
    let active = async |tenant: &str, scope| {
        store.active_run(&TenantId::new(tenant), scope).await.expect("readable").map(|id| id.to_string())
    };
    start(&store, scoped("run_old", "acme", Some("s"), RunStatus::Completed), 1).await;
    assert_eq!(active("acme", Some("s")).await, None, "a run that ended is not active");
    start(&store, scoped("run_new", "acme", Some("s"), RunStatus::WaitingApproval), 1).await;
    start(&store, scoped("run_other", "other", Some("s"), RunStatus::Running), 1).await;
    start(&store, scoped("run_none", "acme", None, RunStatus::Paused), 1).await;
    assert_eq!(active("acme", Some("s")).await.as_deref(), Some("run_new"), "one that waits is");
    assert_eq!(active("other", Some("s")).await.as_deref(), Some("run_other"));
    assert_eq!(active("acme", None).await.as_deref(), Some("run_none"), "no scope is a scope of its own");
    assert_eq!(active("acme", Some("t")).await, None);
    let done = scoped("run_new", "acme", Some("s"), RunStatus::Cancelled);
    write(&store, vec![append(done, 1, 1)]).await;
    assert_eq!(active("acme", Some("s")).await, None, "until it ends");
    write(&store, vec![Write::CreateRun(scoped("run_next", "acme", Some("s"), RunStatus::Pending))]).await;
    assert_eq!(active("acme", Some("s")).await.as_deref(), Some("run_next"));
}
