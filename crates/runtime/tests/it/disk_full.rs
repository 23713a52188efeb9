//! A real file that cannot grow: the embedded store's writer lives on a thread of its own, and trouble must reach the
//! host from there.

use std::sync::Arc;
use std::time::Duration;

use baton_model::{Principal, RunStatus, Scopes, TenantId};
use baton_runtime::{Host, Kind, Options, StartRun};
use baton_store_sqlite::SqliteStore;
use serde_json::{Map, Value, json};

fn who() -> Principal {
    Principal { tenant: TenantId::new("t"), subject: "key".to_owned(), scopes: Scopes::all(), test: true }
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
    let options = Options { conformance: true, ..Options::default() };
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
    assert_eq!(refused.await.unwrap().kind, Kind::Unavailable);
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
