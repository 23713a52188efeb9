//! Any host shows any run: snapshots, streams, forks, what was pruned. And each subscriber is told once.

use crate::common;
use crate::forking;
use crate::receiver::Receiver;
use crate::sharing;

use std::time::Duration;

use baton_model::{ForkMode, RunId, RunStatus, code};
use baton_runtime::{ErrorKind, Host, NewWebhook, Options};
use common::scenario::{call, gate, parent, pipeline};
use common::{World, accept, in_time, options, tenant, who};
use forking::fork;
use sharing::{Company, audit_epochs, kinds, settle, shared, while_time_passes};

/// Follows a run as a stream does: from its own cursor, whenever it is woken, until the run has ended.
async fn follow(host: Host, run: RunId) -> Vec<u64> {
    let mut log = host.subscribe(&run);
    let mut seen = Vec::new();
    loop {
        let page = host.events(&tenant(), &run, seen.last().copied(), 3).await.unwrap();
        seen.extend(page.events.iter().map(|event| event.seq));
        if page.status.is_terminal() && seen.len() as u64 == page.next_seq {
            return seen;
        }
        if page.events.is_empty() {
            log.changed().await;
        }
    }
}

#[tokio::test]
async fn a_stream_on_another_host_shows_every_event_once() {
    for silent in [false, true] {
        let (company, a, b) = Company::two([gate("gated"), parent("family", call("gated"))]).await;
        if silent {
            company.cluster.silence();
        }
        let run = a.start("family").await;
        let stream = tokio::spawn(follow(b.host.clone(), run.clone()));
        a.waiting(&run).await;
        assert_eq!(b.status(&run).await, RunStatus::WaitingApproval);
        let question = b.open_interrupts().await.remove(0);
        let answer = b.resolve(&question.run, question.node.as_str(), accept());
        while_time_passes(&company, &[&a, &b], answer).await.unwrap();
        let seen = while_time_passes(&company, &[&a, &b], stream).await.unwrap();
        assert_eq!(seen, (0..seen.len() as u64).collect::<Vec<_>>(), "silent: {silent}");
        assert_eq!(seen.len() as u64, a.rows().await[0].next_seq);
    }
}

/// A stream goes on through the death of the host that drives its run.
#[tokio::test]
async fn a_stream_goes_on_when_the_run_changes_hands() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let run = a.start("gated").await;
    a.waiting(&run).await;
    let stream = tokio::spawn(follow(b.host.clone(), run.clone()));
    settle(&[&a, &b]).await;
    a.store.die();
    let answer = b.resolve(&run, "gate", accept());
    assert_eq!(while_time_passes(&company, &[&a, &b], answer).await.unwrap().status, RunStatus::Completed);
    let seen = in_time("the stream", stream).await.unwrap();
    assert_eq!(seen, (0..seen.len() as u64).collect::<Vec<_>>());
    assert_eq!(audit_epochs(&b, "a stream").await, 2);
}

#[tokio::test]
async fn forks_are_made_on_any_host_and_what_is_pruned_is_gone_on_all() {
    let (_company, a, b) = Company::two([pipeline("pipeline")]).await;
    let run = a.start("pipeline").await;
    let ended = a.ended(&run).await;
    assert_eq!(b.snapshot(&run).await.variables, ended.variables);
    for (mode, from) in [(ForkMode::Replay, 0), (ForkMode::Branch, 2), (ForkMode::Replay, 3)] {
        let forked = b.host.fork(&who(), &run, fork(mode, from), None).await.unwrap().run_id;
        let end = a.ended(&forked).await;
        assert_eq!((end.status, &end.variables), (RunStatus::Completed, &ended.variables), "{mode:?}");
        assert_eq!(shared(&a).owner(&forked).await.unwrap(), Some(shared(&b).epoch()), "whoever made it drives it");
        b.host.prune(&tenant(), &forked, true).await.unwrap();
    }
    assert!(a.snapshot(&run).await.retention.is_none());
    b.host.prune(&tenant(), &run, true).await.unwrap();
    assert!(a.host.events(&tenant(), &run, None, 10).await.is_err(), "the log is gone for the host that wrote it too");
    assert!(a.host.snapshot(&tenant(), &run).await.is_err() || a.snapshot(&run).await.retention.is_some());
}

