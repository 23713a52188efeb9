//! A command to a host that does not drive the run: the committed answer of the one that does, once, whoever dies.

use crate::common;
use crate::sharing;

use std::sync::Arc;

use baton_model::event::DrainPolicy;
use baton_model::{Digest, NodeId, RunId, RunStatus, Timestamp, code};
use baton_runtime::{Error, Idempotent, KeyLookup, PauseRun, Resolved, Via};
use baton_testkit::Flow;
use common::scenario::{call, gate, parent};
use common::{World, accept, in_time, options, tenant, who};
use serde_json::json;
use sharing::{Company, audit_epochs, kinds, settle, shared, while_time_passes};

fn pause() -> PauseRun {
    PauseRun { reason: None, drain: DrainPolicy::Immediate }
}

fn slow() -> Flow {
    Flow::chain("slow", &[("before", "core.noop", json!({})), ("wait", "core.delay", json!({"delayMs": 500_000}))])
}

async fn owner(world: &World, run: &RunId) -> u64 {
    shared(world).owner(run).await.unwrap().unwrap()
}

/// What matters of a refusal.
fn facts<T>(outcome: Result<T, Error>) -> (baton_runtime::ErrorKind, &'static str, String) {
    let error = outcome.err().unwrap();
    (error.kind, error.code, error.message)
}

#[tokio::test]
async fn every_command_is_carried_out_by_the_owner_and_answered_where_it_was_given() {
    let (_company, a, b) = Company::two([gate("gated"), parent("family", call("gated")), slow()]).await;
    let run = a.start("family").await;
    let child = a.waiting(&run).await;
    let question = b.open_interrupts().await.remove(0);
    assert_eq!(child.status, RunStatus::WaitingApproval);
    let before = owner(&b, &run).await;
    assert_eq!(before, shared(&a).epoch());

    let slow = a.start("slow").await;
    let paused = b.host.pause(&who(), &slow, pause()).await.unwrap();
    assert_eq!(a.status(&slow).await, RunStatus::Paused);
    assert_eq!(b.status(&slow).await, RunStatus::Paused, "committed is committed for all");
    assert!(paused.at > Timestamp::from_millis(0));
    b.host.resume(&who(), &slow, None).await.unwrap();
    assert_eq!(b.status(&slow).await, RunStatus::Running);

    // A refusal is the owner's, word for word.
    let wrong = |world: &World| {
        let (host, run) = (world.host.clone(), question.run.clone());
        async move {
            let via = Via::Bearer { subject: "key-1".to_owned() };
            host.resolve(&tenant(), &run, &NodeId::new("nowhere"), accept(), via).await
        }
    };
    assert_eq!(facts(wrong(&b).await), facts(wrong(&a).await));

    let answered = b.resolve(&question.run, question.node.as_str(), accept()).await.unwrap();
    assert_eq!(answered.status, RunStatus::Completed, "as far as the child went at once");
    assert_eq!(b.ended(&run).await.status, RunStatus::Completed);
    let again = |world: &World| {
        let (host, run, node) = (world.host.clone(), question.run.clone(), question.node.clone());
        async move { host.resolve(&tenant(), &run, &node, accept(), Via::Token).await }
    };
    assert_eq!(facts(again(&b).await), facts(again(&a).await));
    assert_eq!(b.host.cancel(&who(), &run, None).await.unwrap(), RunStatus::Completed, "it has ended, and says how");
    assert_eq!(kinds(&b, &question.run).await["interrupt.resolved"], 1);
    let of_run = kinds(&b, &slow).await;
    assert_eq!((of_run["run.paused"], of_run["run.resumed"]), (1, 1));
    assert_eq!(owner(&b, &run).await, before, "nobody took anything over");
    assert_eq!(audit_epochs(&b, "commands").await, 1);
    assert_eq!((a.store.commits() > 0, b.reader.generation(), a.reader.generation()), (true, 1, 1));
}

