//! Every kind of run, replayed from every point of its log: the same log comes out, and nothing outside is touched.

use crate::common;
use crate::forking;

use std::sync::Arc;

use baton_model::event::DivergenceKind;
use baton_model::{RunId, RunStatus};
use baton_runtime::{ErrorKind, NewWebhook};
use baton_store::StoredRecord;
use common::scenario::pipeline;
use common::{World, options, tenant, who};
use forking::library::{self, Case};
use forking::{branch_at, forged::forged, long, over, replay_from};

/// The log of a replay of an unfinished run is the source's, and then its end.
fn check_cut_short(source: &[serde_json::Value], replay: &[serde_json::Value], context: &str) {
    assert_eq!(&replay[..source.len()], source, "{context}");
    let last = replay.last().unwrap();
    assert_eq!(last["type"], "run.cancelled", "{context}");
    assert_eq!(last["payload"]["reason"], "source-has-not-ended", "{context}");
}

/// Somebody who cancels a replay hears how it ended; its log is its source's all the same.
#[tokio::test]
async fn a_replay_that_is_cancelled_goes_through_to_its_end() {
    let (world, run) = long().await;
    let source = world.log_of(&run).await;
    for from in [0, 7] {
        let replay = world.fork(&run, replay_from(from)).await;
        // It may be through already.
        if !world.row(&replay).await.status.is_terminal() {
            let pause = baton_runtime::PauseRun { reason: None, drain: Default::default() };
            let refused = world.host.pause(&who(), &replay, pause).await.unwrap_err();
            assert_eq!((refused.kind, &refused.details["runStatus"]), (ErrorKind::Conflict, &"running".into()));
        }
        assert_eq!(world.host.cancel(&who(), &replay, None).await.unwrap(), RunStatus::Completed);
        assert_eq!(world.log_of(&replay).await, source, "from {from}");
        assert_eq!(world.host.cancel(&who(), &replay, None).await.unwrap(), RunStatus::Completed, "and again");
    }
    world.stop().await;
}

async fn check_every_point(case: &Case, world: &World, run: &RunId) {
    let source = world.log_of(run).await;
    let before = world.outside().await;
    for from in 0..=source.len() as u64 {
        let context = format!("{}, from {from}", case.name);
        let replay = world.replayed(run, from).await;
        let log = world.log_of(&replay).await;
        let row = world.row(&replay).await;
        if case.ended() {
            assert_eq!(log, source, "{context}");
            assert_eq!(row.status, world.row(run).await.status, "{context}");
        } else {
            check_cut_short(&source, &log, &context);
            assert_eq!(row.status, RunStatus::Cancelled, "{context}");
        }
        assert_eq!(row.next_seq, log.len() as u64, "{context}");
        assert!(!row.busy && row.wake_at.is_none() && row.parent.is_none(), "{context}: {row:?}");
        world.verified(&replay, &context).await;
        let view = world.snapshot(&replay).await;
        let from_there = view.forked_from.unwrap();
        assert_eq!((from_there.run_id, from_there.from_seq), (run.clone(), from), "{context}");
    }
    assert_eq!(world.outside().await, before, "{}: something outside was touched", case.name);
    world.verified(run, case.name).await;
}

#[tokio::test]
async fn a_replay_from_any_point_is_the_same_log() {
    for case in library::all() {
        let (world, run) = case.played().await;
        check_every_point(&case, &world, &run).await;
        for row in world.rows().await.iter().filter(|row| row.origin.is_none()) {
            world.verified(&row.id, case.name).await;
        }
        world.stop().await;
    }
}

/// What a replay is in memory is what its log says.
#[tokio::test]
async fn a_replay_looks_the_same_to_the_next_process() {
    for case in library::all() {
        let (world, run) = case.played().await;
        let length = world.length(&run).await;
        let replay = world.replayed(&run, length / 2).await;
        let (log, view) = (world.log_of(&replay).await, world.snapshot(&replay).await);
        let world = forking::next_life(world, 1).await;
        world.settle().await;
        assert_eq!(world.log_of(&replay).await, log, "{}", case.name);
        assert_eq!(world.snapshot(&replay).await, view, "{}", case.name);
        world.stop().await;
    }
}

