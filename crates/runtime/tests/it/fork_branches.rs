//! Every kind of run, branched off at every point of its log: what came before is the source's, memory and workspace are
//! those of that moment, and from there on the branch is a run of its own.

use crate::common;
use crate::forking;

use std::collections::BTreeSet;

use baton_model::{Digest, RunId, RunStatus};
use baton_runtime::{ForkRun, ForkedRun, Idempotent, KeyLookup};
use baton_store::VersionedStoreId;
use baton_testkit::Flow;
use common::scenario::{gate, pipeline};
use common::versioned_stores::{LIST, PUT, READ, WRITE, contents, file, note};
use common::{World, accept, tenant, who};
use forking::branch_at;
use forking::library::{self, Case};
use serde_json::{Map, Value, json};

/// With another variable, and a bound: a branch that takes a wrong turn need not take a thousand.
fn overlaid(from: u64) -> ForkRun {
    let map = |value: Value| value.as_object().cloned().unwrap();
    ForkRun {
        variables: map(json!({"laid": "over"})),
        configurable: map(json!({"maxLoopIterations": 12})),
        ..branch_at(from)
    }
}

fn without_overlay(mut variables: Map<String, Value>) -> Map<String, Value> {
    assert_eq!(variables.remove("laid"), Some(json!("over")));
    variables
}

/// What a branch is before it goes its own way.
async fn check_beginning(world: &World, run: &RunId, branch: &RunId, from: u64, source: &[Value], context: &str) {
    let log = world.log_of(branch).await;
    let begins = world.beginning_of(branch, from).await;
    assert!(begins <= from, "{context}");
    assert_eq!(log[..begins as usize], source[..begins as usize], "{context}: what came before");
    let (there, here) = (
        world.host.state_at(&tenant(), run, Some(begins - 1)).await.unwrap(),
        world.host.state_at(&tenant(), branch, Some(begins - 1)).await.unwrap(),
    );
    assert_eq!(without_overlay(here.view.variables), there.view.variables, "{context}");
    assert_eq!(here.view.channels, there.view.channels, "{context}");
    assert_eq!(here.view.outputs, there.view.outputs, "{context}");
    assert_eq!(here.view.node_states.keys().collect::<Vec<_>>(), there.view.node_states.keys().collect::<Vec<_>>());
    assert_eq!(world.looked(branch, begins - 1).await, world.looked(run, begins - 1).await, "{context}: surroundings");
}

#[tokio::test]
async fn a_branch_from_any_point_goes_its_own_way() {
    for case in library::all() {
        let (world, run) = case.played().await;
        let source = world.log_of(&run).await;
        let own = [world.row(&run).await.memory_scope, world.row(&run).await.workspace_scope];
        let ledgers = world.ledgers().await;
        let mut branches = Vec::new();
        for from in 1..=source.len() as u64 {
            // Some time after the run stood there.
            world.clock.advance(60_000);
            let branch = world.fork(&run, overlaid(from)).await;
            let context = format!("{}, branched at {from}", case.name);
            check_beginning(&world, &run, &branch, from, &source, &context).await;
            branches.push((branch, context, from));
        }
        world.see_through().await;
        let ended = world.log_of(&run).await;
        assert_eq!(ended[..source.len()], source[..], "{}: the source is as it was", case.name);
        let status = world.status(&run).await;
        for (branch, context, from) in branches {
            check_beginning(&world, &run, &branch, from, &ended, &context).await;
            let log = world.log_of(&branch).await;
            let last = log.last().unwrap()["type"].as_str().unwrap();
            assert!(["run.completed", "run.failed", "run.cancelled"].contains(&last), "{context}: {last}");
            if !matches!(case.stands, library::Stands::Cancelled) {
                assert_eq!(world.status(&branch).await, status, "{context}");
            }
            check_children(&world, &run, &branch, from, &context).await;
            world.verified(&branch, &context).await;
        }
        if case.ended() {
            let now = world.ledgers().await;
            for (id, changes) in ledgers.iter().filter(|(id, _)| own.contains(&id.scope)) {
                assert_eq!(now[id], *changes, "{}: {id:?} is the source's", case.name);
            }
        }
        assert!(world.open_interrupts().await.is_empty(), "{}", case.name);
        world.stop().await;
    }
}

