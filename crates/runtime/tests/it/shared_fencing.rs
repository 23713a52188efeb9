//! A host that sleeps past its lease loses what it drove, cannot harm it, and comes back clean.

use crate::common;
use crate::sharing;

use baton_model::RunStatus;
use baton_store::{CommitError, Owner};
use common::scenario::{call, delayed, gate, parent, pipeline};
use common::{World, accept, options, who};
use serde_json::json;
use sharing::{Company, LEASE_MS, audit_epochs, kinds, settle, shared, while_time_passes};

#[tokio::test]
async fn a_frozen_owner_cannot_append_and_comes_back_clean() {
    let (company, a, b) = Company::two([gate("gated"), parent("family", call("gated"))]).await;
    let run = a.start("family").await;
    a.waiting(&run).await;
    settle(&[&a, &b]).await;
    let question = a.open_interrupts().await.remove(0);
    let old = shared(&a).epoch();

    // It goes to sleep with an answer in hand that is not on disk.
    a.store.freeze();
    let (host, node) = (a.host.clone(), question.node.clone());
    let asked = question.run.clone();
    let late = tokio::spawn(async move {
        let reject = json!({"action": "reject"});
        host.resolve(&common::tenant(), &asked, &node, reject, baton_runtime::Via::Token).await
    });
    settle(&[&a, &b]).await;
    assert!(!late.is_finished());
    assert_eq!(b.status(&run).await, RunStatus::WaitingApproval, "nothing of it is to be seen");
    company.past_lease(&[&a, &b]).await;
    let answered = b.resolve(&question.run, question.node.as_str(), accept()).await.unwrap();
    assert_eq!(answered.status, RunStatus::Completed);
    assert_eq!(b.ended(&run).await.status, RunStatus::Completed);
    let before = kinds(&b, &question.run).await;

    a.store.thaw();
    settle(&[&a, &b]).await;
    late.await.unwrap().expect_err("nobody is told what did not happen");
    assert_eq!(kinds(&b, &question.run).await, before, "and nothing was added");
    assert!(shared(&a).epoch() > old, "a new life");
    assert!(a.host.readiness().ready);
    assert_eq!(a.status(&run).await, RunStatus::Completed, "it sees what the others see");
    let next = a.start("gated").await;
    a.waiting(&next).await;
    a.resolve(&next, "gate", accept()).await.unwrap();
    assert_eq!(b.ended(&next).await.status, RunStatus::Completed, "and does its work");
    b.audit("frozen").await;
    assert_eq!(audit_epochs(&b, "frozen").await, 2, "the child has had two owners, one after the other");
}

/// Whoever is late with renewing, but was not given up, goes on as if nothing had been.
#[tokio::test]
async fn a_short_sleep_costs_nothing() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let run = a.start("gated").await;
    a.waiting(&run).await;
    let epoch = shared(&a).epoch();
    a.store.freeze();
    company.pass(&[&a, &b], LEASE_MS / 2).await;
    a.store.thaw();
    company.pass(&[&a, &b], LEASE_MS).await;
    assert_eq!(shared(&a).epoch(), epoch);
    a.resolve(&run, "gate", accept()).await.unwrap();
    assert_eq!(a.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(a.reader.generation(), 1);
}