/// The children of a run are runs, and so can be replayed.
#[tokio::test]
async fn a_child_can_be_replayed() {
    for case in library::all().into_iter().filter(Case::ended) {
        let (world, run) = case.played().await;
        for child in world.rows().await.into_iter().filter(|row| row.parent.is_some()) {
            let parent = world.log_of(&run).await;
            let source = world.log_of(&child.id).await;
            for from in [0, child.next_seq / 2, child.next_seq] {
                let replay = world.replayed(&child.id, from).await;
                assert_eq!(world.log_of(&replay).await, source, "{} of {}", child.workflow, case.name);
            }
            assert_eq!(world.log_of(&run).await, parent, "{}: its parent hears nothing of it", case.name);
        }
        world.stop().await;
    }
}

/// Subscribers hear of the source and of branches, never of a replay.
#[tokio::test]
async fn nobody_is_told_of_a_replay() {
    let options = baton_runtime::Options { allow_private_webhooks: true, ..options(512) };
    let case = library::all().into_iter().find(|case| case.name == "pipeline").unwrap();
    let world = World::open(Default::default(), Arc::default(), options).await;
    // Nobody listens there, so whatever is to be delivered stays to be delivered.
    let url = "http://127.0.0.1:9/".to_owned();
    let hook = NewWebhook { url, events: vec!["*".to_owned()], tags: Vec::new() };
    world.host.register_webhook(&who(), hook).await.unwrap();
    let (world, run) = case.played_in(world).await;
    let heard = async |run: &RunId| {
        let all = world.reader.deliveries(baton_model::Timestamp::from_micros(i64::MAX / 2), 10_000).await.unwrap();
        all.into_iter().filter(|delivery| delivery.run == *run).count()
    };
    assert!(heard(&run).await > 0, "somebody is told of the source");
    for from in 0..=world.length(&run).await {
        let replay = world.replayed(&run, from).await;
        assert_eq!(heard(&replay).await, 0, "from {from}");
    }
    let branch = world.fork(&run, branch_at(3)).await;
    world.ended(&branch).await;
    assert!(heard(&branch).await > 0, "a branch is a run like others");
    world.stop().await;
}

/// A replay ends by itself; nobody can talk to it.
#[tokio::test]
async fn a_replay_takes_no_commands() {
    let case = library::all().into_iter().find(|case| case.name == "waits for a human").unwrap();
    let (world, run) = case.played().await;
    let replay = world.replayed(&run, 2).await;
    let refused = world.resolve(&replay, "gate", common::accept()).await.unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::Gone | ErrorKind::Conflict | ErrorKind::Unprocessable), "{refused:?}");
    assert_eq!(world.host.cancel(&who(), &replay, None).await.unwrap(), RunStatus::Cancelled);
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval, "the source still waits");
    assert_eq!(world.open_interrupts().await.len(), 1);
    world.resolve(&run, "gate", common::accept()).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    world.stop().await;
}

/// What a source does after its replay was asked for is not the replay's matter.
#[tokio::test]
async fn a_replay_of_a_run_that_goes_on_shows_the_run_as_it_was() {
    let case = library::all().into_iter().find(|case| case.name == "its worker waits for a human").unwrap();
    let (world, run) = case.played().await;
    let before = world.log_of(&run).await;
    let replay = world.fork(&run, replay_from(0)).await;
    world.drive(0).await;
    assert!(world.length(&run).await > before.len() as u64);
    check_cut_short(&before, &world.log_of(&replay).await, case.name);
    let whole = world.replayed(&run, 0).await;
    assert_eq!(world.log_of(&whole).await, world.log_of(&run).await);
    world.stop().await;
}

type Forge = Box<dyn Fn(&mut Vec<StoredRecord>)>;

/// Replaces a text in the public face of a record.
fn edit(record: &mut StoredRecord, old: &str, new: &str) {
    assert!(record.body.contains(old), "{}", record.body);
    record.body = record.body.replace(old, new);
}

