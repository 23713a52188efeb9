//! Forks of runs whose agents call tools. A branch pretends to, unless it is told to be real; a replay calls nobody.

use crate::agents;
use crate::common;
use crate::forking;
use baton_conformance::Conformance;

use std::sync::Arc;

use agents::{AGENT, Brain, Sink, UNKNOWN, armed, heard, options, says, told, wants};
use baton_model::{
    AgentCard, Event, MemoryShape, OutcomePolicy, Principal, RunId, RunStatus, Scope, Scopes, SideEffects, ToolOutcome,
    ToolSpec, code,
};
use baton_runtime::{ForkRun, Models, Options, StartRun};
use baton_store::{Disk, MemoryStore};
use baton_testkit::Flow;
use baton_tool::{Called, Tool};
use common::scenario::{call, delegate, parent};
use common::watched::Watched;
use common::{World, in_time, request, who};
use forking::{branch_at, over};
use serde_json::{Map, Value, json};

const PAY: &str = "mcp:srv.pay";
const NOTE: &str = "mcp:srv.note";
const REMEMBER: &str = agents::REMEMBER;

/// Pays twice the same, then tells what everybody told it.
fn payer() -> Arc<Brain> {
    Brain::new(|request| {
        let amount = heard(request).lines().find_map(|line| line.strip_prefix("Pay ")?.parse::<u64>().ok()).unwrap();
        match told(request) {
            0 => wants(&[(PAY, json!({"amount": amount})), (REMEMBER, json!({"content": "paid"}))]),
            2 => wants(&[(NOTE, json!({})), (PAY, json!({"amount": amount}))]),
            _ => says(answers(request)),
        }
    })
}

/// Everything that tools outside said.
fn answers(request: &baton_model::ModelRequest) -> String {
    let tools = request.semantic.messages.iter().filter(|message| message.role() == "tool");
    let outside = tools.filter(|message| message.get("name").is_some_and(|name| name != REMEMBER));
    outside.map(|message| message.content().as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
}

struct Scene {
    brain: Arc<Brain>,
    pay: Arc<Sink>,
    note: Arc<Sink>,
}

impl Scene {
    fn new(pay: ToolSpec) -> Self {
        let (pay, note) = (Sink::of(pay), Sink::new(NOTE, OutcomePolicy::Retry));
        let receipt = |number: u32| Called::Done(ToolOutcome::ok(json!({"receipt": number})).took(3));
        pay.answer((1..=100).map(receipt));
        Self { brain: payer(), pay, note }
    }

    fn plain() -> Self {
        Self::new(Sink::spec(PAY, OutcomePolicy::Ask))
    }

    fn options(&self) -> Options {
        let memory = MemoryShape { long_term: true, ..MemoryShape::default() };
        let agent = AgentCard { memory, ..armed(AGENT, &[PAY, NOTE, REMEMBER]) };
        let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&self.pay) as _, Arc::clone(&self.note) as _];
        options(vec![agent], &self.brain, tools, 512)
    }

    async fn world(&self) -> World {
        let world = World::open(Disk::default(), Arc::default(), self.options()).await;
        register(&world).await;
        world
    }

    fn calls(&self) -> (usize, usize) {
        (self.pay.count(), self.note.count())
    }
}

/// An agent's task: to pay as much as a variable says.
fn pay(variable: &str) -> Value {
    let expression = format!("'Pay ' + string(int(variables.{variable}))");
    json!({"inputs": {"task": {"type": "expression", "expression": expression}}})
}

async fn register(world: &World) {
    let told = pay("amount");
    let pays = Flow::new("pays")
        .node("before", "core.noop", json!({}))
        .node_with("work", "vendor.baton.agent", json!({"agentId": AGENT}), told)
        .node("after", "core.noop", json!({}))
        .edge("before", "work")
        .edge("work", "after")
        .variable("amount", "number", json!(5));
    world.register(pays).await;
    world.register(parent("calls", call("pays"))).await;
    world.register(delegate("leads", "calls")).await;
}

/// What tools outside came back with, in order, by the whole log of a run.
async fn outcomes(world: &World, run: &RunId) -> Vec<(Value, Value)> {
    let log = world.log_of(run).await;
    let returned = log.iter().filter(|event| event["type"] == "agent.toolReturned");
    let outside = returned.filter(|event| event["payload"]["toolName"] != REMEMBER);
    outside
        .map(|event| {
            let payload = &event["payload"];
            let outcome = payload.get("outcome").cloned();
            (payload["callId"].clone(), outcome.unwrap_or_else(|| payload["error"]["code"].clone()))
        })
        .collect()
}