/// Taking over records nothing and repeats nothing; timers go off once, children are made once.
#[tokio::test]
async fn a_takeover_adds_no_record_and_repeats_nothing() {
    let flows = [delayed("delayed", 60_000), parent("family", call("delayed")), pipeline("pipeline")];
    let (company, a, b) = Company::two(flows).await;
    let c = company.join(9, options(512)).await;
    let (run, other) = (a.start("family").await, a.start("delayed").await);
    let done = a.start("pipeline").await;
    a.ended(&done).await;
    settle(&[&a, &b, &c]).await;
    let rows = b.rows().await;
    let before: Vec<u64> = rows.iter().map(|row| row.next_seq).collect();
    a.store.die();
    company.past_lease(&[&b, &c]).await;
    let after: Vec<u64> = b.rows().await.iter().map(|row| row.next_seq).collect();
    assert_eq!(before, after, "nobody wrote anything");
    for row in &rows {
        let owner = shared(&b).owner(&row.id).await.unwrap().unwrap();
        let dead = owner == shared(&a).epoch();
        assert_eq!(dead, row.status.is_terminal(), "{} is driven by {owner}", row.workflow);
    }
    let family = shared(&b).owner(&run).await.unwrap();
    assert!(rows.iter().filter(|row| row.root.as_ref() == Some(&run)).count() == 1);
    for row in rows.iter().filter(|row| row.root.as_ref() == Some(&run)) {
        assert_eq!(shared(&b).owner(&row.id).await.unwrap(), family, "a tree stays together");
    }
    company.pass(&[&b, &c], 70_000).await;
    for ended in [&run, &other] {
        assert_eq!(c.ended(ended).await.status, RunStatus::Completed);
    }
    assert_eq!(b.rows().await.len(), 4, "the family's child, once");
    b.audit("takeover").await;
    assert_eq!(audit_epochs(&b, "takeover").await, 2);
    assert_eq!((b.reader.generation(), c.reader.generation()), (1, 1), "nobody met anybody");
    assert_eq!((b.store.lost(), c.store.lost()), (0, 0), "nobody met anybody");
}

/// A host that stops says so: the others go on at once, without waiting for its lease.
#[tokio::test]
async fn a_host_that_stops_hands_over_at_once() {
    let (company, a, b) = Company::two([delayed("delayed", 60_000), gate("gated")]).await;
    let (delayed, waits) = (a.start("delayed").await, a.start("gated").await);
    a.waiting(&waits).await;
    settle(&[&a, &b]).await;
    a.host.shutdown().await;
    settle(&[&b]).await;
    assert_eq!(shared(&b).owner(&delayed).await.unwrap(), Some(shared(&b).epoch()), "no time has passed");
    assert_ne!(shared(&b).owner(&waits).await.unwrap(), Some(shared(&b).epoch()), "who waits for a human can wait");
    b.resolve(&waits, "gate", accept()).await.unwrap();
    assert_eq!(b.ended(&waits).await.status, RunStatus::Completed);
    company.pass(&[&b], 61_000).await;
    assert_eq!(b.status(&delayed).await, RunStatus::Completed);
    assert_eq!(b.reader.generation(), 1);
}

/// A session that was ended behind its back finds out by its next commit, and what it was asked is not lost on callers.
#[tokio::test]
async fn a_fenced_host_starts_over_by_itself() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let run = a.start("gated").await;
    a.waiting(&run).await;
    let old = shared(&a).epoch();
    company.cluster.lapse(old);
    assert_eq!(shared(&b).adopt_tree(&run).await.unwrap(), Some(Owner::Taken));
    let me = who();
    let refused = a.host.cancel(&me, &run, None).await;
    // Its head was out of memory, so it noticed before it did anything; or its commit was fenced. Never both happened.
    settle(&[&a, &b]).await;
    let status = while_time_passes(&company, &[&a, &b], a.host.cancel(&me, &run, None)).await.unwrap();
    assert_eq!(status, RunStatus::Cancelled);
    assert_eq!(kinds(&b, &run).await["run.cancelled"], 1, "{refused:?}");
    company.pass(&[&a, &b], LEASE_MS).await;
    assert_ne!(shared(&a).epoch(), old);
    assert!(a.host.readiness().ready);
    let stale = baton_store::Commit::new(1, Vec::new());
    assert_eq!(a.reader.submit(stale).await, Err(CommitError::Stale), "its first life is over");
    let next: World = company.join(11, options(512)).await;
    next.start("gated").await;
    audit_epochs(&b, "fenced").await;
}
