//! Budgets, as far as one run is concerned: what it says about them, what it does when there is nothing left, and what
//! a human may do about that. The account itself is the shell's; here the test keeps it.

use crate::support;

use baton_engine::{Command, Refusal, Replay, RunState, Shortage, Spent, Start, Unaffordable, apply, decide};
use baton_model::budget::{Ceilings, Dimension, nanos};
use baton_model::event::{DrainPolicy, ParentLink};
use baton_model::{Budget, Draft, Event, Limits, RunId, RunStatus};
use serde_json::{Value, json};
use support::agents::{FREE, one, wants};
use support::models::{CALL, asked, asking, config, said, valid};
use support::{World, agents, plan, start_command, workflow};

fn ceilings(value: Value) -> Ceilings {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn bounded(value: Value, most: Value) -> Start {
    let budget = Budget { ceilings: ceilings(value), most: ceilings(most), ..Budget::default() };
    {
        let mut start = start_command(json!({}));
        start.settings.budget = Some(Box::new(budget));
        start
    }
}

pub(crate) fn short(dimension: Dimension, consumed: u64, limit: u64, wanted: u64, asks: bool) -> Box<Shortage> {
    let mut ceilings = Ceilings::default();
    ceilings.set(dimension, limit);
    Box::new(Shortage { dimension, consumed, limit, wanted, ceilings, asks })
}

/// A run that has asked a model and waits.
pub(crate) fn waiting(start: Start) -> World {
    World::started(plan(asking(workflow(&[("ask", CALL, config())], &[]))), start)
}

/// The call the run waits for cannot be paid for.
pub(crate) fn unpaid(world: &World, short: Box<Shortage>) -> Command {
    let call = asked(&world.state).remove(0);
    let (node, visit, attempt, call) = (call.node, call.visit, call.attempt, call.call);
    Command::OutOfBudget { what: Box::new(Unaffordable::Call { node, visit, attempt, call }), short }
}

/// Goes through the log again: what the engine decided comes out the same, what it was told is taken.
fn replays(world: &World) {
    let mut replay = Replay::new(RunId::new("run_test"), 0);
    let mut state = RunState::new(world.state.run.clone(), std::sync::Arc::clone(world.state.plan()));
    while let baton_engine::Next::Append { drafts, at, .. } =
        replay.step(&state, &world.log[replay.position() as usize..], true)
    {
        apply(&mut state, drafts, at).unwrap();
    }
    assert_eq!(replay.difference, None);
    assert_eq!(format!("{:?}", world.refolded()), format!("{:?}", world.state), "the log says it all");
}

#[test]
fn the_first_run_of_a_tree_says_what_may_be_spent_and_nobody_else_does() {
    let start = bounded(json!({"maxTokens": 10, "maxCostUsd": 0.5}), json!({}));
    let world = waiting(start.clone());
    assert_eq!(world.types()[..3], ["run.started", "budget.reserved", "node.started"]);
    let reserved = json!({"effectiveBudget": {"maxTokens": 10, "maxCostUsd": 0.5}, "scope": "run"});
    assert_eq!(world.payloads("budget.reserved"), [reserved]);
    replays(&world);
    let link = ParentLink {
        run: RunId::new("p"),
        node: "n".into(),
        root: RunId::new("p"),
        cause: "core.subWorkflow".into(),
        workflow: None,
        event: None,
    };
    let child = waiting({
        let mut start = start;
        start.settings.parent = Some(link);
        start
    });
    assert!(child.payloads("budget.reserved").is_empty() && child.state.budget().is_some());
    assert_eq!(
        waiting(start_command(json!({}))).types()[1],
        "node.started",
        "and nothing where nobody bounds anything"
    );
}

#[test]
fn what_is_used_is_said_with_its_place_and_without_prices() {
    let mut world = waiting(bounded(json!({"maxTokens": 10, "maxCostUsd": 1}), json!({})));
    let spent = vec![
        Spent { dimension: Dimension::Tokens, consumed: 8, limit: 10, crossed: Some(80.0) },
        Spent { dimension: Dimension::Cost, consumed: nanos(1.25), limit: nanos(1.0), crossed: None },
    ];
    world.command(&Command::Spent { node: "ask".into(), spent }).unwrap();
    let said = json!({"dimension": "tokens", "consumed": 8, "limit": 10, "remaining": 2});
    let overdrawn = json!({"dimension": "cost", "consumed": 1.25, "limit": 1, "remaining": 0});
    assert_eq!(world.payloads("budget.consumed"), [said, overdrawn]);
    let crossed = json!({"dimension": "tokens", "consumed": 8, "limit": 10, "percent": 80});
    assert_eq!(world.payloads("budget.threshold.crossed"), [crossed]);
    assert_eq!(world.nodes_of("budget.consumed"), ["ask", "ask"]);
    replays(&world);
}

#[test]
fn a_call_that_cannot_be_paid_for_ends_the_run_even_if_the_workflow_handles_failures() {
    for (dimension, consumed, limit, kind, shown) in [
        (Dimension::Tokens, 12, 10, "budget-tokens", json!({"consumed": 12, "limit": 10, "observed": 12})),
        (
            Dimension::Cost,
            nanos(0.5),
            nanos(0.5),
            "budget-cost",
            json!({"consumed": 0.5, "limit": 0.5, "observed": 0.500000001}),
        ),
    ] {
        let handled = [("ask", "after", json!({"triggerRule": "all_complete"}))];
        let flow = workflow(&[("ask", CALL, config()), ("after", "core.noop", json!({}))], &handled);
        let mut world = World::started(plan(asking(flow)), bounded(json!({}), json!({})));
        world.command(&unpaid(&world, short(dimension, consumed, limit, 3, false))).unwrap();
        assert_eq!(world.types()[3..], ["budget.exhausted", "cap.breached", "node.failed", "run.failed"]);
        let cap = json!({"kind": kind, "limit": shown["limit"], "observed": shown["observed"], "nodeId": "ask"});
        assert_eq!(world.payloads("cap.breached"), [cap]);
        let exhausted = json!({"dimension": dimension, "consumed": shown["consumed"], "limit": shown["limit"]});
        assert_eq!(world.payloads("budget.exhausted"), [exhausted]);
        assert_eq!((world.status(), world.error_code()), (RunStatus::Failed, Some("budget_exhausted")));
        replays(&world);
    }
}

#[test]
fn a_refusal_that_comes_too_late_changes_nothing() {
    let mut world = waiting(bounded(json!({"maxTokens": 10}), json!({})));
    let refusal = unpaid(&world, short(Dimension::Tokens, 10, 10, 1, false));
    // Paused, it goes nowhere; what it wants is asked for again when it goes on.
    world.pause(DrainPolicy::Immediate).unwrap();
    let before = world.log.len();
    world.command(&refusal).unwrap();
    assert_eq!(world.log.len(), before);
    world.resume().unwrap();
    assert_eq!(asked(&world.state).len(), 1);
    // Answered, and judged no good: it is another call that the node waits for now.
    world.command(&asked(&world.state)[0].answered(Ok(said("no JSON")))).unwrap();
    let before = world.log.len();
    world.command(&refusal).unwrap();
    assert_eq!(world.log.len(), before);
    world.cancel();
    world.command(&refusal).unwrap();
    assert_eq!(world.status(), RunStatus::Cancelled);
    replays(&world);
}

/// What a human may answer, and what the ceilings are then.
#[test]
fn an_extension_adds_to_the_ceilings_as_far_as_the_host_allows() {
    let delta = |delta: Value| json!({"action": "accept", "budgetDelta": delta});
    let table = [
        (json!("accept"), Some(200)),
        (json!({"action": "accept"}), Some(200)),
        (json!({"decision": "approved"}), Some(200)),
        (delta(json!({"maxTokens": 60})), Some(160)),
        (delta(json!({"maxTokens": 59})), None),
        (delta(json!({"maxTokens": 1000})), Some(250)),
        (delta(json!({"maxToolCalls": 1000})), None),
        (delta(json!({"maxCostUsd": -1, "maxTokens": 50})), None),
        (delta(json!({"maxTokens": 50, "more": 1})), None),
        (delta(json!({"maxTokens": u64::MAX})), Some(250)),
        (json!({"action": "refine"}), None),
        (json!({}), None),
    ];
    for (answer, expected) in table {
        let mut world = waiting(bounded(json!({"maxTokens": 100}), json!({"maxTokens": 250})));
        world.command(&unpaid(&world, short(Dimension::Tokens, 120, 100, 40, true))).unwrap();
        assert_eq!(world.status(), RunStatus::WaitingApproval);
        assert!(asked(&world.state).is_empty(), "nobody is asked while a human is");
        let answered = world.answer("ask", answer.clone());
        let Some(expected) = expected else {
            assert!(matches!(answered, Err(Refusal { .. })), "{answer}");
            assert_eq!(world.status(), RunStatus::WaitingApproval, "a bad answer leaves the run waiting");
            continue;
        };
        answered.unwrap();
        assert_eq!(world.payloads("budget.reserved")[1]["effectiveBudget"], json!({"maxTokens": expected}), "{answer}");
        world.command(&asked(&world.state)[0].answered(Ok(valid()))).unwrap();
        assert_eq!(world.status(), RunStatus::Completed, "the same call goes on");
        replays(&world);
    }
}

#[test]
fn a_human_has_all_the_time_and_the_node_has_its_own_again_afterwards() {
    let mut flow = asking(workflow(&[("ask", CALL, config())], &[]));
    flow["nodes"][0]["settings"] = json!({"timeout": 100});
    let mut world = World::started(plan(flow), bounded(json!({"maxTokens": 100}), json!({})));
    world.wait(60);
    world.command(&unpaid(&world, short(Dimension::Tokens, 100, 100, 40, true))).unwrap();
    world.wait(100_000);
    assert_eq!(world.status(), RunStatus::WaitingApproval);
    world.answer("ask", json!("accept")).unwrap();
    world.wait(99);
    assert_eq!(world.status(), RunStatus::Running);
    world.wait(1);
    assert_eq!(world.error_code(), Some("node_timeout"));
    replays(&world);
}

#[test]
fn what_another_run_was_answered_counts_here() {
    for (extended, status) in [(true, RunStatus::Running), (false, RunStatus::Failed)] {
        let mut world = waiting(bounded(json!({"maxTokens": 100}), json!({})));
        let decided = Command::BudgetDecided { node: "ask".into(), extended };
        world.command(&decided).unwrap();
        assert_eq!(world.status(), RunStatus::Running, "nobody asked");
        world.command(&unpaid(&world, short(Dimension::Tokens, 100, 100, 40, true))).unwrap();
        world.command(&decided).unwrap();
        assert_eq!(world.status(), status);
        assert_eq!(world.payloads("budget.reserved").len(), 1, "said by whoever was asked");
        assert_eq!(world.payloads("interrupt.resolved")[0]["reason"], "budget-decided");
        assert_eq!(asked(&world.state).len(), usize::from(extended));
        replays(&world);
    }
}

/// A shell that keeps an account of one dimension for one run.
struct Shell {
    world: World,
    dimension: Dimension,
    used: u64,
    limit: u64,
    asks: bool,
}

impl Shell {
    fn new(world: World, dimension: Dimension, limit: u64, asks: bool) -> Self {
        Self { world, dimension, used: 0, limit, asks }
    }

    fn command(&mut self, command: &Command) {
        let drafts = decide(&self.world.state, command, self.world.now).unwrap();
        self.pay(drafts, true);
        loop {
            let drafts = decide(&self.world.state, &Command::Advance, self.world.now).unwrap();
            if drafts.is_empty() {
                return;
            }
            self.pay(drafts, false);
        }
    }

    fn pay(&mut self, drafts: Vec<Draft>, outside: bool) {
        for draft in &drafts {
            if let Event::BudgetReserved(event) = &draft.event {
                self.limit = self.limit.max(event.effective_budget.get(self.dimension).unwrap());
            }
        }
        let wanted = drafts.iter().filter(|draft| self.counts(&draft.event)).count() as u64;
        if self.used + wanted <= self.limit {
            self.used += wanted;
            return self.world.apply_as(drafts, outside);
        }
        let short = short(self.dimension, self.used, self.limit, wanted, self.asks);
        let command = Command::OutOfBudget { what: Box::new(Unaffordable::Step { drafts }), short };
        let instead = decide(&self.world.state, &command, self.world.now).unwrap();
        assert!(!instead.is_empty(), "something always follows");
        self.used += instead.iter().filter(|draft| self.counts(&draft.event)).count() as u64;
        self.world.apply_as(instead, true);
        assert!(self.used <= self.limit);
    }

    fn counts(&self, event: &Event) -> bool {
        match self.dimension {
            Dimension::ToolCalls => matches!(event, Event::AgentToolCalled(_)),
            _ => matches!(event, Event::NodeRetried(_) | Event::EnvelopeRetryAttempted(_)),
        }
    }

    fn answer(&mut self, node: &str, value: Value) {
        self.command(&support::script::reply_to(&self.world.state, &node.into(), value, "ann"));
    }
}

/// Nodes that fail at once, later, and because of a child; each is tried again as often as the budget allows.
#[test]
fn another_attempt_is_made_only_if_it_can_be_paid_for() {
    for asks in [false, true] {
        for limit in 0..4 {
            let mut flow = workflow(&[("n", "core.fail", json!({"code": "boom", "message": "It broke."}))], &[]);
            flow["nodes"][0]["settings"] = json!({"maxRetries": 4, "retryDelayMs": 10});
            let world = World::new(plan(flow));
            let mut shell = Shell::new(world, Dimension::Retries, limit, asks);
            shell.command(&Command::Start(Box::new(bounded(json!({"maxRetries": limit}), json!({})))));
            for _ in 0..limit {
                shell.world.now = shell.world.now.plus_millis(60_000);
                shell.command(&Command::Advance);
            }
            assert_eq!(shell.world.payloads("node.retried").len() as u64, limit);
            if !asks {
                assert_eq!(shell.world.error_code(), Some("budget_exhausted"));
                assert_eq!(shell.world.payloads("run.failed")[0]["error"]["details"]["lastError"]["code"], "boom");
                let cap = json!({"kind": "budget-retries", "limit": limit, "observed": limit + 1, "nodeId": "n"});
                assert_eq!(shell.world.payloads("cap.breached"), [cap]);
                replays(&shell.world);
                continue;
            }
            shell.answer("n", json!({"action": "accept", "budgetDelta": {"maxRetries": 1}}));
            let retried = shell.world.payloads("node.retried");
            assert_eq!((retried.len() as u64, &retried[retried.len() - 1]["attempt"]), (limit + 1, &json!(limit + 1)));
            shell.world.now = shell.world.now.plus_millis(60_000);
            shell.command(&Command::Advance);
            if limit < 3 {
                shell.answer("n", json!("reject"));
                assert_eq!(shell.world.error_code(), Some("budget_exhausted"));
            } else {
                assert_eq!(shell.world.error_code(), Some("boom"), "the node has no attempt left anyway");
            }
            replays(&shell.world);
        }
    }
}

/// A child has failed and the node that waits for it may not try again: what ended stays ended.
#[test]
fn a_child_that_failed_is_not_waited_for_while_a_human_is_asked() {
    let mut flow = workflow(&[("n", "core.subWorkflow", json!({"workflowId": "c"}))], &[]);
    flow["nodes"][0]["settings"] = json!({"maxRetries": 1, "retryDelayMs": 10});
    let mut shell = Shell::new(World::new(plan(flow)), Dimension::Retries, 0, true);
    shell.command(&Command::Start(Box::new(bounded(json!({"maxRetries": 0}), json!({})))));
    let child = shell.world.child();
    shell.command(&support::script::tell(child.clone(), &support::script::News::Started));
    let ended = support::script::tell(child, &support::script::News::Ended(RunStatus::Failed));
    shell.command(&ended);
    assert_eq!(shell.world.status(), RunStatus::WaitingApproval);
    let before = shell.world.log.len();
    shell.command(&ended);
    assert_eq!(shell.world.log.len(), before, "old news");
    shell.answer("n", json!("accept"));
    shell.world.now = shell.world.now.plus_millis(60_000);
    shell.command(&Command::Advance);
    assert_eq!(shell.world.payloads("node.retried").len(), 1);
    assert_eq!(support::script::wanted_children(&shell.world.state).len(), 1, "another child");
    replays(&shell.world);
}

/// What a model asks for in one breath is done as a whole or not at all, and never asked of it again.
#[test]
fn tools_are_called_together_or_not_at_all() {
    for asks in [false, true] {
        let world =
            agents::started_with(one(FREE, json!({}), json!({})), bounded(json!({"maxToolCalls": 2}), json!({})));
        let mut shell = Shell::new(world, Dimension::ToolCalls, 2, asks);
        let three = wants(&[
            ("openwop:memory.list", json!({})),
            ("openwop:memory.list", json!({})),
            ("openwop:memory.list", json!({})),
        ]);
        let call = asked(&shell.world.state).remove(0);
        let node = call.node.to_string();
        shell.command(&call.answered(Ok(three)));
        assert!(shell.world.payloads("agent.toolCalled").is_empty());
        if !asks {
            assert_eq!(shell.world.error_code(), Some("budget_exhausted"));
            assert_eq!(shell.world.payloads("agent.invocation.completed")[0]["outcome"], "failed");
            replays(&shell.world);
            continue;
        }
        assert_eq!(shell.world.payloads("interrupt.requested")[0]["data"]["wanted"], 3);
        shell.answer(&node, json!("accept"));
        assert_eq!(shell.world.payloads("budget.reserved")[1]["effectiveBudget"], json!({"maxToolCalls": 4}));
        assert_eq!(shell.world.payloads("agent.toolCalled").len(), 3);
        assert_eq!(shell.world.payloads("provider.usage").len(), 1);
        replays(&shell.world);
    }
}

/// An answer that does not count is asked for again only if that can be paid for.
#[test]
fn asking_a_model_again_is_a_retry_too() {
    let world = waiting(bounded(json!({"maxRetries": 1}), json!({})));
    let mut shell = Shell::new(world, Dimension::Retries, 1, true);
    for _ in 0..2 {
        let call = asked(&shell.world.state).remove(0);
        shell.command(&call.answered(Ok(said("no JSON"))));
    }
    assert_eq!(shell.world.payloads("envelope.retry.attempted").len(), 1);
    assert_eq!(shell.world.status(), RunStatus::WaitingApproval);
    shell.answer("ask", json!("accept"));
    let call = asked(&shell.world.state).remove(0);
    shell.command(&call.answered(Ok(valid())));
    assert_eq!(
        (shell.world.status(), shell.world.payloads("envelope.retry.attempted").len()),
        (RunStatus::Completed, 2)
    );
    replays(&shell.world);
}

#[test]
fn a_definition_with_a_broken_budget_is_refused_with_its_place() {
    let mut flow = workflow(&[("n", "core.noop", json!({}))], &[]);
    flow["settings"] = json!({"budget": {"maxTokens": 5, "modelAllow": ["a", 3]}});
    let problems = baton_engine::Plan::compile(flow.clone(), Default::default()).unwrap_err();
    let places: Vec<_> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
    assert_eq!(places, ["/settings/budget/modelAllow/1"]);
    flow["settings"] = json!({"budget": {"maxTokens": 5}});
    let budget = plan(flow).budget().unwrap();
    assert_eq!(Budget::resolve(None, Some(&budget), &Limits::default()).unwrap().ceilings.max_tokens, Some(5));
}
