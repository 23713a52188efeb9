//! Tools that a workflow calls without an agent, once or for each item of a list: with crashes at every commit, ten
//! thousand items, tools that misbehave and tools of others.

use crate::agents;
use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agents::{AGENT, Brain, Sink, call_again, card, options, says, was_done};
use baton_model::tool::{SafetyTier, ToolRequest, Transport};
use baton_model::{Event, OutcomePolicy, RunId, RunStatus, TenantId, ToolOutcome, ToolSpec, code};
use baton_runtime::Options;
use baton_store::{Disk, InterruptRow};
use baton_testkit::{Flow, SimClock};
use baton_tool::{About, Called, Tool, ToolSet};
use common::{World, in_time};
use serde_json::{Value, json};

const PAY: &str = "mcp:srv.pay";
const READ: &str = "mcp:srv.read";
/// More crashes than any of these runs has commits.
const MOST_CRASHES: u64 = 200;

type Says = fn(&InterruptRow) -> Value;

fn step(config: Value) -> Flow {
    Flow::chain("steps", &[("step", "vendor.baton.tool", config), ("after", "core.noop", json!({}))])
}

fn map(config: Value) -> Flow {
    Flow::chain("maps", &[("each", "vendor.baton.map", config), ("after", "core.noop", json!({}))])
}

fn host(tools: Vec<Arc<dyn Tool>>, ahead: usize) -> Options {
    options(vec![card(AGENT)], &Brain::new(|_| says("done")), tools, ahead)
}

async fn world(flows: impl IntoIterator<Item = Flow>, tools: Vec<Arc<dyn Tool>>) -> World {
    let world = World::open(Disk::default(), Arc::default(), host(tools, 512)).await;
    for flow in flows {
        world.register(flow).await;
    }
    world
}

fn reading(id: &str) -> ToolSpec {
    ToolSpec { tier: SafetyTier::Read, outcome_policy: OutcomePolicy::Retry, ..Sink::spec(id, OutcomePolicy::Retry) }
}

/// What the tool says to its nth call.
type AnswerCall = Box<dyn Fn(usize, &ToolRequest) -> Called + Send + Sync>;

/// A tool that answers as it is told, with an output schema if it is given one.
struct Scripted {
    spec: ToolSpec,
    output_schema: Option<Value>,
    calls: AtomicUsize,
    answer: AnswerCall,
}

impl Scripted {
    fn new(id: &str, answer: impl Fn(usize, &ToolRequest) -> Called + Send + Sync + 'static) -> Arc<Self> {
        let spec = ToolSpec { transport: Transport::Mcp, ..reading(id) };
        Arc::new(Self { spec, output_schema: None, calls: AtomicUsize::new(0), answer: Box::new(answer) })
    }
}

#[async_trait::async_trait]
impl Tool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        About { output_schema: self.output_schema.clone(), ..About::default() }
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        (self.answer)(self.calls.fetch_add(1, Ordering::SeqCst), request)
    }
}

fn fine(value: Value) -> Called {
    Called::Done(ToolOutcome::ok(value))
}

/// A process dies after every commit of a run of this workflow, and the next one always comes to the end. Returns how
/// often a call was in doubt.
async fn crash_everywhere(
    flow: Flow,
    workflow: &str,
    ahead: usize,
    says: Says,
    tier: SafetyTier,
    items: usize,
) -> usize {
    let mut doubts = 0;
    for commits in 0.. {
        let context = format!("{workflow}, {ahead} ahead, crashed after {commits}");
        assert!(commits < MOST_CRASHES, "{context}: never ends");
        let sink = Sink::of(ToolSpec { tier, ..Sink::spec(PAY, OutcomePolicy::Ask) });
        let with = || host(vec![Arc::clone(&sink) as _], ahead);
        let clock = Arc::new(SimClock::default());
        let life = World::open(Disk::default(), Arc::clone(&clock), with()).await;
        life.register(flow.clone()).await;
        life.settle().await;
        sink.witness.watch(&life.store);
        life.store.crash_after(commits);
        let lived = async {
            life.start(workflow).await;
            life.drive_saying(says).await;
        };
        let died = tokio::select! {
            () = lived => false,
            () = life.store.crashed() => true,
        };
        let left = life.stop().await;
        if !died {
            assert_eq!(sink.count(), items, "{context}");
            return doubts;
        }
        let world = World::open(left, clock, with()).await;
        sink.witness.watch(&world.store);
        if world.rows().await.is_empty() {
            world.start(workflow).await;
        }
        in_time(&context, world.drive_saying(says)).await;
        let run = world.rows().await[0].id.clone();
        let view = world.ended(&run).await;
        assert_eq!(view.status, RunStatus::Completed, "{context}: {:?}", view.error);
        let calls = world.calls_of(&run, PAY).await;
        assert_eq!((calls.announced, calls.returned), (items, items), "{context}: every item once");
        // Whatever the first life called and did not hear of was asked about; nothing else was done twice.
        assert!(sink.count() <= items + calls.again, "{context}: {} calls, {} on purpose", sink.count(), calls.again);
        assert!(sink.names().len() <= items, "{context}: a call has one key");
        doubts += calls.unknown;
        sink.witness.satisfied(&context);
        world.audit_agents(&context).await;
        world.stop().await;
    }
    doubts
}

