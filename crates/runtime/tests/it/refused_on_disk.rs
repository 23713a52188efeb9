//! The same on real databases: a rule of theirs that somebody's text breaks.

use std::sync::Arc;
use std::time::Duration;

use baton_model::{Principal, RunId, RunStatus, Scopes, TenantId};
use baton_runtime::{ErrorKind, Host, Options, StartRun};
use baton_store::Store;
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::SqliteStore;
use baton_testkit::Flow;
use baton_testkit::postgres::Database;
use serde_json::{Value, json};

/// Nothing here takes this long; whatever does, hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn who(tenant: &str) -> Principal {
    Principal {
        tenant: TenantId::new(tenant),
        subject: "key".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: true,
    }
}

fn request(workflow: &str, input: &str) -> StartRun {
    let inputs = [("text".to_owned(), json!(input))].into_iter().collect();
    StartRun { workflow_id: workflow.to_owned(), inputs, ..StartRun::default() }
}

async fn start(host: &Host, tenant: &str, workflow: &str) -> RunId {
    host.start_run(&who(tenant), request(workflow, "fine"), None).await.unwrap().run_id
}

/// Looks again and again; none of the stores tells a test when it is done.
async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let look = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("{what}: hangs"));
}

async fn is_served(host: &Host) {
    until("ready", async || host.readiness().ready).await;
    let run = start(host, "rival", "good").await;
    until("the rival's run", async || {
        host.snapshot(&TenantId::new("rival"), &run).await.unwrap().status == RunStatus::Completed
    })
    .await;
}

/// On a store that does not take a record with the word `poison` in it.
async fn one_run_is_left_alone_and_the_rest_served(store: Arc<dyn Store>) {
    let host = Host::open(store, Options::default()).await.unwrap();
    let set = json!({"name": "x", "expression": "'poi' + 'son'"});
    let wait: (&str, &str, Value) = ("wait", "core.delay", json!({"ms": 1}));
    let good = || Flow::chain("good", &[("wait", "core.delay", json!({"ms": 1})), ("after", "core.noop", json!({}))]);
    let bad = Flow::chain("bad", &[wait, ("set", "core.setVariable", set)]);
    host.register_workflow(&TenantId::new("acme"), good().build()).await.unwrap();
    host.register_workflow(&TenantId::new("acme"), bad.build()).await.unwrap();
    host.register_workflow(&TenantId::new("rival"), good().build()).await.unwrap();

    let caller = who("acme");
    let refused = tokio::time::timeout(PATIENCE, host.start_run(&caller, request("good", "poison"), None));
    let refused = refused.await.expect("it is answered").unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Internal, "{refused}");
    is_served(&host).await;

    let run = start(&host, "acme", "bad").await;
    let acme = TenantId::new("acme");
    until("quarantine", async || host.quarantine(&acme, &run).await.unwrap().is_some()).await;
    let held = host.quarantine(&acme, &run).await.unwrap().unwrap();
    assert_eq!((held.cause.as_str(), &held.run), ("commit_refused", &run));
    is_served(&host).await;
    assert_eq!(host.count_quarantined().await.unwrap(), 1);
    // A command may come while a generation ends.
    until("cancelled", async || host.cancel(&who("acme"), &run, None).await.is_ok()).await;
    assert_eq!(host.count_quarantined().await.unwrap(), 0);
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let vandal = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
    let rule = "CREATE TRIGGER no_poison BEFORE INSERT ON events WHEN NEW.body LIKE '%poison%'
                BEGIN SELECT RAISE(ABORT, 'no poison'); END";
    vandal.execute_batch(rule).unwrap();
    drop(vandal);
    one_run_is_left_alone_and_the_rest_served(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_shared_database() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    database.execute("ALTER TABLE events ADD CHECK (body NOT LIKE '%poison%')").await;
    one_run_is_left_alone_and_the_rest_served(Arc::new(store)).await;
}

/// The same where something else is in the way each time: at first it might be another host's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_shared_database_with_a_row_in_the_way() {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    let rule = "CREATE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE unique_violation; END $$;
        CREATE TRIGGER taken BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.body LIKE '%poison%')
        EXECUTE FUNCTION taken()";
    database.execute(rule).await;
    one_run_is_left_alone_and_the_rest_served(Arc::new(store)).await;
}
