//! The host that drives a scenario dies after every single commit in turn, and another one takes over: the same end as
//! without any of it. Then the one that took over dies too.

use crate::common;
use crate::sharing;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::RunId;
use baton_runtime::Clock as _;
use baton_store::Disk;
use baton_testkit::SimClock;
use common::scenario::{self, Scenario};
use common::{World, go_on, in_time, options, tenant, who};
use serde_json::Value;
use sharing::{Company, audit_epochs, settle};

/// More crashes than any scenario has commits: past this, something commits for ever.
const MOST_CRASHES: u64 = 300;
/// A scenario that is not over after this many seconds of its own is stuck.
const LONGEST: u32 = 300;

async fn prepared(scenario: &Scenario) -> Disk {
    World::with(scenario.flows.clone()).await.stop().await
}

fn root(scenario: &Scenario) -> String {
    scenario.flows[0].clone().build()["id"].as_str().unwrap().to_owned()
}

async fn expected(scenario: &Scenario, disk: &Disk) -> BTreeMap<RunId, Value> {
    let world = World::open(disk.clone(), Arc::default(), options(512)).await;
    world.try_start(&root(scenario)).await.unwrap();
    world.drive(0).await;
    let views = world.views().await;
    world.stop().await;
    views
}

/// Answers what is asked, through a host that need not drive the run, and lets time pass until every run has ended.
async fn drive(company: &Company, hosts: &[&World], speaker: &World) {
    for _ in 0..LONGEST {
        settle(hosts).await;
        let rows = speaker.rows().await;
        if !rows.is_empty() && rows.iter().all(|row| row.status.is_terminal()) {
            return;
        }
        if let Some(open) = speaker.open_interrupts().await.first() {
            let answer = speaker.resolve(&open.run, open.node.as_str(), go_on(open));
            let answered = sharing::while_time_passes(company, hosts, answer).await;
            // It may have been answered by a life that did not live to hear of it.
            if answered.is_err() {
                settle(hosts).await;
                assert_ne!(speaker.open_interrupts().await.first(), Some(open), "{answered:?}");
            }
            continue;
        }
        // Two of its drivers died: it is left alone until somebody says that it may go on.
        if let Some(held) = speaker.host.quarantined(&tenant(), None, 1).await.unwrap().first() {
            let me = who();
            let release = speaker.host.release(&me, &held.run);
            sharing::while_time_passes(company, hosts, release).await.unwrap();
            continue;
        }
        // In steps, so that whoever lives renews its lease.
        let now = company.clock.now();
        let next = rows.iter().filter_map(|row| row.wake_at).filter(|at| *at > now).min();
        company.clock.advance_to(next.map_or(now.plus_millis(2500), |at| at.min(now.plus_millis(2500))));
    }
    panic!("stuck: {:#?}", speaker.rows().await);
}

/// `a` drives and dies after `first` commits; `b` takes over and dies after `second` of its own; `c` ends it.
async fn relay(scenario: &Scenario, disk: &Disk, ahead: usize, first: u64, second: Option<u64>) -> (bool, bool, World) {
    let company = Company::on(disk.clone(), Arc::new(SimClock::default()));
    let a = company.join(common::seed(), options(ahead)).await;
    let b = company.join(8, options(ahead)).await;
    let c = company.join(9, options(ahead)).await;
    settle(&[&a, &b, &c]).await;
    a.store.crash_after(first);
    if let Some(second) = second {
        b.store.crash_after(second);
    }
    let all = [&a, &b, &c];
    let workflow = root(scenario);
    let started = tokio::select! {
        biased;
        started = a.try_start(&workflow) => started.is_ok(),
        () = a.store.crashed() => false,
    };
    if !started {
        settle(&all).await;
        if c.rows().await.is_empty() {
            // It never was; whoever asked asks another host. Named as the first would have named it.
            let d = company.join(common::seed(), options(ahead)).await;
            d.try_start(&root(scenario)).await.unwrap();
            drive(&company, &[&a, &b, &c, &d], &c).await;
            for world in [a, b, d] {
                world.store.die();
                world.host.shutdown().await;
            }
            return (true, false, c);
        }
    }
    drive(&company, &all, &c).await;
    let (first, second) = (a.store.has_crashed(), b.store.has_crashed());
    for world in [a, b] {
        world.store.die();
        world.host.shutdown().await;
    }
    (first, second, c)
}

async fn crash_everywhere(ahead: usize, scenarios: impl Iterator<Item = Scenario>) {
    for scenario in scenarios {
        let disk = prepared(&scenario).await;
        let expected = expected(&scenario, &disk).await;
        let mut handed_on = 0;
        for first in 0.. {
            assert!(first < MOST_CRASHES, "{}: never ends", scenario.name);
            let context = format!("{}, {ahead} ahead, crashed after {first}", scenario.name);
            let (died, _, c) = in_time(&context, relay(&scenario, &disk, ahead, first, None)).await;
            c.audit_ended(&context, &expected).await;
            handed_on = handed_on.max(audit_epochs(&c, &context).await);
            c.host.shutdown().await;
            if !died {
                break;
            }
        }
        assert!(ahead > 1 || handed_on > 1, "{}: nobody took over in the middle", scenario.name);
    }
}

#[tokio::test]
async fn another_host_comes_to_the_same_end_wherever_the_first_dies() {
    crash_everywhere(1, scenario::all().into_iter()).await;
}

#[tokio::test]
async fn also_where_many_steps_are_one_commit() {
    crash_everywhere(512, scenario::all().into_iter()).await;
}

#[tokio::test]
async fn two_hosts_die_one_after_the_other() {
    let named = ["a team", "a delay in a child", "a loop whose workers remember"];
    let mut both = 0;
    for scenario in scenario::all().into_iter().filter(|scenario| named.contains(&scenario.name)) {
        let disk = prepared(&scenario).await;
        let expected = expected(&scenario, &disk).await;
        for (first, second) in [(1, 0), (2, 1), (3, 2), (5, 1), (5, 4), (8, 3), (12, 6), (15, 2)] {
            let context = format!("{}, crashed after {first} and {second}", scenario.name);
            let (one, two, c) = in_time(&context, relay(&scenario, &disk, 1, first, Some(second))).await;
            both += usize::from(one && two);
            c.audit_ended(&context, &expected).await;
            audit_epochs(&c, &context).await;
            c.host.shutdown().await;
        }
    }
    assert!(both > 5, "both died in {both} of them");
}