/// A branch has no child in common with its source but those that had ended by then.
async fn check_children(world: &World, run: &RunId, branch: &RunId, from: u64, context: &str) {
    let of = |snapshot: baton_model::RunSnapshot| -> BTreeSet<RunId> {
        snapshot.child_runs.into_iter().map(|child| child.run_id).collect()
    };
    let (theirs, own) = (of(world.snapshot(run).await), of(world.snapshot(branch).await));
    let begins = world.beginning_of(branch, from).await;
    let before = match begins {
        0 => Vec::new(),
        begins => world.host.state_at(&tenant(), run, Some(begins - 1)).await.unwrap().view.child_runs,
    };
    let ended: BTreeSet<RunId> =
        before.into_iter().filter(|child| child.status.is_terminal()).map(|child| child.run_id).collect();
    let shared: BTreeSet<RunId> = theirs.intersection(&own).cloned().collect();
    assert!(shared.is_subset(&ended), "{context}: {shared:?} but {ended:?}");
    for child in own.difference(&theirs) {
        let row = world.row(child).await;
        assert_eq!(row.parent.as_ref(), Some(branch), "{context}");
        assert_eq!(row.workspace_scope, world.row(branch).await.workspace_scope, "{context}");
    }
}

/// From the very beginning: another run of the same thing, with what was laid over.
#[tokio::test]
async fn a_branch_from_the_beginning_starts_anew() {
    for case in library::all() {
        let (world, run) = case.played().await;
        let branch = world.fork(&run, overlaid(0)).await;
        world.see_through().await;
        let (log, source) = (world.log_of(&branch).await, world.log_of(&run).await);
        assert_eq!(log[0]["type"], "run.started");
        assert_eq!(world.snapshot(&branch).await.variables["laid"], "over", "{}", case.name);
        if !matches!(case.stands, library::Stands::Cancelled | library::Stands::Paused) {
            let types = |log: &[Value]| -> Vec<Value> { log.iter().map(|event| event["type"].clone()).collect() };
            assert_eq!(types(&log), types(&source), "{}", case.name);
        }
        check_children(&world, &run, &branch, 0, case.name).await;
        world.verified(&branch, case.name).await;
        let replay = world.replayed(&branch, 0).await;
        assert_eq!(world.log_of(&replay).await, log, "{}", case.name);
        world.stop().await;
    }
}

