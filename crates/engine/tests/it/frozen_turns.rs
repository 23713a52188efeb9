//! What a supervisor's turn sees of memory and workspace: everything written before it began, nothing written since,
//! and the same again however late a human sends it back.

use crate::support;

use baton_engine::{Answer, ChildOutcome, Command, Effect, NodeRequest, Request, Start, outstanding};
use baton_model::event::{DrainPolicy, NodeStarted};
use baton_model::{Decision, Event, Fault, RunStatus, TurnSnapshot, Versions};
use serde_json::{Map, Value, json};
use support::{World, plan, start_command, workflow};

const A_WEEK: u64 = 7 * 24 * 3600 * 1000;

/// A supervisor with these rules; a rule is a condition and the worker it sends, and the end comes when none holds.
fn ruled(rules: &[(&str, &str)]) -> Value {
    let rule = |(when, worker): &(&str, &str)| json!({"when": when, "decide": {"kind": "next-worker", "nextWorkerIds": [worker]}});
    decided_by(rules.iter().map(rule).collect())
}

/// The same, held until somebody looks at it.
fn unsure(rules: &[(&str, &str)]) -> Value {
    let rule = |(when, worker): &(&str, &str)| json!({"when": when, "decide": {"kind": "next-worker", "nextWorkerIds": [worker], "confidence": 0.1}});
    decided_by(rules.iter().map(rule).collect())
}

fn decided_by(rules: Vec<Value>) -> Value {
    let supervisor = json!({"rules": rules, "otherwise": {"kind": "terminate", "reason": "done"}});
    workflow(&[("sup", "core.orchestrator.supervisor", supervisor), ("disp", "core.dispatch", json!({}))], &[])
}

fn long_life() -> Start {
    {
        let mut start = start_command(json!({}));
        start.settings.max_duration_ms = 100 * A_WEEK;
        start
    }
}

fn start(world: &mut World) {
    let mut start = long_life();
    start.settings.versions = world.ledgers.versions();
    world.command(&Command::Start(Box::new(start))).unwrap();
}

/// A run of this workflow, with what `before` writes already there.
fn begun(definition: Value, before: impl Fn(&mut World)) -> World {
    let mut world = World::new(plan(definition));
    before(&mut world);
    start(&mut world);
    world
}

fn remember(world: &mut World, content: &str, ttl_ms: Option<u64>) {
    world.ledgers.remember("run_worker", content, &[], ttl_ms, world.now);
}

fn write(world: &mut World, path: &str, content: &str) {
    world.ledgers.write_file(path, content, None, world.now);
}

/// The worker under way does its part and completes.
fn work(world: &mut World) {
    let child = world.child();
    let outcome =
        ChildOutcome { status: RunStatus::Completed, variables: Map::new(), error: None, memory: 0, usage: None };
    world.command(&Command::ChildStarted { child: child.clone() }).unwrap();
    world.command(&Command::ChildEnded { child, outcome }).unwrap();
}

/// Whom the supervisor sent in each turn; `-` for the end.
fn sent(world: &World) -> Vec<String> {
    let decided = world.log.iter().filter_map(|record| match &record.event {
        Event::OrchestratorDecided(event) => Some(event),
        _ => None,
    });
    decided
        .enumerate()
        .map(|(i, event)| {
            assert_eq!(event.iteration, i as u64 + 1, "turns count without a gap");
            event.decision.first_worker().map_or("-".to_owned(), |worker| worker.to_string())
        })
        .collect()
}

/// The decision that waits for a human.
fn held(world: &World) -> String {
    let question = world.state.interrupts().next().expect("a decision is held");
    Decision::read(&question.data["artifactData"]).unwrap().first_worker().unwrap().to_string()
}

fn turns(world: &World) -> Vec<&NodeStarted> {
    let started = world.log.iter().filter_map(|record| match &record.event {
        Event::NodeStarted(event) if event.node_id.as_str() == "sup" => Some(event),
        _ => None,
    });
    started.collect()
}

fn frozen(world: &World) -> Vec<TurnSnapshot> {
    turns(world).into_iter().map(|event| event.private.frozen.expect("a turn is frozen")).collect()
}

fn refine(world: &mut World) {
    world.answer("sup", json!({"action": "refine", "refineFeedback": {"scope": "whole"}})).unwrap();
}

fn versions(memory: u64, workspace: u64) -> Versions {
    Versions { memory, workspace }
}

