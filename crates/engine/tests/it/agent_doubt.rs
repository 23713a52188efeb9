//! Calls of an agent of which nobody knows whether they took place: shown, handled as their tool says, never guessed.

use crate::support;

use baton_engine::Returned;
use baton_model::RunStatus;
use baton_model::event::DrainPolicy;
use serde_json::json;
use support::World;
use support::agent_audit::Audit;
use support::agents::{FREE, UNKNOWN_EFFECT, calling, calling_within, ok, tool_calls, unknown, wants, working};
use support::models::{asked, said};

/// What is done about a call of which nobody knows, tool by tool: what the shell says each time it is asked, and what
/// the log says of it.
#[test]
fn nobody_knows_and_that_is_handled_as_the_tool_says() {
    let done = || ok(json!("done"));
    let table: [(&str, Vec<Returned>, &[&str]); 8] = [
        ("mcp:store", vec![unknown(), done()], &["called", "unknown, retry", "again", "returned"]),
        (
            "mcp:store",
            vec![unknown(), unknown(), unknown(), unknown()],
            &[
                "called",
                "unknown, retry",
                "again",
                "unknown, retry",
                "again",
                "unknown, retry",
                "again",
                "unknown, fail",
                "returned effect_outcome_unknown",
            ],
        ),
        ("mcp:pay", vec![unknown(), done()], &["called", "unknown, verify", "looked up", "returned"]),
        (
            "mcp:pay",
            vec![unknown(), Returned::NotDone, done()],
            &["called", "unknown, verify", "looked up", "again", "returned"],
        ),
        ("mcp:pay", vec![unknown(), unknown()], &["called", "unknown, verify", "looked up", "unknown, ask", "asked"]),
        (
            "mcp:pay",
            vec![unknown(), Returned::NotDone, unknown(), Returned::NotDone, unknown()],
            &[
                "called",
                "unknown, verify",
                "looked up",
                "again",
                "unknown, verify",
                "looked up",
                "again",
                "unknown, ask",
                "asked",
            ],
        ),
        ("mcp:mail", vec![unknown()], &["called", "unknown, ask", "asked"]),
        ("mcp:post", vec![unknown()], &["called", "unknown, fail", "returned effect_outcome_unknown"]),
    ];
    for (tool, says, told) in table {
        let (mut world, call) = calling(tool);
        for (time, what) in says.into_iter().enumerate() {
            let now = world.tool();
            assert_eq!((&now.key, now.again as usize), (&call.key, time), "{tool}: the same call, taken up again");
            assert!(world.returns(&now, what));
            assert_eq!(baton_engine::outstanding(&world.refolded()), baton_engine::outstanding(&world.state));
        }
        assert_eq!(world.story(), told, "{tool}");
        let seq = world.causes("agent.toolCalled")[0].0;
        for kind in ["baton.effect.unknown", "baton.effect.retried", "agent.toolReturned"] {
            assert!(world.causes(kind).iter().all(|(_, cause)| *cause == Some(seq)), "{kind} is caused by the call");
        }
        world.cancel();
        Audit::check(&world.log);
    }
}

#[test]
fn a_human_says_what_became_of_a_call() {
    let table = [
        (json!({"action": "retry"}), "answered", "again"),
        (json!("retry"), "answered", "again"),
        (json!({"action": "done", "result": {"id": 7}}), "accepted", "returned"),
        (json!("done"), "accepted", "returned"),
        (json!({"action": "fail"}), "rejected", "returned effect_outcome_unknown"),
    ];
    for (value, outcome, then) in table {
        let (mut world, call) = calling("mcp:mail");
        world.returns(&call, unknown());
        assert_eq!(world.status(), RunStatus::WaitingApproval);
        assert!(world.is_quiet(), "nobody calls while somebody is asked");
        let question = &world.payloads("interrupt.requested")[0];
        assert_eq!(
            (&question["kind"], &question["data"]["toolName"], &question["data"]["inputs"]),
            (&json!(UNKNOWN_EFFECT), &json!("mcp:mail"), &json!({"n": 1}))
        );
        for bad in [json!({"action": "maybe"}), json!(null), json!({"result": 1})] {
            assert_eq!(world.answer("work", bad).unwrap_err().fault.code, "validation_error");
        }
        world.answer("work", value.clone()).unwrap();
        assert_eq!(world.story()[3..], [outcome, then], "{value}");
        assert_eq!(world.answer("work", value).unwrap_err().fault.code, "interrupt_already_resolved");
        if then == "again" {
            let now = world.tool();
            assert_eq!((now.key.as_str(), now.again), (call.key.as_str(), 1));
            world.returns(&now, unknown());
            assert_eq!(world.status(), RunStatus::WaitingApproval, "and somebody is asked again");
            world.answer("work", json!("fail")).unwrap();
        }
        world.says(said("Done."));
        assert_eq!(world.status(), RunStatus::Completed);
        Audit::check(&world.log);
    }
}

