//! Questions and signed links to them.

use crate::common;

use std::sync::Arc;

use baton_model::{RunStatus, code};
use baton_runtime::{Clock, ErrorKind};
use baton_store::InterruptFilter;
use baton_testkit::Flow;
use common::scenario::{call, gate, parent};
use common::{World, accept, options, tenant, who};
use serde_json::{Value, json};

const LINK_MS: u64 = 30 * 60 * 1000;

async fn token(world: &World, run: &baton_model::RunId) -> String {
    let open = world.waiting(run).await.interrupt.unwrap();
    let token = open.interrupt_token.unwrap();
    assert!(open.callback_url.unwrap().ends_with(&token));
    token
}

fn asking(config: Value) -> Flow {
    Flow::chain("asking", &[("gate", "core.approvalGate", config)])
}

#[tokio::test]
async fn a_link_shows_its_question_and_answers_it_once() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    let token = token(&world, &run).await;
    let view = world.host.inspect_token(&token).await.unwrap();
    assert_eq!((&view.run_id, view.node_id.as_str(), view.kind.as_str()), (&run, "gate", "approval"));
    assert_eq!(view.data["title"], "Go on?");
    assert_eq!(view.expires_at, world.clock.now().plus_millis(LINK_MS));

    // Works in another process, too: the secret is in the options, the question on disk.
    let clock = Arc::clone(&world.clock);
    let world = World::open(world.stop().await, clock, options(512)).await;
    let resolved = world.host.resolve_token(&token, accept()).await.unwrap();
    assert_eq!(resolved.run_id, run);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    for again in [world.host.resolve_token(&token, accept()).await.err(), world.host.inspect_token(&token).await.err()]
    {
        let error = again.unwrap();
        assert_eq!((error.kind, error.code), (ErrorKind::Conflict, code::INTERRUPT_ALREADY_RESOLVED));
    }
}

#[tokio::test]
async fn a_link_to_a_cancelled_question_is_settled() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    let token = token(&world, &run).await;
    world.host.cancel(&who(), &run, None).await.unwrap();
    let error = world.host.resolve_token(&token, accept()).await.unwrap_err();
    assert_eq!(error.code, code::INTERRUPT_ALREADY_RESOLVED);
    // With a key, the caller hears why.
    let error = world.resolve(&run, "gate", accept()).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Unprocessable, code::INTERRUPT_CANCELLED));
}

#[tokio::test]
async fn a_link_dies_with_its_time_and_a_forged_one_never_lived() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    let token = token(&world, &run).await;
    for bad in ["", "x", "a.b", &format!("{token}x"), &token[1..]] {
        let error = world.host.resolve_token(bad, accept()).await.unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::NotFound, code::INTERRUPT_NOT_FOUND), "{bad:?}");
    }
    world.clock.advance(LINK_MS);
    for late in [world.host.resolve_token(&token, accept()).await.err(), world.host.inspect_token(&token).await.err()] {
        let error = late.unwrap();
        assert_eq!((error.kind, error.code), (ErrorKind::Gone, code::INTERRUPT_EXPIRED));
    }
    // The question outlives the link; a fresh one works.
    let fresh = self::token(&world, &run).await;
    world.host.resolve_token(&fresh, accept()).await.unwrap();
}

#[tokio::test]
async fn a_link_does_not_outlive_the_deadline_of_its_question() {
    let world = World::with([asking(json!({"timeoutMs": 60_000}))]).await;
    let run = world.start("asking").await;
    let token = token(&world, &run).await;
    let view = world.host.inspect_token(&token).await.unwrap();
    assert_eq!((view.timeout_ms, view.expires_at), (Some(60_000), world.clock.now().plus_millis(60_000)));
    world.clock.advance(60_000);
    let ended = world.ended(&run).await;
    assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, code::APPROVAL_REJECTED));
    assert!(world.open_interrupts().await.is_empty());
    assert_eq!(world.host.resolve_token(&token, accept()).await.unwrap_err().code, code::INTERRUPT_EXPIRED);
}

#[tokio::test]
async fn some_gates_take_keys_only() {
    let world = World::with([asking(json!({"profile": "openwop-interrupt-auth-required"}))]).await;
    let run = world.start("asking").await;
    let token = token(&world, &run).await;
    let error = world.host.resolve_token(&token, accept()).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Forbidden, code::FORBIDDEN));
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);
    world.resolve(&run, "gate", accept()).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_bad_answer_leaves_the_run_waiting() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    let length = world.waiting(&run).await.at_seq;
    for bad in [json!(null), json!({"action": "maybe"}), json!("accept!"), json!([])] {
        let error = world.resolve(&run, "gate", bad.clone()).await.unwrap_err();
        assert_eq!(error.code, code::VALIDATION_ERROR, "{bad}");
    }
    let error = world.resolve(&run, "before", accept()).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::NotFound, code::INTERRUPT_NOT_FOUND));
    assert_eq!(world.snapshot(&run).await.at_seq, length);
}

#[tokio::test]
async fn the_list_holds_what_is_open_and_nothing_else() {
    let external = json!({"kind": "external-event", "data": {"eventType": "paid", "correlation": {"order": 1}}});
    let event = Flow::chain("event", &[("wait", "core.interrupt", external)]);
    let world = World::with([gate("gated"), event, parent("parent", call("gated"))]).await;
    let approval = world.start("gated").await;
    world.clock.advance(1);
    let external = world.start("event").await;
    world.clock.advance(1);
    let parent = world.start("parent").await;
    let child = world.waiting(&parent).await.child_runs[0].run_id.clone();

    let list = async |filter: InterruptFilter| -> Vec<_> {
        let filter = InterruptFilter { tenant: Some(tenant()), limit: 10, ..filter };
        world.host.interrupts(&filter).await.unwrap().into_iter().map(|row| row.run).collect()
    };
    let all = InterruptFilter::default();
    assert_eq!(list(all.clone()).await, [approval.clone(), external.clone(), child.clone()]);
    let of_kind = InterruptFilter { kind: Some("external-event".to_owned()), ..all.clone() };
    assert_eq!(list(of_kind).await, std::slice::from_ref(&external));
    let of_run = InterruptFilter { run: Some(child.clone()), ..all.clone() };
    assert_eq!(list(of_run).await, [child]);

    let wrong = world.resolve(&external, "wait", json!({"order": 2})).await.unwrap_err();
    assert_eq!(wrong.kind, ErrorKind::Unprocessable);
    world.resolve(&external, "wait", json!({"order": 1})).await.unwrap();
    world.host.cancel(&who(), &parent, None).await.unwrap();
    world.ended(&parent).await;
    assert_eq!(list(all).await, [approval]);
}