#[test]
fn what_a_turn_sees_is_on_its_record_and_nobody_elses_business() {
    let mut world = begun(ruled(&[("iteration == 1", "a")]), |world| {
        remember(world, "one", None);
        write(world, "a.md", "x");
        write(world, "b.md", "x");
    });
    remember(&mut world, "two", None);
    let began = world.now;
    world.wait(5);
    work(&mut world);
    assert_eq!(world.status(), RunStatus::Completed);
    let later = began.plus_millis(5);
    assert_eq!(
        frozen(&world),
        [TurnSnapshot { versions: versions(1, 2), at: began }, TurnSnapshot { versions: versions(2, 2), at: later }]
    );
    for payload in world.payloads("node.started") {
        let keys: Vec<&str> = payload.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["attempt", "nodeId", "typeId"]);
    }
}

#[test]
fn rules_read_memory_files_children_and_the_turn() {
    let mut world = begun(
        ruled(&[
            ("iteration == 1 && size(children) == 0 && size(memory) == 0", "first"),
            (
                "memory.exists(m, m.content == 'go on' && 'hint' in m.tags) && children[0].workflowId == 'first'",
                "second",
            ),
            (
                "'plan.md' in workspace && workspace['plan.md'].content == 'third please' && workspace['plan.md'].version == 2",
                "third",
            ),
            ("children.filter(c, c.status == 'completed').size() == 3 && children[2].iteration == 3", "fourth"),
        ]),
        |_| {},
    );
    world.ledgers.remember("run_worker", "go on", &["hint"], None, world.now);
    work(&mut world);
    world.ledgers.forget("run_worker", "mem_1");
    write(&mut world, "plan.md", "draft");
    write(&mut world, "plan.md", "third please");
    work(&mut world);
    world.ledgers.delete_file("plan.md");
    work(&mut world);
    assert_eq!(sent(&world), ["first", "second", "third", "fourth"]);
    work(&mut world);
    assert_eq!(sent(&world).last().unwrap(), "-");
}

#[test]
fn memory_is_newest_first() {
    let world = begun(ruled(&[("memory.map(m, m.content) == ['new', 'old']", "right")]), |world| {
        remember(world, "old", None);
        remember(world, "new", None);
    });
    assert_eq!(sent(&world), ["right"]);
}

/// Both kinds in one turn: neither shows before the next one.
#[test]
fn what_is_written_in_a_turn_shows_in_the_next() {
    let both = "memory.exists(m, m.content == 'now') && 'now.md' in workspace";
    let either = "memory.exists(m, m.content == 'now') || 'now.md' in workspace";
    let mut world = begun(unsure(&[(both, "both"), (either, "one"), ("iteration == 1", "none")]), |_| {});
    assert_eq!(held(&world), "none");
    remember(&mut world, "now", None);
    write(&mut world, "now.md", "x");
    refine(&mut world);
    assert_eq!(held(&world), "none", "not in the turn that is still being taken");
    world.answer("sup", json!({"action": "accept"})).unwrap();
    assert_eq!(sent(&world), ["none"]);
    work(&mut world);
    assert_eq!(held(&world), "both", "but in the next");
}

