//! A branch for real that rests on what people answered is approved anew: by somebody who may answer, on the log.

use crate::common;
use crate::forking;
use crate::remotes;
use crate::transferring;

use std::sync::Arc;

use baton_model::{
    Digest, EventId, ForeignCause, NodeId, Principal, RunId, RunStatus, Scope, Scopes, SideEffects, code,
};
use baton_runtime::{Error, ErrorKind, ForkRun, Idempotent, StartRun, StartedRun, Via};
use baton_store::Disk;
use baton_testkit::Flow;
use common::scenario::{delegate, gate, pipeline};
use common::{World, accept, tenant, who};
use forking::{branch_at, replay_from};
use remotes::{Far, WORKER};
use serde_json::{Value, json};

/// Everything but the scope to answer.
fn maker() -> Principal {
    let scopes = Scopes::of(Scopes::all().iter().filter(|scope| *scope != Scope::ApprovalsRespond));
    Principal { subject: "key-2".to_owned(), acts_for: None, scopes, ..who() }
}

fn real(from: u64) -> ForkRun {
    ForkRun { side_effects: SideEffects::Real, ..branch_at(from) }
}

fn changed(from: u64) -> ForkRun {
    ForkRun { variables: [("amount".to_owned(), json!(1_000_000))].into_iter().collect(), ..real(from) }
}

async fn try_as(world: &World, by: &Principal, run: &RunId, request: ForkRun) -> Result<RunId, Error> {
    Ok(world.host.fork(by, run, request, None).await?.run_id)
}

/// Who may not answer is refused, and told what to do; who may leaves a record. Gives what the branch is said to rest on.
async fn approved_anew(world: &World, run: &RunId, request: ForkRun, context: &str) -> Value {
    let refused = try_as(world, &maker(), run, request.clone()).await.expect_err(context);
    assert_eq!((refused.kind, refused.code), (ErrorKind::Forbidden, code::FORBIDDEN), "{context}");
    assert_eq!(refused.details["scopeRequired"], "approvals:respond", "{context}");
    for word in ["approvals:respond", "simulated"] {
        assert!(refused.message.contains(word), "{context}: {}", refused.message);
    }
    let simulated = ForkRun { side_effects: SideEffects::Simulated, ..request.clone() };
    try_as(world, &maker(), run, simulated).await.expect(context);
    let branch = world.fork(run, request).await;
    let newest = said(world, &branch).await.pop().unwrap_or_else(|| panic!("{context}: nothing was recorded"));
    assert_eq!((&newest["approvedBy"], &newest["sourceRunId"]), (&json!("key-1"), &json!(run)), "{context}");
    newest["restsOn"].clone()
}

/// What the log says of approvals by branching, oldest first.
async fn said(world: &World, run: &RunId) -> Vec<Value> {
    let page = world.host.events(&tenant(), run, None, 10_000).await.unwrap();
    let events = page.events.iter().map(|event| serde_json::from_str::<Value>(&event.body).unwrap());
    events.filter(|event| event["type"] == "baton.fork.approved").map(|event| event["payload"].clone()).collect()
}

async fn needs_nothing(world: &World, run: &RunId, request: ForkRun, context: &str) {
    let branch = try_as(world, &maker(), run, request).await.expect(context);
    assert_eq!(said(world, &branch).await, Vec::<Value>::new(), "{context}");
}

/// The first step after one with such an event: a branch from there keeps that event.
async fn step_after(world: &World, run: &RunId, wanted: impl Fn(&Value) -> bool) -> u64 {
    let log = world.log_of(run).await;
    let found = log.iter().position(wanted).unwrap_or_else(|| panic!("no such event in {log:?}")) as u64;
    let later = world.reader.records(run, found + 1, usize::MAX).await.unwrap();
    later.iter().find(|record| record.part.is_some_and(|part| part.first)).unwrap().seq
}

async fn after_answer(world: &World, run: &RunId) -> u64 {
    step_after(world, run, |event| event["type"] == "interrupt.resolved").await
}