fn variables(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// The same calls get the same answers, wherever the branch begins: also between a call and its return.
#[tokio::test]
async fn a_branch_that_makes_the_same_calls_hears_the_same_answers() {
    let scene = Scene::plain();
    let world = scene.world().await;
    let run = world.start("pays").await;
    let result = world.ended(&run).await.variables["result"].clone();
    assert!(result.as_str().unwrap().contains("\"receipt\":2"), "{result}");
    let (calls, source, said) = (scene.calls(), world.log_of(&run).await, outcomes(&world, &run).await);
    assert_eq!((calls, said.len()), ((2, 1), 3));
    for from in 0..=source.len() as u64 {
        let branch = world.fork(&run, branch_at(from)).await;
        let view = world.ended(&branch).await;
        assert_eq!(view.status, RunStatus::Completed, "from {from}: {:?}", view.error);
        assert_eq!(view.variables["result"], result, "from {from}");
        assert_eq!(outcomes(&world, &branch).await, said, "from {from}");
        world.verified(&branch, &format!("from {from}")).await;
        assert!(world.open_interrupts().await.is_empty(), "from {from}: nothing is in doubt");
    }
    assert_eq!(scene.calls(), calls, "no branch called anybody");
    assert_eq!(world.recall(run.as_str()).await, ["paid"], "nor wrote where its source does");
    world.stop().await;
}

/// The same in the middle of the source's call, before anybody knows what comes of it.
#[tokio::test]
async fn a_branch_of_a_run_whose_call_is_under_way_calls_nobody() {
    for (stub, said) in
        [(Some(json!({"stubbed": true})), json!({"stubbed": true})), (None, json!(code::EFFECT_NOT_SIMULATED))]
    {
        let scene = Scene::new(ToolSpec { stub, ..Sink::spec(PAY, OutcomePolicy::Ask) });
        scene.pay.let_return(false);
        let world = scene.world().await;
        let run = world.start("pays").await;
        in_time("the call", scene.pay.called(1)).await;
        world.settle().await;
        let branch = world.fork(&run, branch_at(world.length(&run).await)).await;
        let view = world.ended(&branch).await;
        assert_eq!((view.status, scene.calls()), (RunStatus::Completed, (1, 0)), "{:?}", view.error);
        assert_eq!(outcomes(&world, &branch).await[0].1, said);
        scene.pay.let_return(true);
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "the source is not disturbed");
        assert_eq!(scene.calls(), (2, 1));
    }
}

/// What the source never called: the stub's answer, or none.
#[tokio::test]
async fn a_branch_that_makes_other_calls_gets_the_stub_or_is_told() {
    for stub in [Some(json!({"receipt": "none"})), None] {
        let scene = Scene::new(ToolSpec { stub: stub.clone(), ..Sink::spec(PAY, OutcomePolicy::Ask) });
        let world = scene.world().await;
        let run = world.start("pays").await;
        world.ended(&run).await;
        let calls = scene.calls();
        let other = variables(json!({"amount": 7}));
        for from in [0, 1, 3] {
            let branch = world.fork(&run, ForkRun { variables: other.clone(), ..branch_at(from) }).await;
            assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
            let said: Vec<Value> = outcomes(&world, &branch).await.into_iter().map(|(_, said)| said).collect();
            let unheard = stub.clone().unwrap_or(json!(code::EFFECT_NOT_SIMULATED));
            // The note is the same one as before; the payments are not.
            assert_eq!(said, [unheard.clone(), json!({"did": {}}), unheard], "from {from}");
        }
        assert_eq!(scene.calls(), calls, "no branch called anybody");
        let heard = scene.brain.heard();
        assert_eq!(heard.contains("is only simulated in this branch"), stub.is_none(), "{heard}");

        let real = ForkRun { side_effects: SideEffects::Real, variables: other, ..branch_at(1) };
        let branch = world.fork(&run, real).await;
        assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
        assert_eq!(scene.calls(), (calls.0 + 2, calls.1 + 1), "a real one does");
        let keys = scene.pay.keys.lock().clone();
        let own = keys.iter().filter(|key| key.starts_with(&format!("{branch}/"))).count();
        assert_eq!(own, 2, "under names of its own: {keys:?}");
        world.stop().await;
    }
}

