//! Which versions of its workers a branch starts: what its source used, whatever has been registered since.

use crate::common;
use crate::forking;

use baton_model::{RunId, Timestamp, WorkerVersions, WorkflowId};
use baton_runtime::ForkRun;
use baton_testkit::Flow;
use common::scenario::{delegate, led};
use common::{World, accept, other};
use forking::{branch_at, next_life};
use serde_json::{Value, json};

/// Says which version it is.
fn worker(id: &str, version: &str) -> Flow {
    Flow::chain(id, &[("say", "core.setVariable", json!({"name": "m", "value": version}))])
}

/// A later version, some time later.
async fn renew(world: &World, flow: Flow) {
    world.clock.advance(1000);
    world.register(flow).await;
    world.clock.advance(1000);
}

async fn said(world: &World, run: &RunId) -> Value {
    world.ended(run).await.variables["m"].clone()
}

fn calls(id: &str, child: &str) -> Flow {
    let config = json!({"workflowId": child, "outputMapping": {"m": "m"}});
    Flow::chain(id, &[("call", "core.subWorkflow", config)]).variable("m", "string", json!(""))
}

/// What the worker of a team said: `n` of the team.
async fn heard(world: &World, run: &RunId) -> Value {
    world.ended(run).await.variables["n"].clone()
}

#[tokio::test]
async fn a_branch_starts_what_its_source_started() {
    let world = World::with([
        delegate("team", "worker"),
        calls("caller", "worker"),
        calls("top", "caller"),
        worker("worker", "first"),
    ])
    .await;
    let (team, caller, top) = (world.start("team").await, world.start("caller").await, world.start("top").await);
    assert_eq!(heard(&world, &team).await, "first");
    assert_eq!((said(&world, &caller).await, said(&world, &top).await), (json!("first"), json!("first")));
    renew(&world, worker("worker", "second")).await;
    let fresh = world.start("caller").await;
    assert_eq!(said(&world, &fresh).await, "second", "a new run starts the newest");
    for at in [0, 1] {
        let branch = world.fork(&team, branch_at(at)).await;
        assert_eq!(heard(&world, &branch).await, "first", "at {at}");
        for source in [&caller, &top] {
            let branch = world.fork(source, branch_at(at)).await;
            assert_eq!(said(&world, &branch).await, "first", "at {at}, also below a child");
            let twig = world.fork(&branch, branch_at(at)).await;
            assert_eq!(said(&world, &twig).await, "first", "a branch of a branch");
        }
    }
    // A branch of a child that belongs to a branch has the same.
    let branch = world.fork(&top, branch_at(1)).await;
    world.ended(&branch).await;
    let rows = world.rows().await;
    let below = rows.iter().find(|row| row.parent.as_ref() == Some(&branch)).unwrap();
    let twig = world.fork(&below.id, branch_at(1)).await;
    assert_eq!(said(&world, &twig).await, "first");
    world.stop().await;
}

/// Where the source used two versions, the next one counts.
#[tokio::test]
async fn the_version_that_the_source_used_next_counts() {
    let gate = json!({"title": "Go on?"});
    let config = || json!({"workflowId": "worker", "outputMapping": {"m": "m"}});
    let flow = Flow::chain(
        "twice",
        &[
            ("one", "core.subWorkflow", config()),
            ("gate", "core.approvalGate", gate),
            ("two", "core.subWorkflow", config()),
        ],
    );
    let world = World::with([flow, worker("worker", "first")]).await;
    let run = world.start("twice").await;
    world.waiting(&run).await;
    let waits = world.length(&run).await;
    renew(&world, worker("worker", "second")).await;
    world.resolve(&run, "gate", accept()).await.unwrap();
    assert_eq!(said(&world, &run).await, "second");
    renew(&world, worker("worker", "third")).await;
    let (early, late) = (world.fork(&run, branch_at(1)).await, world.fork(&run, branch_at(waits)).await);
    for (branch, expected) in [(early, "first"), (late, "second")] {
        world.waiting(&branch).await;
        world.resolve(&branch, "gate", accept()).await.unwrap();
        assert_eq!(said(&world, &branch).await, expected);
    }
    world.stop().await;
}

/// What the source never used is as new as it was when the branch was made, in the next life of the host too.
#[tokio::test]
async fn what_the_source_never_used_is_as_it_was_when_the_branch_was_made() {
    let rules = json!({
        "rules": [
            {"when": "iteration == 1", "decide": {"kind": "ask-user", "prompt": "Who?"}},
            {"when": "iteration == 2 && has(variables.who)", "decide": {"kind": "next-worker", "nextWorkerIds": ["known"]}},
            {"when": "iteration == 3 && has(variables.who)", "decide": {"kind": "next-worker", "nextWorkerIds": ["new"]}}
        ],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    let world = World::with([led("chooser", rules, "sequential"), worker("known", "first")]).await;
    let run = world.start("chooser").await;
    world.waiting(&run).await;
    let variables = [("who".to_owned(), json!("somebody"))].into_iter().collect();
    let asked = world.length(&run).await;
    let branch = world.fork(&run, ForkRun { variables, ..branch_at(asked) }).await;
    world.waiting(&branch).await;
    renew(&world, worker("known", "second")).await;
    world.register(worker("new", "there at last")).await;
    let world = next_life(world, 1).await;
    world.see_through().await;
    let child = |rows: &[baton_store::RunRow], workflow: &str| {
        rows.iter()
            .find(|row| row.workflow.as_str() == workflow && row.parent.as_ref() == Some(&branch))
            .unwrap()
            .id
            .clone()
    };
    let rows = world.rows().await;
    assert_eq!(said(&world, &child(&rows, "known")).await, "first");
    assert_eq!(said(&world, &child(&rows, "new")).await, "there at last", "there was none to be kept to");
    world.stop().await;
}

/// What a file says of versions gives nobody another tenant's workflow.
#[tokio::test]
async fn a_version_that_is_another_tenants_does_not_count() {
    let world = World::with([calls("caller", "worker"), worker("worker", "own")]).await;
    let secret = world.host.register_workflow(&other().tenant, worker("worker", "theirs").build()).await.unwrap();
    let run = world.start("caller").await;
    world.ended(&run).await;
    let used = [(WorkflowId::new("worker"), secret.digest.clone())].into_iter().collect();
    let workers = WorkerVersions { as_of: Timestamp::from_millis(1 << 50), used };
    let (world, branch) = forking::written_by_hand(world, &run, 1, Some(Box::new(workers))).await;
    assert_eq!(said(&world, &branch).await, "own");
    world.stop().await;
}