async fn child_of(world: &World, workflow: &str) -> RunId {
    let rows = world.rows().await;
    rows.into_iter().find(|row| row.workflow.as_str() == workflow && row.parent.is_some()).unwrap().id
}

async fn answer_all(world: &World) {
    world.drive(0).await;
}

#[tokio::test]
async fn at_every_point_of_a_log_the_answer_decides() {
    let world = World::with([gate("gate")]).await;
    let run = world.start("gate").await;
    world.waiting(&run).await;
    world.resolve(&run, "gate", accept()).await.unwrap();
    world.ended(&run).await;
    let log = world.log_of(&run).await;
    let kinds: Vec<&str> = log.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let (mut free, mut bound) = (0, 0);
    for from in 0..=log.len() as u64 {
        let plain = try_as(&world, &maker(), &run, branch_at(from)).await.unwrap();
        try_as(&world, &maker(), &run, replay_from(from)).await.unwrap();
        let kept = if from == 0 { &[] } else { &kinds[..world.beginning_of(&plain, from).await as usize] };
        let (asked, answered, over) = (
            kept.contains(&"interrupt.requested"),
            kept.contains(&"interrupt.resolved"),
            kept.contains(&"run.completed"),
        );
        for (request, needs) in [(real(from), answered && !over), (changed(from), asked && !over)] {
            let context = format!("from {from}, {:?}", request.variables);
            if needs {
                let rests_on = approved_anew(&world, &run, request, &context).await;
                let kind = if answered { "answer" } else { "open-question" };
                assert_eq!((&rests_on["kind"], &rests_on["nodeId"]), (&json!(kind), &json!("gate")), "{context}");
                bound += 1;
            } else {
                needs_nothing(&world, &run, request, &context).await;
                free += 1;
            }
        }
    }
    assert!(free > 4 && bound > 4, "{free} {bound}");
}

#[tokio::test]
async fn who_approved_and_what_was_changed_is_on_the_log_for_good() {
    let world = World::with([gate("gate")]).await;
    let run = world.start("gate").await;
    world.waiting(&run).await;
    world.resolve(&run, "gate", accept()).await.unwrap();
    world.ended(&run).await;
    let from = after_answer(&world, &run).await;
    let branch = world.fork(&run, changed(from)).await;
    world.ended(&branch).await;
    let log = world.log_of(&branch).await;
    let said = said(&world, &branch).await;
    let question = &said[0]["restsOn"]["interruptId"];
    let rests_on = json!({"kind": "answer", "runId": run, "nodeId": "gate", "interruptId": question});
    let expected = json!({
        "sourceRunId": run, "fromSeq": from, "approvedBy": "key-1", "restsOn": rests_on,
        "changed": {"variables": ["amount"]},
    });
    assert_eq!(said, [expected]);
    world.verified(&branch, "the branch").await;
    let replay = world.replayed(&branch, 0).await;
    assert_eq!(world.log_of(&replay).await, log, "a replay says it, too");
    // A branch of it rests on the same, and the next life of the host knows.
    let world = forking::next_life(world, 1).await;
    assert_eq!(world.log_of(&branch).await, log);
    let end = log.len() as u64 - 1;
    approved_anew(&world, &branch, real(end), "a branch of the branch").await;
}

#[tokio::test]
async fn a_simulated_branch_is_no_way_around() {
    let world = World::with([gate("gate")]).await;
    let run = world.start("gate").await;
    world.waiting(&run).await;
    world.resolve(&run, "gate", accept()).await.unwrap();
    world.ended(&run).await;
    let from = after_answer(&world, &run).await;
    let quiet = ForkRun { side_effects: SideEffects::Simulated, ..changed(from) };
    let branch = try_as(&world, &maker(), &run, quiet).await.unwrap();
    world.ended(&branch).await;
    let twig = world.length(&branch).await - 1;
    approved_anew(&world, &branch, real(twig), "a branch of a simulated one").await;
    let replay = world.replayed(&run, 0).await;
    approved_anew(&world, &replay, real(from), "a branch of a replay").await;
}

