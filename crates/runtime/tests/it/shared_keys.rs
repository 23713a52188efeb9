//! What must happen once among all hosts: a keyed request, the only run of a scope, a version of a workflow.

use crate::common;
use crate::sharing;

use std::sync::Arc;

use baton_model::{Digest, RunId, code};
use baton_runtime::{Host, Idempotent, KeyLookup, StartRun, StartedRun};
use baton_testkit::Flow;
use common::scenario::{gate, noop, pipeline};
use common::{World, options, request, tenant, who};
use serde_json::json;
use sharing::{Company, settle, shared, while_time_passes};

fn key() -> (Digest, Digest) {
    (Digest::of_bytes("a key"), Digest::of_bytes("a request"))
}

fn keyed() -> Idempotent<StartedRun> {
    let (key, request) = key();
    Idempotent { key, request, render: Box::new(|started| (201, started.run_id.to_string())) }
}

/// A request as the edge handles it: known already, or done once and its claim let go.
async fn start_once(host: Host) -> Option<String> {
    let (digest, asked) = key();
    match host.recall(&who().tenant, &digest, &asked).await.ok()? {
        KeyLookup::Replay { body, .. } => Some(body),
        KeyLookup::Mismatch => panic!("the same request"),
        KeyLookup::New => {
            let started = host.start_run(&who(), request("gated"), Some(keyed())).await;
            host.done_with(&who().tenant, &digest);
            started.ok().map(|started| started.run_id.to_string())
        }
    }
}

#[tokio::test]
async fn one_key_on_several_hosts_is_one_run() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let c = company.join(9, options(512)).await;
    let asked: Vec<_> = [&a, &b, &c, &a, &b].map(|world| tokio::spawn(start_once(world.host.clone()))).into();
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.await.unwrap().unwrap());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "one answer");
    assert_eq!(a.rows().await.len(), 1, "one run");
    assert!(matches!(
        b.host.recall(&who().tenant, &key().0, &Digest::of_bytes("something else")).await.unwrap(),
        KeyLookup::Mismatch
    ));
}

/// What lets a claim go may be long on its way to the disk. Whoever claims the same name on the same host meanwhile must
/// not lose it to that: another host would do the work as well.
#[tokio::test]
async fn letting_a_key_go_does_not_take_away_the_next_claim_on_it() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let (digest, asked) = key();
    assert!(matches!(a.host.recall(&who().tenant, &digest, &asked).await.unwrap(), KeyLookup::New));
    a.store.hold();
    a.host.done_with(&who().tenant, &digest);
    let (host, again) = (a.host.clone(), key());
    let again = tokio::spawn(async move { host.recall(&who().tenant, &again.0, &again.1).await });
    settle(&[&a, &b]).await;
    a.store.release();
    settle(&[&a, &b]).await;
    let again = while_time_passes(&company, &[&a, &b], again).await.unwrap().unwrap();
    assert!(matches!(again, KeyLookup::New), "it is to do the work");
    let (host, other) = (b.host.clone(), key());
    let other = tokio::spawn(async move { host.recall(&who().tenant, &other.0, &other.1).await });
    settle(&[&a, &b]).await;
    assert!(!other.is_finished(), "nobody else is");
    let made = a.host.start_run(&who(), request("gated"), Some(keyed())).await.unwrap();
    a.host.done_with(&who().tenant, &digest);
    match while_time_passes(&company, &[&a, &b], other).await.unwrap().unwrap() {
        KeyLookup::Replay { body, .. } => assert_eq!(body, made.run_id.to_string()),
        other => panic!("{other:?}"),
    }
}

