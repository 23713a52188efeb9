//! Branches at every point of runs with children. Where a point lies inside a step or while a child is under way, the
//! branch begins before it: no worker is done twice, nothing that a worker of the source wrote ahead is there, and every
//! handoff goes through its phases once. Where that is, an oracle reads off the public log alone.

use crate::common;
use crate::forking;
use crate::remotes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::{RunId, RunStatus};
use baton_runtime::{ForkRun, ForkedRun};
use baton_store::{Disk, VersionedStoreId};
use baton_store_sqlite::SqliteStore;
use baton_testkit::{Flow, SimClock};
use common::scenario::{delegate, led};
use common::versioned_stores::{PUT, WRITE, note};
use common::{World, in_time, options, tenant, who};
use forking::library::{self, Case, Stands};
use forking::{branch_at, over, reopened};
use remotes::{Far, WORKER};
use serde_json::{Value, json};

/// More crashes than any of this has commits: past this, something commits for ever.
const MOST_CRASHES: u64 = 200;

/// Remembers its name when it begins and again when it ends, and writes a file in between: it runs ahead of what its
/// parent hears of it, for `ms`.
fn scribe(name: &str, ms: u64) -> Flow {
    let wait = if ms > 0 { ("wait", "core.delay", json!({"ms": ms})) } else { ("wait", "core.noop", json!({})) };
    Flow::chain(
        name,
        &[
            ("begins", PUT, note(&format!("{name} begins"))),
            wait,
            ("file", WRITE, json!({"path": format!("{name}.md"), "content": name})),
            ("ends", PUT, note(&format!("{name} ends"))),
        ],
    )
    .variable("m", "string", json!(name))
}