#[tokio::test]
async fn links_and_cancellations_of_many_runs_work_on_any_host() {
    let (_company, a, b) = Company::two([gate("gated")]).await;
    let run = a.start("gated").await;
    let open = a.waiting(&run).await.interrupt.unwrap();
    let token = b.snapshot(&run).await.interrupt.unwrap().interrupt_token.unwrap();
    assert_eq!(b.host.inspect_token(&token).await.unwrap().interrupt_id, open.interrupt_id);
    assert_eq!(b.host.resolve_token(&token, accept()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(facts(b.host.resolve_token(&token, accept()).await).1, code::INTERRUPT_ALREADY_RESOLVED);

    let mut runs = Vec::new();
    for host in [&a, &b, &a, &b] {
        runs.push(host.start("gated").await);
    }
    let me = who();
    let all = runs.iter().map(|run| b.host.cancel(&me, run, Some("tidying".to_owned())));
    for ended in futures_util::future::join_all(all).await {
        assert_eq!(ended.unwrap(), RunStatus::Cancelled);
    }
    for run in &runs {
        assert_eq!(kinds(&a, run).await["run.cancelled"], 1);
    }
    let foreign = b.host.cancel(&common::other(), &runs[0], None).await;
    assert_eq!(facts(foreign).1, code::RUN_NOT_FOUND, "another tenant's run is as unknown here as anywhere");
}

/// Where nobody tells anybody anything, everybody looks.
#[tokio::test]
async fn without_news_an_answer_only_takes_longer() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    company.cluster.silence();
    let run = a.start("gated").await;
    a.waiting(&run).await;
    let me = who();
    let cancelled = b.host.cancel(&me, &run, None);
    let status = while_time_passes(&company, &[&a, &b], cancelled).await.unwrap();
    assert_eq!(status, RunStatus::Cancelled);
    assert_eq!(audit_epochs(&b, "silence").await, 1);
}

/// The owner dies after each of its commits in turn, while it carries a command out or before: the answer comes all the
/// same, and what was asked has happened once.
#[tokio::test]
async fn an_owner_that_dies_on_the_way_is_replaced() {
    for kind in ["cancel", "resolve", "pause"] {
        let mut taken_over = 0;
        for commits in 0.. {
            let context = format!("{kind}, the owner dies after {commits} commits");
            let (company, a, b) = Company::two([gate("gated"), parent("family", call("gated")), slow()]).await;
            let run = a.start("family").await;
            a.waiting(&run).await;
            let slow = a.start("slow").await;
            settle(&[&a, &b]).await;
            let question = a.open_interrupts().await.remove(0);
            a.store.crash_after(commits);
            let command = async {
                match kind {
                    "cancel" => b.host.cancel(&who(), &run, None).await,
                    "resolve" => b.resolve(&question.run, question.node.as_str(), accept()).await.map(|r| r.status),
                    _ => b.host.pause(&who(), &slow, pause()).await.map(|_| RunStatus::Paused),
                }
            };
            let status = in_time(&context, while_time_passes(&company, &[&a, &b], command)).await;
            let status = status.unwrap_or_else(|error| panic!("{context}: {error}"));
            let expected = match kind {
                // Its children end first.
                "cancel" => [RunStatus::Cancelling, RunStatus::Cancelled].as_slice(),
                "resolve" => &[RunStatus::Completed, RunStatus::Running],
                _ => &[RunStatus::Paused],
            };
            assert!(expected.contains(&status), "{context}: {status}");
            a.store.die();
            company.past_lease(&[&b]).await;
            let (root, child) = (kinds(&b, &run).await, kinds(&b, &question.run).await);
            match kind {
                "cancel" => assert_eq!((root["run.cancelled"], child["run.cancelled"]), (1, 1), "{context}"),
                "resolve" => {
                    assert_eq!((root["run.completed"], child["interrupt.resolved"]), (1, 1), "{context}");
                }
                _ => assert_eq!(kinds(&b, &slow).await["run.paused"], 1, "{context}"),
            }
            b.audit(&context).await;
            audit_epochs(&b, &context).await;
            a.host.shutdown().await;
            taken_over += usize::from(owner(&b, &run).await == shared(&b).epoch());
            b.host.shutdown().await;
            // Enough to carry it all out, and then some.
            if commits > 8 {
                break;
            }
        }
        assert!((1..=10).contains(&taken_over), "{kind}: taken over {taken_over} times");
    }
}

fn keyed(name: &str) -> Idempotent<Resolved> {
    Idempotent {
        key: Digest::of_bytes(name),
        request: Digest::of_bytes("question"),
        render: Box::new(|resolved| (200, json!({"status": resolved.status.as_str()}).to_string())),
    }
}

/// A refusal that is not kept for a key is not kept for letters either: the corrected request is a new one, on whichever
/// host, and however soon it comes.
#[tokio::test]
async fn a_keyed_command_that_was_refused_may_be_corrected() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let c = company.join(9, options(512)).await;
    let resolve = |world: &World, run: &RunId, value: serde_json::Value| {
        let (host, run) = (world.host.clone(), run.clone());
        async move {
            let (key, asked) = (Digest::of_bytes(run.as_str()), Digest::of_bytes(value.to_string()));
            match host.recall(&who().tenant, &key, &asked).await.unwrap() {
                KeyLookup::Mismatch => return Err(code::IDEMPOTENCY_KEY_MISMATCH),
                KeyLookup::Replay { .. } => return Ok(None),
                KeyLookup::New => {}
            }
            let idempotent = Idempotent { request: asked, ..keyed(run.as_str()) };
            let via = Via::Bearer { subject: "key-1".to_owned() };
            let done = host.resolve_once(&tenant(), &run, &NodeId::new("gate"), value, via, Some(idempotent)).await;
            host.done_with(&who().tenant, &key);
            done.map(|resolved| Some(resolved.status)).map_err(|error| error.code)
        }
    };
    let wrong = || json!({"action": "bad"});
    // The owner, another host, and another one yet may be asked, in any order.
    for asked in [[&b, &b, &b], [&b, &c, &a], [&a, &b, &c], [&b, &a, &c]] {
        let run = a.start("gated").await;
        a.waiting(&run).await;
        assert_eq!(resolve(asked[0], &run, wrong()).await, Err(code::VALIDATION_ERROR));
        assert_eq!(resolve(asked[1], &run, wrong()).await, Err(code::VALIDATION_ERROR), "asked anew, refused anew");
        assert_eq!(resolve(asked[2], &run, accept()).await, Ok(Some(RunStatus::Completed)));
        for host in asked {
            assert_eq!(resolve(host, &run, accept()).await, Ok(None), "what was done is kept");
            assert_eq!(resolve(host, &run, wrong()).await, Err(code::IDEMPOTENCY_KEY_MISMATCH));
        }
        assert_eq!(kinds(&b, &run).await["interrupt.resolved"], 1);
    }
}

