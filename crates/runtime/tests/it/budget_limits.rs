//! What a budget bounds, one thing after the other: calls of models, money, tools, retries; and what happens when it is
//! used up.

use crate::agents;
use crate::budget;
use crate::common;

use std::sync::Arc;

use agents::{AGENT, Brain, Sink, card, says, told, wants};
use baton_model::event::DrainPolicy;
use baton_model::{AgentCard, Event, Limits, OutcomePolicy, RunId, RunStatus};
use baton_runtime::{ForkRun, Options, PauseRun, Via};
use baton_store::Disk;
use baton_testkit::Flow;
use budget::{
    Meter, ask, asks, count, events, failures, fans_out, options, prices, start, types, verified, with_budget,
};
use common::{World, accept, in_time, tenant, who};
use serde_json::{Value, json};

async fn world(options: Options, flows: impl IntoIterator<Item = Flow>) -> World {
    let world = World::open(Disk::default(), Arc::default(), options).await;
    for flow in flows {
        world.register(flow).await;
    }
    world
}

async fn payloads(world: &World, run: &RunId, kind: &str) -> Vec<Value> {
    let all = events(world, run).await;
    all.iter().filter(|event| event.type_name() == kind).map(|event| json!(event.payload())).collect()
}

/// The types of a log from one of them on.
async fn tail(world: &World, run: &RunId, from: &str) -> Vec<String> {
    types(world, run).await.into_iter().skip_while(|kind| kind != from).collect()
}

#[tokio::test]
async fn a_run_that_has_used_up_its_tokens_fails_with_what_it_has() {
    let meter = Meter::prompt(1);
    let world = world(options(&meter, 512), [asks("asks", 9)]).await;
    let run = start(&world, "asks", json!({"maxTokens": 1000, "thresholdPercent": 1})).await;
    let end = world.ended(&run).await;
    assert_eq!(end.status, RunStatus::Failed);
    let error = end.error.unwrap();
    assert_eq!(
        (error.code.as_str(), &error.details.as_ref().unwrap()["dimension"]),
        ("budget_exhausted", &json!("tokens"))
    );
    let types = types(&world, &run).await;
    assert_eq!(types[..2], ["run.started", "budget.reserved"]);
    assert_eq!(
        tail(&world, &run, "budget.exhausted").await,
        ["budget.exhausted", "cap.breached", "node.failed", "run.failed"]
    );
    assert_eq!(
        payloads(&world, &run, "budget.reserved").await,
        [json!({"effectiveBudget": {"maxTokens": 1000}, "scope": "run"})]
    );
    let breach = &payloads(&world, &run, "cap.breached").await[0];
    assert!(breach["kind"] == "budget-tokens" && breach["limit"] == 1000, "{breach}");
    assert!(breach["observed"].as_u64() > breach["limit"].as_u64(), "{breach}");
    let exhausted = &payloads(&world, &run, "budget.exhausted").await[0];
    let used = exhausted["consumed"].as_u64().map(|used| used.max(1001));
    assert_eq!(breach["observed"].as_u64(), used, "what was used, not what one more call might have");
    let crossed = payloads(&world, &run, "budget.threshold.crossed").await;
    assert_eq!((crossed.len(), &crossed[0]["percent"]), (1, &json!(1)), "said once");
    let done = count(&world, &run, "node.completed").await;
    assert!(done > 0 && done == meter.keys().len(), "what was done is kept, and nobody was asked for nothing");
    verified(&world).await;
}

