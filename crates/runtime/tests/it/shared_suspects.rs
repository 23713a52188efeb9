//! Hosts that share a store, and a tree that one after the other dies of, or seems to.

use crate::common;
use crate::sharing;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_model::{QuarantineView, RunId, RunStatus};
use baton_runtime::{BeforeStep, Options};
use baton_store::{MemoryStore, RunRow};
use baton_testkit::Flow;
use common::{World, options};
use serde_json::json;
use sharing::{Company, LEASE_MS, settle};

/// How long a tree is held at most before it is let go on once: ten leases, and a look every five seconds.
const QUIET_MS: u64 = 11 * LEASE_MS + 5_000;

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for longer than it takes to give up a host.
fn slow() -> Flow {
    Flow::chain("slow", &[("wait", "core.delay", json!({"ms": 3 * LEASE_MS})), ("after", "core.noop", json!({}))])
}

/// A host whose machine is switched off when it goes on with a run of this workflow, as often as it is loaded for that.
async fn join(company: &Company, seed: u64, deaths: &Arc<AtomicUsize>) -> World {
    let (deaths, store) = (Arc::clone(deaths), Arc::new(OnceLock::<Arc<MemoryStore>>::new()));
    let mine = Arc::clone(&store);
    let before = move |row: &RunRow, goes_on: bool| {
        let one_less = |left: usize| left.checked_sub(1);
        if goes_on
            && row.workflow.as_str() == "deadly"
            && let Some(store) = mine.get().filter(|store| !store.has_crashed())
            && deaths.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
        {
            store.die();
        }
    };
    let options = Options { before_step: Some(BeforeStep(Arc::new(before))), ..options(512) };
    let world = company.join(seed, options).await;
    store.set(Arc::clone(&world.store)).ok().unwrap();
    world
}

fn deadly() -> Flow {
    Flow::chain("deadly", &[("wait", "core.delay", json!({"ms": 1000})), ("after", "core.noop", json!({}))])
}

async fn held(world: &World, run: &RunId) -> Option<QuarantineView> {
    world.snapshot(run).await.quarantine
}

/// Four hosts, two of which die of a run; the other two hold it.
async fn two_deaths(deaths: usize) -> (Company, [World; 4], RunId) {
    let (company, left) = (Company::new(), Arc::new(AtomicUsize::new(deaths)));
    let hosts = [
        join(&company, 7, &left).await,
        join(&company, 8, &left).await,
        join(&company, 9, &left).await,
        join(&company, 10, &left).await,
    ];
    hosts[0].register(deadly()).await;
    hosts[0].register(slow()).await;
    let all: Vec<&World> = hosts.iter().collect();
    settle(&all).await;
    let run = hosts[0].start("deadly").await;
    let held = async {
        loop {
            company.past_lease(&all).await;
            let Some(host) = alive(&hosts).first().copied() else { panic!("all of them died") };
            if held(host, &run).await.is_some() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, held).await.expect("it is held");
    (company, hosts, run)
}

async fn stop(hosts: impl IntoIterator<Item = World>) {
    for world in hosts {
        world.store.die();
        world.host.shutdown().await;
    }
}

fn alive(hosts: &[World]) -> Vec<&World> {
    hosts.iter().filter(|host| !host.store.has_crashed()).collect()
}

#[tokio::test]
async fn a_tree_that_two_hosts_died_of_by_chance_goes_on_by_itself_after_a_quiet_time() {
    let (company, hosts, run) = two_deaths(2).await;
    let left = alive(&hosts);
    assert_eq!(left.len(), 2, "two hosts were switched off");
    let cause = held(left[0], &run).await.map(|held| held.cause);
    assert_eq!(cause.as_deref(), Some("process_died"));
    company.pass(&left, QUIET_MS).await;
    assert_eq!(held(left[0], &run).await, None, "nobody died for ten leases, and there is a host to spare");
    assert_eq!(left[1].snapshot(&run).await.status, RunStatus::Completed);
    stop(hosts).await;
}

#[tokio::test]
async fn it_is_let_go_on_once_only() {
    let (company, hosts, run) = two_deaths(3).await;
    let left = alive(&hosts);
    assert_eq!(left.len(), 2);
    company.pass(&left, QUIET_MS).await;
    company.past_lease(&left).await;
    let left = alive(&hosts);
    assert_eq!(left.len(), 1, "it was let go on, and a third host died of it");
    assert_eq!(held(left[0], &run).await.map(|held| held.cause).as_deref(), Some("process_died_again"));
    // A spare host, so that only the rule keeps it where it is.
    let spare = company.join(11, options(512)).await;
    let left = [left[0], &spare];
    company.pass(&left, 2 * QUIET_MS).await;
    assert!(held(&spare, &run).await.is_some());
    stop(hosts.into_iter().chain([spare])).await;
}

#[tokio::test]
async fn the_last_host_does_not_try_it_again() {
    let (company, hosts, run) = two_deaths(2).await;
    let left = alive(&hosts);
    left[1].store.die();
    company.pass(&left[..1], 2 * QUIET_MS).await;
    assert!(held(left[0], &run).await.is_some(), "nobody would take over");
    stop(hosts).await;
}

#[tokio::test]
async fn a_host_that_dies_without_a_held_tree_speaks_for_it() {
    let (company, hosts, run) = two_deaths(2).await;
    let left = alive(&hosts);
    // Held for longer than it takes to notice a death, so that this one cannot have been of it.
    company.pass(&left, 3 * LEASE_MS).await;
    assert!(held(left[0], &run).await.is_some(), "not yet");
    let other = left[1].start("slow").await;
    settle(&left).await;
    company.pass(&left, 3 * LEASE_MS - 1_000).await;
    left[1].store.die();
    company.past_lease(&left[..1]).await;
    company.past_lease(&left[..1]).await;
    assert_eq!(left[0].snapshot(&other).await.status, RunStatus::Completed, "taken over");
    assert_eq!(held(left[0], &run).await, None);
    assert_eq!(left[0].snapshot(&run).await.status, RunStatus::Completed);
    stop(hosts).await;
}
