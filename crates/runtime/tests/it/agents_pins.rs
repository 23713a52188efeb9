//! Which agent, which model and which tools: a run keeps the agents and models it began with, whatever is installed
//! meanwhile; and its agents get only what everybody who has a say lets them have.

use crate::agents;
use crate::common;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use agents::{AGENT, Brain, REMEMBER, Sink, armed, asks, card, heard, model, options, says, task, told, wants};
use baton_model::{
    AgentCard, Event, InvocationSource, MemoryShape, OutcomePolicy, Principal, RunId, RunStatus, Scope, Scopes,
    ToolSpec, code,
};
use baton_runtime::{ErrorKind, ModelTable, Options, StartRun};
use baton_store::Disk;
use baton_testkit::Flow;
use baton_tool::hooks::ToolLimits;
use common::scenario::{call, delegate, parent};
use common::{World, accept, request, who};
use serde_json::{Map, Value, json};

const A: &str = "mcp:srv.a";
const B: &str = "mcp:srv.b";

/// An agent, a human, and the same agent again.
fn interrupted() -> Flow {
    let agent = || json!({"agentId": AGENT});
    Flow::new("interrupted")
        .node_with("first", "vendor.baton.agent", agent(), task("Begin."))
        .node("gate", "core.approvalGate", json!({"title": "Go on?"}))
        .node_with("second", "vendor.baton.agent", agent(), task("Go on."))
        .edge("first", "gate")
        .edge("gate", "second")
}

fn version(number: u32) -> AgentCard {
    AgentCard {
        pack_version: format!("{number}.0.0"),
        system_prompt: format!("You are version {number}."),
        ..card(AGENT)
    }
}

/// What each invocation of a run was resolved to: the agent's version and the model.
async fn resolved(world: &World, run: &RunId) -> Vec<(String, String)> {
    let events = world.events_of(run).await.into_iter();
    let started = events.filter_map(|event| match event {
        Event::AgentInvocationStarted(event) => Some((event.resolved_agent_version?, event.resolved_model?)),
        _ => None,
    });
    started.collect()
}

#[tokio::test]
async fn a_run_keeps_the_agent_and_the_model_it_began_with() {
    let brain = Brain::new(|_| says("done"));
    let with = |cards: Vec<AgentCard>, big: &str| Options {
        model_table: ModelTable::default().otherwise(model(big)),
        ..options(cards, &brain, Vec::new(), 512)
    };
    let world = World::open(Disk::default(), Arc::default(), with(vec![version(1)], "old")).await;
    world.register(interrupted()).await;
    let (kept, orphaned) = (world.start("interrupted").await, world.start("interrupted").await);
    world.waiting(&kept).await;
    world.waiting(&orphaned).await;

    // The pack is upgraded, and the class means another model now.
    let world = world.next(1, with(vec![version(2)], "new")).await;
    world.resolve(&kept, "gate", accept()).await.unwrap();
    assert_eq!(world.ended(&kept).await.status, RunStatus::Completed);
    let old = ("1.0.0".to_owned(), "old".to_owned());
    assert_eq!(resolved(&world, &kept).await, [old.clone(), old.clone()]);
    assert!(brain.heard().contains("You are version 1."), "{}", brain.heard());
    assert_eq!(brain.asked.lock().last().unwrap().semantic.model, "old");

    let fresh = world.start("interrupted").await;
    world.waiting(&fresh).await;
    assert_eq!(resolved(&world, &fresh).await, [("2.0.0".to_owned(), "new".to_owned())]);
    assert!(brain.heard().contains("You are version 2."), "{}", brain.heard());

    // It is gone altogether: whoever is under way keeps it, nobody else gets it.
    let world = world.next(2, with(Vec::new(), "new")).await;
    for (run, began_with) in [(&orphaned, old), (&fresh, ("2.0.0".to_owned(), "new".to_owned()))] {
        world.resolve(run, "gate", accept()).await.unwrap();
        assert_eq!(world.ended(run).await.status, RunStatus::Completed);
        assert_eq!(resolved(&world, run).await, [began_with.clone(), began_with]);
    }
    let refused = world.refusal_of(request("interrupted")).await;
    assert_eq!(refused.details["agentId"], AGENT);
    let rows = world.rows().await.len();
    let door = InvocationSource::RunApi;
    let refused = world.host.start_agent(&who(), AGENT, door, StartRun::default(), None).await.unwrap_err();
    assert_eq!((refused.kind, refused.code), (ErrorKind::Invalid, code::VALIDATION_ERROR));
    assert_eq!(refused.details["agentId"], AGENT);
    assert_eq!(world.rows().await.len(), rows, "nothing was begun");
    world.audit_agents("pinned").await;
}