/// Other data come in by a simulated branch; a real branch of that brings none of its own, and the question that is still
/// open shows the old ones.
#[tokio::test]
async fn what_a_simulated_branch_changed_under_an_open_question_counts() {
    let world = World::with([gate("gate")]).await;
    let run = world.start("gate").await;
    world.waiting(&run).await;
    let end = world.length(&run).await;
    let quiet = ForkRun { side_effects: SideEffects::Simulated, ..changed(end) };
    let branch = try_as(&world, &maker(), &run, quiet.clone()).await.unwrap();
    world.waiting(&branch).await;
    let end = world.length(&branch).await;
    let rests_on = approved_anew(&world, &branch, real(end), "a twig of it").await;
    assert_eq!(rests_on["kind"], "open-question", "{rests_on}");
    let twig = world.fork(&branch, real(end)).await;
    let said = said(&world, &twig).await.pop().unwrap();
    assert_eq!(said["changed"]["variables"], json!(["amount"]), "the whole way back: {said}");
    // One branch more in between changes nothing.
    let between =
        try_as(&world, &maker(), &branch, ForkRun { side_effects: SideEffects::Simulated, ..real(end) }).await.unwrap();
    world.waiting(&between).await;
    approved_anew(&world, &between, real(world.length(&between).await), "a twig of a twig").await;
    // Before the question was asked, the question will show what is changed.
    let early = try_as(&world, &maker(), &run, ForkRun { from_seq: 0, ..quiet }).await.unwrap();
    world.waiting(&early).await;
    needs_nothing(&world, &early, real(world.length(&early).await), "asked with the data it is answered for").await;
}

#[tokio::test]
async fn what_was_answered_above_below_and_beside_counts() {
    let sub = |workflow: &str| ("core.subWorkflow", json!({"workflowId": workflow}));
    let ask = || ("core.approvalGate", json!({"title": "Go on?"}));
    let flow = |id: &str, steps: [(&str, (&str, Value)); 2]| {
        let [(a, (a_type, a_config)), (b, (b_type, b_config))] = steps;
        Flow::chain(id, &[(a, a_type, a_config), (b, b_type, b_config), ("end", "core.noop", json!({}))])
    };
    let flows = || [pipeline("pipeline"), gate("gated")];

    // A gate of the parent, then the child; and the other way round.
    let world = World::with(flows()).await;
    world.register(flow("asks-first", [("gate", ask()), ("call", sub("pipeline"))])).await;
    world.start("asks-first").await;
    answer_all(&world).await;
    let child = child_of(&world, "pipeline").await;
    for from in [0, 1, 3] {
        let rests_on = approved_anew(&world, &child, changed(from), "below a gate").await;
        assert_eq!(rests_on["kind"], "answer");
    }
    // Somebody who may made a branch of it from the very beginning: a branch of that has the same past.
    let branch = world.fork(&child, real(0)).await;
    world.ended(&branch).await;
    approved_anew(&world, &branch, changed(0), "a branch of a branch of a child").await;

    let world = World::with(flows()).await;
    world.register(flow("asks-last", [("call", sub("pipeline")), ("gate", ask())])).await;
    let run = world.start("asks-last").await;
    answer_all(&world).await;
    let child = child_of(&world, "pipeline").await;
    needs_nothing(&world, &child, changed(0), "above a gate").await;
    needs_nothing(&world, &run, changed(1), "before the child").await;

    // A gate in a child that has ended, for its parent and for the child after it.
    let world = World::with(flows()).await;
    world.register(flow("two", [("one", sub("gated")), ("two", sub("pipeline"))])).await;
    let run = world.start("two").await;
    answer_all(&world).await;
    needs_nothing(&world, &run, changed(1), "before the child that asks").await;
    let end = world.length(&run).await - 1;
    let rests_on = approved_anew(&world, &run, real(end), "after the child that asked").await;
    assert_eq!(rests_on["runId"], json!(child_of(&world, "gated").await));
    let beside = child_of(&world, "pipeline").await;
    approved_anew(&world, &beside, real(0), "beside the child that asked").await;
}