/// Children of a branch that pretends pretend too, and so do theirs.
#[tokio::test]
async fn what_descends_from_a_simulated_branch_calls_nobody() {
    for workflow in ["calls", "leads"] {
        let scene = Scene::plain();
        let world = scene.world().await;
        let run = world.start(workflow).await;
        world.drive(0).await;
        assert_eq!(world.status(&run).await, RunStatus::Completed);
        let (calls, families) = (scene.calls(), world.rows().await.len());
        let worker = world.rows().await.into_iter().find(|row| row.workflow.as_str() == "pays").unwrap();
        let said = outcomes(&world, &worker.id).await;
        assert_eq!((worker.status, said.len()), (RunStatus::Completed, 3));
        let length = world.length(&run).await;
        for from in 0..=length {
            world.fork(&run, branch_at(from)).await;
        }
        world.see_through().await;
        assert_eq!(scene.calls(), calls, "{workflow}: nobody was called");
        let agents = world.rows().await.into_iter().filter(|row| row.workflow.as_str() == "pays").count();
        assert!(agents > 3, "{workflow}: branches have children that work");
        // The first child worked for the source, and what it heard they all hear.
        for row in world.rows().await.iter().filter(|row| row.workflow.as_str() == "pays") {
            assert_eq!(outcomes(&world, &row.id).await, said, "{workflow}: {}", row.id);
            assert_eq!(row.status, RunStatus::Completed);
        }
        assert!(world.rows().await.len() > families);

        let real = ForkRun { side_effects: SideEffects::Real, ..branch_at(1) };
        world.fork(&run, real).await;
        world.see_through().await;
        assert_eq!(scene.calls(), (calls.0 + 2, calls.1 + 1), "{workflow}: a real family calls");
        world.stop().await;
    }
}

/// A gate, and an agent that pays behind it; below it the same as a child.
async fn register_gated(world: &World) {
    let gated = Flow::new("gated")
        .node("gate", "core.approvalGate", json!({"title": "Pay?"}))
        .node_with("work", "vendor.baton.agent", json!({"agentId": AGENT}), pay("amount"))
        .node("between", "core.approvalGate", json!({"title": "Again?"}))
        .node_with("again", "vendor.baton.agent", json!({"agentId": AGENT}), pay("second"))
        .edge("gate", "work")
        .edge("work", "between")
        .edge("between", "again")
        .variable("amount", "number", json!(5))
        .variable("second", "number", json!(9));
    world.register(gated).await;
    world.register(parent("asks-below", call("gated"))).await;
}

async fn let_through(world: &World, run: &RunId) {
    for gate in ["gate", "between"] {
        world.waiting(run).await;
        world.resolve(run, gate, json!({"action": "accept"})).await.unwrap();
    }
    assert_eq!(world.ended(run).await.status, RunStatus::Completed);
}

/// A branch that has not come to the call yet says nothing about it, but the run that it was forked from does.
#[tokio::test]
async fn a_branch_of_a_branch_hears_what_the_first_run_heard() {
    let scene = Scene::plain();
    let world = scene.world().await;
    register_gated(&world).await;
    let run = world.start("gated").await;
    let_through(&world, &run).await;
    let (calls, said) = (scene.calls(), outcomes(&world, &run).await);
    let branch = world.fork(&run, branch_at(1)).await;
    world.waiting(&branch).await;
    for from in [0, 1, world.length(&branch).await] {
        let twig = world.fork(&branch, branch_at(from)).await;
        world.waiting(&twig).await;
        let leaf = world.fork(&twig, branch_at(world.length(&twig).await)).await;
        for run in [twig, leaf] {
            let_through(&world, &run).await;
            assert_eq!(outcomes(&world, &run).await, said, "from {from}");
            world.verified(&run, &format!("from {from}")).await;
        }
    }
    // Half of it is the branch's, the rest is the first run's.
    world.resolve(&branch, "gate", json!({"action": "accept"})).await.unwrap();
    world.wait_for(&branch, |view| view.current_node_id.as_ref().is_some_and(|node| node.as_str() == "between")).await;
    let twig = world.fork(&branch, branch_at(1)).await;
    let_through(&world, &twig).await;
    assert_eq!(outcomes(&world, &twig).await, said);

    // The same below a parent, and for a branch of the branch's child.
    let above = world.start("asks-below").await;
    world.waiting(&above).await;
    let child = world.rows().await.into_iter().find(|row| row.parent.as_ref() == Some(&above)).unwrap().id;
    let_through(&world, &child).await;
    world.ended(&above).await;
    let (before, said) = (scene.calls(), outcomes(&world, &child).await);
    let branch = world.fork(&above, branch_at(1)).await;
    world.waiting(&branch).await;
    let child = world.rows().await.into_iter().find(|row| row.parent.as_ref() == Some(&branch)).unwrap().id;
    let twig = world.fork(&child, branch_at(world.length(&child).await)).await;
    for run in [twig, child] {
        let_through(&world, &run).await;
        assert_eq!(outcomes(&world, &run).await, said);
    }
    assert_eq!((before, scene.calls()), ((calls.0 * 2, calls.1 * 2), before), "no branch called anybody");
    world.stop().await;
}

