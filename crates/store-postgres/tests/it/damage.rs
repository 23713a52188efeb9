//! Rows that somebody changed: nothing of them is served, and a check names them.

use baton_model::{ForkMode, Origin, Overlay, RunId, SideEffects, TenantId, Versions};
use baton_store::conformance::everything;
use baton_store::conformance::sample::{notes, record, row, sealed, submit};
use baton_store::reads::*;
use baton_store::{Error, Journal as _, LogChain, ReadView, RunFilter, RunRow, Write};
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Database;

async fn filled(database: &Database) -> PostgresStore {
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    for commit in everything::commits() {
        submit(&store, commit).await.unwrap();
    }
    for run in ["run_a", "run_b"] {
        let log = sealed(RunRow { next_seq: 6, ..row(run) }, 0, (0..6).map(record).collect());
        submit(&store, vec![Write::CreateRun(row(run)), log]).await.unwrap();
    }
    store
}

async fn change(database: &Database, sql: &str) {
    let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    assert!(client.execute(sql, &[]).await.unwrap() > 0, "{sql}");
    drop(client);
    connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_changed_log_is_told_with_its_place_and_others_go_on() {
    for (what, at) in [
        ("UPDATE events SET body = body || ' ' WHERE run = 'run_a' AND seq = 2", 2),
        ("UPDATE events SET private = 'x' WHERE run = 'run_a' AND seq = 3", 3),
        ("UPDATE events SET sum = NULL WHERE run = 'run_a' AND seq = 1", 1),
        ("DELETE FROM events WHERE run = 'run_a' AND seq = 2", 2),
        ("DELETE FROM events WHERE run = 'run_a' AND seq = 5", 5),
        ("DELETE FROM events WHERE run = 'run_a'", 0),
    ] {
        let Some(database) = Database::fresh().await else { return };
        let store = filled(&database).await;
        change(&database, what).await;
        for read in [
            store.records(&RunId::new("run_a"), 0, 100).await,
            store.records_within(&RunId::new("run_a"), 0, 100, usize::MAX).await,
        ] {
            match read {
                Err(Error::Damaged { run, seq, .. }) => assert_eq!((run.as_str(), seq), ("run_a", at), "{what}"),
                other => panic!("{what}: {other:?}"),
            }
        }
        assert_eq!(store.records(&RunId::new("run_b"), 0, 100).await.unwrap().len(), 6);
        store.close().await;
        let report = PostgresStore::check(&Settings::new(database.url.clone())).await.unwrap();
        assert!(report.problems.iter().any(|line| line.contains("run_a")), "{what}: {report:?}");
    }
}

#[tokio::test]
async fn a_changed_row_is_not_served() {
    let Some(database) = Database::fresh().await else { return };
    let store = filled(&database).await;
    let settings = Settings::new(database.url.clone());
    assert_eq!(PostgresStore::check(&settings).await.unwrap().problems, Vec::<String>::new(), "whole");
    let (run, tenant) = (RunId::new("run_a"), TenantId::new("acme"));
    for sql in [
        "UPDATE runs SET status = 'failed' WHERE id = 'run_a'",
        "UPDATE changes SET content = content || 'x' WHERE content IS NOT NULL",
        "UPDATE interrupts SET data = '{}'",
        "UPDATE workflows SET name = name || 'x'",
        "UPDATE replies SET body = body || ' '",
        "UPDATE webhooks SET url = 'https://evil.example'",
        "UPDATE spending SET body = replace(body, '1', '2')",
        "UPDATE tokens SET tenant = 'other' WHERE id = 'tok_a'",
        "UPDATE blobs SET bytes = bytes || '\\x00'",
    ] {
        change(&database, sql).await;
    }
    assert!(store.run(&run).await.unwrap_err().is_damage());
    let filter = RunFilter { tenant: Some(tenant.clone()), limit: 100, ..RunFilter::default() };
    let listed = store.runs(&filter).await.unwrap().items;
    assert!(!listed.is_empty() && listed.iter().all(|row| row.id != run), "a list goes on without it");
    let view = ReadView { version: 1, ..ReadView::default() };
    assert!(store.versioned_items(&notes(), &view).await.unwrap_err().is_damage());
    assert_eq!(store.versioned_items(&notes(), &ReadView { bare: true, ..view }).await.unwrap().len(), 1);
    assert_eq!(store.webhooks().await.unwrap(), []);
    assert_eq!(store.workflows(&tenant).await.unwrap(), []);
    // The log says what a damaged note does not, and a damaged token lets nobody in.
    assert_eq!(store.run_spending(&RunId::new("run_full")).await.unwrap(), None);
    assert_eq!(store.spending(&RunId::new("run_root"), None, 9).await.unwrap(), []);
    let tokens: Vec<String> = store.tokens(9).await.unwrap().into_iter().map(|token| token.id).collect();
    assert_eq!(tokens, ["tok_b"]);
    store.close().await;
    let report = PostgresStore::check(&settings).await.unwrap();
    for what in ["runs", "changes", "interrupts", "workflow", "replies", "webhooks", "blob", "spending", "tokens"] {
        assert!(report.problems.iter().any(|line| line.contains(what)), "{what}: {report:?}");
    }
}

#[tokio::test]
async fn pages_of_lists_go_on_past_what_is_damaged() {
    let Some(database) = Database::fresh().await else { return };
    let store = filled(&database).await;
    for run in 0..9 {
        submit(&store, vec![Write::CreateRun(row(&format!("run_{run}")))]).await.unwrap();
    }
    let filter = RunFilter { tenant: Some(TenantId::new("acme")), limit: 100, ..RunFilter::default() };
    let all = store.runs(&filter).await.unwrap().items.len();
    change(&database, "UPDATE runs SET workflow = 'other' WHERE id IN ('run_3', 'run_4', 'run_5', 'run_6')").await;
    for limit in [1, 2, 3, 100] {
        let (mut found, mut cursor) = (0, None);
        loop {
            let page = store.runs(&RunFilter { limit, cursor, ..filter.clone() }).await.unwrap();
            found += page.items.len();
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, all - 4, "pages of {limit}");
    }
    store.close().await;
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_noticed_by_whoever_reads_on_in_small_pages() {
    let Some(database) = Database::fresh().await else { return };
    let store = filled(&database).await;
    change(&database, "DELETE FROM events WHERE run = 'run_a' AND seq >= 4").await;
    let run = RunId::new("run_a");
    assert_eq!(store.records_within(&run, 0, 100, 10_000).await.unwrap().len(), 4);
    match store.records_within(&run, 4, 100, 10_000).await {
        Err(Error::Damaged { seq, .. }) => assert_eq!(seq, 4),
        other => panic!("{other:?}"),
    }
    store.close().await;
}

#[tokio::test]
async fn a_fork_that_does_not_follow_its_source_is_named() {
    let Some(database) = Database::fresh().await else { return };
    let store = filled(&database).await;
    let source = RunId::new("run_a");
    let before = store.records(&source, 1, 1).await.unwrap().pop().unwrap();
    let origin = Origin {
        source,
        seq: 2,
        requested: None,
        mode: ForkMode::Branch,
        at: before.at,
        moment: None,
        length: None,
        versions: Versions::default(),
        overlay: Overlay::default(),
        side_effects: SideEffects::default(),
        workers: None,
    };
    let fork = RunRow { origin: Some(origin), next_seq: 2, chain: LogChain::after(before.sum), ..row("run_branch") };
    let log = sealed(RunRow { next_seq: 4, ..fork.clone() }, 2, (2..4).map(record).collect());
    submit(&store, vec![Write::CreateRun(fork), log]).await.unwrap();
    store.close().await;
    let settings = Settings::new(database.url.clone());
    assert_eq!(PostgresStore::check(&settings).await.unwrap().problems, Vec::<String>::new(), "whole");
    let other = "UPDATE events SET sum = '\\x00112233445566778899aabbccddeeff' WHERE run = 'run_a' AND seq = 1";
    change(&database, other).await;
    let report = PostgresStore::check(&settings).await.unwrap();
    let told = |line: &String| line.contains("run_branch") && line.contains("does not follow");
    assert!(report.problems.iter().any(told), "{report:?}");
}
