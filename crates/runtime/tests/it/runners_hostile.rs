//! Runners that do not do as they should, steps that no agent asked for, and what a replay asks of runners.

use crate::common;
use crate::forking::fork;
use crate::runners;

use baton_model::{ForkMode, Principal, RunStatus, SideEffects, code};
use baton_runtime::{
    ErrorKind, ForkRun, ReportedState, RunnerCapabilities, RunnerRegistration, RunnerReports, RunnerTools, Told,
};
use baton_testkit::Flow;
use common::{World, who};
use runners::{Hand, TOOL, brain, done, open, pass, text, tools, with};
use serde_json::{Value, json};

const LEASE_MS: u64 = 30_000;

/// A node that calls the tool by itself.
fn step(config: Value) -> Flow {
    let mut config = config;
    config["tool"] = TOOL.into();
    Flow::chain("steps", &[("step", "vendor.baton.tool", config), ("after", "core.noop", json!({}))])
}

async fn steps(config: Value) -> World {
    let world = open(with(&brain())).await;
    world.register(step(config)).await;
    world
}

#[tokio::test]
async fn a_node_calls_a_runner_that_comes_while_it_waits() {
    let world = steps(json!({"arguments": {"n": 1}})).await;
    let run = world.start("steps").await;
    pass(&world, 5_000).await;
    assert_eq!(world.status(&run).await, RunStatus::Running, "there was never such a runner");
    assert_eq!(world.kinds_of(&run, "baton.").await, ["baton.runner.waiting"]);
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let step = hand.step().await;
    assert_eq!((&step.run_id, &step.inputs["n"]), (&run, &json!(1)));
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
    let view = world.ended(&run).await;
    assert_eq!(view.status, RunStatus::Completed, "{:?}", view.error);
    assert_eq!(world.calls_of(&run, TOOL).await.returned, 1);
}

#[tokio::test]
async fn a_node_that_waits_for_nobody_fails_at_once_and_one_that_waits_fails_in_time() {
    let world = steps(json!({"arguments": {}, "waitForRunnerMs": 0})).await;
    let run = world.start("steps").await;
    world.settle().await;
    pass(&world, 1_000).await;
    assert_eq!(world.ended(&run).await.error.unwrap().code, code::RUNNER_UNAVAILABLE);
    let world = steps(json!({"arguments": {}, "waitForRunnerMs": 5_000})).await;
    let run = world.start("steps").await;
    pass(&world, 3_000).await;
    assert_eq!(world.status(&run).await, RunStatus::Running);
    pass(&world, 4_000).await;
    assert_eq!(world.ended(&run).await.error.unwrap().code, code::RUNNER_UNAVAILABLE);
}

#[tokio::test]
async fn a_nodes_step_goes_to_runners_of_the_runs_subject_in_the_version_that_it_asks_for() {
    let world = steps(json!({"arguments": {}, "runnerVersion": ">=2.0.0"})).await;
    let ann = Principal { acts_for: Some("ann".to_owned()), ..who() };
    let mut others = Hand::new(&world, &who(), "r1", 1).await;
    let mut old = Hand::new(&world, &ann, "old", 1).await;
    let run = world.host.start_run(&ann, common::request("steps"), None).await.unwrap().run_id;
    pass(&world, 2_000).await;
    old.nothing();
    others.nothing();
    // The worker is upgraded while the run waits.
    let mut new = Hand::signed_in(&world, &ann, "new", 1).await;
    let upgraded = RunnerTools { version: Some("2.1.0".to_owned()), ..tools(1) };
    world.host.put_runner_tools(&new.bearer, "new", upgraded).await.unwrap();
    new.connect(&world, None).await;
    let step = new.step().await;
    assert_eq!(new.answer(&world, &step, text("done")).await, Ok(false));
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    others.nothing();
}

#[tokio::test]
async fn a_map_goes_through_its_list_on_runners() {
    let world = open(with(&brain())).await;
    let config = json!({"tool": TOOL, "items": [1, 2, 3, 4, 5], "argumentsExpression": "{'n': item}",
        "maxConcurrency": 3, "into": "all"});
    world.register(Flow::chain("maps", &[("each", "vendor.baton.map", config)])).await;
    let mut hand = Hand::new(&world, &who(), "r1", 2).await;
    let run = world.start("maps").await;
    for _ in 0..5 {
        let step = hand.step().await;
        assert!(hand.beat(&world).await.leases.len() <= 2);
        let n = step.inputs["n"].as_i64().unwrap();
        assert_eq!(hand.answer(&world, &step, json!({"double": 2 * n})).await, Ok(false));
    }
    let view = world.ended(&run).await;
    let all: Vec<_> = (1..=5).map(|n| json!({"double": 2 * n})).collect();
    assert_eq!(view.variables["all"], json!(all), "{:?}", view.error);
}

