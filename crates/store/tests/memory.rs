#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use baton_model::{Digest, RunId, Timestamp};
use baton_store::reads::*;
use baton_store::{
    Cluster, Commit, CommitError, Committed, Error, Journal, LostPart, MemoryStore, Observer, RunRow, Store as _,
    VersionedStoreCommitted, Write, conformance,
};
use parking_lot::Mutex;

fn blob(text: &str) -> Vec<Write> {
    vec![Write::PutBlob { digest: Digest::of_bytes(text), bytes: text.into() }]
}

fn submit(store: &MemoryStore, text: &str) -> baton_store::CommitReceipt {
    store.submit(Commit::new(store.generation(), blob(text)))
}

async fn has(store: &MemoryStore, text: &str) -> bool {
    store.blob(&Digest::of_bytes(text)).await.unwrap().is_some()
}

#[tokio::test]
async fn passes_the_conformance_suite() {
    conformance::all(async || MemoryStore::new()).await;
}

/// Hosts on one disk, with a clock that stands still.
struct Hosts(Cluster);

impl Hosts {
    fn new() -> Self {
        Self(Cluster::new(Duration::from_secs(10), || Timestamp::from_millis(1_700_000_000_000)))
    }
}

impl conformance::Hosts for Hosts {
    type Store = MemoryStore;
    async fn join(&self) -> MemoryStore {
        self.0.join("host")
    }
    async fn lapse(&self, epoch: u64) {
        self.0.lapse(epoch);
    }
}

#[tokio::test]
async fn passes_the_conformance_suite_for_several_hosts() {
    conformance::all(async || Hosts::new().0.join("only")).await;
    conformance::shared(async || Hosts::new()).await;
}

#[tokio::test]
async fn a_full_disk_fails_until_it_is_healed_and_recovered() {
    let store = MemoryStore::new();
    store.fail_after(1);
    assert_eq!(submit(&store, "a").await, Ok(()));
    assert!(matches!(submit(&store, "b").await, Err(CommitError::Unavailable { .. })));
    assert_eq!(submit(&store, "c").await, Err(CommitError::Stale));
    assert!(matches!(store.recover().await, Err(Error::Unavailable { .. })), "still full");
    store.heal();
    assert_eq!(submit(&store, "d").await, Err(CommitError::Stale), "healed, but nobody has recovered");
    assert_eq!(store.recover().await.unwrap(), 2);
    assert_eq!(submit(&store, "e").await, Ok(()));
    assert_eq!(store.commits(), 2);
    assert!(has(&store, "a").await && !has(&store, "b").await && has(&store, "e").await);
}

#[tokio::test]
async fn a_crash_loses_what_comes_after_it_and_a_restart_finds_the_rest() {
    let store = MemoryStore::new();
    store.crash_after(2);
    assert_eq!(submit(&store, "a").await, Ok(()));
    assert_eq!(submit(&store, "b").await, Ok(()));
    assert!(submit(&store, "c").await.is_err());
    store.crashed().await;
    assert!(store.recover().await.is_err(), "the dead do not recover");

    let restarted = MemoryStore::from_disk(store.disk());
    assert!(has(&restarted, "a").await && has(&restarted, "b").await && !has(&restarted, "c").await);
    assert_eq!(submit(&restarted, "c").await, Ok(()));
    assert!(!has(&store, "c").await, "a copy of the disk is a disk of its own");
}

#[tokio::test]
async fn a_slow_disk_keeps_the_order_and_tells_nobody_before_its_time() {
    let store = MemoryStore::new();
    store.hold();
    let (mut first, second) = (submit(&store, "a"), submit(&store, "b"));
    tokio::select! {
        biased;
        _ = &mut first => panic!("durable on a disk that has not taken it"),
        () = std::future::ready(()) => {}
    }
    assert!(!has(&store, "a").await && store.commits() == 0);
    store.fail_after(1);
    store.release();
    assert_eq!(first.await, Ok(()));
    assert!(matches!(second.await, Err(CommitError::Unavailable { .. })));
    assert!(has(&store, "a").await && !has(&store, "b").await);
}