/// A keyed request is one request, also where the host that was asked died between the effect and the reply.
#[tokio::test]
async fn a_keyed_command_is_one_command_whichever_host_is_asked_again() {
    let (company, a, b) = Company::two([gate("gated")]).await;
    let c = company.join(9, options(512)).await;
    let run = a.start("gated").await;
    a.waiting(&run).await;
    let resolve = |world: &World, key: &str| {
        let (host, run, key) = (world.host.clone(), run.clone(), keyed(key));
        async move {
            let via = Via::Bearer { subject: "key-1".to_owned() };
            host.resolve_once(&tenant(), &run, &NodeId::new("gate"), accept(), via, Some(key)).await
        }
    };
    // The letter is sent and carried out; the reply is lost with the host that was to write it.
    b.store.crash_after(1);
    resolve(&b, "k").await.expect_err("it is dead");
    assert!(b.store.has_crashed());
    settle(&[&a, &c]).await;
    assert_eq!(kinds(&a, &run).await["interrupt.resolved"], 1);
    let first = resolve(&c, "k").await.unwrap();
    assert_eq!(first.status, RunStatus::Completed, "the answer to the first");
    assert_eq!(resolve(&a, "k").await.unwrap(), first, "also from the owner itself");
    assert!(matches!(
        c.host.recall(&who().tenant, &Digest::of_bytes("k"), &Digest::of_bytes("question")).await.unwrap(),
        KeyLookup::Replay { status: 200, .. }
    ));
    assert_eq!(facts(resolve(&c, "another").await).1, code::INTERRUPT_ALREADY_RESOLVED);
    assert_eq!(kinds(&a, &run).await["interrupt.resolved"], 1);
    let _ = Arc::strong_count(&company.clock);
}