#[tokio::test]
async fn every_kind_of_answer_counts() {
    let questions = json!({"questions": [{"id": "answer", "question": "Which way?"}]});
    let rules = json!({
        "rules": [{"when": "iteration == 1", "decide": {"kind": "next-worker", "nextWorkerIds": ["pipeline"], "confidence": 0.3}}],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    let asks = json!({
        "rules": [
            {"when": "iteration == 1", "decide": {"kind": "ask-user", "prompt": "Which way?"}},
            {"when": "iteration == 2", "decide": {"kind": "next-worker", "nextWorkerIds": ["pipeline"]}},
        ],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    let end = || ("end", "core.noop", json!({}));
    let cases = [
        ("a clarification", Flow::chain("flow", &[("n", "core.clarificationGate", questions), end()])),
        ("a decision that was held", common::scenario::led("flow", rules, "sequential")),
        ("a question to the user", common::scenario::led("flow", asks, "sequential")),
    ];
    for (name, flow) in cases {
        let world = World::with([flow, pipeline("pipeline")]).await;
        let run = world.start("flow").await;
        answer_all(&world).await;
        assert_eq!(world.status(&run).await, RunStatus::Completed, "{name}");
        needs_nothing(&world, &run, changed(1), name).await;
        let answered = after_answer(&world, &run).await;
        assert_eq!(approved_anew(&world, &run, real(answered), name).await["kind"], "answer", "{name}");
    }
    // A vote counts before its question is settled.
    let quorum = json!({"title": "Go on?", "requiredApprovals": 2});
    let world = World::with([Flow::chain("flow", &[("n", "core.approvalGate", quorum), end()])]).await;
    let run = world.start("flow").await;
    world.waiting(&run).await;
    let via = Via::Bearer { subject: "ann".to_owned() };
    world.host.resolve(&tenant(), &run, &NodeId::new("n"), accept(), via).await.unwrap();
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);
    let end = world.length(&run).await;
    approved_anew(&world, &run, real(end), "a vote").await;
}

#[tokio::test]
async fn what_this_host_cannot_know_counts_as_answered() {
    // A worker on another host.
    let far = Far::prompt();
    let world = World::open(Disk::default(), Arc::default(), far.options(512)).await;
    world.register(delegate("team", WORKER)).await;
    let run = world.start("team").await;
    world.ended(&run).await;
    needs_nothing(&world, &run, changed(1), "before the worker").await;
    let made = step_after(&world, &run, |event| event["payload"]["phase"] == "child.completed").await;
    let rests_on = approved_anew(&world, &run, real(made), "a worker elsewhere").await;
    assert_eq!(rests_on["kind"], "other-host");

    // A run that another host asked for.
    let world = World::with([pipeline("pipeline")]).await;
    let cause = ForeignCause {
        host_id: "far.example".to_owned(),
        run_id: RunId::new("run_far"),
        event_id: EventId::new("run_far.3"),
        node_id: None,
        workflow_id: None,
        cause: "core.dispatch".to_owned(),
        well_known_url: "https://far.example/.well-known/openwop".to_owned(),
        depth: 1,
        simulated: false,
        scopes: None,
    };
    let asked = Idempotent {
        key: Digest::of_bytes("key"),
        request: Digest::of_bytes("request"),
        render: Box::new(|_: &StartedRun| (201, String::new())),
    };
    let request = StartRun { cause: Some(cause), ..common::request("pipeline") };
    let run = world.host.start_run(&who(), request, Some(asked)).await.unwrap().run_id;
    world.ended(&run).await;
    for from in [0, 2] {
        assert_eq!(approved_anew(&world, &run, real(from), "handed over").await["kind"], "other-host");
    }

    // A run that came with a file.
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    needs_nothing(&world, &run, real(2), "at home").await;
    let there = transferring::fresh().await;
    transferring::import(&there.host, &transferring::export(&world, &run).await).await.unwrap();
    for from in [0, 2] {
        assert_eq!(approved_anew(&there, &run, real(from), "imported").await["kind"], "imported");
    }
}
