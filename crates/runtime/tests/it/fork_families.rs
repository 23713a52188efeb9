//! Forks of forks: each goes by what its own log says, and the ones before it do not notice.

use crate::common;
use crate::forking;

use baton_model::{RunId, RunStatus};
use baton_runtime::ForkRun;
use baton_testkit::Flow;
use common::scenario::{call, gate, noop, parent, pipeline};
use common::{World, tenant};
use forking::library::{self, Case};
use forking::{branch_at, replay_from};
use serde_json::{Value, json};

/// Cases in which there is something to fork twice.
fn some() -> Vec<Case> {
    let wanted = ["a child", "an approval", "a supervisor of parallel workers", "memory and files", "a delay"];
    let cases: Vec<Case> = library::all().into_iter().filter(|case| wanted.contains(&case.name)).collect();
    assert_eq!(cases.len(), wanted.len());
    cases
}

fn named(from: u64, name: &str) -> ForkRun {
    ForkRun { variables: [(name.to_owned(), json!(name))].into_iter().collect(), ..branch_at(from) }
}

/// A branch in the middle of each case, ended.
async fn branched(case: &Case) -> (World, RunId, RunId, u64) {
    let (world, run) = case.played().await;
    world.clock.advance(1_000_000);
    let from = world.length(&run).await / 2;
    let branch = world.fork(&run, named(from, "first")).await;
    world.see_through().await;
    (world, run, branch, from)
}