#[tokio::test]
async fn a_crash_at_any_commit_of_a_tool_step_is_asked_about() {
    let flow = || step(json!({"tool": PAY, "argumentsExpression": "{'amount': 2 + 3}", "into": "receipt"}));
    for (ahead, says) in [(1, call_again as Says), (1, was_done), (512, call_again)] {
        assert!(
            crash_everywhere(flow(), "steps", ahead, says, SafetyTier::Write, 1).await > 0,
            "no crash around the call"
        );
    }
}

#[tokio::test]
async fn a_crash_at_any_commit_of_a_map_repeats_no_item_that_is_done() {
    let each =
        json!({"items": [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}], "tool": PAY, "maxConcurrency": 2, "into": "all"});
    for (ahead, says) in [(1, was_done as Says), (512, call_again)] {
        let doubts = crash_everywhere(map(each.clone()), "maps", ahead, says, SafetyTier::Write, 4).await;
        assert!(doubts > 0, "no crash around a call");
    }
}

#[tokio::test]
async fn two_thousand_items_in_order() {
    // Ten thousand go through the engine's own tests; here they would only take longer.
    const ITEMS: usize = 2000;
    let tool = Scripted::new(READ, |_, request| fine(request.arguments["n"].clone()));
    let each = json!({
        "items": "numbers", "tool": READ, "argumentsExpression": "{'n': item}", "maxConcurrency": 32, "into": "all"
    });
    let flow = map(each).variable("numbers", "array", json!((0..ITEMS).collect::<Vec<_>>()));
    let world = world([flow], vec![Arc::clone(&tool) as _]).await;
    let run = world.start("maps").await;
    let view = world.ended(&run).await;
    assert_eq!((view.status, tool.calls.load(Ordering::SeqCst)), (RunStatus::Completed, ITEMS), "{:?}", view.error);
    assert_eq!(view.variables["all"], json!((0..ITEMS).collect::<Vec<_>>()));
    let records = world.reader.records(&run, 0, usize::MAX).await.unwrap();
    let bytes: Vec<u64> = records.iter().map(|record| record.bytes() as u64).collect();
    let mean = |part: &[u64]| part.iter().sum::<u64>() / part.len() as u64;
    let (early, late) = (mean(&bytes[300..900]), mean(&bytes[5000..5600]));
    assert!(late <= early + 16, "a record is as large at the end as at the beginning: {early} and {late} bytes");
    world.stop().await;
}

