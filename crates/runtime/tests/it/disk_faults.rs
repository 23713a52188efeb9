//! A whole host on a disk that fails: it says so, goes on reading, and comes back by itself. What it acknowledged is there
//! after a power loss.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_conformance::Conformance;
use baton_faulty_disk::{Chance, Disk, Fault, Op, Part, VFS, What};
use baton_model::{Principal, RunId, RunStatus, Scopes, TenantId};
use baton_runtime::{ErrorKind, Host, Options, StartRun};
use baton_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Map, Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

fn who() -> Principal {
    Principal {
        tenant: TenantId::new("t"),
        subject: "key".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: true,
    }
}

fn small() -> StartRun {
    let inputs: Map<String, Value> = [("payload".to_owned(), json!("x".repeat(2000)))].into_iter().collect();
    StartRun { workflow_id: "conformance-multi-node".to_owned(), inputs, ..StartRun::default() }
}

async fn host_on(store: SqliteStore) -> Host {
    let options = Options { test_hooks: Conformance::hooks(), ..Options::default() };
    Host::open(Arc::new(store), options).await.unwrap()
}

async fn faulty(folder: &Path) -> Host {
    host_on(SqliteStore::open_on(folder, SqliteOptions::default(), VFS).unwrap()).await
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never came to this: {what}");
}

async fn status(host: &Host, run: &RunId) -> RunStatus {
    host.snapshot(&who().tenant, run).await.unwrap().status
}

async fn completes(host: &Host, run: &RunId) {
    until("the run ends", async || status(host, run).await == RunStatus::Completed).await;
}

/// What a power loss leaves is opened by another host, which has all of these runs and ends them.
async fn survives_power_loss(disk: &Disk, seed: u64, acknowledged: &[RunId]) {
    let left = tempfile::tempdir().unwrap();
    disk.power_loss(seed, left.path()).unwrap();
    assert!(SqliteStore::check(left.path()).unwrap().is_sound(), "seed {seed}");
    let host = host_on(SqliteStore::open(left.path()).unwrap()).await;
    for run in acknowledged {
        completes(&host, run).await;
    }
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_makes_the_host_unready_and_it_comes_back_by_itself() {
    for (op, what) in
        [(Op::Sync, What::Fail), (Op::Write, What::Full), (Op::Write, What::Short), (Op::Write, What::Fail)]
    {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::of(folder.path(), 1);
        let host = faulty(folder.path()).await;
        let before = host.start_run(&who(), small(), None).await.unwrap().run_id;
        completes(&host, &before).await;
        disk.inject(Fault::lasting(op, Part::Wal, what));
        let refused = tokio::time::timeout(PATIENCE, host.start_run(&who(), small(), None)).await.unwrap();
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Unavailable, "{op:?} {what:?}");
        assert!(!host.readiness().ready, "{op:?} {what:?}");
        assert_eq!(status(&host, &before).await, RunStatus::Completed, "reads go on");
        survives_power_loss(&disk, 3, std::slice::from_ref(&before)).await;
        disk.heal();
        until("the host is ready again", async || host.readiness().ready).await;
        let after = host.start_run(&who(), small(), None).await.unwrap().run_id;
        completes(&host, &after).await;
        survives_power_loss(&disk, 4, &[before, after]).await;
        host.shutdown().await;
    }
}

/// Faults come and go while runs are started, and the power is cut after every few.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_host_acknowledged_survives_power_losses_between_faults() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut chance) = (Disk::of(folder.path(), 2), Chance::new(3));
    let host = faulty(folder.path()).await;
    let (mut acknowledged, mut refused) = (Vec::new(), 0);
    for round in 0..12 {
        let (op, what) = [(Op::Sync, What::Fail), (Op::Write, What::Short), (Op::Write, What::Full)][round % 3];
        disk.inject(Fault::once(op, Part::Wal, what).after(chance.below(8) as u32));
        for _ in 0..4 {
            match tokio::time::timeout(PATIENCE, host.start_run(&who(), small(), None)).await.unwrap() {
                Ok(run) => acknowledged.push(run.run_id),
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
                    refused += 1;
                }
            }
        }
        if round % 4 == 3 {
            survives_power_loss(&disk, chance.number(), &acknowledged).await;
        }
        until("the host is ready again", async || host.readiness().ready).await;
    }
    disk.heal();
    assert!(refused > 0 && acknowledged.len() > 10 && disk.injected() > 0, "{refused} refused");
    until("the host is ready again", async || host.readiness().ready).await;
    for run in &acknowledged {
        completes(&host, run).await;
    }
    host.shutdown().await;
}

/// A sync that takes for ever holds up nobody who reads, and is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_takes_its_time_holds_up_starts_and_no_reads() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::of(folder.path(), 4);
    let host = faulty(folder.path()).await;
    let before = host.start_run(&who(), small(), None).await.unwrap().run_id;
    completes(&host, &before).await;
    let stall = disk.stall(Op::Sync, Part::Wal);
    let starter = host.clone();
    let start = tokio::spawn(async move { starter.start_run(&who(), small(), None).await });
    let stall = tokio::task::spawn_blocking(move || {
        stall.reached();
        stall
    });
    let stall = stall.await.unwrap();
    assert_eq!(status(&host, &before).await, RunStatus::Completed);
    assert!(!start.is_finished(), "not synced, so not acknowledged");
    drop(stall);
    let run = start.await.unwrap().unwrap().run_id;
    completes(&host, &run).await;
    survives_power_loss(&disk, 5, &[before, run]).await;
    host.shutdown().await;
}