#[tokio::test]
async fn a_replay_of_a_branch_is_the_branch() {
    for case in some() {
        let (world, _, branch, fork) = branched(&case).await;
        let source = world.log_of(&branch).await;
        let before = world.outside().await;
        for from in 0..=source.len() as u64 {
            let context = format!("{}, forked at {fork}, replayed from {from}", case.name);
            let replay = world.replayed(&branch, from).await;
            assert_eq!(world.log_of(&replay).await, source, "{context}");
            world.verified(&replay, &context).await;
            let (was, is) = (world.snapshot(&branch).await, world.snapshot(&replay).await);
            assert_eq!((is.variables, is.channels, is.status), (was.variables, was.channels, was.status), "{context}");
            assert_eq!(is.child_runs, was.child_runs, "{context}");
            // And once more, from elsewhere.
            let again = world.replayed(&replay, source.len() as u64 - from).await;
            assert_eq!(world.log_of(&again).await, source, "{context}, again");
            world.verified(&again, &context).await;
        }
        assert_eq!(world.outside().await, before, "{}", case.name);
        // In memory they are what their logs say.
        let rows = world.rows().await;
        let mut views = Vec::new();
        for row in &rows {
            views.push(world.snapshot(&row.id).await);
        }
        let world = forking::next_life(world, 1).await;
        for (row, view) in rows.iter().zip(views) {
            assert_eq!(world.snapshot(&row.id).await, view, "{}: {:?}", case.name, row.origin);
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn a_branch_of_a_branch_has_both_pasts() {
    for case in some() {
        let (world, run, branch, fork) = branched(&case).await;
        let (oldest, source) = (world.log_of(&run).await, world.log_of(&branch).await);
        let begins = world.beginning_of(&branch, fork).await;
        let mut twigs = Vec::new();
        for from in 1..=source.len() as u64 {
            twigs.push((from, world.fork(&branch, named(from, "second")).await));
        }
        world.see_through().await;
        for (from, twig) in twigs {
            let context = format!("{}, forked at {fork}, then at {from}", case.name);
            let log = world.log_of(&twig).await;
            let until = world.beginning_of(&twig, from).await;
            assert_eq!(log[..until as usize], source[..until as usize], "{context}");
            let view = world.snapshot(&twig).await;
            assert_eq!(view.status, world.status(&branch).await, "{context}");
            assert_eq!(view.variables["second"], "second", "{context}");
            // What the first branch has otherwise is there from where it began.
            assert_eq!(view.variables.contains_key("first"), until >= begins, "{context}, which began at {begins}");
            let there = world.host.state_at(&tenant(), &branch, Some(until - 1)).await.unwrap().view;
            let mut here = world.host.state_at(&tenant(), &twig, Some(until - 1)).await.unwrap().view;
            here.variables.remove("second");
            assert_eq!((here.variables, here.channels), (there.variables, there.channels), "{context}");
            assert_eq!(world.looked(&twig, until - 1).await, world.looked(&branch, until - 1).await, "{context}");
            world.verified(&twig, &context).await;
            let replay = world.replayed(&twig, from / 2).await;
            assert_eq!(world.log_of(&replay).await, log, "{context}");
        }
        assert_eq!((world.log_of(&run).await, world.log_of(&branch).await), (oldest, source), "{}", case.name);
        world.stop().await;
    }
}

#[tokio::test]
async fn a_branch_of_a_replay_is_a_branch_of_what_it_repeats() {
    for case in some() {
        let (world, run, ..) = branched(&case).await;
        let source = world.log_of(&run).await;
        for point in [1, 3, source.len() as u64 - 1] {
            let replay = world.replayed(&run, point).await;
            let mut branches = Vec::new();
            for from in [1, 2, point, point + 1, source.len() as u64] {
                branches.push((from, world.fork(&replay, named(from, "third")).await));
            }
            world.see_through().await;
            for (from, branch) in branches {
                let context = format!("{}, replayed from {point}, then branched at {from}", case.name);
                let until = world.beginning_of(&branch, from).await as usize;
                let log = world.log_of(&branch).await;
                assert_eq!(log[..until], source[..until], "{context}");
                assert_eq!(world.status(&branch).await, world.status(&run).await, "{context}");
                world.verified(&branch, &context).await;
            }
        }
        assert_eq!(world.log_of(&run).await, source, "{}", case.name);
        world.stop().await;
    }
}

/// A run that is under way is forked at every point it has come to, again and again while it goes on.
#[tokio::test]
async fn a_run_under_way_can_be_forked() {
    let flow = Flow::chain(
        "long",
        &[
            ("a", "core.noop", noop()),
            ("first", "core.approvalGate", json!({"title": "1"})),
            ("call", "core.subWorkflow", call("gated")),
            ("wait", "core.delay", json!({"ms": 60_000})),
            ("last", "core.setVariable", json!({"name": "done", "value": true})),
        ],
    )
    .variable("n", "number", json!(4));
    let world = World::with([flow, gate("gated")]).await;
    let run = world.start("long").await;
    let mut forks = Vec::new();
    while !world.status(&run).await.is_terminal() {
        world.settle().await;
        let length = world.length(&run).await;
        for from in [1, length / 2, length - 1, length] {
            forks.push((world.fork(&run, branch_at(from)).await, from, true));
            forks.push((world.fork(&run, replay_from(from)).await, from, false));
        }
        world.settle().await;
        let children: Vec<RunId> =
            world.snapshot(&run).await.child_runs.into_iter().map(|child| child.run_id).collect();
        let open = world.open_interrupts().await;
        match open.iter().find(|row| row.run == run || children.contains(&row.run)) {
            Some(row) => {
                world.resolve(&row.run, row.node.as_str(), common::accept()).await.unwrap();
            }
            None => world.clock.advance(60_001),
        }
        world.settle().await;
    }
    world.see_through().await;
    let source = world.log_of(&run).await;
    for (fork, from, branch) in forks {
        let log = world.log_of(&fork).await;
        let begins = if branch { world.beginning_of(&fork, from).await } else { from };
        assert_eq!(log[..begins as usize], source[..begins as usize], "from {from}");
        if branch {
            assert_eq!(world.status(&fork).await, RunStatus::Completed, "from {from}");
            assert_eq!(world.snapshot(&fork).await.variables["done"], true);
        } else {
            let end = log.last().unwrap()["type"].as_str().unwrap().to_owned();
            assert!(end == "run.cancelled" || log == source, "from {from}");
        }
        world.verified(&fork, &format!("from {from}")).await;
    }
    world.stop().await;
}

/// The time that was left is left: a branch of a delay waits for the rest of it, and not from the beginning.
#[tokio::test]
async fn a_branch_waits_for_what_is_left() {
    let flow = Flow::chain("slow", &[("wait", "core.delay", json!({"ms": 600_000})), ("end", "core.noop", noop())]);
    let world = World::with([flow]).await;
    let run = world.start("slow").await;
    world.settle().await;
    world.clock.advance(100_000);
    let branch = world.fork(&run, branch_at(world.length(&run).await)).await;
    world.settle().await;
    let (there, here) = (world.row(&run).await.wake_at.unwrap(), world.row(&branch).await.wake_at.unwrap());
    // The log's clock stands where the delay began: all of it is left.
    assert_eq!(here.millis_since(there), 100_000);
    world.clock.advance(500_000);
    world.settle().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.status(&branch).await, RunStatus::Running);
    world.clock.advance(100_000);
    world.settle().await;
    assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
    world.stop().await;
}

/// The children of a branch are its own: cancelling it leaves those of the source alone.
#[tokio::test]
async fn cancelling_a_branch_leaves_the_sources_children_alone() {
    let world = World::with([parent("parent", call("gated")), gate("gated"), pipeline("pipeline")]).await;
    let run = world.start("parent").await;
    world.waiting(&run).await;
    let length = world.length(&run).await;
    let branch = world.fork(&run, branch_at(length)).await;
    world.waiting(&branch).await;
    let open: Vec<Value> = world.open_interrupts().await.iter().map(|row| json!(row.run)).collect();
    assert_eq!(open.len(), 2, "{open:?}");
    world.host.cancel(&common::who(), &branch, None).await.unwrap();
    world.settle().await;
    assert_eq!(world.status(&branch).await, RunStatus::Cancelled);
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);
    assert_eq!(world.open_interrupts().await.len(), 1);
    world.drive(0).await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    world.stop().await;
}