/// The process is killed in the middle of a list, again and again.
#[tokio::test]
async fn a_long_list_survives_any_number_of_kills() {
    const ITEMS: usize = 300;
    let tool = Scripted::new(READ, |_, request| fine(request.arguments["n"].clone()));
    let each = json!({"items": "numbers", "tool": READ, "argumentsExpression": "{'n': item}", "maxConcurrency": 3, "into": "all"});
    let flow = map(each).variable("numbers", "array", json!((0..ITEMS).collect::<Vec<_>>()));
    let (mut disk, clock) = (Disk::default(), Arc::new(SimClock::default()));
    let first = World::open(disk.clone(), Arc::clone(&clock), host(vec![Arc::clone(&tool) as _], 8)).await;
    first.register(flow).await;
    let run = first.start("maps").await;
    first.settle().await;
    let mut life = first;
    for kill in 0..6 {
        if life.status(&run).await.is_terminal() {
            break;
        }
        disk = life.stop().await;
        life = World::open(disk.clone(), Arc::clone(&clock), host(vec![Arc::clone(&tool) as _], 8)).await;
        life.store.crash_after(20 + kill * 13);
        tokio::select! {
            _ = life.ended(&run) => {}
            () = life.store.crashed() => {}
        }
        disk = life.stop().await;
        life = World::open(disk.clone(), Arc::clone(&clock), host(vec![Arc::clone(&tool) as _], 8)).await;
    }
    let view = in_time("the end", life.ended(&run)).await;
    assert_eq!(view.variables["all"], json!((0..ITEMS).collect::<Vec<_>>()));
    let mut done: Vec<u32> = Vec::new();
    for event in life.events_of(&run).await {
        if let Event::MapItemCompleted(event) = event {
            done.push(event.index);
        }
    }
    done.sort_unstable();
    assert_eq!(done, (0..ITEMS as u32).collect::<Vec<_>>(), "each item is done once");
    life.stop().await;
}

#[tokio::test]
async fn tools_that_lie_grow_or_fall_silent() {
    let mut typed = Scripted::new("mcp:srv.typed", |_, _| fine(json!({"n": "three"})));
    Arc::get_mut(&mut typed).unwrap().output_schema =
        Some(json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}));
    let huge = Scripted::new("mcp:srv.huge", |_, _| fine(json!("x".repeat(5 << 20))));
    let strict = ToolSpec {
        input_schema: json!({"type": "object", "required": ["n"]}),
        ..Sink::spec("mcp:srv.strict", OutcomePolicy::Ask)
    };
    let strict = Sink::of(strict);
    let deaf = Sink::of(reading("mcp:srv.deaf"));
    deaf.let_return(false);
    let flow = |id: &str, tool: &str, extra: Value| {
        let mut config = json!({"tool": tool, "arguments": {}});
        config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        Flow::chain(id, &[("step", "vendor.baton.tool", config)])
    };
    let flows = [
        flow("typed", "mcp:srv.typed", json!({})),
        flow("huge", "mcp:srv.huge", json!({})),
        flow("strict", "mcp:srv.strict", json!({})),
        flow("deaf", "mcp:srv.deaf", json!({"timeoutMs": 500})),
        flow("gone", "mcp:srv.gone", json!({})),
        flow("nobody", "mcp:nobody.t", json!({})),
    ];
    let tools: Vec<Arc<dyn Tool>> = vec![typed, huge, Arc::clone(&strict) as _, Arc::clone(&deaf) as _];
    let world = world(flows, tools).await;
    for (workflow, expected) in [
        ("typed", code::TOOL_RESULT_INVALID),
        ("huge", code::EXPRESSION_TOO_COSTLY),
        ("strict", code::VALIDATION_ERROR),
        ("deaf", code::NODE_TIMEOUT),
        ("gone", code::MCP_SERVER_NOT_FOUND),
        ("nobody", code::MCP_SERVER_NOT_FOUND),
    ] {
        let run = world.start(workflow).await;
        if workflow == "deaf" {
            deaf.called(1).await;
            world.clock.advance(500);
        }
        let view = in_time(workflow, world.ended(&run)).await;
        let error = view.error.clone().unwrap();
        assert_eq!((view.status, error.code.as_str()), (RunStatus::Failed, expected), "{workflow}: {error:?}");
    }
    assert_eq!(strict.count(), 0, "what does not fit is not sent");
    world.stop().await;
}

#[tokio::test]
async fn another_tenants_tool_is_no_tool() {
    let (mine, theirs) = (Sink::of(reading("vendor.x:mine")), Sink::of(reading("vendor.x:theirs")));
    let with = host(vec![Arc::clone(&mine) as _], 512);
    let theirs_set = ToolSet::default().tool(Arc::clone(&theirs) as _).unwrap();
    with.tools.give(&TenantId::new("somebody-else"), theirs_set);
    let world = World::open(Disk::default(), Arc::default(), with).await;
    for (id, tool) in [("mine", "vendor.x:mine"), ("theirs", "vendor.x:theirs")] {
        world.register(Flow::chain(id, &[("step", "vendor.baton.tool", json!({"tool": tool, "arguments": {}}))])).await;
    }
    let run = world.start("mine").await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    let run = world.start("theirs").await;
    assert_eq!(world.ended(&run).await.error.unwrap().code, code::NOT_FOUND);
    assert_eq!((mine.count(), theirs.count()), (1, 0));
    world.stop().await;
}