#[test]
fn an_outcome_that_turns_up_makes_the_question_moot() {
    let (mut world, call) = calling("mcp:mail");
    world.returns(&call, unknown());
    assert!(world.returns(&call, ok(json!("sent after all"))));
    assert_eq!(world.story(), ["called", "unknown, ask", "asked", "cancelled", "returned"]);
    assert_eq!(world.status(), RunStatus::Running);
    assert_eq!(world.answer("work", json!("done")).unwrap_err().fault.code, "interrupt_already_resolved");
    world.says(said("Done."));
    Audit::check(&world.log);
}

#[test]
fn while_one_call_is_in_question_the_others_come_back() {
    let mut world = working(FREE);
    world.says(wants(&[("mcp:mail", json!({})), ("mcp:look", json!({})), ("mcp:mail", json!({"n": 2}))]));
    let calls = tool_calls(&world.state);
    world.returns(&calls[0], unknown());
    assert_eq!(world.status(), RunStatus::WaitingApproval);
    assert!(world.returns(&calls[1], ok(json!(1))), "a result is not lost");
    assert!(world.returns(&calls[2], unknown()));
    world.answer("work", json!("done")).unwrap();
    assert_eq!(world.status(), RunStatus::WaitingApproval, "one question after the other");
    world.answer("work", json!("fail")).unwrap();
    assert_eq!(asked(&world.state).len(), 1);
    world.says(said("Done."));
    Audit::check(&world.log);
}

#[test]
fn a_node_that_runs_out_of_time_does_not_do_it_twice() {
    // A call that may have changed the world is in doubt, and handled as its tool says.
    let (mut world, _) = calling_within("mcp:mail", json!({"timeout": 100, "maxRetries": 3}));
    world.wait(100);
    assert_eq!(world.story(), ["called", "unknown, ask", "asked"]);
    world.wait(100_000);
    assert_eq!(world.status(), RunStatus::WaitingApproval, "whoever is asked may take his time");
    world.answer("work", json!("done")).unwrap();
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(100)), "from here on the agent has its time again");
    world.says(said("Done."));
    assert_eq!((world.status(), world.payloads("node.retried").len()), (RunStatus::Completed, 0));
    Audit::check(&world.log);
    // A second try under the same key has its own time.
    let (mut world, call) = calling_within("mcp:store", json!({"timeout": 100}));
    world.wait(100);
    assert_eq!((world.tool().key, world.tool().again), (call.key, 1));
    assert_eq!(world.state.wake_at(), Some(world.now.plus_millis(100)));
    // One that only looks may be made again with everything else.
    let (mut world, _) = calling_within("mcp:look", json!({"timeout": 100, "maxRetries": 1}));
    world.wait(100);
    assert_eq!(world.nodes_of("node.retried"), ["work"]);
    assert_eq!(world.story(), ["called", "unknown, fail", "returned effect_outcome_unknown"], "and that is said too");
    assert_eq!(world.outcomes(), ["failed"]);
}

#[test]
fn what_is_open_when_the_run_ends_is_said_to_be_unknown() {
    for (name, end) in [("cancelled", World::cancel as fn(&mut World)), ("out of time", |world| world.wait(2_000_000))]
    {
        let mut world = working(FREE);
        world.answering = false;
        world.says(wants(&[("mcp:mail", json!({})), ("openwop:memory.put", json!({"content": "x"}))]));
        let call = world.tool();
        end(&mut world);
        assert_eq!(
            world.story(),
            ["called", "called", "unknown, fail", "returned effect_outcome_unknown", "returned external_call_failed"],
            "{name}: one may have been made, the other was not"
        );
        assert_eq!(world.outcomes(), ["failed"]);
        assert!(!world.returns(&call, ok(json!(1))), "nobody hears it any more");
        assert_eq!(world.ledgers.versions().memory, 0);
        Audit::check(&world.log);
    }
}

#[test]
fn a_paused_run_takes_nothing_up_again() {
    let (mut world, call) = calling("mcp:pay");
    world.returns(&call, unknown());
    world.pause(DrainPolicy::Immediate).unwrap();
    let looking = world.tool();
    assert!(looking.verify);
    assert!(world.returns(&looking, Returned::NotDone), "what was found out is kept");
    assert!(world.is_quiet(), "and acted upon when the run goes on");
    world.resume().unwrap();
    assert_eq!((world.tool().verify, world.tool().again), (false, 2));
    let (mut world, call) = calling("mcp:mail");
    world.pause(DrainPolicy::Immediate).unwrap();
    assert!(world.returns(&call, unknown()), "that nobody knows is kept too");
    assert_eq!((world.status(), world.payloads("interrupt.requested").len()), (RunStatus::Paused, 0));
    world.resume().unwrap();
    assert_eq!(world.status(), RunStatus::WaitingApproval);
}