/// What is written after the fork, by the source or by the branch, the other does not see; and nothing of a branch is
/// in the tenant's workspace.
#[tokio::test]
async fn memory_and_workspace_part_at_the_fork() {
    let looks = |id: &str| {
        Flow::chain(
            id,
            &[
                ("before", PUT, note("before")),
                ("draft", WRITE, file("a.md", "shared")),
                ("gate", "core.approvalGate", json!({"title": "Go on?"})),
                ("list", LIST, json!({"into": "seen"})),
                ("read", READ, json!({"path": "a.md", "into": "text"})),
                ("other", READ, json!({"path": "b.md", "into": "other"})),
                ("after", PUT, json!({"contentExpression": "variables.who"})),
                ("write", WRITE, json!({"path": "a.md", "contentExpression": "variables.who"})),
                ("list2", LIST, json!({"into": "then"})),
            ],
        )
        .variable("who", "string", json!("source"))
    };
    let world = World::with([looks("looks")]).await;
    let run = world.start_in("looks", "shared-scope").await;
    world.waiting(&run).await;
    let length = world.length(&run).await;
    let fork = async |name: &str| {
        let variables = [("who".to_owned(), json!(name))].into_iter().collect();
        world.fork(&run, ForkRun { variables, ..branch_at(length) }).await
    };
    let early = fork("early").await;
    // The world goes on: others write to the scope and the workspace.
    world.remember("shared-scope", "newer").await;
    world.write("a.md", "changed").await;
    world.write("b.md", "new").await;
    let late = fork("late").await;
    world.settle().await;
    for branch in [&early, &late] {
        world.resolve(branch, "gate", accept()).await.unwrap();
        let view = world.ended(branch).await;
        assert_eq!(contents(&view, "seen"), ["before"], "as of the fork point, whenever it was asked for");
        assert_eq!(view.variables["text"]["content"], "shared");
        assert_eq!(view.variables["other"], Value::Null, "there was no such file then");
        let who = view.variables["who"].as_str().unwrap();
        assert_eq!(contents(&view, "then"), [who, "before"]);
    }
    assert_eq!(world.recall("shared-scope").await, ["newer", "before"], "no branch wrote here");
    assert_eq!(world.read("a.md").await.unwrap().content, "changed");
    world.resolve(&run, "gate", accept()).await.unwrap();
    let view = world.ended(&run).await;
    assert_eq!(contents(&view, "then"), ["source", "before"], "what the source sees is its own matter");
    assert_eq!(world.read("a.md").await.unwrap().content, "source");
    assert_eq!(world.recall(early.as_str()).await, ["early", "before"]);
    let own = VersionedStoreId::workspace(&tenant(), late.as_str());
    let written = world.reader.versioned_changes(&own, None, None, 9).await.unwrap();
    let written: Vec<_> = written.into_iter().map(|change| (change.key, change.item.unwrap().content)).collect();
    assert_eq!(written, [("a.md".to_owned(), "late".to_owned())], "what a branch writes is in its own workspace");
    // And a fork of the branch sees what the branch saw.
    let row = world.row(&late).await;
    let twig = world.fork(&late, branch_at(row.next_seq - 1)).await;
    world.ended(&twig).await;
    assert_eq!(world.looked(&twig, row.next_seq - 2).await, world.looked(&late, row.next_seq - 2).await);
    world.stop().await;
}

/// What had a minute left at the fork point has a minute left, however late the fork is made.
#[tokio::test]
async fn what_expires_expires_in_the_time_of_the_branch() {
    let flow = Flow::chain(
        "brief",
        &[
            ("put", PUT, json!({"content": "brief", "ttlSeconds": 60})),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("list", LIST, json!({"into": "seen"})),
        ],
    );
    let world = World::with([flow]).await;
    let run = world.start("brief").await;
    world.waiting(&run).await;
    world.clock.advance(3_600_000);
    let length = world.length(&run).await;
    let (quick, slow) = (world.fork(&run, branch_at(length)).await, world.fork(&run, branch_at(length)).await);
    world.settle().await;
    world.clock.advance(59_000);
    world.resolve(&quick, "gate", accept()).await.unwrap();
    assert_eq!(contents(&world.ended(&quick).await, "seen"), ["brief"], "it had a minute left");
    world.clock.advance(2_000);
    world.resolve(&slow, "gate", accept()).await.unwrap();
    assert_eq!(contents(&world.ended(&slow).await, "seen"), [""; 0], "which is over now");
    world.resolve(&run, "gate", accept()).await.unwrap();
    assert_eq!(contents(&world.ended(&run).await, "seen"), [""; 0], "in the source it was over long ago");
    // Looking back at the source's part of the branch shows what the source shows.
    assert_eq!(world.looked(&quick, length - 1).await, world.looked(&run, length - 1).await);
    assert_eq!(world.looked(&run, length - 1).await.0, ["brief"]);
    world.stop().await;
}