#[tokio::test]
async fn items_may_be_agents_and_workflows() {
    let child =
        Flow::chain("double", &[("it", "core.setVariable", json!({"name": "twice", "expression": "variables.n * 2"}))])
            .variable("n", "number", json!(0));
    let doubled = json!({"items": [1, 2, 3, 4, 5], "workflow": "double", "inputsExpression": "{'n': item}",
        "output": "twice", "maxConcurrency": 2, "into": "all"});
    let asked = json!({"items": ["tea", "rain"], "agent": AGENT, "into": "all"});
    let unheard = json!({"items": [1, 2], "agent": "acme.nobody.here", "onItemError": "collect", "into": "all"});
    let flows = [
        child,
        map(doubled),
        Flow::chain("asks", &[("each", "vendor.baton.map", asked)]),
        Flow::chain("unheard", &[("each", "vendor.baton.map", unheard)]),
    ];
    let world = world(flows, Vec::new()).await;
    let run = world.start("maps").await;
    let view = world.ended(&run).await;
    assert_eq!(view.variables["all"], json!([2, 4, 6, 8, 10]), "{:?}", view.error);
    assert_eq!(view.child_runs.len(), 5);
    let run = world.start("asks").await;
    let view = world.ended(&run).await;
    assert_eq!(view.variables["all"], json!(["done", "done"]), "{:?}", view.error);
    let run = world.start("unheard").await;
    let view = world.ended(&run).await;
    assert_eq!((view.status, &view.variables["all"]), (RunStatus::Completed, &json!([null, null])), "{:?}", view.error);
    for row in world.rows().await {
        let verified = world.host.verify(&common::tenant(), &row.id).await.unwrap();
        assert!(verified.difference.is_none(), "{:?}", verified.difference);
    }
    world.stop().await;
}

#[tokio::test]
async fn cancelling_a_map_ends_its_children_and_gives_up_its_calls() {
    let sink = Sink::of(reading(READ));
    sink.let_return(false);
    let waiting = Flow::chain("waits", &[("gate", "core.approvalGate", json!({"title": "?"}))]);
    let calls = json!({"items": vec![json!({}); 50], "tool": READ, "maxConcurrency": 4});
    let children = json!({"items": vec![json!({}); 50], "workflow": "waits", "maxConcurrency": 3});
    let flows = [waiting, map(calls), Flow::chain("parents", &[("each", "vendor.baton.map", children)])];
    let world = world(flows, vec![Arc::clone(&sink) as _]).await;
    let run = world.start("maps").await;
    sink.called(4).await;
    world.host.cancel(&common::who(), &run, None).await.unwrap();
    assert_eq!(in_time("cancelled", world.ended(&run)).await.status, RunStatus::Cancelled);
    world.settle().await;
    assert_eq!((sink.count(), sink.abandoned()), (4, 4), "no further item began");
    let run = world.start("parents").await;
    world.waiting(&run).await;
    world.host.cancel(&common::who(), &run, None).await.unwrap();
    in_time("cancelled", world.ended(&run)).await;
    let rows = world.rows().await;
    let left: Vec<&RunId> = rows.iter().filter(|row| !row.status.is_terminal()).map(|row| &row.id).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(rows.len(), 1 + 1 + 3, "three children and no more");
    world.stop().await;
}

#[tokio::test]
async fn a_thousand_maps_at_once() {
    const MAPS: usize = 1000;
    let tool = Scripted::new(READ, |_, request| fine(request.arguments["n"].clone()));
    let each = json!({"items": [1, 2, 3], "tool": READ, "argumentsExpression": "{'n': item}", "into": "all"});
    let world = world([map(each)], vec![Arc::clone(&tool) as _]).await;
    let mut runs = Vec::new();
    for _ in 0..MAPS {
        runs.push(world.start("maps").await);
    }
    for run in &runs {
        let view = world.ended(run).await;
        assert_eq!(view.variables["all"], json!([1, 2, 3]), "{:?}", view.error);
    }
    assert_eq!(tool.calls.load(Ordering::SeqCst), 3 * MAPS);
    world.stop().await;
}