#[tokio::test]
async fn a_replay_of_a_nodes_step_asks_nobody() {
    let world = steps(json!({"arguments": {}})).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("steps").await;
    let step = hand.step().await;
    assert_eq!(hand.answer(&world, &step, text("recorded")).await, Ok(false));
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    let again = world.fork(&run, fork(ForkMode::Replay, 0)).await;
    assert_eq!(world.ended(&again).await.status, RunStatus::Completed);
    hand.nothing();
}

#[tokio::test]
async fn a_frame_that_never_left_goes_to_another_runner_and_nothing_is_in_doubt() {
    let world = open(with(&brain())).await;
    // One whose connection breaks before the frame, and one that reads no frames.
    for breaks in [true, false] {
        let mut first = Hand::new(&world, &who(), "r1", 1).await;
        let run = world.start("asks").await;
        world.settle().await;
        if breaks {
            first.stream = None;
        }
        let mut second = Hand::new(&world, &who(), "r2", 1).await;
        pass(&world, LEASE_MS + 2_000).await;
        let step = second.step().await;
        assert_eq!(second.answer(&world, &step, text("done")).await, Ok(false));
        done(&world, &run, "never left").await;
        assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0);
        if !breaks {
            // It is given nothing until it says something.
            let run = world.start("asks").await;
            let step = second.step().await;
            assert_eq!(second.answer(&world, &step, text("done")).await, Ok(false));
            done(&world, &run, "the other one").await;
            first.nothing();
            second.stream = None;
            first.beat(&world).await;
            let run = world.start("asks").await;
            let step = first.step().await;
            assert_eq!(first.answer(&world, &step, text("done")).await, Ok(false));
            done(&world, &run, "heard of again").await;
        }
        for hand in [&first, &second] {
            world.host.sign_off_runner(&hand.bearer, &hand.id).await.unwrap();
        }
    }
}

#[tokio::test]
async fn one_that_drains_is_shown_nothing_more_and_what_it_did_not_see_goes_on_at_once() {
    let world = open(with(&brain())).await;
    let mut first = Hand::new(&world, &who(), "r1", 2).await;
    let seen = world.start("asks").await;
    let in_hand = first.step().await;
    let run = world.start("asks").await;
    world.settle().await;
    let draining = RunnerReports { draining: true, reports: Vec::new() };
    world.host.runner_report(&first.bearer, "r1", draining).await.unwrap();
    assert_eq!(first.next().await, Told::Drain);
    first.nothing();
    let mut second = Hand::new(&world, &who(), "r2", 1).await;
    let step = second.step().await;
    assert_eq!(step.run_id, run);
    // Connecting again it is shown what it has.
    first.connect(&world, None).await;
    assert_eq!(first.next().await, Told::Drain);
    assert_eq!(first.step().await, in_hand);
    assert_eq!(first.answer(&world, &in_hand, text("done")).await, Ok(false));
    assert_eq!(second.answer(&world, &step, text("done")).await, Ok(false));
    done(&world, &seen, "in hand").await;
    done(&world, &run, "not seen").await;
    assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0);
}

#[tokio::test]
async fn a_runner_that_gives_everything_back_does_not_go_on_for_ever() {
    let world = open(with(&brain())).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let mut given = 0;
    for _ in 0..100 {
        world.settle().await;
        match hand.stream.as_mut().unwrap().ready() {
            Some(Told::Dispatch { frame, .. }) => {
                given += 1;
                hand.report(&world, &frame, ReportedState::Released).await;
            }
            Some(other) => panic!("{other:?}"),
            None => break,
        }
    }
    assert_eq!(given, 32);
    done(&world, &run, "given back").await;
    let outcomes = world.outcomes_of(&run).await;
    assert_eq!(outcomes[0].2.as_deref(), Some(code::RUNNER_UNAVAILABLE), "{outcomes:?}");
    assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0, "it was certainly not made");
}