/// A supervisor's rules see the memory of the branch.
#[tokio::test]
async fn rules_decide_on_what_the_branch_remembers() {
    let case = library::all().into_iter().find(|case| case.name == "a loop that remembers").unwrap();
    let (world, run) = case.played().await;
    let scope = world.row(&run).await.memory_scope;
    let source = world.log_of(&run).await;
    let turns = world.decisions(&run).await.len();
    // Long after, with a scope that others have filled.
    world.clock.advance(100_000_000);
    for n in 0..5 {
        world.remember(&scope, &format!("later {n}")).await;
    }
    for from in 1..source.len() as u64 {
        let branch = world.fork(&run, branch_at(from)).await;
        let view = world.ended(&branch).await;
        assert_eq!(view.status, RunStatus::Completed, "from {from}");
        let log = world.log_of(&branch).await;
        let decided = log.iter().filter(|event| event["type"] == "runOrchestrator.decided").count();
        assert_eq!(decided, turns, "from {from}: not what it takes to remember three things");
        assert!(world.recall(branch.as_str()).await.iter().all(|content| content == "noted"), "from {from}");
    }
    world.stop().await;
}

/// Two that wait for the same human are two questions; each answer is for its own run.
#[tokio::test]
async fn an_open_question_is_asked_again_by_the_branch() {
    let world = World::with([gate("gated")]).await;
    let run = world.start("gated").await;
    world.waiting(&run).await;
    let branch = world.fork(&run, branch_at(world.length(&run).await)).await;
    world.settle().await;
    let open: BTreeSet<RunId> = world.open_interrupts().await.into_iter().map(|row| row.run).collect();
    assert_eq!(open, BTreeSet::from([run.clone(), branch.clone()]));
    // Also by the next process.
    let world = forking::next_life(world, 1).await;
    world.settle().await;
    assert_eq!(world.status(&branch).await, RunStatus::WaitingApproval);
    world.resolve(&branch, "gate", accept()).await.unwrap();
    assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);
    world.resolve(&run, "gate", json!({"action": "reject"})).await.unwrap();
    assert_eq!(world.ended(&run).await.variables.get("done"), None);
    assert_eq!(world.snapshot(&branch).await.variables["done"], true);
    world.stop().await;
}

/// The reply to a keyed request is durable with the fork it stands for.
#[tokio::test]
async fn the_reply_is_kept_with_the_fork() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    let (key, request) = (Digest::of_bytes("key"), Digest::of_bytes("request"));
    let render = |forked: &ForkedRun| (201, forked.run_id.to_string());
    let keyed = Idempotent { key: key.clone(), request: request.clone(), render: Box::new(render) };
    let commits = world.store.commits();
    let forked = world.host.fork(&who(), &run, branch_at(3), Some(keyed)).await.unwrap();
    let known = world.host.recall(&who().tenant, &key, &request).await.unwrap();
    assert_eq!(known, KeyLookup::Replay { status: 201, body: forked.run_id.to_string() });
    assert_eq!(world.host.recall(&who().tenant, &key, &key).await.unwrap(), KeyLookup::Mismatch);
    assert!(world.store.commits() > commits);
    world.stop().await;
}

/// A branch belongs to nobody's tree, whatever its source belonged to.
#[tokio::test]
async fn a_branch_of_a_child_is_a_run_of_its_own() {
    for case in library::all().into_iter().filter(Case::ended) {
        let (world, run) = case.played().await;
        let before = world.log_of(&run).await;
        let children: Vec<_> = world.rows().await.into_iter().filter(|row| row.parent.is_some()).collect();
        for child in &children {
            for from in [0, 1, child.next_seq / 2, child.next_seq] {
                let branch = world.fork(&child.id, branch_at(from)).await;
                let row = world.row(&branch).await;
                assert_eq!((row.parent, row.root), (None, None));
            }
        }
        world.see_through().await;
        assert_eq!(world.log_of(&run).await, before, "{}: the parent hears nothing of it", case.name);
        for row in world.rows().await.into_iter().filter(|row| row.origin.is_some()) {
            let memory = VersionedStoreId::memory(&tenant(), row.id.as_str());
            let base = world.reader.versioned_base(&memory).await.unwrap();
            assert!(base.is_none_or(|(base, _)| base.scope != row.memory_scope), "{}", case.name);
            world.verified(&row.id, case.name).await;
        }
        world.stop().await;
    }
}