/// A claim is good for the session that took it: whoever lost its session between being told to do the work and doing it
/// must not do it in the next.
#[tokio::test]
async fn a_key_claimed_in_one_session_does_not_count_in_the_next() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let (digest, asked) = key();
    assert!(matches!(a.host.recall(&who().tenant, &digest, &asked).await.unwrap(), KeyLookup::New));
    let old = shared(&a).epoch();
    a.store.freeze();
    company.past_lease(&[&a, &b]).await;
    let made = start_once(b.host.clone()).await.unwrap();
    a.store.thaw();
    company.past_lease(&[&a, &b]).await;
    assert!(shared(&a).epoch() > old && a.host.readiness().ready, "a new life");
    let late = a.host.start_run(&who(), request("gated"), Some(keyed())).await;
    assert_eq!(late.expect_err("not its work any more").code, code::SERVICE_UNAVAILABLE);
    a.host.done_with(&who().tenant, &digest);
    assert_eq!(start_once(a.host.clone()).await.unwrap(), made);
    assert_eq!(b.rows().await.len(), 1, "one run");
}

/// Whoever held the key dies at each of its commits in turn; whoever is asked next finds the run, or makes it.
#[tokio::test]
async fn a_key_outlives_the_host_that_worked_on_it() {
    for commits in 0..5 {
        let (company, a, b) = Company::two([gate("gated")]).await;
        a.store.crash_after(commits);
        let first = tokio::spawn(start_once(a.host.clone()));
        settle(&[&a, &b]).await;
        a.store.die();
        let second = while_time_passes(&company, &[&a, &b], start_once(b.host.clone())).await.unwrap();
        let rows = b.rows().await;
        assert_eq!(rows.len(), 1, "died after {commits}");
        assert_eq!(rows[0].id.to_string(), second);
        if first.is_finished()
            && let Some(first) = first.await.unwrap()
        {
            assert_eq!(first, second);
        }
    }
}

#[tokio::test]
async fn the_only_run_of_a_scope_is_the_only_one_on_all_hosts() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let c = company.join(9, options(512)).await;
    let start = |world: &World| {
        let host = world.host.clone();
        let request = StartRun { scope_id: Some("room".to_owned()), exclusive: true, ..request("gated") };
        tokio::spawn(async move { host.start_run(&who(), request, None).await })
    };
    let tries: Vec<_> = [&a, &b, &c, &b, &c].map(start).into();
    let (mut started, mut refused) = (Vec::<RunId>::new(), 0);
    for attempt in tries {
        match attempt.await.unwrap() {
            Ok(run) => started.push(run.run_id),
            Err(error) => {
                assert_eq!(error.code, code::RUN_ALREADY_ACTIVE, "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!((started.len(), refused), (1, 4));
    b.host.cancel(&who(), &started[0], None).await.unwrap();
    start(&c).await.unwrap().unwrap();
    assert_eq!(b.rows().await.len(), 2);
}

#[tokio::test]
async fn versions_of_a_workflow_have_no_twins_and_are_seen_by_all_at_once() {
    let (company, a, b) = Company::two([pipeline("pipeline")]).await;
    let c = company.join(9, options(512)).await;
    let flow = |n: usize| Flow::chain("mine", &[("only", "core.setVariable", json!({"name": "n", "value": n}))]);
    let register = |(n, world): (usize, &World)| {
        let (host, definition) = (world.host.clone(), flow(n).build());
        tokio::spawn(async move { host.register_workflow(&tenant(), definition).await.unwrap().version })
    };
    let all: Vec<_> = [&a, &b, &c, &a, &b, &c].into_iter().enumerate().map(register).collect();
    let mut versions = Vec::new();
    for one in all {
        versions.push(one.await.unwrap());
    }
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3, 4, 5, 6]);
    for (n, (registers, starts)) in [(&a, &b), (&b, &c), (&c, &a)].into_iter().enumerate() {
        registers.register(flow(100 + n)).await;
        let run = starts.start("mine").await;
        assert_eq!(starts.ended(&run).await.variables["n"], json!(100 + n), "the newest, though another registered it");
    }
    let _ = (noop(), Arc::strong_count(&company.clock), shared(&a).epoch());
}