/// A node that names a version gets that one and no other, whatever is installed besides.
#[tokio::test]
async fn a_node_that_is_pinned_to_a_version_gets_that_one() {
    let brain = Brain::new(|_| says("done"));
    let with = |cards: Vec<AgentCard>| options(cards, &brain, Vec::new(), 512);
    let pinned = |id: &str, versions: &[Value]| {
        let nodes = versions.iter().enumerate();
        nodes.fold(Flow::new(id), |flow, (i, version)| {
            let mut extra = task("Do it.");
            extra["agent"] = json!({"agentId": AGENT, "version": version});
            let flow = flow.node_with(&format!("n{i}"), "vendor.baton.agent", json!({}), extra);
            if i == 0 { flow } else { flow.edge(&format!("n{}", i - 1), &format!("n{i}")) }
        })
    };
    let world = World::open(Disk::default(), Arc::default(), with(vec![version(1), version(2)])).await;
    world.register(pinned("both", &[json!("1.0.0"), Value::Null, json!("2.0.0")])).await;
    for (id, wanted) in [("none-such", json!("9.9.9")), ("no-text", json!(1)), ("no-range", json!("1"))] {
        world.register(pinned(id, &[wanted])).await;
        let refused = world.refusal_of(request(id)).await;
        assert_eq!((refused.kind, refused.code), (ErrorKind::Invalid, code::VALIDATION_ERROR), "{id}");
        assert_eq!(refused.details["agentId"], AGENT, "{id}");
    }
    let run = world.start("both").await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    let versions: Vec<String> = resolved(&world, &run).await.into_iter().map(|(version, _)| version).collect();
    assert_eq!(versions, ["1.0.0", "2.0.0", "2.0.0"]);
    let prompts: Vec<String> = brain.asked.lock().iter().map(heard).collect();
    assert!(prompts[0].contains("You are version 1."), "{}", prompts[0]);
    assert!(prompts[1].contains("You are version 2."), "{}", prompts[1]);
    world.audit_agents("versions").await;

    // The version is removed, and with it whoever wants it.
    let world = world.next(1, with(vec![version(2)])).await;
    assert_eq!(world.refusal_of(request("both")).await.details["installed"], "2.0.0");
}