#[tokio::test]
async fn a_forged_record_is_found_out_and_the_replay_still_ends() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    let log = world.log_of(&run).await;
    let place = |kind: &str, node: &str| {
        let found = |event: &serde_json::Value| event["type"] == kind && event["nodeId"] == node;
        log.iter().position(found).unwrap() as u64
    };
    let changed =
        log.iter().position(|event| event["payload"]["variableName"] == "m" || event["payload"]["name"] == "m");
    let changed = changed.unwrap() as u64;
    let (started, last) = (place("node.started", "two"), log.len() as u64 - 1);
    let forgeries: [(&str, u64, DivergenceKind, Forge); 3] = [
        (
            "another value",
            changed,
            DivergenceKind::Output,
            Box::new(move |all| {
                edit(&mut all[changed as usize], ":20", ":21");
            }),
        ),
        (
            "another event",
            started,
            DivergenceKind::TypeMismatch,
            Box::new(move |all| {
                all[started as usize].kind = "node.completed".to_owned();
                edit(&mut all[started as usize], "node.started", "node.completed");
            }),
        ),
        (
            "the end is missing",
            last,
            DivergenceKind::Missing,
            Box::new(|all| {
                all.pop();
            }),
        ),
    ];
    for (what, seq, kind, forge) in forgeries {
        let store = forged(&world, &run, forge).await;
        let other = over(Arc::clone(&store) as _, store, Arc::clone(&world.clock), 2, options(512)).await;
        let found = other.host.verify(&tenant(), &run).await.unwrap().difference;
        let replay = other.replayed(&run, 0).await;
        let told = other.log_of(&replay).await;
        let told: Vec<_> = told.iter().filter(|event| event["type"] == "replay.diverged").collect();
        if what == "the end is missing" {
            // Nobody can tell that from a run that has not ended yet.
            assert!(found.is_none() && told.is_empty(), "{what}");
            assert_eq!(other.status(&replay).await, RunStatus::Cancelled, "{what}");
        } else {
            let found = found.unwrap_or_else(|| panic!("{what} is found out"));
            assert_eq!((found.seq, found.kind), (seq, kind), "{what}");
            assert!(found.original.is_some() && found.replayed.is_some(), "{what}");
            let [told] = told[..] else { panic!("{what}: told once") };
            assert_eq!(told["payload"]["atSequence"], seq, "{what}");
            assert_eq!(told["payload"]["divergenceKind"], kind.as_str(), "{what}");
            assert_eq!(other.status(&replay).await, RunStatus::Completed, "{what}");
            // A replay that says so is what it is: going through it again finds nothing else.
            other.verified(&replay, what).await;
            let again = other.replayed(&replay, 0).await;
            assert_eq!(other.log_of(&again).await, other.log_of(&replay).await, "{what}");
        }
        other.stop().await;
    }
    world.stop().await;
}

/// One that goes another way early on has a long way to go by itself, past pages of what it cannot use.
#[tokio::test]
async fn a_long_log_that_was_forged_is_gone_through_to_the_end() {
    let (world, run) = long().await;
    let forge = |all: &mut Vec<StoredRecord>| {
        let decided = all.iter_mut().filter(|record| record.kind == "runOrchestrator.decided").nth(100).unwrap();
        edit(decided, "pipeline", "somebody-else");
    };
    let place = {
        let log = world.log_of(&run).await;
        let decided = |(_, event): &(usize, &serde_json::Value)| event["type"] == "runOrchestrator.decided";
        log.iter().enumerate().filter(decided).nth(100).unwrap().0 as u64
    };
    let store = forged(&world, &run, forge).await;
    let other = over(Arc::clone(&store) as _, store, Arc::clone(&world.clock), 2, options(512)).await;
    let found = other.host.verify(&tenant(), &run).await.unwrap().difference.unwrap();
    assert!(found.seq >= place && found.seq < place + 20, "{found:?}, forged at {place}");
    let replay = other.fork(&run, replay_from(0)).await;
    assert!(other.ended(&replay).await.status.is_terminal());
    let log = other.log_of(&replay).await;
    assert_eq!(log.iter().filter(|event| event["type"] == "replay.diverged").count(), 1);
    assert_eq!(other.rows().await.len(), 2, "no child was made");
    other.stop().await;
    world.stop().await;
}

#[tokio::test]
async fn a_long_log_is_replayed_in_parts() {
    let (world, run) = long().await;
    let source = world.log_of(&run).await;
    assert!(source.len() > 3000, "{}", source.len());
    let (rows, commits) = (world.rows().await.len(), world.store.commits());
    for from in [0, 1, 999, 1000, 1001, 2500] {
        let replay = world.replayed(&run, from).await;
        assert_eq!(world.log_of(&replay).await, source, "from {from}");
    }
    assert_eq!(world.rows().await.len(), rows + 6, "no child was made");
    assert!(world.store.commits() - commits > 12, "in parts");
    world.verified(&run, "long").await;
    world.stop().await;
}