/// Whoever is second hears the same as whoever is late.
#[tokio::test]
async fn a_fork_that_loses_against_pruning_elsewhere_is_refused_as_one_that_came_after() {
    let (_company, a, b) = Company::two([pipeline("pipeline")]).await;
    for (mode, from) in [(ForkMode::Replay, 0), (ForkMode::Branch, 2)] {
        let run = a.start("pipeline").await;
        a.ended(&run).await;
        settle(&[&a, &b]).await;
        b.store.hold();
        let forking = {
            let (host, run) = (b.host.clone(), run.clone());
            tokio::spawn(async move { host.fork(&who(), &run, fork(mode, from), None).await })
        };
        let patience = async {
            while b.store.waiting() == 0 {
                tokio::task::yield_now().await;
            }
        };
        in_time("the fork is on its way", patience).await;
        a.host.prune(&tenant(), &run, true).await.unwrap();
        b.store.release();
        let raced = forking.await.unwrap().unwrap_err();
        let late = b.host.fork(&who(), &run, fork(mode, from), None).await.unwrap_err();
        assert_eq!((raced.kind, raced.code), (ErrorKind::Unprocessable, code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE));
        assert_eq!((raced.message, raced.details), (late.message, late.details));
    }
}

async fn told(receiver: &Receiver, company: &Company, hosts: &[&World], count: usize) {
    for _ in 0..2000 {
        if receiver.got().len() >= count {
            return;
        }
        settle(hosts).await;
        company.clock.advance(20);
        // A real socket is at the other end.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("only {} of {count} arrived", receiver.got().len());
}

#[tokio::test]
async fn a_subscriber_hears_of_every_event_once_whichever_host_drives_the_run() {
    let company = Company::new();
    let private = || Options { allow_private_webhooks: true, ..options(512) };
    let (a, b) = (company.join(7, private()).await, company.join(8, private()).await);
    a.register(gate("gated")).await;
    let receiver = Receiver::start(&company.clock, &[]).await;
    let hook = NewWebhook { url: receiver.url.clone(), events: vec!["*".to_owned()], tags: Vec::new() };
    let registered = a.host.register_webhook(&who(), hook).await.unwrap();
    settle(&[&a, &b]).await;
    let (one, two) = (a.start("gated").await, b.start("gated").await);
    settle(&[&a, &b]).await;
    let so_far = (kinds(&a, &one).await.values().sum::<usize>()) * 2;
    told(&receiver, &company, &[&a, &b], so_far).await;
    // The one that drives the second run dies; the other goes on with it, and with its subscribers.
    company.pass(&[&a, &b], 5_000).await;
    b.store.die();
    let answer = a.resolve(&two, "gate", accept());
    while_time_passes(&company, &[&a, &b], answer).await.unwrap();
    a.resolve(&one, "gate", accept()).await.unwrap();
    let all = kinds(&a, &one).await.values().sum::<usize>() + kinds(&a, &two).await.values().sum::<usize>();
    told(&receiver, &company, &[&a], all).await;
    company.pass(&[&a], 5_000).await;
    let mut got: Vec<(String, u64)> = receiver
        .got()
        .iter()
        .map(|request| {
            let sent = request.json();
            (sent["runId"].as_str().unwrap().to_owned(), sent["event"]["sequence"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(got.len(), all);
    got.sort();
    got.dedup();
    assert_eq!(got.len(), all, "each of them once");
    a.host.delete_webhook(&who(), &registered.id).await.unwrap();
}
