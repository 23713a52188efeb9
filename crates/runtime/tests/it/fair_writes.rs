//! One tenant's backlog is waited for by nobody else, whatever is written beside it.

use std::sync::Arc;
use std::time::Duration;

use baton_model::{Digest, RunStatus};
use baton_runtime::StartRun;
use baton_store::reads::*;
use baton_store::{MemoryStore, Store as _};
use baton_testkit::SimClock;
use serde_json::json;

use crate::receiver::Receiver;
use crate::webhooks::{World, who};

/// More than a tenant may write in one turn.
const LARGE: usize = 400_000;
const BACKLOG: usize = 10;

/// Starts of the heavy tenant that each wait for the disk in a commit of their own.
async fn pile_up(world: &World) {
    for _ in 0..BACKLOG {
        let (host, before) = (world.host.clone(), world.store.waiting());
        let inputs = [("text".to_owned(), json!("x".repeat(LARGE)))].into_iter().collect();
        let request = StartRun { workflow_id: "hello".to_owned(), inputs, ..StartRun::default() };
        tokio::spawn(async move { host.start_run(&who("heavy"), request, None).await });
        world.meanwhile(async || world.store.waiting() > before).await;
    }
}

/// Deliveries, answers to keyed requests and housekeeping belong to somebody: they go among that tenant's writes, and no
/// other tenant waits for what was queued before them.
#[tokio::test]
async fn a_backlog_with_deliveries_in_it_holds_up_nobody_else() {
    let clock = Arc::new(SimClock::default());
    let receiver = Receiver::slow(&clock, 500).await;
    let world = World::over(MemoryStore::new(), clock, true).await;
    world.subscribe("heavy", &receiver.url, &["run.completed"], &[]).await;
    let light = world.run("light", &[]).await;
    world.run("heavy", &[]).await;
    world.until(20, async || !receiver.got().is_empty()).await;

    world.store.hold();
    pile_up(&world).await;
    // What came of a delivery, and the answer to a request under a key.
    let before = world.store.waiting();
    world.until(100, async || world.store.waiting() > before).await;
    let (host, key) = (world.host.clone(), Digest::of_bytes("key"));
    tokio::spawn(async move { host.remember(&who("heavy").tenant, key.clone(), key, 200, String::new()).await });
    world.meanwhile(async || world.store.waiting() > before + 1).await;
    pile_up(&world).await;

    let before = world.store.waiting();
    let request = StartRun { workflow_id: "hello".to_owned(), ..StartRun::default() };
    let host = world.host.clone();
    let start = tokio::spawn(async move { host.start_run(&who("light"), request, None).await });
    let host = world.host.clone();
    let cancel = tokio::spawn(async move { host.cancel(&who("light"), &light, None).await });
    let store = Arc::clone(&world.store);
    let probe = tokio::spawn(async move { store.probe().await });
    world.meanwhile(async || world.store.waiting() >= before + 2).await;

    // One turn of each: the heavy tenant's, the light one's, the probe's, and perhaps the host's own.
    world.store.release_some(5);
    let all = async { (start.await.unwrap().unwrap(), cancel.await.unwrap().unwrap(), probe.await.unwrap().unwrap()) };
    let (started, cancelled, ()) = tokio::time::timeout(Duration::from_secs(20), all).await.expect("nobody waits");
    assert_eq!(cancelled, RunStatus::Completed);
    assert!(world.store.run(&started.run_id).await.unwrap().is_some());
    assert!(world.store.waiting() >= BACKLOG, "{} of the backlog are left", world.store.waiting());
    world.store.release();
}