/// A model that nobody configured, and a provider that nobody has: said before anything begins.
#[tokio::test]
async fn a_run_without_a_model_does_not_begin() {
    let brain = Brain::new(|_| says("done"));
    let none = Options { model_table: ModelTable::default(), ..options(vec![version(1)], &brain, Vec::new(), 512) };
    let world = World::open(Disk::default(), Arc::default(), none).await;
    world.register(asks("asks", AGENT)).await;
    assert_eq!(world.refusal_of(request("asks")).await.details["agentId"], AGENT);
    let elsewhere = map(json!({"ai.provider": "elsewhere", "ai.model": "m"}));
    let refused = world.refusal_of(StartRun { configurable: elsewhere, ..request("asks") }).await;
    assert_eq!(refused.details["provider"], "elsewhere");
    let here = map(json!({"ai": {"provider": "brain", "model": "chosen"}}));
    let run = world.host.start_run(&who(), StartRun { configurable: here, ..request("asks") }, None).await.unwrap();
    assert_eq!(world.ended(&run.run_id).await.status, RunStatus::Completed);
    assert_eq!(brain.asked.lock()[0].semantic.model, "chosen");
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// Calls everything it can think of, whether it was offered or not.
struct Greedy {
    brain: Arc<Brain>,
    a: Arc<Sink>,
    b: Arc<Sink>,
}

impl Greedy {
    fn new(b: ToolSpec) -> Self {
        let brain = Brain::new(|request| match told(request) {
            0 => wants(&[(A, json!({})), (B, json!({})), (REMEMBER, json!({"content": "greedy"}))]),
            _ => says("done"),
        });
        Self { brain, a: Sink::new(A, OutcomePolicy::Ask), b: Sink::of(b) }
    }

    async fn world(&self, allowed: &[&str], more: impl FnOnce(Options) -> Options) -> World {
        let tools: Vec<Arc<dyn baton_tool::Tool>> = vec![Arc::clone(&self.a) as _, Arc::clone(&self.b) as _];
        let options = more(options(vec![armed(AGENT, allowed)], &self.brain, tools, 512));
        let world = World::open(Disk::default(), Arc::default(), options).await;
        world.register(asks("asks", AGENT)).await;
        world.register(parent("calls", call("asks"))).await;
        world.register(delegate("leads", "calls")).await;
        let narrow = json!({"agentId": AGENT, "tools": [B, REMEMBER]});
        world.register(Flow::new("narrow").node_with("work", "vendor.baton.agent", narrow, task("Do it."))).await;
        world
    }

    fn offered(&self) -> Vec<String> {
        let request = self.brain.asked.lock()[0].clone();
        request.semantic.tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The run of the tree that the agent works in.
async fn agents_run(world: &World) -> RunId {
    let rows = world.rows().await;
    rows.into_iter().find(|row| ["asks", "narrow"].contains(&row.workflow.as_str())).unwrap().id
}

#[tokio::test]
async fn an_agent_has_the_tools_that_everybody_lets_it_have() {
    let all = [A, B, REMEMBER];
    // The workflow, what the manifest allows, what the caller grants, and what is left.
    type Case<'a> = (&'a str, &'a [&'a str], Option<Value>, &'a [&'a str]);
    let cases: [Case<'_>; 12] = [
        ("asks", &all, None, &all),
        ("asks", &[A], None, &[A]),
        ("asks", &["mcp:srv"], None, &[A, B]),
        ("asks", &all, Some(json!([A])), &[A]),
        ("asks", &[A], Some(json!([A, B, REMEMBER])), &[A]),
        ("asks", &all, Some(json!([])), &[]),
        ("asks", &all, Some(json!(["mcp:srv"])), &[A, B]),
        ("asks", &all, Some(json!(["mcp:*", "mcp:srv.", "*"])), &[]),
        ("narrow", &all, None, &[B, REMEMBER]),
        ("narrow", &all, Some(json!([A, REMEMBER])), &[REMEMBER]),
        // Children, and theirs, get no more than the run they descend from.
        ("calls", &all, Some(json!([B])), &[B]),
        ("leads", &all, Some(json!([A])), &[A]),
    ];
    for (workflow, allowed, grant, left) in cases {
        let context = format!("{workflow}, {allowed:?} allowed, {grant:?} granted");
        let greedy = Greedy::new(Sink::spec(B, OutcomePolicy::Ask));
        let world = greedy.world(allowed, |options| options).await;
        let configurable = grant.map(|grant| map(json!({"toolGrant": grant}))).unwrap_or_default();
        let start = StartRun { configurable, ..request(workflow) };
        let root = world.host.start_run(&who(), start, None).await.unwrap().run_id;
        world.drive(0).await;
        assert_eq!(world.status(&root).await, RunStatus::Completed, "{context}");
        let run = agents_run(&world).await;
        let mut offered = greedy.offered();
        offered.sort();
        assert_eq!(offered, left, "{context}: what the model is offered");
        let called: Vec<String> = world
            .events_of(&run)
            .await
            .into_iter()
            .filter_map(|event| match event {
                Event::AgentToolCalled(event) => Some(event.tool_name),
                _ => None,
            })
            .collect();
        assert_eq!(called, left, "{context}: what the log says was called");
        let has = |tool: &str| usize::from(left.contains(&tool));
        assert_eq!((greedy.a.count(), greedy.b.count()), (has(A), has(B)), "{context}: what was called");
        assert_eq!(world.kinds_of(&run, "memory.written").await.len(), has(REMEMBER), "{context}");
        let refused = world.outcomes_of(&run).await.into_iter().filter(|(.., error)| error.is_some());
        let refused: Vec<_> = refused.map(|(tool, status, error)| (tool, status, error.unwrap())).collect();
        let kept_back = all.into_iter().filter(|tool| !left.contains(tool));
        let kept_back: Vec<_> =
            kept_back.map(|tool| (tool.to_owned(), json!("forbidden"), code::FORBIDDEN.to_owned())).collect();
        assert_eq!(refused, kept_back, "{context}: the model is told");
        assert!(heard(&greedy.brain.asked.lock()[1]).contains("There is no such tool here") || kept_back.is_empty());
        world.audit_agents(&context).await;
    }
}