/// The source made the call, but before the fork point only: that is a record too.
#[tokio::test]
async fn a_call_that_was_only_made_before_the_fork_point_comes_back_as_it_did_then() {
    let scene = Scene::plain();
    let world = scene.world().await;
    register_gated(&world).await;
    let run = world.start("gated").await;
    let_through(&world, &run).await;
    let (calls, said) = (scene.calls(), outcomes(&world, &run).await);
    let asked = world.log_of(&run).await.iter().position(|event| event["nodeId"] == "between").unwrap() as u64;
    let same = ForkRun { variables: variables(json!({"second": 5})), ..branch_at(asked) };
    let branch = world.fork(&run, same).await;
    world.waiting(&branch).await;
    world.resolve(&branch, "between", json!({"action": "accept"})).await.unwrap();
    assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
    let heard: Vec<Value> = outcomes(&world, &branch).await.into_iter().map(|(_, said)| said).collect();
    let last = said[2].1.clone();
    assert_eq!(last, json!({"receipt": 2}));
    assert_eq!(heard[3..], [last.clone(), json!({"did": {}}), last]);
    assert_eq!(scene.calls(), calls, "nobody was called");
    world.stop().await;
}

/// A branch that is real, in what it is made of: whom it is made by, and what they grant it.
struct Made {
    by: Principal,
    grant: Option<Value>,
}

impl Made {
    fn by(by: Principal) -> Self {
        Self { by, grant: None }
    }

    fn granting(grant: Value) -> Self {
        Self { by: who(), grant: Some(grant) }
    }

    async fn at(&self, world: &World, source: &RunId, from: u64) -> Result<RunId, baton_runtime::Error> {
        let configurable = self.grant.clone().map(|grant| variables(json!({"toolGrant": grant}))).unwrap_or_default();
        let fork = ForkRun { configurable, side_effects: SideEffects::Real, ..branch_at(from) };
        Ok(world.host.fork(&self.by, source, fork, None).await?.run_id)
    }
}