#[tokio::test]
async fn a_human_extends_the_budget_and_the_call_goes_on() {
    let meter = Meter::prompt(1);
    let world = world(options(&meter, 512), [asks("asks", 6)]).await;
    let run = start(&world, "asks", json!({"maxTokens": 500, "onExhaustion": "interrupt"})).await;
    let mut asked = 0;
    loop {
        let now = world.wait_for(&run, |now| now.status.is_waiting() || now.status.is_terminal()).await;
        if now.status.is_terminal() {
            assert_eq!(now.status, RunStatus::Completed, "{:?}", now.error);
            break;
        }
        assert_eq!(now.status, RunStatus::WaitingApproval);
        let open = world.open_interrupts().await.remove(0);
        assert_eq!((open.kind.as_str(), &open.data["dimension"]), ("approval", &json!("tokens")));
        let answers = [
            (json!({"action": "maybe"}), false),
            (json!({"action": "accept", "budgetDelta": {"maxTokens": 0}}), false),
            (json!({"action": "accept", "budgetDelta": {"maxTokens": -5}}), false),
            (json!({"action": "accept", "budgetDelta": {"minutes": 5}}), false),
            (if asked == 0 { accept() } else { json!({"action": "accept", "budgetDelta": {"maxTokens": 700}}) }, true),
        ];
        for (answer, good) in answers {
            let answered = world.resolve(&run, open.node.as_str(), answer.clone()).await;
            assert_eq!(answered.is_ok(), good, "{answer}");
        }
        asked += 1;
    }
    let reserved = payloads(&world, &run, "budget.reserved").await;
    let ceilings: Vec<_> =
        reserved.iter().map(|event| event["effectiveBudget"]["maxTokens"].as_u64().unwrap()).collect();
    assert_eq!(ceilings[..2], [500, 1000], "doubled where nobody says how much");
    assert!(ceilings.windows(2).skip(1).all(|pair| pair[1] == pair[0] + 700), "{ceilings:?}");
    assert_eq!((ceilings.len(), meter.keys().len()), (asked + 1, 6));
    assert_eq!(count(&world, &run, "cap.breached").await, 0);
    verified(&world).await;
}

#[tokio::test]
async fn a_human_who_will_not_extend_it_ends_the_run() {
    let meter = Meter::prompt(1);
    let world = world(options(&meter, 512), [asks("asks", 6)]).await;
    let run = start(&world, "asks", json!({"maxTokens": 500, "onExhaustion": "interrupt"})).await;
    world.waiting(&run).await;
    let node = world.open_interrupts().await.remove(0).node;
    world.resolve(&run, node.as_str(), json!({"action": "reject"})).await.unwrap();
    let end = world.ended(&run).await;
    assert_eq!((end.status, end.error.unwrap().code.as_str()), (RunStatus::Failed, "budget_exhausted"));
    assert_eq!(
        tail(&world, &run, "approval.received").await,
        ["approval.received", "cap.breached", "node.failed", "run.failed"]
    );
    verified(&world).await;
}

/// Several runs of a tree find it used up; whoever is answered first answers for all, also across a restart.
#[tokio::test]
async fn one_answer_is_an_answer_for_the_whole_tree() {
    for (answer, restart) in [("accept", false), ("accept", true), ("reject", false), ("reject", true)] {
        let meter = Meter::prompt(3);
        let mut world = world(options(&meter, 512), [asks("worker", 3), fans_out("team", "worker", 8)]).await;
        let root = start(&world, "team", json!({"maxTokens": 3000, "onExhaustion": "interrupt"})).await;
        world.waiting(&root).await;
        world.settle().await;
        assert!(world.open_interrupts().await.len() > 1, "several ask");
        if restart {
            let clock = Arc::clone(&world.clock);
            world = World::open(world.stop().await, clock, options(&meter, 512)).await;
            world.settle().await;
        }
        let open = world.open_interrupts().await.remove(0);
        let value = json!({"action": answer, "budgetDelta": {"maxTokens": 1_000_000}});
        world.resolve(&open.run, open.node.as_str(), value).await.unwrap();
        assert_eq!(in_time("the rest", world.ended(&root)).await.status, RunStatus::Completed);
        assert!(world.open_interrupts().await.is_empty());
        let failed = failures(&world).await;
        match answer {
            "accept" => assert!(failed.is_empty() && meter.keys().len() == 24, "{failed:?}"),
            _ => assert!(failed["budget_exhausted"] > 1, "{failed:?}"),
        }
        let mut reserved = 0;
        for row in world.rows().await {
            reserved += count(&world, &row.id, "budget.reserved").await;
        }
        assert_eq!(reserved, if answer == "accept" { 2 } else { 1 }, "extended once, by whoever was answered");
        verified(&world).await;
    }
}

/// Two children that ask, each of its own; the first has been answered and asks a human, the second is about to.
async fn two_askers(meter: &Arc<Meter>) -> (World, RunId) {
    let world = world(options(meter, 512), [asks("worker", 3), fans_out("team", "worker", 2)]).await;
    let root = start(&world, "team", json!({"maxTokens": 1000, "onExhaustion": "interrupt"})).await;
    world.settle().await;
    meter.answer(&meter.in_flight()[0], true);
    world.settle().await;
    assert_eq!((world.open_interrupts().await.len(), meter.in_flight().len()), (1, 1));
    (world, root)
}