#[tokio::test]
async fn a_grant_that_is_none_is_refused() {
    let greedy = Greedy::new(Sink::spec(B, OutcomePolicy::Ask));
    let world = greedy.world(&[A], |options| options).await;
    for grant in [json!("mcp:srv.a"), json!({"a": 1}), json!([1]), json!(null)] {
        let configurable = map(json!({"toolGrant": grant}));
        let refused = world.refusal_of(StartRun { configurable, ..request("asks") }).await;
        assert_eq!(refused.details["key"], "toolGrant", "{grant}");
    }
    assert_eq!(greedy.brain.count(), 0);
}

/// Allowed by the manifest, but not to whoever started the run: announced, refused, not called.
#[tokio::test]
async fn a_caller_without_a_tools_scopes_does_not_get_it_called() {
    let guarded = || ToolSpec { scopes: vec!["memory:write".to_owned()], ..Sink::spec(B, OutcomePolicy::Ask) };
    let holding = |scopes: Vec<Scope>| Principal { scopes: Scopes::of(scopes), ..who() };
    let without = holding(vec![Scope::RunsCreate, Scope::RunsRead]);
    let holder = holding(vec![Scope::RunsCreate, Scope::MemoryWrite]);
    for (caller, workflow, allowed) in [
        (who(), "asks", true),
        (holder.clone(), "asks", true),
        (without.clone(), "asks", false),
        (without, "leads", false),
        (holder, "leads", true),
    ] {
        let context = format!("{workflow}, {:?}", caller.scopes);
        let greedy = Greedy::new(guarded());
        let world = greedy.world(&[A, B], |options| options).await;
        world.host.start_run(&caller, request(workflow), None).await.unwrap();
        world.drive(0).await;
        let run = agents_run(&world).await;
        assert_eq!((greedy.a.count(), greedy.b.count()), (1, usize::from(allowed)), "{context}");
        let calls = world.calls_of(&run, B).await;
        assert_eq!((calls.announced, calls.returned), (1, 1), "{context}: a full pair");
        let events = world.events_of(&run).await.into_iter();
        let mut returned = events.filter_map(|event| match event {
            Event::AgentToolReturned(event) if event.tool_name == B => Some(event),
            _ => None,
        });
        let returned = returned.next_back().unwrap();
        assert_eq!(json!(returned.status), if allowed { json!("ok") } else { json!("forbidden") }, "{context}");
        if !allowed {
            let error = returned.error.unwrap();
            assert_eq!((error.code.as_str(), returned.duration_ms), (code::FORBIDDEN, None), "{context}");
            let details = error.details.unwrap();
            assert_eq!(details["scope"], "tool");
            assert_eq!((&details["toolName"], &details["requiredScopes"]), (&json!(B), &json!(["memory:write"])));
        }
        world.audit_agents(&context).await;
    }
}