/// The run's own nodes beside the loop: a write between two turns is seen by the second, and a turn lets the run's
/// other nodes see what it saw.
#[test]
fn a_turn_moves_the_sight_of_the_whole_run() {
    let mut definition = ruled(&[("iteration == 1", "a"), ("memory.exists(m, m.content == 'mine')", "b")]);
    let extra = workflow(
        &[
            ("nap", "core.delay", json!({"ms": 10})),
            ("put", "vendor.baton.memory.put", json!({"content": "mine"})),
            ("file", "vendor.baton.workspace.put", json!({"path": "mine.md", "content": "x"})),
            ("early", "vendor.baton.workspace.list", json!({"into": "early"})),
            ("rest", "core.delay", json!({"ms": 10})),
            ("late", "vendor.baton.workspace.list", json!({"into": "late"})),
            ("entries", "vendor.baton.memory.list", json!({"into": "entries"})),
        ],
        &[
            ("nap", "put", Value::Null),
            ("put", "file", Value::Null),
            ("file", "early", Value::Null),
            ("early", "rest", Value::Null),
            ("rest", "late", Value::Null),
            ("late", "entries", Value::Null),
        ],
    );
    for part in ["nodes", "edges"] {
        let more = extra[part].as_array().unwrap().clone();
        definition[part].as_array_mut().unwrap().extend(more);
    }
    let mut world = begun(definition, |_| {});
    world.wait(10);
    assert_eq!(world.variable("early"), Some(&json!([])), "no read of its own writes inside a turn");
    remember(&mut world, "by the worker", None);
    work(&mut world);
    assert_eq!(sent(&world), ["a", "b"], "the next turn sees what the run wrote itself");
    world.wait(10);
    assert_eq!(world.variable("late").unwrap()[0]["path"], "mine.md", "and the run's nodes see what the turn saw");
    assert_eq!(world.variable("entries").unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn a_turn_sent_back_weeks_later_sees_the_same() {
    let seen = "memory.map(m, m.content) == ['short', 'long'] && workspace['plan.md'].content == 'old'";
    let rules = [(seen, "same"), ("size(memory) > 0", "other"), ("true", "nothing")];
    let mut world = begun(unsure(&rules), |world| {
        remember(world, "long", None);
        remember(world, "short", Some(50));
        write(world, "plan.md", "old");
    });
    assert_eq!(held(&world), "same");
    let first = frozen(&world)[0];
    for _ in 0..3 {
        world.wait(A_WEEK);
        world.ledgers.forget("run_worker", "mem_1");
        remember(&mut world, "more", None);
        write(&mut world, "plan.md", "new");
        // The process has been restarted in between.
        world.state = world.refolded();
        refine(&mut world);
        assert_eq!(held(&world), "same");
    }
    assert_eq!(frozen(&world), [first; 4], "one frozen view");
    assert_eq!(turns(&world).iter().map(|turn| turn.attempt).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(turns(&world).iter().map(|turn| turn.private.visit).collect::<Vec<_>>(), [1; 4]);
    world.answer("sup", json!({"action": "accept"})).unwrap();
    assert_eq!(sent(&world), ["same"], "and it is still the first turn");
    work(&mut world);
    assert_eq!(held(&world), "other", "the second sees the world as it is");
    assert_eq!(frozen(&world)[4].versions, world.ledgers.versions());
}

#[test]
fn a_held_decision_that_is_accepted_keeps_its_turn_and_asks_nothing() {
    let mut world = begun(unsure(&[("size(memory) == 1", "a")]), |world| remember(world, "x", None));
    world.answering = false;
    world.wait(A_WEEK);
    world.ledgers.forget("run_worker", "mem_1");
    assert_eq!(world.question(), None, "a held decision waits for a human and nothing else");
    world.answer("sup", json!({"action": "accept"})).unwrap();
    assert_eq!(sent(&world), ["a"]);
    assert_eq!(turns(&world).len(), 1);
}

#[test]
fn feedback_is_a_new_input_to_the_same_view() {
    let rules = [("feedback == null", "plain"), ("feedback.scope == 'whole' && size(memory) == 0", "told")];
    let mut world = begun(unsure(&rules), |_| {});
    assert_eq!(held(&world), "plain");
    remember(&mut world, "x", None);
    refine(&mut world);
    assert_eq!(held(&world), "told");
}

fn ask(world: &mut World) -> NodeRequest {
    world.answering = false;
    world.advance();
    world.question().expect("a turn asks")
}

#[test]
fn the_question_says_what_is_needed_and_what_is_frozen() {
    let asked = |rule: &str| {
        let mut world = World::new(plan(unsure(&[(rule, "a"), ("true", "b")])));
        world.answering = false;
        start(&mut world);
        let first = world.question().unwrap().request;
        let at = world.now;
        world.answer_question();
        world.wait(A_WEEK);
        refine(&mut world);
        (first, world.question().map(|node_request| node_request.request), at)
    };
    for (rule, memory, workspace) in [
        ("size(memory) > 5", true, false),
        ("[1].exists(x, size(memory) > x)", true, false),
        ("'a' in workspace", false, true),
        ("size(memory) > 5 || 'a' in workspace", true, true),
    ] {
        let (first, again, at) = asked(rule);
        assert_eq!(first, Request::Turn { frozen: None, memory, workspace, agent: None });
        let frozen = Some(TurnSnapshot { versions: versions(0, 0), at });
        assert_eq!(again, Some(Request::Turn { frozen, memory, workspace, agent: None }), "{rule}");
    }
    // One that reads neither has nothing to ask the second time.
    let (first, again, _) = asked("iteration == 7");
    assert_eq!((first, again), (Request::Turn { frozen: None, memory: false, workspace: false, agent: None }, None));
}

#[test]
fn a_turn_that_reads_neither_is_frozen_all_the_same() {
    let mut world = begun(unsure(&[("iteration == 1", "a")]), |world| remember(world, "x", None));
    remember(&mut world, "y", None);
    refine(&mut world);
    assert_eq!(frozen(&world).iter().map(|frozen| frozen.versions.memory).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn an_entry_that_expires_as_the_turn_begins_is_not_seen() {
    for (wait, worker) in [(19, "seen"), (20, "gone")] {
        let mut world = World::new(plan(ruled(&[("size(memory) == 1", "seen"), ("true", "gone")])));
        remember(&mut world, "short", Some(20));
        world.answering = false;
        start(&mut world);
        let node_request = world.question().unwrap();
        let (answer, _) = world.ledgers.answer(&world.state.run, "run_test", &node_request, world.now);
        // The answer was slow; the turn begins when it is taken.
        world.wait(wait);
        assert!(world.consulted(&node_request, answer));
        assert_eq!(sent(&world), [worker], "after {wait} ms");
        assert_eq!(frozen(&world)[0].at, world.now);
    }
}

#[test]
fn an_answer_for_another_turn_changes_nothing() {
    let mut world = begun(ruled(&[("size(memory) < 5", "a")]), |_| {});
    let first = NodeRequest { visit: 1, ..turn_question(&world) };
    world.answering = false;
    work(&mut world);
    let second = ask(&mut world);
    assert_eq!((second.visit, &second.request), (2, &first.request));
    let before = world.log.len();
    assert!(!world.answer_from_versioned_stores(&first));
    assert_eq!(world.log.len(), before);
    assert!(world.answer_from_versioned_stores(&second));
    assert!(!world.answer_from_versioned_stores(&second));
    assert_eq!(sent(&world).len(), 2);
}

/// The question this run's supervisor asks in a turn.
fn turn_question(world: &World) -> NodeRequest {
    let request = Request::Turn { frozen: None, memory: true, workspace: false, agent: None };
    let node = turns(world)[0].node_id.clone();
    NodeRequest { node, visit: 0, attempt: 0, call: None, request }
}

#[test]
fn the_bound_on_turns_binds_before_anything_is_asked() {
    let mut world = World::new(plan(ruled(&[("size(memory) == 0", "a")])));
    let start = {
        let mut start = start_command(json!({}));
        start.settings.max_loop_iterations = 1;
        start
    };
    world.command(&Command::Start(Box::new(start))).unwrap();
    world.answering = false;
    let child = world.child();
    let outcome =
        ChildOutcome { status: RunStatus::Completed, variables: Map::new(), error: None, memory: 0, usage: None };
    world.command(&Command::ChildStarted { child: child.clone() }).unwrap();
    for command in [Command::ChildEnded { child, outcome }, Command::Advance, Command::Advance] {
        let drafts = baton_engine::decide(&world.state, &command, world.now).unwrap();
        world.apply(drafts);
        assert_eq!(world.question(), None, "after {command:?}");
    }
    world.advance();
    assert_eq!(world.error_code(), Some("loop_limit_exceeded"));
    assert_eq!(sent(&world).len(), 1);
}

#[test]
fn a_view_that_is_gone_fails_the_run_and_decides_nothing() {
    let mut world = begun(unsure(&[("size(memory) == 0", "a")]), |_| {});
    world.answering = false;
    refine(&mut world);
    let node_request = world.question().unwrap();
    let fault = Fault::new("replay_memory_snapshot_unavailable", "It has been pruned.");
    assert!(world.consulted(&node_request, Answer::failed(fault)));
    assert_eq!(world.error_code(), Some("replay_memory_snapshot_unavailable"));
    assert_eq!(sent(&world), [""; 0]);
}

/// The turn waits to be taken again, and nothing is at work: a drain does not wait for it.
#[test]
fn a_turn_that_is_to_be_taken_again_outlives_a_pause() {
    for drain in [DrainPolicy::Immediate, DrainPolicy::DrainCurrentNode] {
        let mut world = begun(unsure(&[("size(memory) == 0", "a")]), |_| {});
        world.answering = false;
        refine(&mut world);
        let node_request = world.question().unwrap();
        world.pause(drain).unwrap();
        assert_eq!((world.status(), world.question()), (RunStatus::Paused, None), "{drain:?}");
        assert!(!world.answer_from_versioned_stores(&node_request));
        world.wait(A_WEEK);
        world.resume().unwrap();
        assert_eq!(world.question(), Some(node_request), "the same view is asked for");
        assert!(world.answer_question());
        assert_eq!(held(&world), "a");
    }
}

#[test]
fn a_turn_that_is_to_be_taken_again_survives_a_crash_and_dies_with_its_run() {
    let mut world = begun(unsure(&[("size(memory) == 0", "a")]), |_| {});
    world.answering = false;
    refine(&mut world);
    let node_request = world.question();
    world.state = world.refolded();
    assert_eq!(world.question(), node_request);
    world.cancel();
    assert_eq!((world.status(), world.question()), (RunStatus::Cancelled, None));
}

#[test]
fn an_isolated_worker_is_to_have_a_memory_of_its_own() {
    let isolated = |isolation: Value| {
        let mut definition = ruled(&[("iteration == 1", "a")]);
        definition["nodes"][1]["config"] = isolation;
        let world = begun(definition, |_| {});
        let plans = outstanding(&world.state).into_iter().filter_map(|effect| match effect {
            Effect::StartChild { plan, .. } => Some(plan.isolated),
            _ => None,
        });
        plans.collect::<Vec<_>>()
    };
    assert_eq!(isolated(json!({})), [false]);
    assert_eq!(isolated(json!({"memoryScopeIsolation": "shared"})), [false]);
    assert_eq!(isolated(json!({"memoryScopeIsolation": "isolated"})), [true]);
}