fn much_more() -> Value {
    json!({"action": "accept", "budgetDelta": {"maxTokens": 1_000_000}})
}

/// The second one is refused, and told that there is room after all, before the log has even taken its question.
#[tokio::test]
async fn a_refused_call_is_made_if_there_is_room_before_anybody_noticed() {
    let meter = Meter::gated_at(1000);
    let (world, root) = two_askers(&meter).await;
    world.store.hold();
    meter.answer(&meter.in_flight()[0], true);
    world.settle().await;
    // The answer, and with it the next call, is on disk now; what is said about that call is not.
    world.store.release();
    world.store.hold();
    world.settle().await;
    let open = world.open_interrupts().await.remove(0);
    let resolve = tokio::spawn({
        let (host, via) = (world.host.clone(), Via::Bearer { subject: "key-1".to_owned() });
        async move { host.resolve(&tenant(), &open.run, &open.node, much_more(), via).await }
    });
    world.settle().await;
    world.store.release();
    in_time("the answer", resolve).await.unwrap().unwrap();
    meter.open();
    assert_eq!(in_time("the team", world.ended(&root)).await.status, RunStatus::Completed);
    assert_eq!(meter.keys().len(), 6);
    let mut decided = 0;
    for row in world.rows().await {
        let resolved = payloads(&world, &row.id, "interrupt.resolved").await;
        decided += resolved.iter().filter(|event| event["reason"] == "budget-decided").count();
    }
    assert_eq!(decided, 1, "the second one asked, and was decided by the answer to the first");
    verified(&world).await;
}

/// One of two is answered, and the process dies before the other one hears of it.
#[tokio::test]
async fn an_answer_for_all_is_not_forgotten_by_a_crash() {
    let meter = Meter::gated_at(1000);
    let (world, root) = two_askers(&meter).await;
    meter.answer(&meter.in_flight()[0], true);
    world.settle().await;
    let open = world.open_interrupts().await;
    assert_eq!(open.len(), 2);
    world.store.crash_after(1);
    world.resolve(&open[0].run, open[0].node.as_str(), much_more()).await.unwrap();
    world.settle().await;
    let clock = Arc::clone(&world.clock);
    let disk = world.stop().await;
    meter.open();
    let next = World::open(disk, clock, options(&meter, 512)).await;
    assert_eq!(in_time("the team", next.ended(&root)).await.status, RunStatus::Completed);
    assert!(next.open_interrupts().await.is_empty());
    verified(&next).await;
}

