//! Nodes that read and write memory and files do it on behalf of whoever started the run, and only what they may.

use crate::common;
use crate::forking;
use crate::remotes;

use std::sync::Arc;

use baton_model::{Digest, EventId, ForeignCause, Principal, RunId, RunStatus, Scope, Scopes, code};
use baton_runtime::{Idempotent, StartRun, StartedRun};
use baton_store::Disk;
use baton_testkit::Flow;
use common::scenario::{call, delegate, parent};
use common::versioned_stores::{file, files, list, note};
use common::{World, in_time, request, tenant, who};
use forking::branch_at;
use remotes::{Far, WORKER};
use serde_json::{Value, json};

fn without(scope: Scope) -> Principal {
    Principal { scopes: Scopes::of(Scopes::all().iter().filter(|held| *held != scope)), ..who() }
}

fn reads(what: &str) -> Value {
    json!({
        "rules": [{"when": format!("iteration == 1 && size({what}) > 0"), "decide": {"kind": "terminate", "reason": "seen"}}],
        "otherwise": {"kind": "terminate", "reason": "nothing"}
    })
}

/// Every node that reaches for memory or files, and the scope that its route asks for.
fn nodes() -> Vec<(&'static str, &'static str, Value, Scope)> {
    vec![
        ("put", "vendor.baton.memory.put", note("written"), Scope::MemoryWrite),
        ("delete", "vendor.baton.memory.delete", json!({"id": "mem_1"}), Scope::MemoryWrite),
        ("get", "vendor.baton.memory.get", json!({"id": "mem_1", "into": "seen"}), Scope::MemoryRead),
        ("list", "vendor.baton.memory.list", list(), Scope::MemoryRead),
        ("write", "vendor.baton.workspace.put", file("a.md", "written"), Scope::WorkspaceWrite),
        ("read", "vendor.baton.workspace.get", json!({"path": "plan.md", "into": "seen"}), Scope::WorkspaceRead),
        ("files", "vendor.baton.workspace.list", files(), Scope::WorkspaceRead),
        ("lead-memory", "core.orchestrator.supervisor", reads("memory"), Scope::MemoryRead),
        ("lead-files", "core.orchestrator.supervisor", reads("workspace"), Scope::WorkspaceRead),
    ]
}

/// One workflow for each node, with a parent for each, on a host where there is something to read.
async fn world() -> World {
    let world = World::new().await;
    for (name, kind, config, _) in nodes() {
        let retries = json!({"settings": {"maxRetries": 3, "retryDelayMs": 1}});
        world.register(Flow::new(name).node_with("n", kind, config, retries)).await;
        world.register(parent(&format!("calls-{name}"), call(name))).await;
    }
    let keep = Flow::chain("keep", &[("f", "vendor.baton.workspace.put", file("plan.md", "the owner's words"))]);
    world.register(keep).await;
    let run = world.start("keep").await;
    world.ended(&run).await;
    world
}

async fn start_as(world: &World, by: &Principal, workflow: &str) -> RunId {
    world.host.start_run(by, request(workflow), None).await.unwrap().run_id
}

/// The run failed because whoever started it lacks the scope. Nothing was written, nothing seen, nothing tried again.
async fn refused(world: &World, run: &RunId, scope: Scope, context: &str) {
    let view = world.ended(run).await;
    assert_eq!(view.status, RunStatus::Failed, "{context}");
    let error = view.error.unwrap();
    assert!(error.message.contains(scope.as_str()), "{context}: {}", error.message);
    let log = world.host.events(&tenant(), run, None, 10_000).await.unwrap().events;
    let kinds: Vec<&str> = log.iter().map(|event| &*event.kind).collect();
    for kind in ["memory.written", "workspace.updated", "node.retried", "runOrchestrator.decided"] {
        assert!(!kinds.contains(&kind), "{context}: {kind}");
    }
    assert!(log.iter().all(|event| !event.body.contains("the owner's words")), "{context}");
    assert!(!view.variables.contains_key("seen"), "{context}");
}