#[tokio::test]
async fn a_branch_is_worked_on_by_runners_of_whoever_makes_it() {
    let world = steps(json!({"arguments": {}})).await;
    let of = |subject: &str| Principal { acts_for: Some(subject.to_owned()), ..who() };
    let mut anns = Hand::new(&world, &of("ann"), "r1", 1).await;
    let mut bobs = Hand::new(&world, &of("bob"), "r1", 1).await;
    let run = world.host.start_run(&of("ann"), common::request("steps"), None).await.unwrap().run_id;
    let step = anns.step().await;
    assert_eq!(anns.answer(&world, &step, text("done")).await, Ok(false));
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    for (who, hand) in [(of("bob"), &mut bobs), (of("ann"), &mut anns)] {
        let branch = ForkRun { side_effects: SideEffects::Real, ..fork(ForkMode::Branch, 1) };
        let branch = world.host.fork(&who, &run, branch, None).await.unwrap().run_id;
        let step = hand.step().await;
        assert_eq!(step.run_id, branch);
        assert_eq!(hand.answer(&world, &step, text("again")).await, Ok(false));
        assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
    }
    anns.nothing();
    bobs.nothing();
}

#[tokio::test]
async fn what_one_says_of_somebody_elses_step_counts_for_nothing() {
    let world = open(with(&brain())).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    let stranger = Hand::new(&world, &common::other(), "r1", 1).await;
    let neighbour = Hand::new(&world, &who(), "r2", 1).await;
    for other in [&stranger, &neighbour] {
        for state in [ReportedState::Unknown, ReportedState::Released, ReportedState::Progress] {
            assert_eq!(other.report(&world, &step, state).await.leases, []);
        }
        assert_eq!(other.answer(&world, &step, text("mine")).await, Err(code::STEP_NOT_LEASED));
    }
    world.settle().await;
    assert_eq!(hand.beat(&world).await.leases.len(), 1, "it still has it");
    assert_eq!(world.kinds_of(&run, "baton.").await, [""; 0]);
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
    done(&world, &run, "its own").await;
}

#[tokio::test]
async fn what_a_runner_says_of_its_tools_is_bounded() {
    let world = open(with(&brain())).await;
    let hand = Hand::signed_in(&world, &who(), "r1", 1).await;
    let capabilities = |tools| RunnerCapabilities { tools, ..RunnerCapabilities::default() };
    let sign_in = |tools: Vec<String>| {
        let (runner_id, subject) = ("r1".to_owned(), hand.bearer.owner.subject.clone());
        let frame = RunnerRegistration { runner_id, subject, capabilities: capabilities(tools) };
        world.host.register_runner(&hand.bearer, frame)
    };
    let names = (0..100_000).map(|n| format!("py.t{n}")).collect();
    assert_eq!(sign_in(names).await.unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(sign_in(vec!["x".repeat(300)]).await.unwrap_err().kind, ErrorKind::Invalid);
    let of = |pool: &str, tools: Vec<Value>| RunnerTools {
        pool: pool.to_owned(),
        version: None,
        max_concurrency: 1,
        tools: serde_json::from_value(Value::Array(tools)).unwrap(),
    };
    let tool = |n: usize| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}});
    let put = async |id: &str, tools| {
        let put = world.host.put_runner_tools(&hand.bearer, id, tools).await;
        put.map_err(|error| error.kind)
    };
    assert_eq!(put("r1", of("py", (0..100_000).map(tool).collect())).await, Err(ErrorKind::Invalid));
    let huge = |bytes: usize| json!({"name": "t", "inputSchema": {"type": "object", "title": "x".repeat(bytes)}});
    assert_eq!(put("r1", of("py", vec![huge(4 * 1024 * 1024)])).await, Err(ErrorKind::Invalid));
    let large = |n: usize| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}, "description": "x".repeat(60_000)});
    assert_eq!(put("r1", of("py", (0..20).map(large).collect())).await, Err(ErrorKind::TooLarge));
    assert_eq!(world.host.runners(&who())[0].tools, ["py.work"], "as it was");
    // All of a subject together.
    let mut refused = None;
    for n in 0..40 {
        let (id, pool) = (format!("s{n}"), format!("p{n}"));
        let one = Hand { bearer: hand.bearer.clone(), id: id.clone(), stream: None };
        one.sign_in(&world).await;
        if let Err(kind) = put(&id, of(&pool, (0..256).map(tool).collect())).await {
            refused = Some((n, kind));
            break;
        }
    }
    assert_eq!(refused, Some((19, ErrorKind::TooMany)));
}