/// The same for what agents remember and write: these tools are in this process, and need scopes like any other.
#[tokio::test]
async fn a_caller_without_the_scope_for_memory_has_nothing_remembered() {
    let holding = |scopes: Vec<Scope>| Principal { scopes: Scopes::of(scopes), ..who() };
    for (scopes, allowed) in [(vec![Scope::RunsCreate, Scope::MemoryRead], false), (vec![Scope::MemoryWrite], true)] {
        let greedy = Greedy::new(Sink::spec(B, OutcomePolicy::Ask));
        let world = greedy.world(&[REMEMBER], |options| options).await;
        let run = world.host.start_run(&holding(scopes), request("asks"), None).await.unwrap().run_id;
        world.completed_with(&run, &json!("done"), "remembers").await;
        let remembered: &[&str] = if allowed { &["greedy"] } else { &[] };
        assert_eq!(world.recall(run.as_str()).await, remembered);
        assert_eq!(world.calls_of(&run, REMEMBER).await.announced, 1, "a full pair");
        let outcomes = world.outcomes_of(&run).await;
        let (_, status, error) = outcomes.into_iter().find(|(tool, ..)| tool == REMEMBER).unwrap();
        assert_eq!(status, if allowed { json!("ok") } else { json!("forbidden") });
        assert_eq!(error.as_deref(), (!allowed).then_some(code::FORBIDDEN));
        world.audit_agents("remembers").await;
    }
}