/// Whoever may not have a tool called cannot have it called by a branch of a run of somebody who may.
#[tokio::test]
async fn a_branch_has_no_more_than_its_source_and_its_maker() {
    let limited = || Principal { scopes: Scopes::of([Scope::RunsCreate, Scope::MemoryWrite]), ..who() };
    // What the source was granted, how it is branched, and whether the branch may pay.
    let cases = [
        (None, Made::by(who()), true),
        (None, Made::granting(json!([PAY, NOTE])), true),
        (None, Made::granting(json!(["mcp:srv"])), true),
        (None, Made::granting(json!([NOTE])), false),
        (Some(json!([NOTE])), Made::by(who()), false),
        (Some(json!([NOTE])), Made::granting(json!([PAY, NOTE])), false),
        (Some(json!(["mcp:srv"])), Made::granting(json!([NOTE])), false),
        (None, Made::by(limited()), false),
    ];
    for workflow in ["pays", "calls"] {
        for (granted, made, may_pay) in &cases {
            let guarded =
                ToolSpec { scopes: vec!["workspace:write".to_owned()], ..Sink::spec(PAY, OutcomePolicy::Ask) };
            let scene = Scene::new(guarded);
            let world = scene.world().await;
            let configurable = granted.clone().map(|grant| variables(json!({"toolGrant": grant}))).unwrap_or_default();
            let start = StartRun { configurable, ..request(workflow) };
            let run = world.host.start_run(&who(), start, None).await.unwrap().run_id;
            world.see_through().await;
            for from in [0, 1] {
                let context = format!("{workflow} from {from}, {granted:?}, {:?}, {:?}", made.grant, made.by.scopes);
                let before = scene.calls();
                let branch = made.at(&world, &run, from).await.unwrap();
                world.see_through().await;
                assert_eq!(world.status(&branch).await, RunStatus::Completed, "{context}");
                let paid = if *may_pay { 2 } else { 0 };
                assert_eq!(scene.calls(), (before.0 + paid, before.1 + 1), "{context}");
                // A branch of the branch, by somebody who may do everything, has no more than that either.
                let twig = Made::by(who()).at(&world, &branch, 1).await.unwrap();
                world.see_through().await;
                assert_eq!(world.status(&twig).await, RunStatus::Completed, "{context}");
                assert_eq!(scene.calls(), (before.0 + 2 * paid, before.1 + 2), "{context}: a branch of it");
            }
            world.stop().await;
        }
    }
    let scene = Scene::plain();
    let world = scene.world().await;
    let run = world.start("pays").await;
    world.ended(&run).await;
    let refused = Made::granting(json!("mcp:srv.pay")).at(&world, &run, 1).await.unwrap_err();
    assert_eq!((refused.code, &refused.details["key"]), (code::VALIDATION_ERROR, &json!("toolGrant")));
}

/// How sure an agent has to be is the branch's to say, as it is a run's.
#[tokio::test]
async fn a_branch_may_want_its_agents_surer() {
    let brain = Brain::new(|_| agents::says_json(&json!({"verdict": "so", "confidence": 0.6})));
    let agent = AgentCard { return_schema: Some(json!({"type": "object"})), ..armed(AGENT, &[]) };
    let world = World::open(Disk::default(), Arc::default(), options(vec![agent], &brain, Vec::new(), 512)).await;
    world.register(agents::asks("asks", AGENT)).await;
    let sure = |threshold: f64| variables(json!({"escalationThreshold": threshold}));
    let start = StartRun { configurable: sure(0.5), ..request("asks") };
    let run = world.host.start_run(&who(), start, None).await.unwrap().run_id;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    for from in [0, 1] {
        for (configurable, status) in [
            (Map::new(), RunStatus::Completed),
            (sure(0.9), RunStatus::WaitingApproval),
            (sure(0.6), RunStatus::Completed),
        ] {
            let branch = world.fork(&run, ForkRun { configurable, ..branch_at(from) }).await;
            let view = world.wait_for(&branch, |view| view.status.is_terminal() || view.status.is_waiting()).await;
            assert_eq!(view.status, status, "from {from}");
        }
    }
    let wrong = ForkRun { configurable: variables(json!({"escalationThreshold": 7})), ..branch_at(1) };
    assert_eq!(world.try_fork(&run, wrong).await.unwrap_err().code, code::VALIDATION_ERROR);
    world.stop().await;
}

/// A real branch that begins with an open call: the source has made it, so somebody is asked before it is made again.
#[tokio::test]
async fn a_real_branch_asks_about_a_call_it_inherits() {
    let scene = Scene::plain();
    scene.note.let_return(false);
    let world = scene.world().await;
    let run = world.start("pays").await;
    world.settle().await;
    let log = world.log_of(&run).await;
    let returned =
        log.iter().position(|event| event["type"] == "agent.toolReturned" && event["payload"]["toolName"] == PAY);
    let calls = scene.calls();
    let real = ForkRun { side_effects: SideEffects::Real, ..branch_at(returned.unwrap() as u64) };
    let branch = world.fork(&run, real).await;
    world.waiting(&branch).await;
    let [question] = &world.open_interrupts().await[..] else { panic!("one question") };
    assert_eq!((question.kind.as_str(), &question.run), (UNKNOWN, &branch));
    assert_eq!(scene.calls(), calls, "asks first");
    scene.note.let_return(true);
    world.resolve(&branch, "work", json!({"action": "done", "result": {"receipt": 1}})).await.unwrap();
    assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    assert_eq!(scene.pay.count(), 3, "each paid its second time");
}

