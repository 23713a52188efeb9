//! A real file that cannot grow: the embedded store's writer lives on a thread of its own, and trouble must reach the
//! host from there.

use std::sync::Arc;
use std::time::Duration;

use baton_conformance::Conformance;
use baton_model::{Principal, RunStatus, Scopes, TenantId};
use baton_runtime::{ErrorKind, Host, Options, Readiness, StartRun, Watchdog};
use baton_store::MemoryStore;
use baton_store_sqlite::SqliteStore;
use serde_json::{Map, Value, json};

fn who() -> Principal {
    Principal {
        tenant: TenantId::new("t"),
        subject: "key".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: true,
    }
}

/// A run whose log is large enough to need new pages.
fn heavy() -> StartRun {
    let inputs: Map<String, Value> = [("payload".to_owned(), json!("x".repeat(200_000)))].into_iter().collect();
    StartRun { workflow_id: "conformance-noop".to_owned(), inputs, ..StartRun::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_keeps_reads_and_recovers_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let options = Options { test_hooks: Conformance::hooks(), ..Options::default() };
    let host = Host::open(Arc::clone(&store) as Arc<_>, options).await.unwrap();
    let before = host.start_run(&who(), heavy(), None).await.unwrap().run_id;

    store.limit_growth(Some(0)).await.unwrap();
    // Free pages inside the file may still take a run or two; then the disk is full.
    let refused = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if let Err(error) = host.start_run(&who(), heavy(), None).await {
                return error;
            }
        }
    });
    assert_eq!(refused.await.unwrap().kind, ErrorKind::Unavailable);
    assert!(!host.readiness().ready);
    assert_eq!(host.snapshot(&who().tenant, &before).await.unwrap().status, RunStatus::Completed);

    store.limit_growth(None).await.unwrap();
    let back = tokio::time::timeout(Duration::from_secs(60), async {
        while !host.readiness().ready {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    back.await.expect("the host recovers without a restart");
    let after = host.start_run(&who(), heavy(), None).await.unwrap().run_id;
    assert_eq!(host.snapshot(&who().tenant, &after).await.unwrap().status, RunStatus::Completed);
    host.shutdown().await;
}

/// Nobody writes anything, and still it is known: a small write goes the whole way by itself.
#[tokio::test]
async fn a_disk_that_is_full_at_the_start_makes_the_host_unready_until_there_is_room() {
    let store = Arc::new(MemoryStore::new());
    store.fail_after(0);
    let host = Host::open(Arc::clone(&store) as Arc<_>, watched()).await.unwrap();
    assert!(!host.readiness().ready, "no write has gone through yet");
    until(&host, |now| now.reason.is_some_and(|why| !why.starts_with("starting"))).await;
    assert!(!host.readiness().ready);
    store.heal();
    until(&host, |now| now.ready).await;
    host.shutdown().await;
}

/// A disk that takes writes and never says that it has them.
#[tokio::test]
async fn a_write_that_does_not_come_back_makes_the_host_unready() {
    let store = Arc::new(MemoryStore::new());
    let host = Host::open(Arc::clone(&store) as Arc<_>, watched()).await.unwrap();
    until(&host, |now| now.ready).await;
    store.hold();
    until(&host, |now| !now.ready).await;
    let why = host.readiness().reason.unwrap_or_default();
    assert!(why.contains("has not gone through"), "{why}");
    store.release();
    until(&host, |now| now.ready).await;
    host.shutdown().await;
}

fn watched() -> Options {
    Options { watchdog: Some(Watchdog::new(Arc::new(|_: &str| {}))), ..Options::default() }
}

async fn until(host: &Host, holds: impl Fn(Readiness) -> bool) {
    let waiting = async {
        while !holds(host.readiness()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "{:?}", host.readiness());
}