/// Three workers in the first turn and one in the second, if nothing is remembered twice.
fn scribes(id: &str, policy: &str) -> Vec<Flow> {
    let rules = json!({
        "rules": [
            {"when": "iteration == 1", "decide": {"kind": "next-worker", "nextWorkerIds": ["a", "b", "c"]}},
            {"when": "iteration == 2 && size(memory) == 6", "decide": {"kind": "next-worker", "nextWorkerIds": ["a"]}}
        ],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    vec![led(id, rules, policy), scribe("a", 300), scribe("b", 100), scribe("c", 200)]
}

fn called(child: &str) -> Value {
    json!({"workflowId": child, "outputMapping": {"m": "m"}})
}

/// Two children that overlap without either knowing, and one after them.
fn overlapping() -> Vec<Flow> {
    let flow = Flow::new("overlapping")
        .node("start", PUT, note("start"))
        .node("left", "core.subWorkflow", called("a"))
        .node("right", "core.subWorkflow", called("b"))
        .node("later", "core.subWorkflow", called("c"))
        .node("join", PUT, note("join"))
        .edge("start", "left")
        .edge("start", "right")
        .edge("right", "later")
        .edge("left", "join")
        .edge("later", "join");
    vec![flow, scribe("a", 250), scribe("b", 100), scribe("c", 300)]
}

/// Runs whose children remember what they do.
fn remembering() -> Vec<Case> {
    let mut nested = vec![delegate("top", "middle")];
    nested.extend(scribes("middle", "parallel"));
    let once = Flow::chain(
        "once",
        &[("before", PUT, note("before")), ("call", "core.subWorkflow", called("a")), ("after", PUT, note("after"))],
    );
    let cases = [
        ("workers in turn", scribes("in-turn", "sequential")),
        ("workers side by side", scribes("at-once", "parallel")),
        ("workers of a worker", nested),
        ("a sub-workflow", vec![once, scribe("a", 100)]),
        ("children that overlap", overlapping()),
    ];
    cases.into_iter().map(|(name, flows)| Case { name, flows, stands: Stands::Ended }).collect()
}

/// Every point of a log, as the public events tell it: where a branch that is asked for there has to begin.
fn points(log: &[Value], firsts: &[bool]) -> Vec<u64> {
    let mut live: BTreeSet<String> = BTreeSet::new();
    let (mut last, mut points) = (0, Vec::new());
    let over = |status: &Value| ["completed", "failed", "cancelled"].iter().any(|word| status == word);
    for seq in 0..=log.len() {
        if live.is_empty() && firsts.get(seq).copied().unwrap_or(true) {
            last = seq as u64;
        }
        points.push(last);
        let Some(event) = log.get(seq) else { break };
        let payload = &event["payload"];
        match event["type"].as_str().unwrap() {
            "node.started" if payload["typeId"] == "core.subWorkflow" => {
                live.insert(format!("node {}", event["nodeId"]));
            }
            "node.completed" | "node.failed" | "node.cancelled" | "node.retried" => {
                live.remove(&format!("node {}", event["nodeId"]));
            }
            "node.suspended" if over(&payload["childStatus"]) => {
                live.remove(&format!("node {}", event["nodeId"]));
            }
            "core.workflowChain.event" => match payload["phase"].as_str().unwrap() {
                "dispatch.began" => drop(live.insert(format!("chain {seq}"))),
                "dispatch.succeeded" | "output.harvested" => {}
                _ => {
                    let mut began = &event["causationId"];
                    if payload["phase"] != "dispatch.failed" {
                        began = &log[began.as_u64().unwrap() as usize]["causationId"];
                    }
                    assert!(live.remove(&format!("chain {began}")), "{event} ends what is not under way");
                }
            },
            _ => {}
        }
    }
    points
}

/// Each chain event has exactly one legal predecessor, and each predecessor at most one successor. A run that has ended
/// has ended all of its handoffs.
fn check_machine(log: &[Value], context: &str) {
    let phase = |event: &Value| event["payload"]["phase"].as_str().map(str::to_owned);
    let mut followed: BTreeMap<u64, String> = BTreeMap::new();
    for (seq, event) in log.iter().enumerate().filter(|(_, event)| event["type"] == "core.workflowChain.event") {
        let cause = event["causationId"].as_u64().unwrap();
        assert!(cause < seq as u64, "{context}: {event}");
        let (before, this) = (&log[cause as usize], phase(event).unwrap());
        let legal = match this.as_str() {
            "dispatch.began" => before["type"] == "runOrchestrator.decided",
            "dispatch.succeeded" | "dispatch.failed" => phase(before).as_deref() == Some("dispatch.began"),
            "child.completed" | "child.failed" | "child.cancelled" => {
                phase(before).as_deref() == Some("dispatch.succeeded")
            }
            "output.harvested" => phase(before).as_deref() == Some("child.completed"),
            other => panic!("{context}: {other}"),
        };
        assert!(legal, "{context}: {seq} {event} follows {before}");
        if this != "dispatch.began" {
            assert_eq!(before["payload"]["workerId"], event["payload"]["workerId"], "{context}");
            let twice = followed.insert(cause, this.clone());
            assert!(twice.is_none(), "{context}: {cause} {before} is followed by {twice:?} and {this}");
        }
    }
    let open = |(seq, event): &(usize, &Value)| {
        let goes_on = matches!(phase(event).as_deref(), Some("dispatch.began" | "dispatch.succeeded"));
        goes_on && !followed.contains_key(&(*seq as u64))
    };
    let open: Vec<_> = log.iter().enumerate().filter(open).collect();
    assert!(open.is_empty(), "{context}: never ended: {open:?}");
}

/// Whether a record begins its step.
async fn firsts(world: &World, run: &RunId, length: u64) -> Vec<bool> {
    let mut firsts = Vec::new();
    let mut row = world.row(run).await;
    let mut until = length;
    loop {
        let from = row.origin.as_ref().map_or(0, |origin| origin.seq.min(until));
        let own = world.reader.records(&row.id, from, (until - from) as usize).await.unwrap();
        firsts.splice(0..0, own.iter().map(|record| record.part.is_none_or(|part| part.first)));
        until = from;
        let Some(origin) = row.origin else { return firsts };
        row = world.row(&origin.source).await;
    }
}

async fn forked(world: &World, run: &RunId, request: ForkRun) -> ForkedRun {
    world.host.fork(&who(), run, request, None).await.unwrap()
}

/// Everything that the branch's memory holds in the end, oldest first.
async fn remembered(world: &World, run: &RunId) -> Vec<String> {
    let mut all = world.recall(world.row(run).await.memory_scope.as_str()).await;
    all.sort();
    all
}

async fn written(world: &World, run: &RunId) -> BTreeSet<String> {
    let ledger = VersionedStoreId::workspace(&tenant(), world.row(run).await.workspace_scope);
    let changes = world.reader.versioned_changes(&ledger, None, None, 100).await.unwrap();
    changes.into_iter().map(|change| change.key).collect()
}

/// What the workers whose end is on the log before `point` have remembered, and nothing of any other.
fn known_by(log: &[Value], point: usize) -> BTreeSet<String> {
    let kept = &log[..point];
    let mut known = BTreeSet::new();
    for event in kept {
        let payload = &event["payload"];
        if payload["phase"] == "child.completed" {
            known.insert(payload["workerId"].as_str().unwrap().to_owned());
        }
        if event["type"] == "node.completed" && payload["outputs"]["childStatus"] == "completed" {
            let child = &payload["outputs"]["childRunId"];
            let started = kept.iter().find(|event| event["payload"]["childRunId"] == *child).unwrap();
            known.extend(started["payload"]["childWorkflowId"].as_str().map(str::to_owned));
        }
    }
    known
}

/// Branches at every point of a run and sees them through.
async fn branch_everywhere(world: &World, run: &RunId, name: &str) -> Vec<(RunId, u64, u64)> {
    let log = world.log_of(run).await;
    let points = points(&log, &firsts(world, run, log.len() as u64).await);
    let mut branches = Vec::new();
    for (asked, &point) in points.iter().enumerate() {
        let asked = asked as u64;
        let context = format!("{name}, branched at {asked}");
        world.clock.advance(1000);
        let reply = forked(world, run, branch_at(asked)).await;
        assert_eq!((reply.from_seq, reply.requested_from_seq), (point, (point != asked).then_some(asked)), "{context}");
        if point > 0 {
            let branch = &reply.run_id;
            assert_eq!(world.looked(branch, point - 1).await, world.looked(run, point - 1).await, "{context}");
            assert_eq!(world.log_of(branch).await[..point as usize], log[..point as usize], "{context}");
        }
        branches.push((reply.run_id, asked, point));
    }
    branches
}

#[tokio::test]
async fn a_branch_begins_where_no_child_is_under_way_and_every_handoff_happens_once() {
    let mut inside = 0;
    for case in remembering().into_iter().chain(library::all()) {
        let (world, run) = case.played().await;
        let branches = branch_everywhere(&world, &run, case.name).await;
        inside += branches.iter().filter(|(_, asked, point)| asked != point).count();
        world.see_through().await;
        let status = world.status(&run).await;
        for (branch, asked, point) in branches {
            let context = format!("{}, branched at {asked}, which is {point}", case.name);
            let log = world.log_of(&branch).await;
            check_machine(&log, &context);
            world.verified(&branch, &context).await;
            if !matches!(case.stands, Stands::Cancelled) {
                assert_eq!(world.status(&branch).await, status, "{context}");
            }
        }
        world.stop().await;
    }
    assert!(inside > 300, "only {inside} points lie inside of something");
}

/// The same with workers that leave traces: each branch remembers in the end exactly what its source does, and what it
/// began with is what those had written whose end it knows of.
#[tokio::test]
async fn nothing_that_a_worker_wrote_ahead_is_there() {
    for case in remembering() {
        let (world, run) = case.played().await;
        let (log, all) = (world.log_of(&run).await, remembered(&world, &run).await);
        let variables = world.snapshot(&run).await.variables;
        let files = written(&world, &run).await;
        assert!(all.iter().any(|entry| entry.ends_with("ends")) && !files.is_empty(), "{}", case.name);
        let branches = branch_everywhere(&world, &run, case.name).await;
        for (branch, asked, point) in &branches {
            let context = format!("{}, branched at {asked}, which is {point}", case.name);
            let memory = VersionedStoreId::memory(&tenant(), branch.as_str());
            // What it has of its source is bound by a version, whatever it has written itself by now.
            let there = match point {
                0 => Vec::new(),
                point => world.looked(branch, point - 1).await.0,
            };
            let base = world.reader.versioned_base(&memory).await.unwrap();
            assert_eq!(base.is_some(), !there.is_empty(), "{context}");
            let known = known_by(&log, *point as usize);
            let by: BTreeSet<String> =
                there.iter().filter_map(|entry| Some(entry.strip_suffix(" ends")?.to_owned())).collect();
            let begun: BTreeSet<String> =
                there.iter().filter_map(|entry| Some(entry.strip_suffix(" begins")?.to_owned())).collect();
            assert_eq!(by, begun, "{context}: half a worker");
            if case.name != "workers of a worker" {
                assert_eq!(by, known, "{context}");
            }
        }
        world.see_through().await;
        for (branch, asked, point) in branches {
            let context = format!("{}, branched at {asked}, which is {point}", case.name);
            assert_eq!(remembered(&world, &branch).await, all, "{context}");
            assert_eq!(world.snapshot(&branch).await.variables, variables, "{context}");
            let turns = |log: &[Value]| log.iter().filter(|event| event["type"] == "runOrchestrator.decided").count();
            assert_eq!(turns(&world.log_of(&branch).await), turns(&log), "{context}");
        }
        world.stop().await;
    }
}

/// Branches of the workers themselves, of branches, and of runs that are still under way.
#[tokio::test]
async fn the_same_holds_below_and_again() {
    for case in remembering() {
        let (world, run) = case.played().await;
        let first = forked(&world, &run, branch_at(world.length(&run).await / 2)).await.run_id;
        world.see_through().await;
        let mut sources: Vec<RunId> =
            world.rows().await.into_iter().map(|row| row.id).filter(|id| *id != run).collect();
        sources.retain(|id| *id != first);
        sources.truncate(4);
        sources.push(first);
        for source in sources {
            let context = format!("{}: {source}", case.name);
            let branches = branch_everywhere(&world, &source, &context).await;
            world.see_through().await;
            for (branch, asked, _) in branches {
                let context = format!("{context}, branched at {asked}");
                check_machine(&world.log_of(&branch).await, &context);
                assert_eq!(world.status(&branch).await, RunStatus::Completed, "{context}");
                world.verified(&branch, &context).await;
            }
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn a_run_whose_workers_are_at_work_is_branched_before_them() {
    for case in remembering() {
        let world = World::with(case.flows.clone()).await;
        let id = case.flows[0].clone().build()["id"].as_str().unwrap().to_owned();
        let run = world.start(&id).await;
        let mut branches = Vec::new();
        while !world.status(&run).await.is_terminal() {
            world.settle().await;
            let length = world.length(&run).await;
            branches.push(forked(&world, &run, branch_at(length)).await);
            world.clock.advance(50);
        }
        world.see_through().await;
        let all = remembered(&world, &run).await;
        for ForkedRun { run_id, from_seq, .. } in branches {
            let context = format!("{}, branched at {from_seq} while it ran", case.name);
            assert_eq!(remembered(&world, &run_id).await, all, "{context}");
            check_machine(&world.log_of(&run_id).await, &context);
        }
        world.stop().await;
    }
}

/// The decision at the point that is asked for is made anew, by what the branch has otherwise.
#[tokio::test]
async fn a_branch_at_a_decision_decides_again() {
    let rules = json!({
        "rules": [
            {"when": "iteration == 1", "decide": {"kind": "next-worker", "nextWorkerIds": ["a"]}},
            {"when": "variables.m == 'a'", "decide": {"kind": "next-worker", "nextWorkerIds": ["b"]}}
        ],
        "otherwise": {"kind": "terminate", "reason": "otherwise"}
    });
    let dispatch = json!({"outputMapping": {"m": "m"}});
    let flow = Flow::chain(
        "chooser",
        &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)],
    )
    .edge("dispatch", "lead")
    .variable("m", "string", json!(""));
    let world = World::with([flow, scribe("a", 10), scribe("b", 10)]).await;
    let run = world.start("chooser").await;
    world.drive(0).await;
    let log = world.log_of(&run).await;
    let decided: Vec<usize> = (0..log.len()).filter(|&seq| log[seq]["type"] == "runOrchestrator.decided").collect();
    assert_eq!(decided.len(), 3);
    let variables = [("m".to_owned(), json!("another"))].into_iter().collect();
    let reply = forked(&world, &run, ForkRun { variables, ..branch_at(decided[1] as u64) }).await;
    assert!(reply.from_seq < decided[1] as u64 && reply.requested_from_seq == Some(decided[1] as u64), "{reply:?}");
    world.see_through().await;
    let other = world.log_of(&reply.run_id).await;
    assert_eq!(other[decided[1]]["payload"]["decision"], json!({"kind": "terminate", "reason": "otherwise"}));
    let shown = world.snapshot(&reply.run_id).await.forked_from.unwrap();
    assert_eq!((shown.from_seq, shown.requested_from_seq), (reply.from_seq, reply.requested_from_seq));
    world.stop().await;
}

/// Workers on another host leave no traces here, but theirs is a handoff like any other.
#[tokio::test]
async fn a_remote_handoff_is_cut_off_as_a_whole() {
    for prompt in [true, false] {
        let far = if prompt { Far::prompt() } else { Far::slow() };
        let world = World::open(Disk::default(), Arc::default(), far.options(512)).await;
        world.register(delegate("team", WORKER)).await;
        let run = world.start("team").await;
        world.settle().await;
        if !prompt {
            far.all(RunStatus::Completed, json!({"m": 40}));
            world.clock.advance(500);
        }
        world.ended(&run).await;
        let before = far.runs().len();
        let branches = branch_everywhere(&world, &run, "remote").await;
        let log = world.log_of(&run).await;
        let began = log.iter().position(|event| event["payload"]["phase"] == "dispatch.began").unwrap() as u64;
        for (branch, asked, point) in &branches {
            world.settle().await;
            far.all(RunStatus::Completed, json!({"m": 40}));
            world.clock.advance(500);
            assert_eq!(world.ended(branch).await.status, RunStatus::Completed);
            let context = format!("remote, branched at {asked}, which is {point}");
            check_machine(&world.log_of(branch).await, &context);
            let own = far.runs().into_iter().filter(|far| far.handover.cause.run_id == *branch).count();
            assert_eq!(own, usize::from(*point <= began), "{context}");
        }
        assert!(far.runs().len() > before);
        world.stop().await;
    }
}

/// Wherever the process dies, the branch is there or not, and begins where it was said to.
#[tokio::test]
async fn a_branch_inside_a_handoff_survives_every_crash() {
    for case in remembering() {
        let (world, run) = case.played().await;
        let (log, all) = (world.log_of(&run).await, remembered(&world, &run).await);
        let ends = |event: &Value| {
            event["payload"]["phase"] == "child.completed" || event["payload"]["outputs"]["childStatus"] == "completed"
        };
        let asked = log.iter().position(ends).unwrap() as u64;
        let point = points(&log, &firsts(&world, &run, log.len() as u64).await)[asked as usize];
        assert!(point < asked, "{}", case.name);
        let disk = world.stop().await;
        for commits in 1.. {
            assert!(commits < MOST_CRASHES, "{}: never ends", case.name);
            let context = format!("{}, branched at {asked}, crashed after {commits}", case.name);
            let clock = Arc::new(SimClock::default());
            let world = reopened(disk.clone(), Arc::clone(&clock), 1, options(1)).await;
            world.settle().await;
            world.store.crash_after(commits);
            let life = async {
                let reply = forked(&world, &run, branch_at(asked)).await;
                world.see_through().await;
                reply
            };
            let died = tokio::select! {
                _ = life => false,
                () = world.store.crashed() => true,
            };
            let world = reopened(world.stop().await, clock, 2, options(1)).await;
            in_time(&context, world.see_through()).await;
            let made = world.reader.forks(&run).await.unwrap();
            let [branch] = made.as_slice() else { panic!("{context}: {made:?}") };
            assert_eq!(world.row(branch).await.origin.unwrap().seq, point, "{context}");
            check_machine(&world.log_of(branch).await, &context);
            assert_eq!(remembered(&world, branch).await, all, "{context}");
            world.verified(branch, &context).await;
            world.stop().await;
            if !died {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_file_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let world = over(store, Arc::default(), Arc::default(), 1, options(512)).await;
    let team = scribes("at-once", "parallel").swap_remove(0);
    for flow in [team, scribe("a", 0), scribe("b", 0), scribe("c", 0)] {
        world.register(flow).await;
    }
    let run = world.start("at-once").await;
    world.ended(&run).await;
    let all = remembered(&world, &run).await;
    for (branch, asked, _) in branch_everywhere(&world, &run, "on disk").await {
        world.ended(&branch).await;
        check_machine(&world.log_of(&branch).await, &format!("on disk, branched at {asked}"));
        assert_eq!(remembered(&world, &branch).await, all, "branched at {asked}");
    }
    world.host.shutdown().await;
    drop(world);
    assert!(SqliteStore::check(folder.path()).unwrap().is_sound());
}