/// Submits again from inside the notification, as a runtime that chains work may do.
struct Chain {
    store: Mutex<Option<Arc<MemoryStore>>>,
    told: Mutex<Vec<u64>>,
}

impl Observer for Chain {
    fn committed(&self, runs: &[Committed], _: &[VersionedStoreCommitted]) {
        self.told.lock().extend(runs.iter().map(|run| run.next_seq));
        if let Some(store) = self.store.lock().take() {
            drop(submit(&store, "chained"));
        }
    }
    fn lost(&self, parts: &[LostPart]) {
        assert!(matches!(&parts[0].error, CommitError::Conflict { run, .. } if *run == RunId::new("run_x")));
    }
    fn failed(&self, _: u64, error: &CommitError) {
        unreachable!("{error}");
    }
}

#[tokio::test]
async fn an_observer_may_submit() {
    let store = Arc::new(MemoryStore::new());
    let chain = Arc::new(Chain { store: Mutex::new(Some(Arc::clone(&store))), told: Mutex::default() });
    store.observe(Arc::<Chain>::clone(&chain));
    let create = || Commit::new(1, vec![Write::CreateRun(conformance::sample::row("run_x"))]);
    assert_eq!(store.submit(create()).await, Ok(()));
    assert!(has(&store, "chained").await);
    assert!(store.submit(create()).await.is_err());
    assert_eq!(*chain.told.lock(), [0]);
}

#[tokio::test]
async fn a_run_that_is_refused_is_named_until_it_is_accepted() {
    let store = MemoryStore::new();
    let (bad, good) = (conformance::sample::row("run_bad"), conformance::sample::row("run_good"));
    let create = |row: &RunRow| vec![Write::CreateRun(row.clone())];
    store.submit(Commit::new(1, create(&good))).await.unwrap();
    store.refuse_run(&bad.id);
    let together = [create(&bad), vec![conformance::sample::append(good.clone(), 0, 1)]].concat();
    let refused = store.submit(Commit::new(1, together.clone())).await;
    assert!(matches!(&refused, Err(CommitError::Refused { run: Some(run), .. }) if *run == bad.id), "{refused:?}");
    assert!(matches!(store.submit(Commit::new(1, together.clone())).await, Err(CommitError::Refused { .. })));
    assert_eq!(store.recover().await.unwrap(), 1, "the disk is well");
    let restarted = MemoryStore::from_disk(store.disk());
    assert!(matches!(restarted.submit(Commit::new(1, together.clone())).await, Err(CommitError::Refused { .. })));
    store.accept_run(&bad.id);
    store.submit(Commit::new(1, together)).await.unwrap();
}

#[tokio::test]
async fn a_probe_finds_a_full_disk_and_a_dead_one() {
    let store = MemoryStore::new();
    store.probe().await.unwrap();
    store.fail_after(0);
    assert!(matches!(store.probe().await, Err(Error::Unavailable { .. })));
    store.heal();
    store.recover().await.unwrap();
    store.probe().await.unwrap();
    store.lose_sight();
    assert!(store.probe().await.is_err(), "what cannot be read back was not written");
}

/// A permit that was granted to a read that nobody polls is gone: with one permit, so is everybody else.
#[tokio::test]
async fn readers_take_turns_in_the_order_they_came() {
    let store = Arc::new(MemoryStore::new());
    store.limit_readers(1);
    let mut first = Box::pin(store.ping());
    let mut second = Box::pin(store.ping());
    assert!(futures_poll(&mut first).is_pending(), "it has the permit, and lets others run");
    assert!(futures_poll(&mut second).is_pending());
    first.await.unwrap();
    let mut third = Box::pin(store.ping());
    assert!(futures_poll(&mut third).is_pending(), "the second was granted it, although nobody polls it");
    second.await.unwrap();
    third.await.unwrap();
}

fn futures_poll<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T> + ?Sized>>) -> std::task::Poll<T> {
    future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}