/// What an agent is reminded of, and what a supervisor is shown of memory and files, its answers may repeat: nobody gets
/// to read through them what they may not read.
#[tokio::test]
async fn a_caller_without_the_scope_reads_nothing_through_an_agent() {
    let holding = |scopes: &[Scope]| Principal {
        scopes: Scopes::of([Scope::RunsCreate, Scope::RunsRead].iter().chain(scopes).copied()),
        ..who()
    };
    let brain = Brain::new(|_| says(r#"{"kind": "terminate"}"#));
    let remembering = AgentCard { memory: MemoryShape { long_term: true, ..MemoryShape::default() }, ..card(AGENT) };
    let world = World::open(Disk::default(), Arc::default(), options(vec![remembering], &brain, Vec::new(), 512)).await;
    let note = json!({"content": "the note"});
    let file = json!({"path": "plan.md", "content": "the file"});
    let writes = Flow::new("writes").node("a", "vendor.baton.memory.put", note);
    world.register(writes.node("b", "vendor.baton.workspace.put", file)).await;
    world.register(asks("asks", AGENT)).await;
    world.register(parent("calls", call("asks"))).await;
    let leads = Flow::new("leads").node("lead", "core.orchestrator.supervisor", json!({"agentId": AGENT}));
    world.register(leads.node("send", "core.dispatch", json!({}))).await;
    let shared = |workflow: &str| StartRun { scope_id: Some("shared".to_owned()), ..request(workflow) };
    let wrote = world.host.start_run(&who(), shared("writes"), None).await.unwrap().run_id;
    assert_eq!(world.ended(&wrote).await.status, RunStatus::Completed);

    let (memory, files) = (Scope::MemoryRead, Scope::WorkspaceRead);
    let cases: [(&str, &[Scope], bool, bool); 9] = [
        ("asks", &[], false, false),
        ("asks", &[files, Scope::MemoryWrite], false, false),
        ("asks", &[memory], true, false),
        ("calls", &[], false, false),
        ("calls", &[memory], true, false),
        ("leads", &[], false, false),
        ("leads", &[memory], true, false),
        ("leads", &[files], false, true),
        ("leads", &[memory, files], true, true),
    ];
    for (workflow, scopes, note, file) in cases {
        let context = format!("{workflow} with {scopes:?}");
        let run = world.host.start_run(&holding(scopes), shared(workflow), None).await.unwrap().run_id;
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "{context}");
        let heard = brain.heard();
        assert_eq!((heard.contains("the note"), heard.contains("the file")), (note, file), "{context}: {heard}");
        let bound = world.events_of(&run).await.into_iter().find_map(|event| match event {
            Event::AgentInvocationStarted(event) => Some(event.memory_bound),
            _ => None,
        });
        if workflow != "calls" {
            assert_eq!(bound, Some(note.then_some(true)), "{context}");
        }
    }
    world.audit_agents("reads").await;
}

/// What a host knows fills the gaps of a prompt, and a moment that was told stays the one it was.
#[tokio::test]
async fn a_prompt_may_say_where_and_when_it_is_used() {
    let brain = Brain::new(|_| says("done"));
    let world = World::open(Disk::default(), Arc::default(), options(vec![card(AGENT)], &brain, Vec::new(), 512)).await;
    world.register(asks("asks", AGENT)).await;
    let names = ["workflowId", "workflowName", "currentUserId", "tenantId", "nodeId", "runId", "now"];
    let text = names.map(|name| format!("{name}=[{{{{{name}}}}}]")).join(" ");
    let configurable = map(json!({"promptOverrides": {"system": text}}));
    let asked = StartRun { configurable, ..request("asks") };
    let run = world.host.start_run(&who(), asked, None).await.unwrap().run_id;
    world.completed_with(&run, &json!("done"), "context").await;
    let heard = brain.heard();
    let found = |name: &str| {
        let (_, rest) = heard.split_once(&format!("{name}=[")).unwrap_or_else(|| panic!("{heard}"));
        rest.split_once(']').unwrap().0.to_owned()
    };
    let known = ["workflowId", "workflowName", "currentUserId", "tenantId", "nodeId", "runId"].map(found);
    let who = who();
    assert_eq!(known, ["asks", "asks", who.subject.as_str(), who.tenant.as_str(), "work", run.as_str()]);
    let began = world.records_of(&run).await[0].at;
    assert!(found("now") >= began.to_string() && found("now").ends_with('Z'), "{}", found("now"));
    world.audit_agents("context").await;
}

/// A run that is one agent ends with what the agent said.
#[tokio::test]
async fn the_result_of_a_run_that_is_one_agent_is_the_agents() {
    let brain = Brain::new(|_| says("done"));
    let world = World::open(Disk::default(), Arc::default(), options(vec![card(AGENT)], &brain, Vec::new(), 512)).await;
    for door in [InvocationSource::RunApi, InvocationSource::ChatMention] {
        let run = world.host.start_agent(&who(), AGENT, door, StartRun::default(), None).await.unwrap().run_id;
        world.completed_with(&run, &json!("done"), "one agent").await;
        let outputs = world.events_of(&run).await.into_iter().find_map(|event| match event {
            Event::RunCompleted(event) => event.outputs,
            _ => None,
        });
        assert_eq!(outputs, Some(json!({"result": "done"})), "{door:?}");
    }
    world.audit_agents("one agent").await;
}

/// One bucket for each caller and tool. An empty one: announced, refused, not called.
#[tokio::test]
async fn a_caller_that_calls_too_often_waits() {
    let greedy = Greedy::new(Sink::spec(B, OutcomePolicy::Ask));
    let one = NonZeroU32::new(1).unwrap();
    // Time stands still, so nothing is filled up again.
    let limits = Arc::new(ToolLimits::with_clock(one, one, || Duration::ZERO));
    let world = greedy.world(&[A, REMEMBER], |options| Options { tool_limits: Some(limits), ..options }).await;
    let other_key = Principal { subject: "key-2".to_owned(), ..who() };
    for (caller, count, status) in [(who(), 1, "ok"), (who(), 1, "rate_limited"), (other_key, 2, "ok")] {
        let run = world.host.start_run(&caller, request("asks"), None).await.unwrap().run_id;
        world.completed_with(&run, &json!("done"), status).await;
        assert_eq!(greedy.a.count(), count, "{}", caller.subject);
        for tool in [A, REMEMBER] {
            let (_, told, error) = world.outcomes_of(&run).await.into_iter().find(|(of, ..)| of == tool).unwrap();
            assert_eq!(told, json!(status), "{tool}, {}", caller.subject);
            assert_eq!(error.is_some(), status != "ok");
            assert_eq!(world.calls_of(&run, tool).await.announced, 1, "a full pair");
        }
        assert_eq!(world.recall(run.as_str()).await.len(), usize::from(status == "ok"));
    }
    world.audit_agents("too often").await;
    let mut principals = Vec::new();
    for row in world.rows().await {
        principals.extend(world.events_of(&row.id).await.into_iter().filter_map(|event| match event {
            Event::AgentToolCalled(event) if event.tool_name == A => event.principal,
            _ => None,
        }));
    }
    assert_eq!(principals, ["key-1", "key-1", "key-2"]);
}