#[tokio::test]
async fn a_node_does_what_whoever_started_the_run_may_do() {
    let world = world().await;
    for (name, _, _, scope) in nodes() {
        let run = start_as(&world, &without(scope), name).await;
        refused(&world, &run, scope, name).await;
        assert_eq!(world.ended(&run).await.error.unwrap().code, code::FORBIDDEN, "{name}");
        let run = start_as(&world, &without(Scope::RunsCancel), name).await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "{name}: the scope that it needs is there");
        world.verified(&run, name).await;
    }
}

#[tokio::test]
async fn children_and_branches_have_no_more() {
    let world = world().await;
    for (name, _, _, scope) in nodes() {
        let calls = format!("calls-{name}");
        let run = start_as(&world, &without(scope), &calls).await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Failed, "{calls}");
        let child = world.rows().await.into_iter().find(|row| row.parent.as_ref() == Some(&run)).unwrap().id;
        refused(&world, &child, scope, &calls).await;

        // A branch of somebody else's run, by somebody who may not; and the other way round.
        let run = start_as(&world, &who(), name).await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "{name}");
        let branch = world.host.fork(&without(scope), &run, branch_at(0), None).await.unwrap().run_id;
        refused(&world, &branch, scope, &format!("a branch of {name}")).await;
        let twig = world.fork(&branch, branch_at(0)).await;
        refused(&world, &twig, scope, &format!("a branch of a branch of {name}")).await;
    }
}

#[tokio::test]
async fn a_restart_forgets_nothing_of_it() {
    let world = world().await;
    let steps = [("wait", "core.delay", json!({"ms": 60_000})), ("n", "vendor.baton.memory.put", note("written"))];
    world.register(Flow::chain("later", &steps)).await;
    let limited = start_as(&world, &without(Scope::MemoryWrite), "later").await;
    let full = start_as(&world, &who(), "later").await;
    world.settle().await;
    let world = forking::next_life(world, 1).await;
    world.clock.advance(60_000);
    refused(&world, &limited, Scope::MemoryWrite, "after a restart").await;
    assert_eq!(world.ended(&full).await.status, RunStatus::Completed);
}

/// What is handed over to another host goes with the scopes of whoever started the tree, and has no more there.
#[tokio::test]
async fn a_hand_over_takes_the_scopes_along() {
    let far = Far::prompt();
    let near = World::open(Disk::default(), Arc::default(), far.options(512)).await;
    near.register(delegate("team", WORKER)).await;
    let run = start_as(&near, &without(Scope::MemoryRead), "team").await;
    near.ended(&run).await;
    let handed = far.only().handover.cause;
    let scopes = handed.scopes.clone().unwrap();
    assert!(scopes.contains(&"memory:write".to_owned()) && !scopes.contains(&"memory:read".to_owned()), "{scopes:?}");
    let run = near.start("team").await;
    near.ended(&run).await;
    assert!(far.runs().iter().any(|run| run.handover.cause.scopes.is_none()), "all of them, where there is no list");

    let cause = ForeignCause { event_id: EventId::new("run_far.3"), ..handed };
    let world = world().await;
    for (number, (by, cause, scope)) in [
        (who(), cause.clone(), Some(Scope::MemoryRead)),
        (without(Scope::MemoryWrite), cause.clone(), Some(Scope::MemoryRead)),
        (who(), ForeignCause { scopes: None, ..cause }, None),
    ]
    .into_iter()
    .enumerate()
    {
        let asked = Idempotent {
            key: Digest::of_bytes(number.to_string()),
            request: Digest::of_bytes("request"),
            render: Box::new(|_: &StartedRun| (201, String::new())),
        };
        let start = StartRun { cause: Some(cause), ..request("list") };
        let started = in_time("starting", world.host.start_run(&by, start, Some(asked))).await;
        let run = started.unwrap().run_id;
        match scope {
            Some(scope) => refused(&world, &run, scope, "handed over").await,
            None => assert_eq!(world.ended(&run).await.status, RunStatus::Completed),
        }
    }
}