/// Two calls, and room for one at a time: the second waits for the first, and goes on however that ends.
#[tokio::test]
async fn a_call_waits_for_what_another_may_leave_over() {
    for first_ends_well in [true, false] {
        let meter = Meter::gated(5);
        let flow = ask(ask(Flow::new("two"), "a", json!({})), "b", json!({}))
            .node("after", "core.noop", json!({}))
            .edge_with("a", "after", json!({"triggerRule": "all_complete"}))
            .edge_with("b", "after", json!({"triggerRule": "all_complete"}));
        let world = world(options(&meter, 512), [flow]).await;
        // Less than two calls may take.
        let run = start(&world, "two", json!({"maxTokens": 600})).await;
        world.settle().await;
        let first = meter.in_flight();
        assert_eq!(first.len(), 1, "the other one waits");
        meter.answer(&first[0], first_ends_well);
        world.settle().await;
        let second = meter.in_flight();
        assert!(second.len() == 1 && second != first, "its turn has come");
        meter.answer(&second[0], true);
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn a_run_that_waits_for_its_turn_can_be_cancelled_and_paused() {
    let meter = Meter::gated(5);
    let world = world(options(&meter, 512), [ask(ask(Flow::new("two"), "a", json!({})), "b", json!({}))]).await;
    let run = start(&world, "two", json!({"maxTokens": 600})).await;
    world.settle().await;
    let pause = PauseRun { drain: DrainPolicy::Immediate, reason: None };
    world.host.pause(&who(), &run, pause).await.unwrap();
    world.settle().await;
    world.host.resume(&who(), &run, None).await.unwrap();
    world.settle().await;
    assert_eq!(meter.in_flight().len(), 1, "still one at a time");
    world.host.cancel(&who(), &run, None).await.unwrap();
    assert_eq!(world.ended(&run).await.status, RunStatus::Cancelled);
    world.settle().await;
    assert!(meter.in_flight().is_empty());
}

#[tokio::test]
async fn a_model_that_is_not_allowed_is_not_called() {
    let meter = Meter::prompt(1);
    let world = world(options(&meter, 512), [asks("asks", 1)]).await;
    for (budget, allowed) in [
        (json!({"modelDeny": ["m-*"]}), false),
        (json!({"modelAllow": ["m-*"], "modelDeny": ["meter/m-1"]}), false),
        (json!({"modelAllow": ["other"]}), false),
        (json!({"modelAllow": []}), false),
        (json!({"modelAllow": ["m-?"], "modelDeny": ["n"]}), true),
    ] {
        let before = meter.keys().len();
        let run = start(&world, "asks", budget.clone()).await;
        let end = world.ended(&run).await;
        assert_eq!(meter.keys().len() - before, usize::from(allowed), "{budget}");
        match allowed {
            true => assert_eq!(end.status, RunStatus::Completed),
            false => assert_eq!(end.error.unwrap().code, "budget_model_denied", "{budget}"),
        }
    }
    verified(&world).await;
}

#[tokio::test]
async fn money_is_bounded_where_prices_are_known() {
    let meter = Meter::prompt(2);
    let plain = world(options(&meter, 512), [asks("asks", 9)]).await;
    let refused = plain.host.start_run(&who(), with_budget("asks", json!({"maxCostUsd": 1})), None).await.unwrap_err();
    assert_eq!(
        (refused.code, &refused.details["path"]),
        ("validation_error", &json!("/configurable/budget/maxCostUsd"))
    );
    let unbounded = start(&plain, "asks", json!({"maxTokens": 1_000_000})).await;
    assert_eq!(plain.ended(&unbounded).await.status, RunStatus::Completed, "nobody needs prices who does not ask");

    let meter = Meter::prompt(2);
    let priced = Options { prices: prices("m-*"), ..options(&meter, 512) };
    let world = world(priced, [asks("asks", 40)]).await;
    let run = start(&world, "asks", json!({"maxCostUsd": 0.01})).await;
    assert_eq!(world.ended(&run).await.error.unwrap().code, "budget_exhausted");
    let usages = payloads(&world, &run, "provider.usage").await;
    let sum: f64 = usages.iter().map(|usage| usage["costEstimateUsd"].as_f64().unwrap()).sum();
    let exhausted = &payloads(&world, &run, "budget.exhausted").await[0];
    assert!(exhausted["dimension"] == "cost" && exhausted["limit"] == 0.01, "{exhausted}");
    assert!((exhausted["consumed"].as_f64().unwrap() - sum).abs() < 1e-9, "{exhausted} and {sum}");
    assert!(sum <= 0.01 && sum > 0.009, "{sum}");
    assert_eq!(payloads(&world, &run, "cap.breached").await[0]["kind"], "budget-cost");
    verified(&world).await;
}

#[tokio::test]
async fn the_host_and_the_workflow_have_a_say_too() {
    let meter = Meter::prompt(1);
    let limits = Limits { max_budget_tokens: 700, ..Limits::default() };
    let tight = asks("tight", 2).with("settings", json!({"budget": {"maxToolCalls": 3}}));
    let world = world(Options { limits, ..options(&meter, 512) }, [asks("asks", 9), tight]).await;
    for (workflow, asked, effective, scope) in [
        ("asks", json!({}), json!({"maxTokens": 700}), "run"),
        ("asks", json!({"maxTokens": 5000, "maxRetries": 1}), json!({"maxTokens": 700, "maxRetries": 1}), "run"),
        ("tight", json!({"maxTokens": 50, "maxToolCalls": 9}), json!({"maxTokens": 50, "maxToolCalls": 3}), "workflow"),
    ] {
        let run = start(&world, workflow, asked).await;
        let reserved = payloads(&world, &run, "budget.reserved").await;
        assert_eq!(reserved, [json!({"effectiveBudget": effective, "scope": scope})]);
        world.ended(&run).await;
    }
    let unasked = world.start("asks").await;
    assert_eq!(world.ended(&unasked).await.error.unwrap().code, "budget_exhausted", "nobody escapes the host");
    // Nobody is asked for what the host would not allow.
    let run = start(&world, "asks", json!({"onExhaustion": "interrupt"})).await;
    assert_eq!(world.ended(&run).await.error.unwrap().code, "budget_exhausted");
    for (budget, path) in [
        (json!({"maxTokens": "many"}), "/configurable/budget/maxTokens"),
        (json!({"maxSeconds": 1}), "/configurable/budget/maxSeconds"),
        (json!([]), "/configurable/budget"),
    ] {
        let refused = world.host.start_run(&who(), with_budget("asks", budget), None).await.unwrap_err();
        assert_eq!((refused.code, &refused.details["path"]), ("validation_error", &json!(path)));
    }
    let bad = asks("bad", 1).with("settings", json!({"budget": {"maxTokens": 0}}));
    let refused = world.host.register_workflow(&tenant(), bad.build()).await.unwrap_err();
    assert!(json!(refused.details).to_string().contains("/settings/budget/maxTokens"), "{:?}", refused.details);
}

/// An agent that calls two tools in its second round, where only one is left.
#[tokio::test]
async fn tools_are_called_as_long_as_there_is_room_for_all_a_model_asks_for() {
    let brain = || {
        Brain::new(|request| match told(request) {
            0 => wants(&[("mcp:srv.act", json!({"n": 0}))]),
            1 => wants(&[("mcp:srv.act", json!({"n": 1})), ("mcp:srv.act", json!({"n": 2}))]),
            _ => says("done"),
        })
    };
    let agent = || AgentCard { tools: vec!["mcp:srv.act".into()], ..card(AGENT) };
    let inputs = json!({"inputs": {"task": {"type": "static", "value": "Do it."}}});
    let flow = || Flow::new("acts").node_with("work", "vendor.baton.agent", json!({"agentId": AGENT}), inputs.clone());

    let (one, sink) = (brain(), Sink::new("mcp:srv.act", OutcomePolicy::Ask));
    let over = world(agents::options(vec![agent()], &one, vec![Arc::clone(&sink) as _], 512), [flow()]).await;
    let run = start(&over, "acts", json!({"maxToolCalls": 2})).await;
    assert_eq!(over.ended(&run).await.error.unwrap().code, "budget_exhausted");
    assert_eq!((sink.count(), count(&over, &run, "agent.toolCalled").await), (1, 1));
    let breach = json!({"kind": "budget-tool-calls", "limit": 2, "observed": 3, "nodeId": "work"});
    assert_eq!(payloads(&over, &run, "cap.breached").await, [breach]);
    assert_eq!(payloads(&over, &run, "agent.invocation.completed").await[0]["outcome"], "failed");
    verified(&over).await;

    let (one, sink) = (brain(), Sink::new("mcp:srv.act", OutcomePolicy::Ask));
    let asks = world(agents::options(vec![agent()], &one, vec![Arc::clone(&sink) as _], 512), [flow()]).await;
    let run = start(&asks, "acts", json!({"maxToolCalls": 2, "onExhaustion": "interrupt"})).await;
    asks.waiting(&run).await;
    assert_eq!(asks.open_interrupts().await[0].data["wanted"], 2);
    let too_little = json!({"action": "accept", "budgetDelta": {"maxTokens": 1}});
    assert!(asks.resolve(&run, "work", too_little).await.is_err(), "two more are wanted and one is left");
    asks.resolve(&run, "work", json!({"action": "accept", "budgetDelta": {"maxToolCalls": 1}})).await.unwrap();
    let end = asks.ended(&run).await;
    assert_eq!(end.status, RunStatus::Completed, "{:?}", end.error);
    assert_eq!((sink.count(), count(&asks, &run, "agent.toolCalled").await), (3, 3));
    assert_eq!(one.asked.lock().len(), 3, "no model was asked twice for one answer");
    verified(&asks).await;
}

#[tokio::test]
async fn a_call_that_a_node_makes_by_itself_is_counted_too() {
    let meter = Meter::prompt(1);
    let http = json!({"method": "POST", "url": "https://example.invalid/", "outcomePolicy": "fail"});
    let flow = asks("calls", 1).node("http", "vendor.baton.http", http.clone()).node("more", "vendor.baton.http", http);
    let flow = flow.edge("ask0", "http").edge_with("http", "more", json!({"triggerRule": "all_complete"}));
    let world = world(options(&meter, 512), [flow]).await;
    let run = start(&world, "calls", json!({"maxToolCalls": 1, "onExhaustion": "interrupt"})).await;
    world.waiting(&run).await;
    assert_eq!(count(&world, &run, "agent.toolCalled").await, 1);
    world.resolve(&run, "more", accept()).await.unwrap();
    world.ended(&run).await;
    assert_eq!(count(&world, &run, "agent.toolCalled").await, 2, "what was held back is done");
    verified(&world).await;
}

#[tokio::test]
async fn retries_are_counted_over_all_nodes_and_an_extension_allows_more() {
    let fails = |retries: u32| json!({"settings": {"maxRetries": retries, "retryDelayMs": 1}});
    let fail = || json!({"code": "boom", "message": "It broke."});
    let flow = Flow::new("fails")
        .node_with("first", "core.fail", fail(), fails(2))
        .node_with("second", "core.fail", fail(), fails(5))
        .edge_with("first", "second", json!({"triggerRule": "all_complete"}));
    let meter = Meter::prompt(1);
    for (answers, retried) in
        [(vec![], 3), (vec![json!({"action": "accept", "budgetDelta": {"maxRetries": 1}}), json!("reject")], 4)]
    {
        let world = world(options(&meter, 512), [flow.clone()]).await;
        let on_exhaustion = if answers.is_empty() { "fail" } else { "interrupt" };
        let run = start(&world, "fails", json!({"maxRetries": 3, "onExhaustion": on_exhaustion})).await;
        let mut answers = answers.into_iter();
        loop {
            world.settle().await;
            let now = world.snapshot(&run).await;
            if now.status.is_terminal() {
                let error = now.error.unwrap();
                assert_eq!(error.code, "budget_exhausted");
                assert_eq!(error.details.unwrap()["lastError"]["code"], "boom");
                break;
            }
            match now.status.is_waiting() {
                true => drop(world.resolve(&run, "second", answers.next().unwrap()).await.unwrap()),
                false => world.clock.advance(10),
            }
        }
        assert_eq!(count(&world, &run, "node.retried").await, retried);
        verified(&world).await;
    }
}

/// A branch goes on with the budget of its source, and with what is left of it.
#[tokio::test]
async fn a_branch_is_bound_by_what_its_source_had_left() {
    let meter = Meter::prompt(1);
    let world = world(options(&meter, 512), [asks("worker", 4), fans_out("team", "worker", 2)]).await;
    let root = start(&world, "team", json!({"maxTokens": 2500})).await;
    world.ended(&root).await;
    let child = world.rows().await.into_iter().find(|row| row.parent.is_some()).unwrap();
    let log = events(&world, &child.id).await;
    let consumed = log.iter().position(|event| matches!(event, Event::BudgetConsumed(_))).unwrap() as u64;
    let known = payloads(&world, &child.id, "budget.consumed").await[0]["consumed"].as_u64().unwrap();
    let branch = |configurable: Value| ForkRun {
        mode: baton_model::ForkMode::Branch,
        from_seq: consumed + 1,
        inputs: Default::default(),
        variables: Default::default(),
        configurable: configurable.as_object().unwrap().clone(),
        side_effects: baton_model::SideEffects::Real,
    };
    let bound = world.host.fork(&who(), &child.id, branch(json!({})), None).await.unwrap().run_id;
    world.ended(&bound).await;
    assert_eq!(types(&world, &bound).await[0], "budget.reserved", "it has an account of its own");
    assert_eq!(payloads(&world, &bound, "budget.reserved").await[0]["effectiveBudget"]["maxTokens"], 2500);
    let usage = payloads(&world, &bound, "provider.usage").await[0]["totalTokens"].as_u64().unwrap();
    let next = &payloads(&world, &bound, "budget.consumed").await[0];
    assert_eq!(next["consumed"].as_u64(), Some(known + usage), "what the tree had used by then counts");

    let freed =
        world.host.fork(&who(), &child.id, branch(json!({"budget": {"maxTokens": 100_000}})), None).await.unwrap();
    assert_eq!(world.ended(&freed.run_id).await.status, RunStatus::Completed, "a branch may be given another budget");
    verified(&world).await;
}
