//! Several hosts over one disk, with time in the test's hands.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_model::RunId;
use baton_runtime::{Clock as _, Options};
use baton_store::{Cluster, Disk, Shared, StoredRecord};
use baton_testkit::{Flow, SimClock};

use crate::common::{World, options};

pub const LEASE_MS: u64 = 9_000;
/// Time moves in steps of this: short enough that whoever is alive renews its lease in time.
const STEP_MS: u64 = 1_000;

pub struct Company {
    pub cluster: Cluster,
    pub clock: Arc<SimClock>,
}

impl Company {
    pub fn new() -> Self {
        Self::on(Disk::default(), Arc::default())
    }

    pub fn on(disk: Disk, clock: Arc<SimClock>) -> Self {
        let time = Arc::clone(&clock);
        let cluster = Cluster::from_disk(disk, Duration::from_millis(LEASE_MS), move || time.now());
        Self { cluster, clock }
    }

    /// One more host. Names it gives out depend on `seed`.
    pub async fn join(&self, seed: u64, options: Options) -> World {
        let store = Arc::new(self.cluster.join(&format!("host-{seed}")));
        World::seeded(Arc::clone(&store) as _, store, Arc::clone(&self.clock), options, seed).await
    }

    /// Two hosts, on which these workflows are registered.
    pub async fn two(flows: impl IntoIterator<Item = Flow>) -> (Self, World, World) {
        let company = Self::new();
        let (a, b) = (company.join(7, options(512)).await, company.join(8, options(512)).await);
        for flow in flows {
            a.register(flow).await;
        }
        settle(&[&a, &b]).await;
        (company, a, b)
    }

    /// Lets time pass, and everybody do what is due, step by step.
    pub async fn pass(&self, hosts: &[&World], millis: u64) {
        let end = self.clock.now().plus_millis(millis);
        while self.clock.now() < end {
            self.clock.advance_to(self.clock.now().plus_millis(STEP_MS).min(end));
            settle(hosts).await;
        }
    }

    /// Long enough for those who are silent to be given up, and for what they had to be taken over.
    pub async fn past_lease(&self, hosts: &[&World]) {
        self.pass(hosts, LEASE_MS + LEASE_MS / 3 + 2 * STEP_MS).await;
    }
}

pub fn shared(world: &World) -> &dyn Shared {
    baton_store::Journal::shared(&*world.store).unwrap()
}

/// Lets every host do everything it can do at this instant.
pub async fn settle(hosts: &[&World]) {
    let commits = || hosts.iter().map(|host| host.store.commits()).sum::<u64>();
    let (mut quiet, mut before) = (0, commits());
    while quiet < 100 {
        tokio::task::yield_now().await;
        let now = commits();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
}

/// The work's outcome, with time passing until it is there.
pub async fn while_time_passes<T>(company: &Company, hosts: &[&World], work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    for _ in 0..120 {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = settle(hosts) => company.clock.advance(STEP_MS),
        }
    }
    panic!("nothing came of it in two minutes");
}

/// How many records of each kind a run has.
pub async fn kinds(world: &World, run: &RunId) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for StoredRecord { kind, .. } in world.reader.records(run, 0, usize::MAX).await.unwrap() {
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

/// One owner for each record, and no owner comes back after another: epochs never go down within a run.
pub async fn audit_epochs(world: &World, context: &str) -> usize {
    let mut owners = 0;
    for row in world.rows().await {
        let epochs = shared(world).epochs(&row.id, 0, usize::MAX).await.unwrap();
        assert_eq!(epochs.len() as u64, row.next_seq, "{context}: every record of {} has an owner", row.id);
        assert!(epochs.is_sorted_by_key(|(_, epoch)| *epoch), "{context}: {}: {epochs:?}", row.id);
        let mut distinct: Vec<u64> = epochs.iter().map(|(_, epoch)| *epoch).collect();
        distinct.dedup();
        owners = owners.max(distinct.len());
    }
    owners
}