/// What a branch pretends comes from a log that cannot be read for a moment: it waits, and then goes on.
#[tokio::test]
async fn a_call_that_cannot_be_pretended_yet_is_pretended_later() {
    let scene = Scene::plain();
    let store = Arc::new(MemoryStore::new());
    let watched = Arc::new(Watched::new(Arc::clone(&store)));
    let world = over(Arc::clone(&watched) as _, store, Arc::default(), 0, scene.options()).await;
    register(&world).await;
    let run = world.start("pays").await;
    world.ended(&run).await;
    let calls = scene.calls();
    scene.brain.open.send_replace(false);
    let asked = scene.brain.count();
    let branch = world.fork(&run, branch_at(3)).await;
    in_time("the question", scene.brain.called(asked + 1)).await;
    world.settle().await;
    world.store.hold();
    scene.brain.open.send_replace(true);
    world.settle().await;
    watched.blind(true);
    world.store.release();
    world.settle().await;
    watched.blind(false);
    world.settle().await;
    assert!(!world.status(&branch).await.is_terminal(), "the record could not be read");
    world.clock.advance(1000);
    assert_eq!(world.ended(&branch).await.status, RunStatus::Completed);
    assert_eq!((outcomes(&world, &branch).await, scene.calls()), (outcomes(&world, &run).await, calls));
    world.stop().await;
}

/// Goes through a run's log from every point. Nobody is called, whatever the provider is called.
#[tokio::test]
async fn a_replay_calls_nobody() {
    for (provider, conformance) in [("brain", false), ("mock", false), ("mock", true)] {
        let scene = Scene::plain();
        let named = Models::default().with(provider, Arc::clone(&scene.brain) as _);
        let options =
            Options { models: named, test_hooks: Conformance::hooks().filter(|_| conformance), ..scene.options() };
        let world = World::open(Disk::default(), Arc::default(), options).await;
        register(&world).await;
        let configurable = variables(json!({"ai": {"provider": provider, "model": "big"}}));
        for workflow in ["pays", "leads"] {
            scene.pay.lose(1);
            let start = StartRun { configurable: configurable.clone(), ..request(workflow) };
            world.host.start_run(&who(), start, None).await.unwrap();
            world.drive_saying(agents::was_done).await;
        }
        let rows = world.rows().await;
        assert!(rows.iter().all(|row| row.status == RunStatus::Completed));
        let (calls, asked, before) = (scene.calls(), scene.brain.count(), world.outside().await);
        assert!(asked > 3 && calls.0 > 2);
        for row in &rows {
            let source = world.log_of(&row.id).await;
            for from in 0..=row.next_seq {
                let context = format!("{provider}, {} from {from}", row.workflow);
                let replay = world.replayed(&row.id, from).await;
                assert_eq!(world.log_of(&replay).await, source, "{context}");
                world.verified(&replay, &context).await;
            }
            world.verified(&row.id, row.workflow.as_str()).await;
        }
        world.settle().await;
        assert_eq!((scene.calls(), scene.brain.count()), (calls, asked), "{provider}: a replay called somebody");
        assert_eq!(world.outside().await, before, "{provider}: something outside was touched");
        world.stop().await;
    }
}

/// A run that ends in the middle of a call ends the same way when it is gone through again.
#[tokio::test]
async fn a_replay_of_an_open_call_ends_without_it() {
    let scene = Scene::plain();
    scene.pay.let_return(false);
    let world = scene.world().await;
    let run = world.start("pays").await;
    in_time("the call", scene.pay.called(1)).await;
    world.settle().await;
    let source = world.log_of(&run).await;
    for from in 0..=source.len() as u64 {
        let replay = world.replayed(&run, from).await;
        let log = world.log_of(&replay).await;
        assert_eq!(log[..source.len()], source[..], "from {from}");
        assert_eq!(log.last().unwrap()["type"], "run.cancelled", "from {from}");
        world.verified(&replay, &format!("from {from}")).await;
    }
    assert_eq!((scene.calls(), scene.brain.count()), ((1, 0), 1));
    scene.pay.let_return(true);
    world.ended(&run).await;
    let whole = world.replayed(&run, 0).await;
    assert_eq!(world.log_of(&whole).await, world.log_of(&run).await);
    let usages = |events: Vec<Event>| events.iter().filter(|event| matches!(event, Event::ProviderUsage(_))).count();
    assert_eq!(usages(world.events_of(&run).await), scene.brain.count());
    world.stop().await;
}
